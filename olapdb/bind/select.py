"""One SELECT, clause by clause.

Every expression is bound over the relation of FROM first. Then the binder knows which columns are
read, whether the query aggregates, and what must be computed. It builds the node inside out:

    FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT BY, LIMIT
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.bind import constants
from olapdb.bind.aggregates import Grouping, implicit_keys, needs_groups, refuse_aggregates
from olapdb.bind.aliases import aliases_of
from olapdb.bind.array_joins import Unnesting, refuse_unnested, with_prewhere
from olapdb.bind.collations import collated
from olapdb.bind.contracts import BindContext, BoundQuery, QueryBinder
from olapdb.bind.correlations import refuse_correlated
from olapdb.bind.expressions import ExpressionBinder, bind_condition
from olapdb.bind.grouping_sets import nullable_keys, refuse_without_groups, rollup_or_cube
from olapdb.bind.names import located
from olapdb.bind.projection import Order, SelectItem, SelectProjection, bind_projection
from olapdb.bind.relation import Relation
from olapdb.bind.result_names import result_name
from olapdb.bind.sources import bind_source
from olapdb.bind.stars import expand_arguments, expand_star, untupled
from olapdb.bind.subquery_numbers import SubqueryNumbers
from olapdb.bind.totals import refuse_totals_without_groups, with_totals
from olapdb.bind.variants import order_key, refuse_variant_key
from olapdb.bind.windows import Windowing, refuse_windows
from olapdb.errors import (
    BadArguments,
    EmptyListOfColumnsQueried,
    IllegalPrewhere,
    IllegalTypeOfArgument,
    SyntaxError,
    UnexpectedExpression,
)
from olapdb.lazy import LazyModule
from olapdb.plan import nodes as plan
from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import ColumnRef, Constant, CorrelatedSubquery, Expression
from olapdb.plan.expressions import walk as walk_expression
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.sql.trees import children
from olapdb.types import Nothing

if TYPE_CHECKING:
    from olapdb.bind import decorrelation
else:
    decorrelation = LazyModule("olapdb.bind.decorrelation")


def bind_select(queries: QueryBinder, select: sql.Select, context: BindContext) -> BoundQuery:
    """Bind one SELECT with all its clauses."""
    aliases = aliases_of(select)
    context = with_clause(queries, select, context)
    source = _ONE if select.source is None and _reads_dummy(select) else select.source
    relation = bind_source(queries, source, context.nested(), aliases)
    binder = ExpressionBinder(queries, relation, context, aliases)
    binder.may_unnest = True
    if select.windows:
        binder.windows = _windows_of(select)
        _check_windows(ExpressionBinder(queries, relation, context, aliases), select)
    with located(select.position):
        return _SelectBinder(queries, select, binder).bind()


_ONE = sql.TableReference(sql.TableName("one", "system"))
"""What a SELECT without FROM reads: one row, whose column is `dummy`."""


def _reads_dummy(node: sql.Node) -> bool:
    """Return whether the expressions of a SELECT name the column `dummy`, or have a star."""
    match node:
        case (
            sql.Star()
            | sql.Identifier(parts=("dummy",) | ("one", "dummy") | ("system", "one", "dummy"))
        ):
            return True
        case _:
            return any(
                not isinstance(child, sql.Query) and _reads_dummy(child) for child in children(node)
            )


def _windows_of(select: sql.Select) -> dict[str, sql.WindowSpec]:
    """Return the windows of WINDOW by name; raise BadArguments for a repeated name."""
    windows: dict[str, sql.WindowSpec] = {}
    for name, spec in select.windows:
        if name in windows:
            raise BadArguments(f"Window {name!r} is defined twice.", position=spec.position)
        windows[name] = spec
    return windows


def _check_windows(binder: ExpressionBinder, select: sql.Select) -> None:
    """Bind the windows of WINDOW, so that a name that does not exist is an error in one that no
    function uses. The binder is thrown away."""
    for _, spec in select.windows:
        binder.bind_all(spec.partition_by)
        binder.bind_all([item.expression for item in spec.order_by])


def with_clause(
    queries: QueryBinder, query: sql.Select | sql.SetOperation, context: BindContext
) -> BindContext:
    """Return the context with the WITH queries as tables, and WITH constants for subqueries."""
    expressions = {i.name: i.expression for i in query.with_items if i.expression is not None}
    if not expressions:
        return context.with_tables(query.with_items, recursive=query.recursive)
    with_constants = ExpressionBinder(queries, Relation((), _no_rows), context, expressions)
    context = replace(context, outer=with_constants)
    context = context.with_tables(query.with_items, recursive=query.recursive)
    # the constants read the queries, and the queries the constants
    with_constants.context = replace(with_constants.context, tables=context.tables)
    return context


def _no_rows() -> plan.Node:
    """Raise AssertionError: the relation over which WITH expressions are bound has no plan."""
    raise AssertionError("WITH expressions alone have no rows.")


@dataclass(frozen=True)
class _Clauses:
    """The bound expressions of the clauses after GROUP BY."""

    items: list[SelectItem]
    having: Expression | None
    qualify: Expression | None
    orders: list[Order]
    limit_by: list[Expression]

    def computed(self) -> list[Expression]:
        """Return the expressions that are computed after HAVING.

        The order is SELECT, ORDER BY, LIMIT BY, QUALIFY."""
        columns = [i.expression for i in self.items] + [o.expression for o in self.orders]
        return [*columns, *self.limit_by, *_optional(self.qualify)]


class _SelectBinder:
    """The binding of one SELECT whose FROM is bound already."""

    def __init__(self, queries: QueryBinder, select: sql.Select, binder: ExpressionBinder) -> None:
        self.queries, self.select, self.binder = queries, select, binder
        self._sets: list[list[tuple[str, Expression]]] | None = None
        self.positional = binder.context.flag("enable_positional_arguments")

    def bind(self) -> BoundQuery:
        """Bind the clauses and return the plan, with an Aggregate if the query groups."""
        select = self.select
        items = list(self._items())
        if not items:
            raise EmptyListOfColumnsQueried("A star, EXCEPT or COLUMNS leaves no column to select.")
        prewhere = self._condition(select.prewhere, "PREWHERE")
        where = self._condition(select.where, "WHERE")
        keys = self._group_keys(items)
        if select.grouping and self.binder.context.flag("group_by_use_nulls"):
            self.binder.use_nullable_keys(nullable_keys([e for _, e in keys or ()]))
            items = list(self._items())
        clauses = self._clauses(items)
        rows = Unnesting(self.queries.names)
        node = _filtered(self.binder.relation, prewhere, where, select, rows)
        expressions = (*clauses.computed(), *_optional(clauses.having))
        if keys is None:
            refuse_without_groups(expressions)
        if keys is not None or any(map(needs_groups, expressions)):
            grouping = self._grouping(keys or [])
            clauses = self._over_groups(clauses, grouping)
            aggregate = self._aggregate(node, grouping, rows)
            node = with_totals(aggregate, select, clauses.having, self.binder.context)
            rows = Unnesting(self.queries.names)
        elif select.with_totals:
            refuse_totals_without_groups(select)
        return self._above_groups(node, clauses, rows)

    def _clauses(self, items: list[SelectItem]) -> _Clauses:
        """Bind the clauses that follow GROUP BY, still over the rows of FROM."""
        select = self.select
        having = qualify = None
        if select.having is not None:
            having = bind_condition(self.binder, select.having, "HAVING")
            refuse_windows(having, "HAVING", select.having.position)
        if select.qualify is not None:
            qualify = bind_condition(self.binder, select.qualify, "QUALIFY")
        return _Clauses(
            items, having, qualify, list(self._orders(items)), self._limit_by_keys(items)
        )

    def _grouping(self, keys: list[tuple[str, Expression]]) -> Grouping:
        """Return the collector of these keys and of the aggregates over them."""
        standard = self.binder.context.flag("force_grouping_standard_compatibility")
        return Grouping(
            self.queries.names,
            keys,
            self._grouping_sets(keys),
            self.binder.environment,
            standard=standard,
        )

    def _over_groups(self, clauses: _Clauses, grouping: Grouping) -> _Clauses:
        """Return the clauses with every expression over the groups."""
        select, rewrite = self.select, grouping.rewrite
        items = [
            replace(i, expression=rewrite(i.expression, i.position or select.position))
            for i in clauses.items
        ]
        having, qualify = clauses.having, clauses.qualify
        if having is not None and select.having is not None:
            having = rewrite(having, select.having.position)
        if qualify is not None and select.qualify is not None:
            qualify = rewrite(qualify, select.qualify.position)
        orders = [replace(o, expression=rewrite(o.expression, o.position)) for o in clauses.orders]
        limit_by = [rewrite(e, select.position) for e in clauses.limit_by]
        return _Clauses(items, having, qualify, orders, limit_by)

    def _above_groups(self, node: plan.Node, clauses: _Clauses, rows: Unnesting) -> BoundQuery:
        """Return the query with HAVING and all that follows on top of `node`.

        The order is HAVING, arrayJoin(), windows, QUALIFY, then SELECT, ORDER BY and LIMIT."""
        having, qualify = clauses.having, clauses.qualify
        if having is not None:
            node = plan.Filter(rows.add_joins(node, (having,)), rows.rewrite(having))
        windows = Windowing(self.queries.names)
        computed = clauses.computed()
        node = rows.add_joins(node, computed)  # before the windows, which see its rows
        node = windows.add_windows(node, [rows.rewrite(e) for e in computed])

        def rewritten(expression: Expression) -> Expression:
            """Return the expression with calls of arrayJoin() and window functions replaced by their columns."""
            return windows.rewrite(rows.rewrite(expression))

        if qualify is not None:
            node = plan.Filter(node, rewritten(qualify))
        items = [replace(i, expression=rewritten(i.expression)) for i in clauses.items]
        orders = [replace(o, expression=rewritten(o.expression)) for o in clauses.orders]
        limit_by = [rewritten(e) for e in clauses.limit_by]
        projection = SelectProjection(items, orders, limit_by)
        return bind_projection(self.select, self.binder, node, projection)

    # --- binding the clauses

    def _items(self) -> Iterator[SelectItem]:
        """Yield the bound columns of SELECT; a star or COLUMNS(…) yields one for each match."""
        numbers = SubqueryNumbers(self.select)
        for column in self.select.columns:
            expanded = expand_arguments(self.binder, column)
            named = numbers.named(expanded)
            elements = untupled(self.binder, expanded)
            if elements is None and isinstance(column, sql.Star):
                for star_column in expand_star(self.binder, column):
                    yield SelectItem(star_column.name, star_column.expression, column.position)
                continue
            if elements is not None:
                for name, syntax in elements:
                    yield SelectItem(name, self.binder.bind(syntax), column.position)
                continue
            name = result_name(self.binder, named)
            bound = self.binder.bind(expanded)
            if isinstance(bound.type, Nothing):
                raise IllegalTypeOfArgument(
                    f"The column {name} has no type: it is an element of an empty array.",
                    hint="CAST the array, such as []::Array(UInt8).",
                    position=column.position,
                )
            yield SelectItem(name, bound, column.position)

    def _condition(self, node: sql.Expression | None, clause: str) -> Expression | None:
        """Bind PREWHERE or WHERE, None if it is absent.

        Raises an error if it has a window function or an aggregate."""
        if node is None:
            return None
        bound = bind_condition(self.binder, node, clause)
        refuse_windows(bound, clause, node.position)
        return refuse_aggregates(bound, clause, node.position)

    def _group_keys(self, items: Sequence[SelectItem]) -> list[tuple[str, Expression]] | None:
        """Return the keys of GROUP BY as (name, expression), None without GROUP BY.

        For GROUPING SETS it is the keys of all sets in order, repeats included."""
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
            return [key for members in self._set_keys(clause, items) for key in members]
        return self._keys_of(clause, items)

    def _set_keys(
        self, clause: Sequence[sql.Expression], items: Sequence[SelectItem]
    ) -> list[list[tuple[str, Expression]]]:
        """Return the keys of each grouping set as (name, expression), bound once."""
        if self._sets is None:
            self._sets = [
                self._keys_of(s.elements if isinstance(s, sql.TupleLiteral) else (s,), items)
                for s in clause
            ]
        return self._sets

    def _grouping_sets(
        self, keys: Sequence[tuple[str, Expression]]
    ) -> tuple[tuple[Expression, ...], ...]:
        """Return the keys of each grouping set, () for a plain GROUP BY."""
        kind = self.select.grouping
        if not kind:
            return ()
        if kind == "SETS":
            return tuple(tuple(e for _, e in members) for members in self._sets or ())
        return rollup_or_cube(kind, [e for _, e in keys])

    def _keys_of(
        self, clause: Sequence[sql.Expression], items: Sequence[SelectItem]
    ) -> list[tuple[str, Expression]]:
        """Return the keys of a GROUP BY list as (name, expression), in order.

        A number is the position of a SELECT column, from 1. Raises an error for a window function
        or an aggregate in a key."""
        keys: list[tuple[str, Expression]] = []
        for node in clause:
            item = self._positional(node, items, "GROUP BY")
            pairs = [(item.name, item.expression)] if item is not None else self._elements(node)
            for name, bound in pairs:
                refuse_windows(bound, "GROUP BY", node.position)
                refuse_aggregates(bound, "GROUP BY", node.position)
                refuse_variant_key(bound, "GROUP BY", self.binder.context)
                keys.append((name, bound))
        return keys

    def _elements(self, node: sql.Expression) -> list[tuple[str, Expression]]:
        """Return a key as [(name, expression)]; a tuple as one pair for each of its elements.

        A number in a tuple is a constant, not the position of a column. A star is its columns."""
        if isinstance(node, sql.Star):
            return [(c.name, c.expression) for c in expand_star(self.binder, node)]
        if isinstance(node, sql.TupleLiteral):
            return [pair for e in node.elements for pair in self._elements(e)]
        return [(result_name(self.binder, node), self.binder.bind(node))]

    def _positional(
        self, node: sql.Expression, items: Sequence[SelectItem], clause: str
    ) -> SelectItem | None:
        """Return the SELECT column at an integer literal's position, from 1.

        None for other expressions, and without the setting `enable_positional_arguments`. Negative
        integers count from the end. Raises BadArguments beyond the columns."""
        number = _integer_literal(node)
        if number is None or not self.positional:
            return None
        if not 1 <= abs(number) <= len(items):
            raise BadArguments(
                f"{clause} {number}: SELECT has {len(items)} columns.", position=node.position
            )
        return items[number - 1 if number > 0 else number]

    def _orders(self, items: Sequence[SelectItem]) -> Iterator[Order]:
        """Yield the items of ORDER BY without constants; ALL yields each SELECT column.

        Raises as `collated` for COLLATE."""
        clause = self.select.order_by
        if isinstance(clause, sql.OrderByAll):
            if not self.queries.scope.settings["enable_order_by_all"]:
                key = order_key(
                    self.binder.bind(sql.Identifier(("all",), position=clause.position))
                )
                yield Order(key, clause.descending, bool(clause.nulls_first), clause.position)
                return
            if any(shown.name.lower() == "all" for shown in items):
                raise UnexpectedExpression(
                    "Cannot use ORDER BY ALL to sort a column with name 'all'.",
                    hint="SET enable_order_by_all = 0: then ORDER BY all means that column.",
                    position=clause.position,
                )
            for shown in items:
                refuse_variant_key(shown.expression, "ORDER BY", self.binder.context)
                nulls_first = bool(clause.nulls_first)
                key = order_key(shown.expression)
                yield Order(key, clause.descending, nulls_first, shown.position)
            return
        for order in clause:
            node = order.expression
            item = self._positional(node, items, "ORDER BY")
            bound = item.expression if item is not None else self.binder.bind(node)
            refuse_variant_key(bound, "ORDER BY", self.binder.context)
            with located(order.position):
                key = collated(bound, order.collate)
            if isinstance(bound, Constant) and order.fill is None:
                continue
            nulls_first = bool(order.nulls_first)
            yield Order(order_key(key), order.descending, nulls_first, node.position, order.fill)

    def _limit_by_keys(self, items: Sequence[SelectItem]) -> list[Expression]:
        """Return the keys of LIMIT BY, or of DISTINCT ON (…), which is LIMIT 1 BY …

        [] without either, SyntaxError for both."""
        select = self.select
        if select.distinct_on and select.limit_by is not None:
            raise SyntaxError(
                "DISTINCT ON and LIMIT BY cannot be used together.",
                hint="DISTINCT ON (a) is LIMIT 1 BY a: write one of them, or a subquery.",
                position=select.position,
            )
        nodes = select.limit_by.by if select.limit_by is not None else select.distinct_on
        if nodes == "ALL":
            return [item.expression for item in items]
        bound = []
        for node in nodes:
            item = self._positional(node, items, "LIMIT BY")
            bound.append(item.expression if item is not None else self.binder.bind(node))
        return bound

    # --- building

    def _aggregate(self, node: plan.Node, grouping: Grouping, rows: Unnesting) -> plan.Aggregate:
        """Return the Aggregate node; arrayJoin() calls in its inputs come below it.

        `rows` collects those calls. If all keys are constants and there is no aggregate, a constant
        key 0 makes one group."""
        node = rows.add_joins(node, grouping.row_expressions())
        keys = tuple((name, rows.rewrite(key)) for name, key in grouping.keys)
        aggregates = tuple((name, rows.rewrite_call(call)) for name, call in grouping.aggregates)
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
        flag = self.binder.context.flag
        only_constants = grouping.only_constants and flag(
            "empty_result_for_aggregation_by_constant_keys_on_empty_set"
        )
        if not grouping.keys and flag("empty_result_for_aggregation_by_empty_set"):
            only_constants = True
        if only_constants and not aggregates:
            name = self.queries.names.unique("group")
            keys, only_constants = ((name, constants.unsigned_byte(0)),), False
        return plan.Aggregate(node, keys, aggregates, only_constants)


def _optional(expression: Expression | None) -> tuple[Expression, ...]:
    """Return the expression as a tuple of one, () for None."""
    return () if expression is None else (expression,)


def _filtered(
    relation: Relation,
    prewhere: Expression | None,
    where: Expression | None,
    select: sql.Select,
    rows: Unnesting,
) -> plan.Node:
    """Return the node of FROM, filtered by PREWHERE and WHERE.

    PREWHERE filters the rows of one table, before they are joined and, with FINAL, combined. Raises
    IllegalPrewhere for one over something else, and for the table's engine."""
    node = relation.build()
    if prewhere is not None:
        source = select.source
        while isinstance(source, sql.ArrayJoin):
            source = source.source
        if not isinstance(source, sql.TableReference | sql.Join):
            raise IllegalPrewhere(
                "PREWHERE is for the columns of a table.",
                hint="Use WHERE.",
                position=select.position,
            )
        refuse_unnested(prewhere, "PREWHERE")
        refuse_correlated(prewhere, "PREWHERE")
        with located(select.position):
            node = with_prewhere(node, prewhere)
    if where is None:
        return node
    if not any(isinstance(e, CorrelatedSubquery) for e in walk_expression(where)):
        return plan.Filter(rows.add_joins(node, (where,)), rows.rewrite(where))
    return _filtered_by_subqueries(node, where, rows)


def _filtered_by_subqueries(node: plan.Node, where: Expression, rows: Unnesting) -> plan.Node:
    """Return the rows of which WHERE holds, by a SEMI or ANTI join for each of its terms that is
    EXISTS or IN of a correlated subquery. Terms without such a subquery come first."""
    parts = conjuncts(where)
    simple = [
        p for p in parts if not any(isinstance(e, CorrelatedSubquery) for e in walk_expression(p))
    ]
    if simple:
        node = plan.Filter(rows.add_joins(node, simple), rows.rewrite(all_of(simple)))
    rest = []
    for part in (p for p in parts if p not in simple):
        matched = decorrelation.matching(node, rows.rewrite(part), rows.names)
        if matched is None:
            rest.append(part)
        else:
            node = matched
    return plan.Filter(rows.add_joins(node, rest), rows.rewrite(all_of(rest))) if rest else node


def _key_name(key: Expression, name: str) -> str:
    """Return a column's own name, for any other key `name`."""
    return key.name if isinstance(key, ColumnRef) else name


def _integer_literal(node: sql.Expression) -> int | None:
    """Return the value of an integer literal such as 1 or -1, None for any other expression."""
    if isinstance(node, sql.Literal) and type(node.value) is int:
        return node.value
    if isinstance(node, sql.Function) and node.name == "negate" and len(node.arguments) == 1:
        inner = _integer_literal(node.arguments[0])
        return None if inner is None else -inner
    return None
