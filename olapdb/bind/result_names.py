"""The names of result columns without an alias."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.bind.contracts import Binder
from olapdb.bind.lambdas import with_lambda
from olapdb.bind.nested_values import nested_arrays
from olapdb.bind.syntax import rewrite
from olapdb.lazy import LazyModule
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.sql import format as sql_format
else:
    sql_format = LazyModule("olapdb.sql.format")


def result_name(binder: Binder, node: sql.Expression) -> str:
    """Return the name of a result column: its alias, its column, or as in ClickHouse `plus(x, 1)`.

    Columns lose qualifiers that they do not need (`a.x` is `x`); aggregates show DISTINCT and
    FILTER as combinators (`countDistinct(x)`, `sumIf(x, greater(x, 10))`).
    """
    if isinstance(node, sql.Alias):
        return node.name
    if isinstance(node, sql.Identifier):
        return ".".join(_shortened(binder, node).parts)

    def change(inner: sql.Node) -> sql.Node | None:
        """Return the node as the name shows it, None to rewrite its children."""
        if isinstance(inner, sql.Identifier):
            return _shortened(binder, inner)
        if isinstance(inner, sql.Query):
            return inner
        if isinstance(inner, sql.Function) and (named := with_lambda(binder, inner)) is not inner:
            return rewrite(named, change)
        if isinstance(inner, sql.Function) and (inner.distinct or inner.filter is not None):
            return rewrite(_with_combinators(inner), change)
        return None

    return sql_format.column_name(rewrite(node, change))


def _shortened(binder: Binder, node: sql.Identifier) -> sql.Identifier:
    """Return a column's identifier as the result shows it: `t.a` as `a` where this is unique.

    A name that is no column of FROM stays."""
    if len(node.parts) == 1:
        return node
    column = binder.relation.find(node.parts)
    if column is None:
        is_nested = bool(nested_arrays(binder.relation, node.parts))
        return replace(node, parts=node.parts[-1:]) if is_nested else node
    if binder.relation.display(column) == column.name:
        return replace(node, parts=(column.name,))
    return replace(node, parts=(*column.qualifiers[0], column.name))


def _with_combinators(node: sql.Function) -> sql.Function:
    """Return a call with DISTINCT and FILTER as combinators: `sumDistinctIf(a, f)`."""
    name, arguments = node.name, node.arguments
    if node.distinct:
        name += "Distinct"
    if node.filter is not None:
        name, arguments = f"{name}If", (*arguments, node.filter)
    return replace(node, name=name, arguments=arguments, distinct=False, filter=None)
