"""The target of a rebuilt view: as the old one, with the columns that the new query has.

old target   k, n SimpleAggregateFunction(sum, UInt64), note String DEFAULT ''
old query    SELECT k, count() AS n
new query    SELECT k, count() AS n, max(x) AS top
new target   k, n SimpleAggregateFunction(sum, UInt64), note String DEFAULT '',
             top SimpleAggregateFunction(max, Int64)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from olapdb.errors import Error, IllegalColumn
from olapdb.functions.base import Environment
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.plan.nodes import Plan
from olapdb.types import AggregateFunction, DataType, Nothing, SimpleAggregateFunction, plain
from olapdb.views.definition.column_compatibility import check_column
from olapdb.views.definition.column_conversion import conversion
from olapdb.views.definition.query_shape import branches, shape_of

_ADDS_UP: Mapping[str, str] = {
    "count": "sum",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "any": "any",
    "anyLast": "anyLast",
    "groupBitAnd": "groupBitAnd",
    "groupBitOr": "groupBitOr",
    "groupBitXor": "groupBitXor",
}
"""Finished aggregates that merge by another, as SimpleAggregateFunction."""


def columns_for(
    view: MaterializedView, old: Table, engine: str, plan: Plan, environment: Environment
) -> tuple[Column, ...]:
    """The columns of the new target, numbered anew.

    What the old query wrote and the new one does not is left out; what no query wrote stays; a
    type stays where the query's column has the type that it had, or it holds all values of the
    new one.  IllegalColumn for a new column that has no type (NULL only).
    """
    before = {column.name: column.type for column in view.columns}
    after = dict(zip(plan.names, plan.types, strict=True))
    aggregates, keys = _aggregates(plan), key_columns(old)
    kept: list[Column] = []
    for column in old.columns:
        name = column.name
        if name in after:
            same = _kept(column, before.get(name), after[name], environment)
            if engine != old.engine.name:
                stored = _stored(name, same.type, aggregates.get(name), engine, keys)
                same = replace(same, type=stored)
            kept.append(same)
        elif name not in before:
            kept.append(column)
    there = {column.name for column in kept}
    for name, data_type in after.items():
        if name not in there:
            stored = _stored(name, data_type, aggregates.get(name), engine, keys)
            kept.append(Column(0, name, stored))
    return tuple(replace(column, id=n, since=1) for n, column in enumerate(kept, 1))


def _kept(
    column: Column, before: DataType | None, after: DataType, environment: Environment
) -> Column:
    if before == after:
        return column
    try:
        check_column("", column.name, after, column, environment)
    except IllegalColumn:
        raise
    except Error:
        return replace(column, type=after)
    # Values of another type that the column may not hold, or would round, need their own type.
    holds = conversion(plain(after), plain(column.type)).kind == "exact"
    same = isinstance(plain(after), AggregateFunction) or plain(after) == plain(column.type)
    return column if holds or same else replace(column, type=after)


def _stored(
    name: str, data_type: DataType, aggregate: str | None, engine: str, keys: tuple[str | None, ...]
) -> DataType:
    """An AggregatingMergeTree keeps finished sums and extremes as what merges them."""
    if isinstance(plain(data_type), Nothing):
        raise IllegalColumn(
            f"The new column {name} is NULL only and has no type.", hint="CAST it to one."
        )
    merged = _ADDS_UP.get(aggregate or "")
    finished = not isinstance(plain(data_type), AggregateFunction | SimpleAggregateFunction)
    if engine == "AggregatingMergeTree" and merged and finished and name not in keys:
        return SimpleAggregateFunction(merged, data_type)
    return data_type


def _aggregates(plan: Plan) -> dict[str, str]:
    """The aggregate function that makes each of the query's columns, where just one does."""
    first = next(iter(branches(plan)))
    return {
        one.name: one.aggregate.name for one in shape_of(first).outputs if one.aggregate is not None
    }
