"""ARRAY JOIN and arrayJoin(): a row for each element of an array.

The clause joins its arrays side by side, as columns of FROM.  A call of the function is bound to an
`Unnested`, and the SELECT puts an ArrayJoin below the first clause that uses one.  Equal calls are one
column, different calls multiply each other's rows:

    SELECT arrayJoin([1, 2]) AS a, arrayJoin([3, 4]) AS b     (1, 3), (1, 4), (2, 3), (2, 4)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from olapdb.bind.aggregates import refuse_aggregates
from olapdb.bind.contracts import BindContext, QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.names import NameAllocator
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.bind.stars import expand_star
from olapdb.config import Settings
from olapdb.errors import (
    IllegalPrewhere,
    NotSupportedError,
    NumberOfArgumentsDoesntMatch,
    TypeMismatch,
)
from olapdb.lazy import LazyModule
from olapdb.plan import nodes as plan
from olapdb.plan.conditions import scalar_call
from olapdb.plan.expressions import (
    AggregateCall,
    ColumnRef,
    CorrelatedSubquery,
    Expression,
    InSubquery,
    ScalarSubquery,
    Unnested,
    columns_of,
    element_type,
    transform,
    walk,
    with_children,
)
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import Map

if TYPE_CHECKING:
    from olapdb.bind import decorrelation
    from olapdb.plan import fingerprint
else:
    decorrelation = LazyModule("olapdb.bind.decorrelation")
    fingerprint = LazyModule("olapdb.plan.fingerprint")


def bind_array_join(
    queries: QueryBinder,
    join: sql.ArrayJoin,
    source: Relation,
    context: BindContext,
    aliases: Mapping[str, sql.Expression],
) -> Relation:
    """Return the relation of an ARRAY JOIN over the relation before it.

    `ARRAY JOIN a` puts the element in the place of column a; `ARRAY JOIN a AS x` adds x beside it,
    which no star shows.  `ARRAY JOIN n` joins the columns `n.a`, `n.b`, …  Aliases of the SELECT may
    be used, but columns come before them.  Raises TypeMismatch for a value that is neither an Array
    nor a Map, NumberOfArgumentsDoesntMatch if COLUMNS names none.
    """
    changes = {"prefer_column_name_to_alias": 1}
    columns_first = Settings.of(context.settings).with_changes(changes)
    binder = ExpressionBinder(queries, source, replace(context, settings=columns_first), aliases)
    array_join = _ArrayJoinBinder(queries, binder, source)
    for item in join.arrays:
        array_join.add(item)
    if not array_join.arrays:
        raise NumberOfArgumentsDoesntMatch(
            "ARRAY JOIN has no array: no column is in its COLUMNS.",
            position=join.arrays[0].position,
        )
    return array_join.relation(join.left)


class _ArrayJoinBinder:
    """The arrays of one clause: `added` columns for aliases, `replaced` columns for the others."""

    def __init__(self, queries: QueryBinder, binder: ExpressionBinder, source: Relation) -> None:
        self.names, self.binder, self.source = queries.names, binder, source
        self.arrays: list[tuple[str, Expression]] = []
        self.added: list[RelationColumn] = []
        self.replaced: dict[RelationColumn, RelationColumn] = {}

    def add(self, item: sql.Expression) -> None:
        """Bind one item of the clause: a nested table's name adds each of its arrays, COLUMNS and a star each of
        their columns."""
        alias = item.name if isinstance(item, sql.Alias) else None
        if isinstance(item, sql.Star):
            for starred in expand_star(self.binder, item):
                self.add(starred.syntax)
            return
        array = self._unaliased(item.expression if isinstance(item, sql.Alias) else item)
        column = self.source.find(array.parts) if isinstance(array, sql.Identifier) else None
        if column is None and isinstance(array, sql.Identifier) and (inner := self._nested(array)):
            prefix = len(".".join(array.parts))
            for nested in inner:
                name = None if alias is None else alias + nested.name[prefix:]
                self._join(nested.use(), name, nested, array)
            return
        bound = self.binder.bind(array)
        refuse_aggregates(bound, "ARRAY JOIN", array.position)
        if column is None and alias is None and isinstance(array, sql.Identifier):
            column = self._part(array, bound)
        self._join(bound, alias, column, array)

    def _unaliased(self, array: sql.Expression) -> sql.Expression:
        """Return the name of the column for an alias of the SELECT that is only another name of it; others unchanged."""
        if not isinstance(array, sql.Identifier) or self.source.find(array.parts) is not None:
            return array
        meant = self.binder.aliases.get(".".join(array.parts))
        return meant if isinstance(meant, sql.Identifier) else array

    def _part(self, name: sql.Identifier, bound: Expression) -> RelationColumn | None:
        """Return a column for the array `t.a` that is a part of column t, which no star shows: its elements take
        its place. None if the name is no part of a column."""
        for length in range(len(name.parts) - 1, 0, -1):
            whole = self.source.find(name.parts[:length])
            if whole is not None:
                shown = ".".join((whole.name, *name.parts[length:]))
                return RelationColumn(
                    shown, bound.type, lambda: bound, whole.qualifiers, starred=False
                )
        return None

    def _nested(self, name: sql.Identifier) -> list[RelationColumn]:
        """Return the columns `n.a`, `n.b` of a nested table n, [] if it has no arrays."""
        *qualifier, last = name.parts
        return [
            c
            for c in self.source.columns
            if c.name.startswith(f"{last}.")
            and element_type(c.type) is not None
            and (not qualifier or tuple(qualifier) in c.qualifiers)
        ]

    def _join(
        self,
        array: Expression,
        alias: str | None,
        column: RelationColumn | None,
        node: sql.Expression,
    ) -> None:
        """Add an array and the column of its elements, of which `alias` is the new name.

        Without an alias the elements take the place of `column`, the one that `array` reads; with
        neither, they have no name. Raises TypeMismatch if it is neither an Array nor a Map."""
        data_type = element_type(array.type)
        if data_type is None:
            raise TypeMismatch(
                f"ARRAY JOIN needs an Array or a Map, not {array.type}.", position=node.position
            )
        unique = self.names.unique(alias or (column.name if column is not None else "element"))
        self.arrays.append((unique, array))
        element = ColumnRef(data_type, unique)
        if alias is not None:
            self.added.append(
                RelationColumn(alias, data_type, lambda: element, starred=False, array_joined=True)
            )
        elif column is not None:
            self.replaced[column] = RelationColumn(
                column.name,
                data_type,
                lambda: element,
                column.qualifiers,
                column.starred,
                column.bare,
                column.shown_bare,
                array_joined=True,
            )

    def _of_one_length(
        self, arrays: tuple[tuple[str, Expression], ...]
    ) -> tuple[tuple[str, Expression], ...]:
        """Return the arrays, the shorter ones of a row with default values behind their elements.
        Raises NotSupportedError for a Map, which has no default entry."""
        if any(isinstance(array.type, Map) for _, array in arrays):
            raise NotSupportedError(
                "enable_unaligned_array_join is for arrays, not for a Map.",
                hint="Join mapKeys(m) and mapValues(m).",
            )
        lengths = tuple(scalar_call("length", (array,)) for _, array in arrays)
        longest = scalar_call("greatest", lengths)
        return tuple((name, scalar_call("arrayResize", (a, longest))) for name, a in arrays)

    def relation(self, left: bool) -> Relation:
        """Return the joined relation; `left` keeps rows whose arrays are empty."""
        columns = [self.replaced.get(c, c) for c in self.source.columns]
        parts = [c for part, c in self.replaced.items() if part not in self.source.columns]
        arrays = tuple(self.arrays)
        if len(arrays) > 1 and self.binder.context.flag("enable_unaligned_array_join"):
            arrays = self._of_one_length(arrays)

        def build() -> plan.Node:
            """Return the ArrayJoin node over the source's plan."""
            node = self.source.build()
            return plan.ArrayJoin(node, node.schema, arrays, left)

        return Relation(
            [*self.added, *parts, *columns], build, self.source.label, self.source.joins
        )


def with_prewhere(node: plan.Node, prewhere: Expression) -> plan.Node:
    """Return the node with PREWHERE applied to the table's own rows, below any ARRAY JOIN.

    With FINAL it filters the rows before they are combined; of a join it filters the rows of the one
    table that it names. Raises IllegalPrewhere where it uses an element of an array, or columns of
    several tables."""
    if isinstance(node, plan.Join):
        return _in_joined_table(node, prewhere)
    if isinstance(node, plan.Scan) and not node.table.engine.is_merge_tree:
        raise IllegalPrewhere(
            f"The engine {node.table.engine.name} does not support PREWHERE.", hint="Use WHERE."
        )
    if isinstance(node, plan.Scan) and node.final:
        fields = zip(node.columns, node.types, strict=True)
        predicate_columns = tuple((unique, name, t) for (unique, name), t in fields)
        return replace(node, prewhere=prewhere, predicate_columns=predicate_columns)
    if not isinstance(node, plan.ArrayJoin):
        return plan.Filter(node, prewhere)
    if columns_of(prewhere) & {name for name, _ in node.arrays}:
        raise IllegalPrewhere(
            "PREWHERE is applied before ARRAY JOIN, so it cannot use the elements.",
            hint="Use WHERE.",
        )
    return replace(node, child=with_prewhere(node.child, prewhere))


_FILTERED = (plan.Scan, plan.Join, plan.Filter)
"""Inputs of a join that are tables, and no subqueries."""


def _in_joined_table(node: plan.Join, prewhere: Expression) -> plan.Join:
    """Return the join with PREWHERE below it, at the table whose columns it names; at the leftmost
    one if it names none. Raises IllegalPrewhere."""
    named = columns_of(prewhere)
    left, right = ({field.name for field in side.schema} for side in (node.left, node.right))
    if named <= left and isinstance(node.left, _FILTERED):
        return replace(node, left=with_prewhere(node.left, prewhere))
    if named <= right and isinstance(node.right, _FILTERED):
        return replace(node, right=with_prewhere(node.right, prewhere))
    raise IllegalPrewhere(
        "PREWHERE is for the columns of one of the joined tables.",
        hint="Use WHERE: conditions are pushed down to the tables.",
    )


# --- the function


@dataclass
class Unnesting:
    """The arrayJoin() calls and correlated subqueries of one level of a SELECT (its rows, or its
    groups) as columns."""

    names: NameAllocator

    def __post_init__(self) -> None:
        self._columns: dict[Expression, Expression] = {}
        self._plans: dict[Hashable, plan.Node] = {}

    def add_joins(self, node: plan.Node, expressions: Iterable[Expression]) -> plan.Node:
        """Return the node with an ArrayJoin on top for each new call in the expressions, and a
        LEFT JOIN for each correlated subquery.

        Calls inside other calls come first."""
        for expression in expressions:
            for call in _calls_inside_out(expression):
                key = self._with_known_plans(call)
                if key in self._columns:
                    continue
                if isinstance(call, CorrelatedSubquery):
                    children = tuple(map(self.rewrite, call.children()))
                    subquery = cast(CorrelatedSubquery, with_children(call, children))
                    node, self._columns[key] = decorrelation.SubqueryJoin(
                        subquery, node, self.names
                    ).join()
                    continue
                unique = self.names.unique("arrayJoin")
                arrays = ((unique, self.rewrite(call.argument)),)
                node = plan.ArrayJoin(node, node.schema, arrays, False)
                self._columns[key] = ColumnRef(call.type, unique)
        return node

    def rewrite(self, expression: Expression) -> Expression:
        """Return the expression with calls replaced by the columns of the added joins."""
        if not self._columns:
            return expression
        return transform(
            expression,
            lambda e: (
                self._columns.get(self._with_known_plans(e))
                if isinstance(e, Unnested | CorrelatedSubquery)
                else None
            ),
        )

    def _with_known_plans(self, call: Expression) -> Expression:
        """Return the call with the plan of each subquery that computes the same as an earlier one replaced by
        that one's. Each use of an alias binds its subqueries anew, and its arrayJoin() is still one."""
        if not any(isinstance(e, ScalarSubquery | InSubquery) for e in walk(call)):
            return call
        return transform(call, self._with_known_plan)

    def _with_known_plan(self, expression: Expression) -> Expression | None:
        """Return a subquery with the first plan that computes the same; None for other expressions."""
        if not isinstance(expression, ScalarSubquery | InSubquery):
            return None
        key = fingerprint.fingerprint(expression.plan)
        if key is None:
            return None
        known = self._plans.setdefault(key, expression.plan)
        return None if known is expression.plan else replace(expression, plan=known)

    def rewrite_call(self, call: AggregateCall) -> AggregateCall:
        """Return the aggregate with its arguments rewritten."""
        return replace(call, arguments=tuple(self.rewrite(a) for a in call.arguments))


def _calls_inside_out(expression: Expression) -> Iterator[Unnested | CorrelatedSubquery]:
    """Yield the arrayJoin() calls and correlated subqueries in an expression, innermost first."""
    for child in expression.children():
        yield from _calls_inside_out(child)
    if isinstance(expression, Unnested | CorrelatedSubquery):
        yield expression


def refuse_unnested(expression: Expression, clause: str) -> None:
    """Raise NotSupportedError if the expression calls arrayJoin(), which the clause cannot."""
    if any(isinstance(e, Unnested) for e in walk(expression)):
        raise NotSupportedError(
            f"arrayJoin() makes several rows of one, which has no meaning in {clause}.",
            hint="Use the clause ARRAY JOIN, or a subquery.",
        )
