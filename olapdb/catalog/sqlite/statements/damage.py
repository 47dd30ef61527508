"""Parts known to be damaged.

Generated from `olapdb.catalog.core.damage` by `python -m olapdb.catalog.core.generate`.
"""

from olapdb.catalog.sqlite.statements.base import CatalogStatement

insert_damaged = CatalogStatement(
    "INSERT INTO damaged_parts (part_id, table_id, part, reason, found_ms) VALUES (?, ?, ?, ?, ?)",
    ("part_id", "table_id", "part", "reason", "found_ms"),
)
all_damaged = CatalogStatement(
    "SELECT damaged_parts.part_id, damaged_parts.table_id, damaged_parts.part, damaged_parts.reason, damaged_parts.found_ms  "
    "FROM damaged_parts",
    (),
)
clear_damaged = CatalogStatement(
    "DELETE FROM damaged_parts WHERE damaged_parts.part_id IN (SELECT anon_1.value  "
    "FROM json_each(?) AS anon_1)",
    ("part_ids",),
)
clear_damaged_of_dropped = CatalogStatement(
    "DELETE FROM damaged_parts WHERE (damaged_parts.part_id NOT IN (SELECT parts.id  "
    "FROM parts  "
    "WHERE parts.dropped_commit IS NULL))",
    (),
)
clear_all_damaged = CatalogStatement("DELETE FROM damaged_parts", ())
