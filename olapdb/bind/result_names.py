"""What a result column without an alias is called."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.bind.lambdas import with_lambda
from olapdb.bind.syntax import rewrite
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind.expressions import ExpressionBinder


def result_name(binder: ExpressionBinder, node: sql.Expression) -> str:
    """The alias, the column, or ClickHouse's form of the expression: `plus(x, 1)`.

    Columns lose qualifiers that they do not need (`a.x` is `x`); aggregates show DISTINCT and
    FILTER as combinators (`countDistinct(x)`, `sumIf(x, greater(x, 10))`).
    """
    from olapdb.sql.format import column_name

    if isinstance(node, sql.Alias):
        return node.name
    if isinstance(node, sql.Identifier):
        return _shortened(binder, node).parts[-1] if len(node.parts) == 1 else _dotted(binder, node)

    def change(inner: sql.Node) -> sql.Node | None:
        if isinstance(inner, sql.Identifier):
            return _shortened(binder, inner)
        if isinstance(inner, sql.Query):
            return inner
        if isinstance(inner, sql.Function) and (named := with_lambda(binder, inner)) is not inner:
            return rewrite(named, change)
        if isinstance(inner, sql.Function) and (inner.distinct or inner.filter is not None):
            return rewrite(_with_combinators(inner), change)
        return None

    return column_name(rewrite(node, change))


def _dotted(binder: ExpressionBinder, node: sql.Identifier) -> str:
    return ".".join(_shortened(binder, node).parts)


def _shortened(binder: ExpressionBinder, node: sql.Identifier) -> sql.Identifier:
    if len(node.parts) == 1:
        return node
    column = binder.relation.find(node.parts)
    if column is None:
        return node
    shown = binder.relation.display(column)
    if shown == column.name:
        return replace(node, parts=(column.name,))
    return replace(node, parts=(*column.qualifiers[0], column.name))


def _with_combinators(node: sql.Function) -> sql.Function:
    name, arguments = node.name, node.arguments
    if node.distinct:
        name += "Distinct"
    if node.filter is not None:
        name, arguments = f"{name}If", (*arguments, node.filter)
    return replace(node, name=name, arguments=arguments, distinct=False, filter=None)
