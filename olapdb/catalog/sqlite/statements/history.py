"""Rows that vacuum purges: no snapshot reaches them any more.

Generated from `olapdb.catalog.core.history` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

purge_dropped_tables = CatalogStatement(
    "DELETE FROM dropped_tables WHERE dropped_tables.dropped_commit <= ? AND NOT (EXISTS (SELECT *  "
    "FROM parts  "
    "WHERE parts.dropped_commit = dropped_tables.dropped_commit AND parts.table_id = dropped_tables.table_id))",
    ("up_to",),
)
has_history = CatalogStatement(
    "SELECT 1  "
    "FROM databases  "
    "WHERE databases.dropped_commit <= ? UNION ALL SELECT 1  "
    "FROM objects  "
    "WHERE objects.dropped_commit <= ? UNION ALL SELECT 1  "
    "FROM coverage  "
    "WHERE coverage.dropped_commit <= ? UNION ALL SELECT 1  "
    "FROM invalidations  "
    "WHERE invalidations.dropped_commit <= ? UNION ALL SELECT 1  "
    "FROM checks  "
    "WHERE checks.dropped_commit <= ? UNION ALL SELECT 1  "
    "FROM source_offsets  "
    "WHERE source_offsets.dropped_commit <= ? UNION ALL SELECT 1  "
    "FROM retained  "
    "WHERE retained.dropped_commit <= ? UNION ALL SELECT 1  "
    "FROM commits  "
    "WHERE commits.number < ? UNION ALL SELECT 1  "
    "FROM dropped_tables  "
    "WHERE dropped_tables.dropped_commit <= ? AND NOT (EXISTS (SELECT *  "
    "FROM parts  "
    "WHERE parts.dropped_commit = dropped_tables.dropped_commit AND parts.table_id = dropped_tables.table_id))",
    ("up_to", "up_to", "up_to", "up_to", "up_to", "up_to", "up_to", "before", "up_to"),
)
purge_dropped = (
    CatalogStatement("DELETE FROM databases WHERE databases.dropped_commit <= ?", ("up_to",)),
    CatalogStatement("DELETE FROM objects WHERE objects.dropped_commit <= ?", ("up_to",)),
    CatalogStatement("DELETE FROM coverage WHERE coverage.dropped_commit <= ?", ("up_to",)),
    CatalogStatement(
        "DELETE FROM invalidations WHERE invalidations.dropped_commit <= ?", ("up_to",)
    ),
    CatalogStatement("DELETE FROM checks WHERE checks.dropped_commit <= ?", ("up_to",)),
    CatalogStatement(
        "DELETE FROM source_offsets WHERE source_offsets.dropped_commit <= ?", ("up_to",)
    ),
    CatalogStatement("DELETE FROM retained WHERE retained.dropped_commit <= ?", ("up_to",)),
)
tables_dropped_until = CatalogStatement(
    "SELECT objects.id  "
    "FROM objects  "
    "WHERE objects.dropped_commit <= ? AND objects.kind = 'table' UNION SELECT dropped_tables.table_id  "
    "FROM dropped_tables  "
    "WHERE dropped_tables.dropped_commit <= ? AND NOT (EXISTS (SELECT *  "
    "FROM parts  "
    "WHERE parts.dropped_commit = dropped_tables.dropped_commit AND parts.table_id = dropped_tables.table_id))",
    ("up_to", "up_to"),
)
purge_orphans = (
    CatalogStatement(
        "DELETE FROM tokens WHERE tokens.table_id IN (SELECT anon_1.value  "
        "FROM json_each(?) AS anon_1) AND (tokens.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (tokens.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        ("of_tables",),
    ),
    CatalogStatement(
        "DELETE FROM source_offsets WHERE source_offsets.table_id IN (SELECT anon_1.value  "
        "FROM json_each(?) AS anon_1) AND (source_offsets.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (source_offsets.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        ("of_tables",),
    ),
    CatalogStatement(
        "DELETE FROM key_ledgers WHERE key_ledgers.table_id IN (SELECT anon_1.value  "
        "FROM json_each(?) AS anon_1) AND (key_ledgers.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (key_ledgers.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        ("of_tables",),
    ),
    CatalogStatement(
        "DELETE FROM accepted_keys WHERE accepted_keys.table_id IN (SELECT anon_1.value  "
        "FROM json_each(?) AS anon_1) AND (accepted_keys.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (accepted_keys.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        ("of_tables",),
    ),
    CatalogStatement(
        "DELETE FROM blocks WHERE blocks.table_id IN (SELECT anon_1.value  "
        "FROM json_each(?) AS anon_1) AND (blocks.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (blocks.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        ("of_tables",),
    ),
    CatalogStatement(
        "DELETE FROM block_spans WHERE block_spans.table_id IN (SELECT anon_1.value  "
        "FROM json_each(?) AS anon_1) AND (block_spans.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (block_spans.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        ("of_tables",),
    ),
    CatalogStatement(
        "DELETE FROM data_versions WHERE data_versions.table_id IN (SELECT anon_1.value  "
        "FROM json_each(?) AS anon_1) AND (data_versions.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (data_versions.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        ("of_tables",),
    ),
)
purge_all_orphans = (
    CatalogStatement(
        "DELETE FROM tokens WHERE (tokens.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (tokens.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        (),
    ),
    CatalogStatement(
        "DELETE FROM source_offsets WHERE (source_offsets.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (source_offsets.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        (),
    ),
    CatalogStatement(
        "DELETE FROM key_ledgers WHERE (key_ledgers.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (key_ledgers.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        (),
    ),
    CatalogStatement(
        "DELETE FROM accepted_keys WHERE (accepted_keys.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (accepted_keys.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        (),
    ),
    CatalogStatement(
        "DELETE FROM blocks WHERE (blocks.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (blocks.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        (),
    ),
    CatalogStatement(
        "DELETE FROM block_spans WHERE (block_spans.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (block_spans.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        (),
    ),
    CatalogStatement(
        "DELETE FROM data_versions WHERE (data_versions.table_id NOT IN (SELECT objects.id  "
        "FROM objects)) AND (data_versions.table_id NOT IN (SELECT dropped_tables.table_id  "
        "FROM dropped_tables))",
        (),
    ),
)
purge_superseded_checks = CatalogStatement(
    "DELETE FROM checks WHERE checks.created_commit <= ? AND (checks.id NOT IN (SELECT max(checks.id) AS max_1  "
    "FROM checks  "
    "WHERE checks.created_commit <= ? GROUP BY checks.view_id, checks.target_partition))",
    ("up_to", "up_to"),
)
