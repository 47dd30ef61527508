"""The plain columns that a table sorts by."""

from __future__ import annotations

from olapdb.model.schema import Table


def key_columns(table: Table) -> tuple[str | None, ...]:
    """Return the column name of each item of ORDER BY, None if the item is an expression."""
    names = (item.expression.strip("`") for item in table.sorting_key)
    return tuple(name if table.column(name) is not None else None for name in names)
