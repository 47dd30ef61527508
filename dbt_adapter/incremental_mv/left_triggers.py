"""Triggers that go on although the project has no model for them any more: what a run warns of.

`dbt run-operation drop_orphans` looks closer, and drops them."""

from __future__ import annotations

from collections.abc import Collection

from ..relation import string_literal
from .warehouse import Warehouse, comment_body


def left_triggers(
    warehouse: Warehouse, schemas: Collection[str], unique_ids: Collection[str], project: str
) -> list[str]:
    """Return the triggers in these schemas, as `database.name`, whose comment names a model of this
    project that is not among `unique_ids`: it was deleted, renamed or disabled. Those that no INSERT fires are left
    out."""
    listed = ", ".join(string_literal(schema) for schema in sorted(schemas))
    rows = warehouse.rows(
        "SELECT database, name, comment FROM system.views WHERE standing = '' AND attached "
        f"AND database IN ({listed}) ORDER BY database, name"
    )
    left = []
    for row in rows:
        unique_id = str(comment_body(row["comment"]).get("model", ""))
        if unique_id.startswith(f"model.{project}.") and unique_id not in unique_ids:
            left.append(f"{row['database']}.{row['name']}")
    return left
