"""The DDL of the catalog's tables.

Generated from `olapdb.catalog.core.tables` by `python -m olapdb.catalog.core.generate`.
"""

DDL_OF_TABLE = {
    "accepted_keys": (
        "\nCREATE TABLE accepted_keys (\n\trow_id INTEGER NOT NULL, \n\ttable_id TEXT NOT NULL, \n\tfirst_ordinal INTEGER NOT NULL, \n\tnext_ordinal INTEGER NOT NULL, \n\ttier INTEGER NOT NULL, \n\tnewest_ms INTEGER NOT NULL, \n\tsegments BLOB NOT NULL, \n\thashes BLOB NOT NULL, \n\tPRIMARY KEY (row_id)\n)\n\n",
        "CREATE INDEX accepted_keys_by_ordinal ON accepted_keys (table_id, first_ordinal)",
    ),
    "block_spans": (
        "\nCREATE TABLE block_spans (\n\ttable_id TEXT NOT NULL, \n\tlast_block INTEGER NOT NULL, \n\tfirst_block INTEGER NOT NULL, \n\tfirst_commit INTEGER NOT NULL, \n\tlast_commit INTEGER NOT NULL, \n\trow_count INTEGER NOT NULL, \n\toldest_ms INTEGER NOT NULL, \n\tnewest_ms INTEGER NOT NULL, \n\tPRIMARY KEY (table_id, last_block)\n)\n WITHOUT ROWID\n\n",
    ),
    "blocks": (
        "\nCREATE TABLE blocks (\n\ttable_id TEXT NOT NULL, \n\tnumber INTEGER NOT NULL, \n\tcommit_number INTEGER NOT NULL, \n\trow_count INTEGER NOT NULL, \n\tquery_id TEXT NOT NULL, \n\tkind TEXT NOT NULL, \n\tcreated_ms INTEGER NOT NULL, \n\tPRIMARY KEY (table_id, number)\n)\n WITHOUT ROWID\n\n",
    ),
    "checks": (
        "\nCREATE TABLE checks (\n\tid INTEGER NOT NULL, \n\tview_id TEXT NOT NULL, \n\ttarget_partition TEXT NOT NULL, \n\tbody TEXT NOT NULL, \n\tcreated_commit INTEGER NOT NULL, \n\tdropped_commit INTEGER, \n\tPRIMARY KEY (id)\n)\n\n",
        "CREATE INDEX checks_by_slice ON checks (view_id, target_partition)",
    ),
    "commits": (
        "\nCREATE TABLE commits (\n\tnumber INTEGER NOT NULL, \n\tid TEXT NOT NULL, \n\tkind TEXT NOT NULL, \n\tquery_id TEXT NOT NULL, \n\tstatement TEXT NOT NULL, \n\ttime_ms INTEGER NOT NULL, \n\tprocess_id INTEGER NOT NULL, \n\tPRIMARY KEY (number)\n)\n\n",
    ),
    "coverage": (
        "\nCREATE TABLE coverage (\n\trow_id INTEGER NOT NULL, \n\tview_id TEXT NOT NULL, \n\tpartition_id TEXT, \n\tfirst_block INTEGER NOT NULL, \n\tlast_block INTEGER NOT NULL, \n\tcreated_commit INTEGER NOT NULL, \n\tdropped_commit INTEGER, \n\tPRIMARY KEY (row_id)\n)\n\n",
        "CREATE INDEX coverage_by_view ON coverage (view_id, last_block)",
    ),
    "damaged_parts": (
        "\nCREATE TABLE damaged_parts (\n\tpart_id TEXT NOT NULL, \n\ttable_id TEXT NOT NULL, \n\tpart TEXT NOT NULL, \n\treason TEXT NOT NULL, \n\tfound_ms INTEGER NOT NULL, \n\tPRIMARY KEY (part_id)\n)\n WITHOUT ROWID\n\n",
    ),
    "data_versions": (
        "\nCREATE TABLE data_versions (\n\ttable_id TEXT NOT NULL, \n\tpartition_id TEXT NOT NULL, \n\tversion INTEGER NOT NULL, \n\tcommit_number INTEGER NOT NULL, \n\tPRIMARY KEY (table_id, partition_id, version)\n)\n WITHOUT ROWID\n\n",
    ),
    "databases": (
        "\nCREATE TABLE databases (\n\trow_id INTEGER NOT NULL, \n\tid TEXT NOT NULL, \n\tname TEXT NOT NULL, \n\tcomment TEXT NOT NULL, \n\tcreated_commit INTEGER NOT NULL, \n\tdropped_commit INTEGER, \n\tPRIMARY KEY (row_id)\n)\n\n",
    ),
    "dropped_tables": (
        "\nCREATE TABLE dropped_tables (\n\ttable_id TEXT NOT NULL, \n\tbody TEXT NOT NULL, \n\tpart_count INTEGER NOT NULL, \n\tdropped_commit INTEGER NOT NULL, \n\tdropped_ms INTEGER NOT NULL, \n\tPRIMARY KEY (table_id)\n)\n\n",
    ),
    "inline_rows": (
        "\nCREATE TABLE inline_rows (\n\tpart_id TEXT NOT NULL, \n\tdata BLOB NOT NULL, \n\tPRIMARY KEY (part_id)\n)\n\n",
    ),
    "invalidations": (
        "\nCREATE TABLE invalidations (\n\tid INTEGER NOT NULL, \n\tview_id TEXT NOT NULL, \n\ttarget_partition TEXT, \n\tcause TEXT NOT NULL, \n\tstatement TEXT NOT NULL, \n\tquery_id TEXT NOT NULL, \n\trow_count INTEGER NOT NULL, \n\tsince_ms INTEGER NOT NULL, \n\texample_keys TEXT NOT NULL, \n\tcreated_commit INTEGER NOT NULL, \n\tdropped_commit INTEGER, \n\tPRIMARY KEY (id)\n)\n\n",
        "CREATE INDEX invalidations_live ON invalidations (view_id, dropped_commit)",
    ),
    "key_ledgers": (
        "\nCREATE TABLE key_ledgers (\n\ttable_id TEXT NOT NULL, \n\tdefinition TEXT NOT NULL, \n\tepoch INTEGER NOT NULL, \n\toldest INTEGER NOT NULL, \n\tnext INTEGER NOT NULL, \n\tnewest_ms INTEGER NOT NULL, \n\tdropped INTEGER NOT NULL, \n\tPRIMARY KEY (table_id)\n)\n WITHOUT ROWID\n\n",
    ),
    "leases": (
        "\nCREATE TABLE leases (\n\tid TEXT NOT NULL, \n\tpurpose TEXT NOT NULL, \n\towner TEXT NOT NULL, \n\tprocess_id INTEGER NOT NULL, \n\tstate TEXT NOT NULL, \n\topened_ms INTEGER NOT NULL, \n\trenewed_ms INTEGER NOT NULL, \n\tPRIMARY KEY (id)\n)\n\n",
    ),
    "meta": (
        '\nCREATE TABLE meta (\n\t"key" TEXT NOT NULL, \n\tvalue TEXT NOT NULL, \n\tPRIMARY KEY ("key")\n)\n\n',
    ),
    "objects": (
        "\nCREATE TABLE objects (\n\trow_id INTEGER NOT NULL, \n\tid TEXT NOT NULL, \n\tkind TEXT NOT NULL, \n\tbody TEXT NOT NULL, \n\tcreated_commit INTEGER NOT NULL, \n\tdropped_commit INTEGER, \n\tPRIMARY KEY (row_id)\n)\n\n",
        "CREATE INDEX objects_by_id ON objects (id)",
    ),
    "parts": (
        "\nCREATE TABLE parts (\n\trow_id INTEGER NOT NULL, \n\tid TEXT NOT NULL, \n\ttable_id TEXT NOT NULL, \n\tpartition_id TEXT NOT NULL, \n\tfirst_block INTEGER NOT NULL, \n\tlast_block INTEGER NOT NULL, \n\tlevel INTEGER NOT NULL, \n\trows INTEGER NOT NULL, \n\tbytes INTEGER NOT NULL, \n\tpath TEXT NOT NULL, \n\tinline INTEGER NOT NULL, \n\tcreated_commit INTEGER NOT NULL, \n\tdropped_commit INTEGER, \n\tdropped_ms INTEGER, \n\trest TEXT NOT NULL, \n\tPRIMARY KEY (row_id)\n)\n\n",
        "CREATE INDEX parts_by_id ON parts (id)",
        "CREATE INDEX parts_by_path ON parts (path) WHERE path != ''",
        "CREATE INDEX parts_created ON parts (created_commit)",
        "CREATE INDEX parts_dropped ON parts (dropped_commit) WHERE dropped_commit IS NOT NULL",
        "CREATE INDEX parts_live ON parts (table_id) WHERE dropped_commit IS NULL",
    ),
    "retained": (
        "\nCREATE TABLE retained (\n\trow_id INTEGER NOT NULL, \n\tview_id TEXT NOT NULL, \n\tside TEXT NOT NULL, \n\tpartition_id TEXT NOT NULL, \n\tbody TEXT NOT NULL, \n\tcreated_commit INTEGER NOT NULL, \n\tdropped_commit INTEGER, \n\tPRIMARY KEY (row_id)\n)\n\n",
        "CREATE INDEX retained_by_view ON retained (view_id, dropped_commit)",
    ),
    "source_offsets": (
        "\nCREATE TABLE source_offsets (\n\trow_id INTEGER NOT NULL, \n\ttable_id TEXT NOT NULL, \n\tstream TEXT NOT NULL, \n\tposition INTEGER NOT NULL, \n\ttoken TEXT NOT NULL, \n\ttime_ms INTEGER NOT NULL, \n\tcreated_commit INTEGER NOT NULL, \n\tdropped_commit INTEGER, \n\tPRIMARY KEY (row_id)\n)\n\n",
        "CREATE INDEX source_offsets_by_stream ON source_offsets (table_id, stream)",
    ),
    "tokens": (
        "\nCREATE TABLE tokens (\n\ttable_id TEXT NOT NULL, \n\ttoken TEXT NOT NULL, \n\tcommit_number INTEGER NOT NULL, \n\tcreated_ms INTEGER NOT NULL, \n\tPRIMARY KEY (table_id, token)\n)\n WITHOUT ROWID\n\n",
    ),
    "view_job_chunks": (
        "\nCREATE TABLE view_job_chunks (\n\tjob_id TEXT NOT NULL, \n\tchunk INTEGER NOT NULL, \n\tpartition_id TEXT NOT NULL, \n\tparts INTEGER NOT NULL, \n\trow_count INTEGER NOT NULL, \n\tbyte_count INTEGER NOT NULL, \n\tstate TEXT NOT NULL, \n\ttarget_rows INTEGER NOT NULL, \n\tcommit_number INTEGER NOT NULL, \n\telapsed_ms INTEGER NOT NULL, \n\tfinished_ms INTEGER NOT NULL, \n\terror TEXT NOT NULL, \n\tPRIMARY KEY (job_id, chunk)\n)\n WITHOUT ROWID\n\n",
    ),
    "view_jobs": (
        '\nCREATE TABLE view_jobs (\n\tid TEXT NOT NULL, \n\tview_id TEXT NOT NULL, \n\t"view" TEXT NOT NULL, \n\tkind TEXT NOT NULL, \n\tlease_id TEXT NOT NULL, \n\tprocess_id INTEGER NOT NULL, \n\tquery_id TEXT NOT NULL, \n\tstatement TEXT NOT NULL, \n\texecutor TEXT NOT NULL, \n\tstaged INTEGER NOT NULL, \n\tstarted_ms INTEGER NOT NULL, \n\tstate TEXT NOT NULL, \n\tfinished_ms INTEGER NOT NULL, \n\terror TEXT NOT NULL, \n\tchunk_count INTEGER NOT NULL, \n\tPRIMARY KEY (id)\n)\n\n',
    ),
}
