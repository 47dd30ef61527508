"""The magnitude of what a view adds up: its query with the absolute values of the summands.

Sums of floats depend on the order of addition. The error of a sum is in proportion to the sum of
its summands' magnitudes, not to its own, which may be much smaller:

    1e16 + 1 - 1e16     0 or 1, by the order; the magnitudes add up to 2e16

So a comparison that finds other floats computes this query too, and takes them for equal if they
differ by less than the tolerance times the magnitude. Where all summands have one sign, that is the
tolerance of the sum itself.
"""

from __future__ import annotations

import re
from dataclasses import replace

from olapdb.bind.syntax import rewrite
from olapdb.model.schema import MaterializedView, Table
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.types import AggregateFunction, DataType, Float, SimpleAggregateFunction, plain

_ADDS = re.compile(
    r"(sum|avg)(WithOverflow|Kahan)?(If|OrNull|OrDefault|Distinct|State|SimpleState)*"
)
"""Aggregates that add up their first argument."""


def magnitude_view(view: MaterializedView, target: Table) -> MaterializedView | None:
    """Return the view with the query of magnitudes, None if it gives its target no sums of floats."""
    names = {column.name for column in target.stored_columns if _adds_floats(column.type)}
    names &= {column.name for column in view.columns}
    if not names:
        return None
    query = parse_query(view.query)
    changed = _of_groups(query, names)
    if changed == query:
        changed = _of_rows(view, target, query, names)
    return replace(view, query=to_sql(changed))


def _adds_floats(data_type: DataType) -> bool:
    """Return whether a column of the type may hold sums of floats, or states of these."""
    if isinstance(data_type, AggregateFunction):
        return any(_adds_floats(argument) for argument in data_type.arguments)
    if isinstance(data_type, SimpleAggregateFunction):
        data_type = data_type.inner
    return isinstance(plain(data_type), Float)


def _of_groups(query: nodes.Query, names: set[str]) -> nodes.Query:
    """Return the query with abs(…) around what these columns add up, in each branch of a UNION."""
    if isinstance(query, nodes.SetOperation):
        left, right = _of_groups(query.left, names), _of_groups(query.right, names)
        return replace(query, left=left, right=right)
    if not isinstance(query, nodes.Select):
        return query
    columns = tuple(
        rewrite(column, _absolute)
        if isinstance(column, nodes.Alias) and column.name in names
        else column
        for column in query.columns
    )
    return replace(query, columns=columns)


def _absolute(node: nodes.Node) -> nodes.Node | None:
    """Return the call of a sum with the absolute value of its first argument; None for others."""
    match node:
        case nodes.Query():
            return node
        case nodes.Function(name=name, arguments=(first, *others)) if _ADDS.fullmatch(name):
            return replace(node, arguments=(nodes.Function("abs", (first,)), *others))
        case _:
            return None


def _of_rows(
    view: MaterializedView, target: Table, query: nodes.Query, names: set[str]
) -> nodes.Query:
    """Return a SELECT of the absolute values of these columns of the query, which are no keys and
    no states, and of its other columns."""
    keys = {item.expression.strip("`") for item in target.sorting_key}
    columns: list[nodes.Expression] = []
    for column in view.columns:
        value: nodes.Expression = nodes.Identifier((column.name,))
        is_state = isinstance(column.type, AggregateFunction)
        if column.name in names - keys and _adds_floats(column.type) and not is_state:
            value = nodes.Function("abs", (value,))
        columns.append(nodes.Alias(value, column.name))
    return nodes.Select(columns=tuple(columns), source=nodes.SubqueryRelation(query))
