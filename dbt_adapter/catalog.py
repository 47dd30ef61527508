"""The catalog's entry of one relation, from the rows of the catalog's query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.contracts.metadata import (
    CatalogTable,
    ColumnMetadata,
    StatsDict,
    StatsItem,
    TableMetadata,
)

_PREFIX = "stats:"


def catalog_table(rows: Sequence[Mapping[str, Any]]) -> CatalogTable | None:
    """Return the entry of the relation with these columns, a row each; None without rows."""
    if not rows:
        return None
    first = rows[0]
    metadata = TableMetadata(
        type=first["table_type"],
        schema=first["table_schema"],
        name=first["table_name"],
        database=first["table_database"],
        comment=first["table_comment"],
        owner=first["table_owner"],
    )
    columns = {
        row["column_name"]: ColumnMetadata(
            type=row["column_type"],
            index=int(row["column_index"]),
            name=row["column_name"],
            comment=row["column_comment"],
        )
        for row in rows
    }
    return CatalogTable(metadata, columns, _statistics(first))


def _statistics(row: Mapping[str, Any]) -> StatsDict:
    """Return the statistics that apply to the relation, and dbt's mark of whether there are any."""
    names = dict.fromkeys(name.split(":")[1] for name in row if name.startswith(_PREFIX))
    items = {
        name: StatsItem(
            id=name,
            label=row[f"{_PREFIX}{name}:label"],
            value=_value(row[f"{_PREFIX}{name}:value"]),
            include=True,
            description=row[f"{_PREFIX}{name}:description"],
        )
        for name in names
        if row[f"{_PREFIX}{name}:include"]
    }
    items["has_stats"] = StatsItem(
        id="has_stats",
        label="Has Stats?",
        value=bool(items),
        include=False,
        description="Indicates whether there are statistics for this table",
    )
    return items


def _value(value: Any) -> bool | str | float | None:
    """Return a statistic's value as dbt stores it: a number as float."""
    return value if value is None or isinstance(value, bool | str) else float(value)
