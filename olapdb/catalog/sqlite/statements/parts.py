"""Parts, and the rows of inline parts, as of a commit.

Generated from `olapdb.catalog.core.parts` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

insert_part = CatalogStatement(
    "INSERT INTO parts (id, table_id, partition_id, first_block, last_block, level, rows, bytes, path, inline, created_commit, dropped_commit, dropped_ms, rest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    (
        "id",
        "table_id",
        "partition_id",
        "first_block",
        "last_block",
        "level",
        "rows",
        "bytes",
        "path",
        "inline",
        "created_commit",
        "dropped_commit",
        "dropped_ms",
        "rest",
    ),
)
insert_inline = CatalogStatement(
    "INSERT INTO inline_rows (part_id, data) VALUES (?, ?)", ("part_id", "data")
)
inline_of_part = CatalogStatement(
    "SELECT inline_rows.data  FROM inline_rows  WHERE inline_rows.part_id = ?", ("of_part",)
)
parts_at = CatalogStatement(
    "SELECT parts.id, parts.table_id, parts.partition_id, parts.first_block, parts.last_block, parts.level, parts.rows, parts.bytes, parts.path, parts.inline, parts.created_commit, parts.rest  "
    "FROM parts  "
    "WHERE parts.table_id = ? AND parts.dropped_commit IS NULL AND parts.created_commit <= ? UNION ALL SELECT parts.id, parts.table_id, parts.partition_id, parts.first_block, parts.last_block, parts.level, parts.rows, parts.bytes, parts.path, parts.inline, parts.created_commit, parts.rest  "
    "FROM parts  "
    "WHERE parts.dropped_commit > ? AND parts.table_id = ? AND parts.created_commit <= ?",
    ("of_table", "number", "number", "of_table", "number"),
)
parts_created_since = CatalogStatement(
    "SELECT parts.id, parts.table_id, parts.partition_id, parts.first_block, parts.last_block, parts.level, parts.rows, parts.bytes, parts.path, parts.inline, parts.created_commit, parts.rest  "
    "FROM parts  "
    "WHERE parts.created_commit > ? AND parts.created_commit <= ?",
    ("after", "up_to"),
)
parts_dropped_since = CatalogStatement(
    "SELECT parts.table_id, parts.id, parts.dropped_commit  "
    "FROM parts  "
    "WHERE parts.dropped_commit > ? AND parts.dropped_commit <= ?",
    ("after", "up_to"),
)
live_parts_of = CatalogStatement(
    "SELECT parts.id, parts.partition_id, parts.first_block, parts.last_block  "
    "FROM parts  "
    "WHERE parts.table_id = ? AND parts.dropped_commit IS NULL",
    ("of_table",),
)
live_parts_in = CatalogStatement(
    "SELECT parts.id, parts.partition_id, parts.first_block, parts.last_block  "
    "FROM parts  "
    "WHERE parts.table_id = ? AND parts.partition_id = ? AND parts.dropped_commit IS NULL",
    ("of_table", "partition"),
)
live_parts_named = CatalogStatement(
    "SELECT parts.id, parts.partition_id, parts.first_block, parts.last_block  "
    "FROM parts  "
    "WHERE parts.id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1) AND (+ parts.table_id) = ? AND parts.dropped_commit IS NULL",
    ("part_ids", "of_table"),
)
drop_parts = CatalogStatement(
    "UPDATE parts SET dropped_commit=?, dropped_ms=? WHERE parts.id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1) AND (+ parts.table_id) = ? AND parts.dropped_commit IS NULL",
    ("number", "now_ms", "part_ids", "of_table"),
)
parts_dropped_with = CatalogStatement(
    "SELECT parts.id, parts.table_id, parts.partition_id, parts.first_block, parts.last_block, parts.level, parts.rows, parts.bytes, parts.path, parts.inline, parts.created_commit, parts.rest  "
    "FROM parts  "
    "WHERE parts.dropped_commit = ? AND parts.table_id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1)",
    ("at_commit", "of_tables"),
)
drop_all_parts = CatalogStatement(
    "UPDATE parts SET dropped_commit=?, dropped_ms=? WHERE parts.table_id = ? AND parts.dropped_commit IS NULL",
    ("number", "now_ms", "of_table"),
)
dropped_parts = CatalogStatement(
    "SELECT parts.id, parts.table_id, parts.partition_id, parts.first_block, parts.last_block, parts.level, parts.rows, parts.bytes, parts.path, parts.inline, parts.created_commit, parts.rest, parts.dropped_commit, parts.dropped_ms  "
    "FROM parts  "
    "WHERE parts.dropped_commit <= ? AND parts.dropped_ms <= coalesce((SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1  "
    'WHERE parts.table_id = anon_1."key"), ?) AND parts.dropped_commit >= ? ORDER BY parts.dropped_commit',
    ("up_to", "until_of", "until_ms", "after"),
)
overdue_parts = CatalogStatement(
    "SELECT count(*) AS count_1  "
    "FROM parts  "
    "WHERE parts.dropped_commit <= ? AND parts.dropped_ms <= coalesce((SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1  "
    'WHERE parts.table_id = anon_1."key"), ?)',
    ("up_to", "until_of", "until_ms"),
)
purge_parts = CatalogStatement(
    "DELETE FROM parts WHERE parts.id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1) AND parts.dropped_commit <= ?",
    ("part_ids", "up_to"),
)
purge_inline = CatalogStatement(
    "DELETE FROM inline_rows WHERE inline_rows.part_id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1) AND (inline_rows.part_id NOT IN (SELECT parts.id  "
    "FROM parts  "
    "WHERE parts.id IN (SELECT anon_2.value  "
    "FROM json_each(?) AS anon_2)))",
    ("part_ids", "part_ids"),
)
paths_still_used = CatalogStatement(
    "SELECT parts.path  "
    "FROM parts  "
    "WHERE parts.path != '' AND parts.path IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1)",
    ("paths",),
)
part_history = CatalogStatement(
    "SELECT parts.id, parts.table_id, parts.partition_id, parts.first_block, parts.last_block, parts.level, parts.rows, parts.bytes, parts.path, parts.inline, parts.created_commit, parts.rest, 0 AS dropped, commits.number, commits.kind, commits.query_id, commits.statement, commits.time_ms  "
    "FROM parts, commits  "
    "WHERE parts.created_commit = commits.number AND commits.number <= ? UNION ALL SELECT parts.id, parts.table_id, parts.partition_id, parts.first_block, parts.last_block, parts.level, parts.rows, parts.bytes, parts.path, parts.inline, parts.created_commit, parts.rest, 1 AS dropped, commits.number, commits.kind, commits.query_id, commits.statement, commits.time_ms  "
    "FROM parts, commits  "
    "WHERE parts.dropped_commit = commits.number AND commits.number <= ? ORDER BY number DESC, dropped",
    ("up_to", "up_to"),
)
all_parts = CatalogStatement(
    "SELECT parts.id, parts.table_id, parts.partition_id, parts.first_block, parts.last_block, parts.level, parts.rows, parts.bytes, parts.path, parts.inline, parts.created_commit, parts.rest  "
    "FROM parts",
    (),
)
purge_dropped_parts = CatalogStatement(
    "DELETE FROM parts WHERE parts.dropped_commit <= ?", ("up_to",)
)
purge_inline_of_dropped = CatalogStatement(
    "DELETE FROM inline_rows WHERE (inline_rows.part_id NOT IN (SELECT parts.id  "
    "FROM parts  "
    "WHERE parts.dropped_commit IS NULL OR parts.dropped_commit > ?))",
    ("up_to",),
)
all_paths = CatalogStatement("SELECT parts.path  FROM parts  WHERE parts.path != ''", ())
