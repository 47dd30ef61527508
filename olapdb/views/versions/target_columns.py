"""The target columns of a rebuilt view: those of the old target, adapted to the new query.

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
"""The function of a SimpleAggregateFunction that merges finished values of each aggregate."""


def columns_for(
    view: MaterializedView, old: Table, engine: str, plan: Plan, environment: Environment
) -> tuple[Column, ...]:
    """Return the columns of the new target, with ids from 1.

    A column that only the old query wrote is dropped; a column that neither query wrote stays. A
    column keeps its type if the query's column has the same type as before, or if it holds all
    values of the new type. Raises IllegalColumn for a new column without a type (NULL only)."""
    before = {column.name: column.type for column in view.columns}
    after = dict(zip(plan.names, plan.types, strict=True))
    aggregates, keys = _aggregates(plan), key_columns(old)
    columns: list[Column] = []
    for column in old.columns:
        name = column.name
        if name in after:
            adapted = _converted(column, before.get(name), after[name], environment)
            if engine != old.engine.name:
                stored_type = _stored_type(name, adapted.type, aggregates.get(name), engine, keys)
                adapted = replace(adapted, type=stored_type)
            columns.append(adapted)
        elif name not in before:
            columns.append(column)
    kept_names = {column.name for column in columns}
    for name, data_type in after.items():
        if name not in kept_names:
            stored_type = _stored_type(name, data_type, aggregates.get(name), engine, keys)
            columns.append(Column(0, name, stored_type))
    return tuple(
        replace(column, id=column_id, since=1) for column_id, column in enumerate(columns, 1)
    )


def _converted(
    column: Column, before: DataType | None, after: DataType, environment: Environment
) -> Column:
    """Return the column, with the type `after` if its own cannot store values of that type
    exactly."""
    if before == after:
        return column
    try:
        check_column("", column.name, after, column, environment)
    except IllegalColumn:
        raise
    except Error:
        return replace(column, type=after)
    # Values that the column could not hold, or would round, need their own type.
    holds = conversion(plain(after), plain(column.type)).kind == "exact"
    same_type = isinstance(plain(after), AggregateFunction) or plain(after) == plain(column.type)
    return column if holds or same_type else replace(column, type=after)


def _stored_type(
    name: str, data_type: DataType, aggregate: str | None, engine: str, keys: tuple[str | None, ...]
) -> DataType:
    """Return the type that stores a query's column. An AggregatingMergeTree stores finished
    aggregates as SimpleAggregateFunction. Raise IllegalColumn for a column that is NULL only."""
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
    """Return the aggregate function of each column that a single aggregate makes, by column
    name."""
    first = next(iter(branches(plan)))
    return {
        output.name: output.aggregate.name
        for output in shape_of(first).outputs
        if output.aggregate is not None
    }
