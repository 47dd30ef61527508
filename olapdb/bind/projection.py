"""SELECT's columns and the clauses after them: DISTINCT, ORDER BY, LIMIT BY, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from olapdb.bind.contracts import Binder, BoundQuery, OutputColumn
from olapdb.bind.names import NameAllocator
from olapdb.errors import BadArguments, InvalidLimitExpression, NotSupportedError, Position
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.sql import nodes as sql
from olapdb.types import Boolean, Float, Integer, plain


@dataclass(frozen=True)
class SelectItem:
    """A column of SELECT: its result name, its expression, its position in the text."""

    name: str
    expression: Expression
    position: Position | None


@dataclass(frozen=True)
class Order:
    """An item of ORDER BY, over the rows or over the groups."""

    expression: Expression
    descending: bool
    nulls_first: bool
    position: Position | None


@dataclass(frozen=True)
class Projection:
    """The bound columns of a SELECT, its ORDER BY, and the keys of its LIMIT BY."""

    items: Sequence[SelectItem]
    orders: Sequence[Order]
    limit_by: Sequence[Expression]


def bind_projection(
    select: sql.Select, binder: Binder, node: plan.Node, projection: Projection
) -> BoundQuery:
    """Return the query with SELECT's columns and all clauses after them on top of `node`.

    Expressions of ORDER BY and LIMIT BY that SELECT does not show are extra columns, dropped at
    the end."""
    columns = _Columns(binder.queries.names)
    outputs = [
        OutputColumn(columns.add(i.expression, i.name), i.name, i.expression.type)
        for i in projection.items
    ]
    shown = list(columns.expressions)
    sort_keys = tuple(
        plan.SortKey(columns.reference(o.expression), o.descending, o.nulls_first)
        for o in projection.orders
    )
    by_keys = tuple(columns.reference(e) for e in projection.limit_by)
    node = plan.Project(node, tuple(columns.expressions))
    has_hidden = len(columns.expressions) > len(shown)
    references = tuple(ColumnRef(e.type, name) for name, e in shown)
    if select.distinct:
        node = plan.Distinct(node, references if has_hidden else ())
    if sort_keys:
        node = plan.Sort(node, sort_keys)
    if select.limit_by is not None:
        count = _count(binder, select.limit_by.count, "LIMIT BY")
        offset = _count(binder, select.limit_by.offset, "OFFSET") or 0
        node = plan.LimitBy(node, count or 0, offset, by_keys)
    elif by_keys:
        node = plan.LimitBy(node, 1, 0, by_keys)
    node = _limited(select, binder, node, sort_keys)
    if has_hidden:
        node = plan.Project(node, tuple((r.name, r) for r in references))
    return BoundQuery(node, tuple(outputs))


def _limited(
    select: sql.Select, binder: Binder, node: plan.Node, sort_keys: tuple[plan.SortKey, ...]
) -> plan.Node:
    """Return the node under LIMIT and OFFSET, unchanged if there is neither.

    Raises BadArguments for WITH TIES without ORDER BY or without LIMIT."""
    limit = _count(binder, select.limit, "LIMIT")
    offset = _count(binder, select.offset, "OFFSET") or 0
    if limit is None and not offset:
        return node
    if select.with_ties and (not sort_keys or limit is None):
        raise BadArguments("WITH TIES needs ORDER BY and LIMIT.", position=select.position)
    return plan.Limit(node, limit, offset, sort_keys if select.with_ties else ())


def _count(binder: Binder, node: sql.Expression | None, clause: str) -> int | None:
    """Return the constant of a LIMIT or an OFFSET as an integer, None where there is no clause."""
    if node is None:
        return None
    bound = binder.bind(node)
    if not isinstance(bound, Constant):
        raise InvalidLimitExpression(f"{clause} must be a constant.", position=node.position)
    value = bound.value.as_py()
    if isinstance(plain(bound.type), Float) and isinstance(value, float):
        if not value.is_integer():
            raise NotSupportedError(
                f"{clause} {value}: a fraction of the rows is not supported.",
                position=node.position,
            )
        value = int(value)
    if not isinstance(plain(bound.type), Integer | Float | Boolean) or value is None:
        raise InvalidLimitExpression(
            f"{clause} must be an integer, not {bound.type}.", position=node.position
        )
    if value < 0:
        raise NotSupportedError(
            f"A negative {clause} is not supported.",
            hint="Reverse ORDER BY.",
            position=node.position,
        )
    return int(value)


class _Columns:
    """The columns of a Project, each expression once, by unique names."""

    def __init__(self, names: NameAllocator) -> None:
        self.names = names
        self.expressions: list[tuple[str, Expression]] = []
        self._by_expression: dict[Expression, str] = {}

    def add(self, expression: Expression, proposed_name: str) -> str:
        """Return the name of an expression's column, adding the column at first use.

        A column reference keeps its name; any other expression gets one based on `proposed_name`."""
        name = self._by_expression.get(expression)
        if name is None:
            is_column = isinstance(expression, ColumnRef)
            name = expression.name if is_column else self.names.unique(proposed_name)  # type: ignore[attr-defined]
            self._by_expression[expression] = name
            self.expressions.append((name, expression))
        return name

    def reference(self, expression: Expression) -> ColumnRef:
        """Return a reference to an expression's column, adding the column at first use."""
        return ColumnRef(expression.type, self.add(expression, "key"))
