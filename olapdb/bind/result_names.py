"""The names of result columns without an alias."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.bind.contracts import Binder
from olapdb.bind.lambdas import with_lambda
from olapdb.bind.nested_values import nested_arrays
from olapdb.bind.relation import RelationColumn
from olapdb.bind.syntax import rewrite
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import Constant
from olapdb.sql import nodes as sql
from olapdb.types import STRING

if TYPE_CHECKING:
    from olapdb.sql import column_names
else:
    column_names = LazyModule("olapdb.sql.column_names")


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
        if isinstance(inner, sql.Parameter) and inner.name and inner.type is not None:
            return _with_value(binder, inner)
        if isinstance(inner, sql.Function) and (named := with_lambda(binder, inner)) is not inner:
            return rewrite(named, change)
        if isinstance(inner, sql.Function) and (inner.distinct or inner.filter is not None):
            return rewrite(_with_combinators(inner), change)
        return None

    return column_names.column_name(rewrite(node, change))


def shown_name(binder: Binder, column: RelationColumn) -> str:
    """Return the name of a result column that is a column of FROM: with its table where another column has its name,
    or an alias of the SELECT."""
    if column.name in binder.aliases and column.qualifier:
        return f"{column.qualifier}.{column.name}"
    return binder.relation.display(column)


def starred_name(binder: Binder, column: RelationColumn) -> str:
    """Return the name of a result column of a star: `shown_name`, but `t1.*` of a RIGHT JOIN shows t1's key of USING
    without its table."""
    hidden = [c for c in binder.relation.by_name[column.name] if not c.bare]
    if hidden and hidden[0] is column and binder.relation.joins == 1:
        return column.name
    return shown_name(binder, column)


def _with_value(binder: Binder, node: sql.Parameter) -> sql.Expression:
    """Return `{p:UInt8}` with its value, as the name of a column has it: `_CAST(5, 'UInt8')`, a String
    alone. A value that no literal can hold leaves the parameter as it is."""
    bound = binder.bind(node)
    value = bound.value.as_py() if isinstance(bound, Constant) else node
    literal = _literal(value)
    if literal is None or node.type is None:
        return node
    if node.type == STRING:
        return literal
    return sql.Function("_CAST", (literal, sql.Literal(str(node.type))))


def _literal(value: object) -> sql.Expression | None:
    """Return a value as a literal, a date and a time as their number; None if no literal holds it."""
    match value:
        case None | bool() | int() | float() | str():
            return sql.Literal(value)
        case datetime.datetime():
            seconds = value.replace(tzinfo=value.tzinfo or datetime.UTC).timestamp()
            return sql.Literal(int(seconds)) if seconds == int(seconds) else None
        case datetime.date():
            return sql.Literal((value - datetime.date(1970, 1, 1)).days)
        case list() | tuple():
            elements = [_literal(element) for element in value]
            kind = sql.ArrayLiteral if isinstance(value, list) else sql.TupleLiteral
            whole = tuple(element for element in elements if element is not None)
            return kind(whole) if len(whole) == len(elements) else None
        case _:
            return None


def _shortened(binder: Binder, node: sql.Identifier) -> sql.Identifier:
    """Return a column's identifier as the result shows it: `t.a` as `a` where this is unique, and no alias.

    A name that is no column of FROM stays."""
    if len(node.parts) == 1:
        return node
    column = binder.relation.find(node.parts)
    if column is None:
        if nested_arrays(binder.relation, node.parts):
            return replace(node, parts=node.parts[-1:])
        return _shortened_path(binder, node)
    if column.array_joined:
        return node
    if shown_name(binder, column) == column.name:
        return replace(node, parts=(column.name,))
    written = node.parts[: len(node.parts) - column.name.count(".") - 1]
    # With the table's name or its alias, as written.
    return replace(node, parts=(*written[-1:], column.name))


def _shortened_path(binder: Binder, node: sql.Identifier) -> sql.Identifier:
    """Return a part of a column, as of a JSON or a tuple, without the qualifiers that the column does not need: `t.j.a`
    as `j.a`; other names stay."""
    for length in range(len(node.parts) - 1, 1, -1):
        column = binder.relation.find(node.parts[:length])
        if column is not None:
            needs_table = shown_name(binder, column) != column.name
            named = (*column.qualifiers[0], column.name) if needs_table else (column.name,)
            return replace(node, parts=(*named, *node.parts[length:]))
    return node


def _with_combinators(node: sql.Function) -> sql.Function:
    """Return a call with DISTINCT and FILTER as combinators: `sumDistinctIf(a, f)`."""
    name, arguments = node.name, node.arguments
    if node.distinct:
        name += "Distinct"
    if node.filter is not None:
        name, arguments = f"{name}If", (*arguments, node.filter)
    return replace(node, name=name, arguments=arguments, distinct=False, filter=None)
