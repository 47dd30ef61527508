"""SELECT's columns and the clauses after them: DISTINCT, ORDER BY, LIMIT BY, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb.bind.contracts import Binder, BoundQuery, OutputColumn
from olapdb.bind.endless import is_endless
from olapdb.bind.fill import with_fill
from olapdb.bind.names import NameAllocator
from olapdb.errors import (
    BadArguments,
    InvalidLimitExpression,
    NotSupportedError,
    Position,
    WithTiesWithoutOrderBy,
)
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import Boolean, Float, Integer, plain

ROWS_MAX = (1 << 62) - 1
"""The most rows of a LIMIT and an OFFSET: their sum is an integer of 64 bits."""


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
    fill: sql.Fill | None = None


@dataclass(frozen=True)
class SelectProjection:
    """The bound columns of a SELECT, its ORDER BY, and the keys of its LIMIT BY."""

    items: Sequence[SelectItem]
    orders: Sequence[Order]
    limit_by: Sequence[Expression]


def bind_projection(
    select: sql.Select, binder: Binder, node: plan.Node, projection: SelectProjection
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
        node = _limit_by(select.limit_by, binder, node, by_keys)
    elif by_keys:
        node = plan.LimitBy(node, 1, 0, by_keys)
    fills = [(key, o.fill) for key, o in zip(sort_keys, projection.orders, strict=True)]
    shown_columns = {o.name: o.reference for o in outputs}
    node = with_fill(select, binder, node, fills, shown_columns)
    node = _limited(select, binder, node, sort_keys)
    if has_hidden:
        node = plan.Project(node, tuple((r.name, r) for r in references))
    return BoundQuery(node, tuple(outputs))


def _limited(
    select: sql.Select, binder: Binder, node: plan.Node, sort_keys: tuple[plan.SortKey, ...]
) -> plan.Node:
    """Return the node under LIMIT and OFFSET, unchanged if there is neither.

    Raises WithTiesWithoutOrderBy for WITH TIES without ORDER BY or without LIMIT, BadArguments for
    the last rows or a share of a source without end, and NotSupportedError for a share beside a
    limit from the end."""
    limit = _count(binder, select.limit, "LIMIT")
    offset = _count(binder, select.offset, "OFFSET") or 0
    if limit is None and not offset:
        return node
    if select.with_ties and (not sort_keys or limit is None):
        raise WithTiesWithoutOrderBy(
            "WITH TIES needs ORDER BY and LIMIT.", position=select.position
        )
    ties = sort_keys if select.with_ties else ()
    numbers = (limit or 0, offset)
    if any(isinstance(number, float) for number in numbers) and min(numbers) < 0:
        raise NotSupportedError(
            "A LIMIT that is a share of the rows cannot stand beside one from the end.",
            position=select.position,
        )
    if any(isinstance(number, float) or number < 0 for number in numbers):
        needs_end = limit is not None and (isinstance(limit, float) or limit < 0)
        if (needs_end or isinstance(offset, float)) and is_endless(node):
            raise BadArguments(
                "Rows without end have no last ones, and no share: the query would never answer.",
                hint="Give the source an end: numbers(1000), or LIMIT in a subquery.",
                position=select.position,
            )
        return plan.RelativeLimit(node, limit, offset, ties)
    return plan.Limit(node, None if limit is None else int(limit), int(offset), ties)


def _limit_by(
    clause: sql.LimitBy, binder: Binder, node: plan.Node, keys: tuple[Expression, ...]
) -> plan.LimitBy:
    """Return the node under LIMIT … BY. Raises NotSupportedError for a share of the rows."""
    count = _count(binder, clause.count, "LIMIT BY")
    offset = _count(binder, clause.offset, "OFFSET")
    if isinstance(count, float) or isinstance(offset, float):
        raise NotSupportedError(
            "LIMIT BY takes no share of the rows.",
            hint="Compare row_number() OVER (PARTITION BY …) with count() OVER (PARTITION BY …).",
            position=clause.position,
        )
    return plan.LimitBy(node, count or 0, offset or 0, keys)


def _count(binder: Binder, node: sql.Expression | None, clause: str) -> int | float | None:
    """Return the constant of a LIMIT or an OFFSET, None where there is no clause.

    It is an integer of 64 bits, or a float between 0 and 1. Raises InvalidLimitExpression."""
    if node is None:
        return None
    bound = binder.bind(node)
    if not isinstance(bound, Constant):
        raise InvalidLimitExpression(f"{clause} must be a constant.", position=node.position)
    value = bound.value.as_py()
    if isinstance(plain(bound.type), Float) and isinstance(value, float):
        if 0 < value < 1:
            return value
        value = int(value) if value.is_integer() else None
    if not isinstance(plain(bound.type), Integer | Float | Boolean) or value is None:
        raise InvalidLimitExpression(
            f"{clause} must be an integer or a share between 0 and 1.", position=node.position
        )
    return min(int(value), ROWS_MAX)


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
