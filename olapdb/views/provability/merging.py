"""Aggregates that a merge of the table that they read does not change.

A merge joins rows of equal sorting key. It changes how often a key occurs and the other values in
its rows. `sum` over a summed column, `max` over maxima and `-Merge` over states give the same
before and after. So does an aggregate that depends only on which keys occur.
"""

from __future__ import annotations

from olapdb import types
from olapdb.engine.combine import summed_columns
from olapdb.engine.layout import TableLayout
from olapdb.engine.summing_maps import nested_maps
from olapdb.functions import resolve_aggregate
from olapdb.functions.aggregates.combinators import Combinator, If, Merge
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.schema import Column, Table
from olapdb.plan import nodes
from olapdb.plan.expressions import AggregateCall, ColumnRef, Expression
from olapdb.views.definition.query_shape import (
    cast_commutes,
    is_key_column,
    source_columns_of,
    stored_column_of,
)


def over_keys(node: nodes.Node, expression: Expression, table: Table) -> bool:
    """Return whether the expression over the node reads of `table` only columns of its ORDER BY,
    which merges keep. Columns of other tables do not count."""
    for source_column in source_columns_of(node, expression):
        if source_column is None:
            return False
        table_id, column = source_column
        if table_id == table.id and not is_key_column(table, column):
            return False
    return True


def is_key(node: nodes.Node, expression: Expression, table: Table) -> bool:
    """Return whether the expression over the node is an item of the ORDER BY of `table` itself. As a
    group it stands for all values that are equal to it, so a merge may keep any of them."""
    if not isinstance(expression, ColumnRef):
        return False
    stored = stored_column_of(node, expression.name)
    return stored is not None and stored[0] == table.id and stored[1] in key_columns(table)


def commutes(node: nodes.Node, call: AggregateCall, table: Table) -> bool:
    """Return whether the aggregate over the node is the same before and after merges of `table`."""
    if call.aggregate.merge_class == "ordered":
        return False
    if all(over_keys(node, argument, table) for argument in call.arguments):
        # A merge keeps the set of keys, but not how often each occurs.
        if table.engine.drops_keys:
            return False
        return call.aggregate.merge_function in ("min", "max") or "uniq" in call.name.lower()
    arguments = call.arguments
    if _is_conditional(call):
        arguments = call.arguments[:-1]
        if not over_keys(node, call.arguments[-1], table):
            return False  # else it is the aggregate over a filter by keys
    if len(arguments) != 1 or not isinstance(arguments[0], ColumnRef):
        return False
    stored = stored_column_of(node, arguments[0].name)
    column = table.column(stored[1]) if stored and stored[0] == table.id else None
    if column is None or not table.engine.merges_values:
        return False
    if not _cast_commutes(call, column):
        return False
    if isinstance(column.type, types.AggregateFunction):
        return "Merge" in call.name
    base = _base_name(call.name)
    if isinstance(column.type, types.SimpleAggregateFunction):
        return base == column.type.function and (base != "sum" or holds_sums(column.type.inner))
    is_summed = column.name in {summed.name for summed in summed_columns(TableLayout(table))}
    return is_summed and base == "sum" and holds_sums(column.type)


def _is_conditional(call: AggregateCall) -> bool:
    """Return whether the aggregate is an -If, whose last argument is a condition. countIfMerge is none: it takes the
    states of one."""
    function = call.aggregate
    while isinstance(function, Combinator) and not isinstance(function, Merge):
        if isinstance(function, If):
            return True
        function = function.inner
    return False


def _base_name(name: str) -> str:
    """Return the aggregate's name without -If, -State and -SimpleState: "sumIfState" -> "sum"."""
    shorter = name.removesuffix("SimpleState").removesuffix("State").removesuffix("If")
    return name if shorter == name else _base_name(shorter)


def _cast_commutes(call: AggregateCall, column: Column) -> bool:
    """Return whether a cast of the stored column, below the aggregate, gives the same before and
    after a merge joins the column's values."""
    stored, given = column.type, call.arguments[0].type
    if isinstance(stored, types.SimpleAggregateFunction):
        stored = stored.inner
    if isinstance(given, types.SimpleAggregateFunction):
        given = given.inner
    return cast_commutes(call.aggregate.merge_function, stored, given)


def holds_sums(data_type: types.DataType) -> bool:
    """Return whether adding up sums that are stored in the type gives the sum of all rows. Types of
    64 bits wrap as the sum itself does; narrower ones wrap earlier. A Decimal that outgrows its
    type is an error of the merge, never another value."""
    match types.plain(data_type):
        case types.Integer(bits=bits) | types.Float(bits=bits):
            return bits >= 64
        case types.Decimal():
            return True
        case _:
            return False


def is_ordered(column: Column) -> bool:
    """Return whether merges of the column depend on the order in which rows came."""
    match column.type:
        case types.AggregateFunction(function=function, parameters=parameters, arguments=arguments):
            from olapdb.engine.combine import parameter_values

            aggregate = resolve_aggregate(function, parameter_values(parameters), arguments)
        case types.SimpleAggregateFunction(function=function, inner=inner):
            aggregate = resolve_aggregate(function, (), (inner,))
        case _:
            return False
    return aggregate.merge_class == "ordered"


def drops_rows_of_zero(table: Table) -> bool:
    """Return whether merges drop every row whose values outside the key are all zero. Then rows
    that another table dropped and rows of zeros here are equivalent."""
    if table.engine.name != "SummingMergeTree":
        return False
    layout = TableLayout(table)
    summed = {column.name for column in summed_columns(layout)}
    others = [other for other in table.stored_columns if other.name not in layout.sorting_columns]
    return (
        bool(summed) and not nested_maps(layout) and all(other.name in summed for other in others)
    )
