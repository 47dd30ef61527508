"""Databases, tables and views as of a commit; dropped tables that can be recovered.

Generated from `olapdb.catalog.core.schema` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

insert_database = CatalogStatement(
    "INSERT INTO databases (id, name, comment, created_commit, dropped_commit) VALUES (?, ?, ?, ?, ?)",
    ("id", "name", "comment", "created_commit", "dropped_commit"),
)
drop_database = CatalogStatement(
    "UPDATE databases SET dropped_commit=? WHERE databases.name = ? AND databases.dropped_commit IS NULL",
    ("number", "of_name"),
)
databases_at = CatalogStatement(
    "SELECT databases.id, databases.name, databases.comment  "
    "FROM databases  "
    "WHERE databases.created_commit <= ? AND (databases.dropped_commit IS NULL OR databases.dropped_commit > ?)",
    ("number", "number"),
)
insert_object = CatalogStatement(
    "INSERT INTO objects (id, kind, body, created_commit, dropped_commit) VALUES (?, ?, ?, ?, ?)",
    ("id", "kind", "body", "created_commit", "dropped_commit"),
)
drop_object = CatalogStatement(
    "UPDATE objects SET dropped_commit=? WHERE objects.id = ? AND objects.dropped_commit IS NULL",
    ("number", "object_id"),
)
objects_at = CatalogStatement(
    "SELECT objects.row_id, objects.id, objects.kind, json_extract(objects.body, '$.database') AS json_extract_1, json_extract(objects.body, '$.name') AS json_extract_2, objects.body  "
    "FROM objects  "
    "WHERE objects.created_commit <= ? AND (objects.dropped_commit IS NULL OR objects.dropped_commit > ?)",
    ("number", "number"),
)
remember_dropped_table = CatalogStatement(
    "INSERT INTO dropped_tables (table_id, body, part_count, dropped_commit, dropped_ms) VALUES (?, ?, ?, ?, ?)",
    ("table_id", "body", "part_count", "dropped_commit", "dropped_ms"),
)
list_dropped_tables = CatalogStatement(
    "SELECT dropped_tables.table_id, dropped_tables.body, dropped_tables.part_count, dropped_tables.dropped_commit, dropped_tables.dropped_ms  "
    "FROM dropped_tables ORDER BY dropped_tables.dropped_commit",
    (),
)
forget_dropped_table = CatalogStatement(
    "DELETE FROM dropped_tables WHERE dropped_tables.table_id = ?", ("of_table",)
)
schema_changed = CatalogStatement(
    "SELECT 1  "
    "FROM databases  "
    "WHERE databases.created_commit > ? UNION ALL SELECT 1  "
    "FROM databases  "
    "WHERE databases.dropped_commit > ? UNION ALL SELECT 1  "
    "FROM objects  "
    "WHERE objects.created_commit > ? UNION ALL SELECT 1  "
    "FROM objects  "
    "WHERE objects.dropped_commit > ?",
    ("after", "after", "after", "after"),
)
