"""Blocks and data versions of tables.

Generated from `olapdb.catalog.core.blocks` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

insert_block = CatalogStatement(
    "INSERT INTO blocks (table_id, number, commit_number, row_count, query_id, kind, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ("table_id", "number", "commit_number", "row_count", "query_id", "kind", "created_ms"),
)
newest_block = CatalogStatement(
    "SELECT max(blocks.number) AS max_1  FROM blocks  WHERE blocks.table_id = ?", ("of_table",)
)
newest_block_at = CatalogStatement(
    "SELECT blocks.number  "
    "FROM blocks  "
    "WHERE blocks.table_id = ? AND blocks.commit_number <= ? ORDER BY blocks.number DESC",
    ("of_table", "at_commit"),
)
blocks_at = CatalogStatement(
    "SELECT blocks.table_id, blocks.number, blocks.commit_number, blocks.row_count, blocks.query_id, blocks.kind, blocks.created_ms  "
    "FROM blocks  "
    "WHERE blocks.table_id = ? AND blocks.commit_number <= ? ORDER BY blocks.number",
    ("of_table", "at_commit"),
)
block_span_at = CatalogStatement(
    "SELECT count(*) AS count_1, min(blocks.created_ms) AS min_1  "
    "FROM blocks  "
    "WHERE blocks.table_id = ? AND blocks.number >= ? AND blocks.number <= ? AND blocks.commit_number <= ?",
    ("of_table", "first", "last", "at_commit"),
)
insert_span = CatalogStatement(
    "INSERT INTO block_spans (table_id, last_block, first_block, first_commit, last_commit, row_count, oldest_ms, newest_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    (
        "table_id",
        "last_block",
        "first_block",
        "first_commit",
        "last_commit",
        "row_count",
        "oldest_ms",
        "newest_ms",
    ),
)
spans_of = CatalogStatement(
    "SELECT block_spans.first_block, block_spans.last_block, block_spans.first_commit, block_spans.last_commit, block_spans.row_count, block_spans.oldest_ms, block_spans.newest_ms  "
    "FROM block_spans  "
    "WHERE block_spans.table_id = ? ORDER BY block_spans.last_block",
    ("of_table",),
)
delete_spans = CatalogStatement(
    "DELETE FROM block_spans WHERE block_spans.table_id = ?", ("of_table",)
)
delete_blocks = CatalogStatement(
    "DELETE FROM blocks WHERE blocks.table_id = ? AND blocks.number >= ? AND blocks.number <= ?",
    ("of_table", "first", "last"),
)
blocks_until = CatalogStatement(
    "SELECT blocks.number, blocks.commit_number, blocks.row_count, blocks.created_ms  "
    "FROM blocks  "
    "WHERE blocks.table_id = ? AND blocks.commit_number <= ? AND blocks.number < ? AND blocks.number > ? ORDER BY blocks.number",
    ("of_table", "up_to", "before", "after"),
)
block_counts_until = CatalogStatement(
    "SELECT blocks.table_id, count(*) AS count_1  "
    "FROM blocks  "
    "WHERE blocks.commit_number <= ? GROUP BY blocks.table_id",
    ("up_to",),
)
commits_of_failures = CatalogStatement(
    "SELECT DISTINCT invalidations.created_commit  "
    "FROM invalidations  "
    "WHERE invalidations.cause = 'VIEW FAILED' AND (invalidations.dropped_commit IS NULL OR invalidations.dropped_commit > ?)",
    ("up_to",),
)
purge_older_versions = CatalogStatement(
    "DELETE FROM data_versions WHERE data_versions.commit_number <= ? AND (EXISTS (SELECT *  "
    "FROM data_versions AS data_versions_1  "
    "WHERE data_versions_1.table_id = data_versions.table_id AND data_versions_1.partition_id = data_versions.partition_id AND data_versions_1.version > data_versions.version AND data_versions_1.commit_number <= ?))",
    ("up_to", "up_to"),
)
insert_data_version = CatalogStatement(
    "INSERT INTO data_versions (table_id, partition_id, version, commit_number) VALUES (?, ?, ?, ?)",
    ("table_id", "partition_id", "version", "commit_number"),
)
data_versions_at = CatalogStatement(
    "SELECT data_versions.partition_id, max(data_versions.version) AS max_1  "
    "FROM data_versions  "
    "WHERE data_versions.table_id = ? AND data_versions.commit_number <= ? GROUP BY data_versions.partition_id",
    ("of_table", "at_commit"),
)
data_version_at = CatalogStatement(
    "SELECT max(data_versions.version) AS max_1  "
    "FROM data_versions  "
    "WHERE data_versions.table_id = ? AND data_versions.partition_id = ? AND data_versions.commit_number <= ?",
    ("of_table", "of_partition", "at_commit"),
)
