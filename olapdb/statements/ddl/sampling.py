"""SAMPLE BY in CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olapdb import types
from olapdb.bind import bind_expression
from olapdb.errors import BadArguments, IllegalTypeOfColumnForFilter
from olapdb.model.schema import Table
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression

if TYPE_CHECKING:
    from olapdb.bind import BindScope


def sampling_key_of(storage: nodes.StorageClause, like: Table | None, inherits: bool) -> str:
    """Return the text of SAMPLE BY; without the clause that of `like`, if the table `inherits` its
    keys."""
    if storage.sample_by is not None:
        return to_sql(storage.sample_by)
    return like.sampling_key if like is not None and inherits else ""


def check_sampling(table: Table, scope: BindScope) -> None:
    """Raise BadArguments if the sampling key is not in the primary key, IllegalTypeOfColumnForFilter
    if it is no unsigned integer, and UnknownIdentifier if it names no column."""
    if not table.sampling_key:
        return
    data_type = bind_expression(parse_expression(table.sampling_key), table, scope).type
    primary = [item.expression for item in table.sorting_key[: table.primary_key]]
    if table.sampling_key not in primary:
        raise BadArguments(
            "Sampling expression must be present in the primary key.",
            hint=f"Say ORDER BY (…, {table.sampling_key}).",
        )
    if not isinstance(data_type, types.Integer) or data_type.signed or data_type.bits > 64:
        raise IllegalTypeOfColumnForFilter(
            f"Invalid sampling column type in storage parameters: {data_type}. Must be one unsigned"
            " integer type.",
            hint="SAMPLE BY intHash32(id), which is in the primary key too.",
        )
