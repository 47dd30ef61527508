"""Correlated subqueries: what a subquery reads of the rows of the queries around it.

A column of an enclosing SELECT becomes an OuterColumn in the subquery's plan. A subquery with such
columns is a CorrelatedSubquery, of which `decorrelation` makes a join.
"""

from __future__ import annotations

from typing import Literal

from olapdb.bind.aggregates import AggregateRef
from olapdb.bind.contracts import BindContext, Binder, Correlation, QueryBinder
from olapdb.errors import NotSupportedError
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import (
    ColumnRef,
    CorrelatedSubquery,
    Expression,
    OuterColumn,
    Unnested,
    WindowExpression,
    free_parameters,
    walk,
)
from olapdb.plan.tree import all_nodes, expressions_of
from olapdb.types import DataType


def outer_value(inner: Binder, outer: Binder, value: Expression, name: str) -> Expression:
    """Return a value over the rows of the enclosing binder `outer` as an expression of `inner`.

    A constant is itself; anything else is an OuterColumn, also in each query between the two. Raises
    NotSupportedError for a window function, arrayJoin(), or a parameter of a lambda."""
    read = list(walk(value))
    if not free_parameters(value) and not any(
        isinstance(e, ColumnRef | AggregateRef | OuterColumn | CorrelatedSubquery) for e in read
    ):
        return value
    path = _correlations(inner, outer)
    joinable = not any(
        isinstance(e, WindowExpression | Unnested | CorrelatedSubquery) for e in read
    )
    if path is None or not joinable or free_parameters(value):
        raise NotSupportedError(
            f"{name!r} belongs to the query around, and a subquery cannot read it there.",
            hint="Rewrite the subquery as a JOIN.",
        )
    inner.queries.correlated = True
    for correlation in reversed(path):
        value = correlation.parameter(value, inner.queries.names)
    return value


def _correlations(inner: Binder, outer: Binder) -> list[Correlation] | None:
    """Return the correlations between two binders, the innermost first; None where a query between
    them, such as that of a JOIN's ON, takes no columns."""
    path: list[Correlation] = []
    correlation = inner.context.correlation
    while correlation is not None:
        path.append(correlation)
        if correlation.binder is outer:
            return path
        correlation = correlation.binder.context.correlation
    return None


def correlated(
    queries: QueryBinder,
    kind: Literal["scalar", "exists", "in"],
    data_type: DataType,
    node: plan.Node,
    context: BindContext,
    *,
    arguments: tuple[Expression, ...] = (),
    negated: bool = False,
) -> Expression | None:
    """Return a subquery's plan as a CorrelatedSubquery, None if it reads no OuterColumn.

    `context` is the one that the subquery was bound in."""
    if not queries.correlated:
        return None
    read = outer_columns(node)
    if not read:
        return None
    values = {} if context.correlation is None else context.correlation.values
    outer = tuple(values.get(name, column) for name, column in read.items())
    return CorrelatedSubquery(data_type, kind, node, arguments, outer, tuple(read), negated)


def outer_columns(node: plan.Node) -> dict[str, OuterColumn]:
    """Return the OuterColumns that a plan reads, by name, in the order of their appearance."""
    columns: dict[str, OuterColumn] = {}
    for part in all_nodes(node):
        for expression in expressions_of(part):
            columns |= {e.name: e for e in walk(expression) if isinstance(e, OuterColumn)}
    return columns


def refuse_correlated(expression: Expression, clause: str) -> None:
    """Raise NotSupportedError if a subquery in the expression reads columns of the clause's rows."""
    if any(isinstance(e, CorrelatedSubquery | OuterColumn) for e in walk(expression)):
        raise NotSupportedError(
            f"A correlated subquery is not supported in {clause}.",
            hint="Write it in WHERE, or as a JOIN.",
        )
