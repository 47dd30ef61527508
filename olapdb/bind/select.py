"""One SELECT, clause by clause.

Every expression is bound over the relation of FROM first; then it is known what is read, whether
the query aggregates, and what must be computed. The node is built from the inside out:

    FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT BY, LIMIT
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from olapdb.bind import constants
from olapdb.bind.aggregates import Grouping, implicit_keys, needs_groups, refuse_aggregates
from olapdb.bind.aliases import aliases_of, may_hold_aliases
from olapdb.bind.array_joins import Unnesting, refuse_unnested, with_prewhere
from olapdb.bind.expressions import ExpressionBinder, bind_condition
from olapdb.bind.grouping_sets import nullable_keys, sets_of
from olapdb.bind.relation import Relation
from olapdb.bind.result_names import result_name
from olapdb.bind.scope import BindContext
from olapdb.bind.sources import bind_source
from olapdb.bind.stars import expand_star
from olapdb.bind.syntax import rewrite, walk
from olapdb.bind.windows import Windowing, refuse_windows
from olapdb.errors import (
    BadArguments,
    IllegalPrewhere,
    InvalidLimitExpression,
    NotSupportedError,
    Position,
)
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.sql import nodes as sql
from olapdb.types import Boolean, Float, Integer, plain

if TYPE_CHECKING:
    from olapdb.bind.query import BoundQuery, QueryBinder


@dataclass(frozen=True)
class SelectItem:
    """A column of SELECT: its result name, and where it was written."""

    name: str
    expression: Expression
    position: Position | None


@dataclass(frozen=True)
class Order:
    """An item of ORDER BY over the rows or groups."""

    expression: Expression
    descending: bool
    nulls_first: bool
    position: Position | None


def bind_select(queries: QueryBinder, select: sql.Select, surroundings: BindContext) -> BoundQuery:
    _refuse(select)
    aliases = aliases_of(select)
    surroundings = with_clause(queries, select, surroundings)
    relation = bind_source(queries, select.source, queries.below(surroundings), aliases)
    binder = ExpressionBinder(queries, relation, surroundings, aliases)
    binder.may_unnest = True
    binder.windows = _windows_of(select)
    return _SelectBinding(queries, select, binder).bind()


def _refuse(select: sql.Select) -> None:
    clauses: tuple[tuple[object, str], ...] = ((select.with_totals, "WITH TOTALS"),)
    for found, name in clauses:
        if found:
            raise NotSupportedError(f"{name} is not supported yet.", position=select.position)


def _windows_of(select: sql.Select) -> dict[str, sql.WindowSpec]:
    """The windows of WINDOW by name; BadArguments where two have one name."""
    found: dict[str, sql.WindowSpec] = {}
    for name, spec in select.windows:
        if name in found:
            raise BadArguments(f"Window {name!r} is defined twice.", position=spec.position)
        found[name] = spec
    return found


def with_clause(queries: QueryBinder, select: sql.Select, surroundings: BindContext) -> BindContext:
    """WITH names of tables, and constants that FROM's subqueries may use."""
    expressions = {i.name: i.expression for i in select.with_items if i.expression is not None}
    if expressions:
        nothing = Relation((), _nothing)
        constants_of_with = ExpressionBinder(queries, nothing, surroundings, expressions)
        surroundings = replace(surroundings, outer=constants_of_with)
    return queries.with_tables(select.with_items, surroundings, select.recursive)


def _nothing() -> plan.Node:
    raise AssertionError("WITH expressions alone have no rows.")


class _SelectBinding:
    def __init__(self, queries: QueryBinder, select: sql.Select, binder: ExpressionBinder) -> None:
        self.queries, self.select, self.binder = queries, select, binder
        self._sets: list[list[tuple[str, Expression]]] | None = None
        self.positional = binder.surroundings.flag("enable_positional_arguments")

    def bind(self) -> BoundQuery:
        select = self.select
        items = list(self._items())
        prewhere = self._condition(select.prewhere, "PREWHERE")
        where = self._condition(select.where, "WHERE")
        keys = self._group_keys(items)
        use_nulls = bool(select.grouping) and self.binder.surroundings.flag("group_by_use_nulls")
        if use_nulls:
            self.binder.over_groups(nullable_keys([e for _, e in keys or ()]))
            items = list(self._items())
        having = bind_condition(self.binder, select.having, "HAVING") if select.having else None
        if having is not None and select.having is not None:
            refuse_windows(having, "HAVING", select.having.position)
        qualify = None
        if select.qualify is not None:
            qualify = bind_condition(self.binder, select.qualify, "QUALIFY")
        orders = list(self._orders(items))
        limit_by = self._limit_by_keys(items)
        rows = Unnesting(self.queries.names)
        node = _filtered(self.binder.relation, prewhere, where, select, rows)
        expressions = [i.expression for i in items]
        aggregated = keys is not None or any(
            needs_groups(e)
            for e in (
                *expressions,
                *(o.expression for o in orders),
                *limit_by,
                *_some(having),
                *_some(qualify),
            )
        )
        if aggregated:
            flag = self.binder.surroundings.flag
            sets = self._grouping_sets(keys or [])
            grouping = Grouping(
                self.queries.names,
                keys or (),
                sets,
                self.binder.environment,
                standard=flag("force_grouping_standard_compatibility"),
            )
            items = [
                replace(i, expression=grouping.over(i.expression, self._inner_position(i)))
                for i in items
            ]
            if having is not None and select.having is not None:
                having = grouping.over(having, select.having.position)
            if qualify is not None and select.qualify is not None:
                qualify = grouping.over(qualify, select.qualify.position)
            orders = [
                replace(o, expression=grouping.over(o.expression, o.position)) for o in orders
            ]
            limit_by = [grouping.over(e, select.position) for e in limit_by]
            node = self._aggregate(node, grouping, rows)
            rows = Unnesting(self.queries.names)
        if having is not None:
            node = plan.Filter(rows.below(node, (having,)), rows.over(having))
        windows = Windowing(self.queries.names)

        def computed(above: plan.Node) -> plan.Node:
            """arrayJoin() makes its rows first, then windows look at them."""
            clauses = (i.expression for i in items), (o.expression for o in orders), limit_by
            needed = [*(e for clause in clauses for e in clause), *_some(qualify)]
            above = rows.below(above, needed)
            return windows.below(above, [rows.over(e) for e in needed])

        def over(expression: Expression) -> Expression:
            return windows.over(rows.over(expression))

        node = computed(node)
        if qualify is not None:
            node = plan.Filter(node, over(qualify))
        items = [replace(i, expression=over(i.expression)) for i in items]
        orders = [replace(o, expression=over(o.expression)) for o in orders]
        return self._projected(node, items, orders, [over(e) for e in limit_by])

    # --- binding the clauses

    def _items(self) -> Iterator[SelectItem]:
        for column in self.select.columns:
            if isinstance(column, sql.Star):
                for one in expand_star(self.binder, column):
                    yield SelectItem(one.name, one.expression, column.position)
                continue
            for expanded in self._with_columns(column):
                bound = self.binder.bind(expanded)
                name = result_name(self.binder, expanded)
                yield SelectItem(name, bound, expanded.position)

    def _with_columns(self, column: sql.Expression) -> list[sql.Expression]:
        """`COLUMNS('re') + 1` is one expression for each column that matches."""
        stars = [
            n
            for n in walk(column, may_hold_aliases)
            if isinstance(n, sql.Star) and n.pattern is not None
        ]
        if not stars:
            return [column]
        if len({s.pattern for s in stars}) > 1:
            raise NotSupportedError(
                "Several COLUMNS(…) in one expression are not supported.", position=column.position
            )
        made = []
        for one in expand_star(self.binder, stars[0]):

            def change(node: sql.Node, syntax: sql.Expression = one.syntax) -> sql.Node | None:
                return syntax if isinstance(node, sql.Star) else None

            made.append(rewrite(column, change))
        return made

    def _condition(self, node: sql.Expression | None, clause: str) -> Expression | None:
        if node is None:
            return None
        bound = bind_condition(self.binder, node, clause)
        refuse_windows(bound, clause, node.position)
        return refuse_aggregates(bound, clause, node.position)

    def _group_keys(self, items: Sequence[SelectItem]) -> list[tuple[str, Expression]] | None:
        clause = self.select.group_by
        if clause is None:
            return None
        if clause == "ALL":
            return [
                (_key_name(key, item.name), key)
                for item in items
                for key in implicit_keys(item.expression)
            ]
        if self.select.grouping == "SETS":
            return [key for members in self._members(clause, items) for key in members]
        return self._keys_of(clause, items)

    def _members(
        self, clause: Sequence[sql.Expression], items: Sequence[SelectItem]
    ) -> list[list[tuple[str, Expression]]]:
        """The keys of each of GROUPING SETS, which the parser gives as tuples."""
        if self._sets is None:
            self._sets = [
                self._keys_of(one.elements if isinstance(one, sql.TupleLiteral) else (one,), items)
                for one in clause
            ]
        return self._sets

    def _grouping_sets(
        self, keys: Sequence[tuple[str, Expression]]
    ) -> tuple[tuple[Expression, ...], ...]:
        kind = self.select.grouping
        if not kind:
            return ()
        if kind == "SETS":
            return tuple(tuple(e for _, e in members) for members in self._sets or ())
        return sets_of(kind, [e for _, e in keys])

    def _keys_of(
        self, clause: Sequence[sql.Expression], items: Sequence[SelectItem]
    ) -> list[tuple[str, Expression]]:
        keys: list[tuple[str, Expression]] = []
        for node in clause:
            item = self._positional(node, items, "GROUP BY")
            pairs = [(item.name, item.expression)] if item is not None else self._elements(node)
            for name, bound in pairs:
                refuse_windows(bound, "GROUP BY", node.position)
                refuse_aggregates(bound, "GROUP BY", node.position)
                keys.append((name, bound))
        return keys

    def _elements(self, node: sql.Expression) -> list[tuple[str, Expression]]:
        """A tuple groups by its elements, of which a number is no column's."""
        if isinstance(node, sql.TupleLiteral):
            return [pair for e in node.elements for pair in self._elements(e)]
        return [(result_name(self.binder, node), self.binder.bind(node))]

    def _positional(
        self, node: sql.Expression, items: Sequence[SelectItem], clause: str
    ) -> SelectItem | None:
        """The column that an integer stands for; negative ones count from the end."""
        number = _integer_literal(node)
        if number is None or not self.positional:
            return None
        if not 1 <= abs(number) <= len(items):
            raise BadArguments(
                f"{clause} {number}: SELECT has {len(items)} columns.", position=node.position
            )
        return items[number - 1 if number > 0 else number]

    def _orders(self, items: Sequence[SelectItem]) -> Iterator[Order]:
        clause = self.select.order_by
        if clause == "ALL":
            yield from (Order(i.expression, False, False, i.position) for i in items)
            return
        for order in clause:
            node = order.expression
            if order.collate is not None:
                raise NotSupportedError(
                    "COLLATE is not supported; strings are compared bytewise.",
                    position=order.position,
                )
            item = self._positional(node, items, "ORDER BY")
            bound = item.expression if item is not None else self.binder.bind(node)
            if isinstance(bound, Constant):
                continue
            yield Order(bound, order.descending, bool(order.nulls_first), node.position)

    def _limit_by_keys(self, items: Sequence[SelectItem]) -> list[Expression]:
        """DISTINCT ON (…) is LIMIT 1 BY …"""
        select = self.select
        if select.distinct_on and select.limit_by is not None:
            raise NotSupportedError(
                "DISTINCT ON and LIMIT BY cannot be used together.", position=select.position
            )
        nodes = select.limit_by.by if select.limit_by is not None else select.distinct_on
        bound = []
        for node in nodes:
            item = self._positional(node, items, "LIMIT BY")
            bound.append(item.expression if item is not None else self.binder.bind(node))
        return bound

    def _inner_position(self, item: SelectItem) -> Position | None:
        return item.position or self.select.position

    # --- building

    def _aggregate(self, node: plan.Node, grouping: Grouping, rows: Unnesting) -> plan.Node:
        node = rows.below(node, grouping.over_rows())
        keys = tuple((name, rows.over(key)) for name, key in grouping.keys)
        aggregates = tuple((name, rows.over_call(call)) for name, call in grouping.aggregates)
        if grouping.set_name:
            sets = grouping.sets
            return plan.Aggregate(
                node,
                keys,
                aggregates,
                sets=sets,
                set_name=grouping.set_name,
                nullable_keys=bool(self.binder.nullable_keys),
                empty_without_rows=self.select.grouping != "SETS",
            )
        only_constants = grouping.only_constants
        if only_constants and not aggregates:
            name = self.queries.names.unique("group")
            keys, only_constants = ((name, constants.unsigned_byte(0)),), False
        return plan.Aggregate(node, keys, aggregates, only_constants)

    def _projected(
        self,
        node: plan.Node,
        items: Sequence[SelectItem],
        orders: Sequence[Order],
        limit_by: Sequence[Expression],
    ) -> BoundQuery:
        """SELECT and what follows it. What ORDER BY and LIMIT BY need beyond SELECT's columns is
        computed beside them and dropped at the end."""
        from olapdb.bind.query import BoundQuery, OutputColumn

        select = self.select
        columns = _Columns(self.queries)
        outputs = [
            OutputColumn(columns.add(i.expression, i.name), i.name, i.expression.type)
            for i in items
        ]
        shown = list(columns.expressions)
        sort_keys = tuple(
            plan.SortKey(columns.reference(o.expression), o.descending, o.nulls_first)
            for o in orders
        )
        by_keys = tuple(columns.reference(e) for e in limit_by)
        node = plan.Project(node, tuple(columns.expressions))
        hidden = len(columns.expressions) > len(shown)
        if select.distinct:
            of_shown = tuple(ColumnRef(e.type, name) for name, e in shown)
            node = plan.Distinct(node, of_shown if hidden else ())
        if sort_keys:
            node = plan.Sort(node, sort_keys)
        if select.limit_by is not None:
            count = self._count(select.limit_by.count, "LIMIT BY")
            offset = self._count(select.limit_by.offset, "OFFSET") or 0
            node = plan.LimitBy(node, count or 0, offset, by_keys)
        elif by_keys:
            node = plan.LimitBy(node, 1, 0, by_keys)
        node = self._limited(node, sort_keys)
        if hidden:
            kept = tuple((name, ColumnRef(e.type, name)) for name, e in shown)
            node = plan.Project(node, kept)
        return BoundQuery(node, tuple(outputs))

    def _limited(self, node: plan.Node, sort_keys: tuple[plan.SortKey, ...]) -> plan.Node:
        select = self.select
        limit = self._count(select.limit, "LIMIT")
        offset = self._count(select.offset, "OFFSET") or 0
        if limit is None and not offset:
            return node
        if select.with_ties and (not sort_keys or limit is None):
            raise BadArguments("WITH TIES needs ORDER BY and LIMIT.", position=select.position)
        return plan.Limit(node, limit, offset, sort_keys if select.with_ties else ())

    def _count(self, node: sql.Expression | None, clause: str) -> int | None:
        if node is None:
            return None
        bound = self.binder.bind(node)
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
    """The columns of a Project, each expression once."""

    def __init__(self, queries: QueryBinder) -> None:
        self.names = queries.names
        self.expressions: list[tuple[str, Expression]] = []
        self._by_expression: dict[Expression, str] = {}

    def add(self, expression: Expression, wanted: str) -> str:
        name = self._by_expression.get(expression)
        if name is None:
            is_column = isinstance(expression, ColumnRef)
            name = expression.name if is_column else self.names.unique(wanted)  # type: ignore[attr-defined]
            self._by_expression[expression] = name
            self.expressions.append((name, expression))
        return name

    def reference(self, expression: Expression) -> ColumnRef:
        return ColumnRef(expression.type, self.add(expression, "key"))


def _some(expression: Expression | None) -> tuple[Expression, ...]:
    return () if expression is None else (expression,)


def _filtered(
    relation: Relation,
    prewhere: Expression | None,
    where: Expression | None,
    select: sql.Select,
    rows: Unnesting,
) -> plan.Node:
    """PREWHERE of a FINAL table comes before its rows are combined; else it is a WHERE."""
    node = relation.build()
    if prewhere is not None:
        source = select.source
        while isinstance(source, sql.ArrayJoin):
            source = source.source
        if not isinstance(source, sql.TableReference):
            raise NotSupportedError(
                "PREWHERE is for a single table.",
                hint="Use WHERE: conditions are pushed down to the tables.",
                position=select.position,
            )
        refuse_unnested(prewhere, "PREWHERE")
        if isinstance(node, plan.Scan) and not node.table.engine.is_merge_tree:
            raise IllegalPrewhere(
                f"The engine {node.table.engine.name} does not support PREWHERE.",
                hint="Use WHERE.",
                position=select.position,
            )
        node = with_prewhere(node, prewhere)
    if where is None:
        return node
    return plan.Filter(rows.below(node, (where,)), rows.over(where))


def _key_name(key: Expression, name: str) -> str:
    return key.name if isinstance(key, ColumnRef) else name


def _integer_literal(node: sql.Expression) -> int | None:
    """1 or -1, with no alias or cast around it."""
    if isinstance(node, sql.Literal) and type(node.value) is int:
        return node.value
    if isinstance(node, sql.Function) and node.name == "negate" and len(node.arguments) == 1:
        inner = _integer_literal(node.arguments[0])
        return None if inner is None else -inner
    return None
