"""Correlated subqueries as joins.

    WHERE EXISTS (…), x IN (…)      LEFT SEMI JOIN, with NOT a LEFT ANTI JOIN
    anywhere else                   LEFT JOIN with one row for each combination of outer values

A row without a partner has a scalar subquery's value NULL, EXISTS and IN 0. A count of no rows is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.bind import constants
from olapdb.bind.correlations import outer_columns
from olapdb.bind.dependent_plans import (
    Dependent,
    Joinable,
    equal_columns,
    is_key,
    key_pairs,
    replace_outer,
)
from olapdb.bind.names import NameAllocator
from olapdb.functions import default_value, resolve_aggregate
from olapdb.plan import nodes as plan
from olapdb.plan.conditions import all_of, conjuncts, scalar_call
from olapdb.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Constant,
    CorrelatedSubquery,
    Expression,
    OuterColumn,
    columns_of,
    substitute,
    walk,
)
from olapdb.types import UINT8, is_nullable, make_nullable

Keys = list[tuple[Expression, Expression]]

_COUNTS = ("count", "uniq")
"""The beginnings of the names of aggregates that are 0 over no rows."""


def matching(node: plan.Node, condition: Expression, names: NameAllocator) -> plan.Node | None:
    """Return the rows of which a condition EXISTS, NOT EXISTS, IN or NOT IN of a correlated
    subquery holds, by a SEMI or ANTI join. None for any other condition."""
    negated = False
    while isinstance(condition, Call) and condition.name == "not":
        condition, negated = condition.arguments[0], not negated
    if not isinstance(condition, CorrelatedSubquery) or condition.kind == "scalar":
        return None
    anti = negated != condition.negated
    if condition.negated and any(is_nullable(a.type) for a in condition.arguments):
        return None  # NULL NOT IN (…) is NULL, not 1
    if negated and condition.kind == "in" and is_nullable(condition.type):
        return None
    right, keys, residual = _sides(node, condition, names)
    if not keys:
        keys = [(constants.unsigned_byte(1), constants.unsigned_byte(1))]
    return plan.Join(
        node,
        right,
        "LEFT",
        "ANTI" if anti else "SEMI",
        tuple(left for left, _ in keys),
        tuple(right for _, right in keys),
        all_of(residual) if residual else None,
        node.schema,
    )


def _sides(
    node: plan.Node, call: CorrelatedSubquery, names: NameAllocator
) -> tuple[plan.Node, Keys, list[Expression]]:
    """Return the right side of a SEMI join, its keys, and its conditions on both sides."""
    outer = dict(zip(call.parameters, call.outer, strict=True))
    source, columns = _source(call.plan)
    if isinstance(source, plan.Filter) and not outer_columns(source.child) and _are_inner(columns):
        parts = conjuncts(source.predicate)
        equal = equal_columns(parts, outer)
        keys: Keys = [(outer[name], value) for name, value in equal.items()]
        keys += zip(call.arguments, columns, strict=False)
        local = [p for p in parts if not any(isinstance(e, OuterColumn) for e in walk(p))]
        both = [p for p in parts if p not in local and not is_key(p, equal)]
        right: plan.Node = plan.Filter(source.child, all_of(local)) if local else source.child
        return right, keys, [replace_outer(p, outer) for p in both]
    below = Dependent(call, node, names).joinable(call.plan)
    return below.node, _keys(call, below), []


def _source(node: plan.Node) -> tuple[plan.Node, tuple[Expression, ...]]:
    """Return the rows below a plan's columns, and the columns over them; order and duplicates do
    not matter to EXISTS and IN."""
    if isinstance(node, plan.Sort) and node.limit is None:
        return _source(node.child)
    if isinstance(node, plan.Project):
        return node.child, tuple(e for _, e in node.expressions)
    return node, tuple(ColumnRef(f.type, f.name) for f in node.schema)


def _are_inner(columns: Sequence[Expression]) -> bool:
    """Return whether no column is an outer value."""
    return not any(isinstance(e, OuterColumn) for c in columns for e in walk(c))


def _keys(call: CorrelatedSubquery, below: Joinable) -> Keys:
    """Return the keys between the enclosing rows and a plan: outer values, then the sides of IN."""
    keys: Keys = [
        pair
        for name, value in zip(call.parameters, call.outer, strict=True)
        for pair in key_pairs(value, below.values[name], name in below.nulls_match)
    ]
    columns = [ColumnRef(f.type, f.name) for f in call.plan.schema]
    return keys + list(zip(call.arguments, columns, strict=False))


class SubqueryJoin:
    """The LEFT JOIN of one correlated subquery to the rows that use its value."""

    def __init__(self, call: CorrelatedSubquery, node: plan.Node, names: NameAllocator) -> None:
        self.call, self.outer, self.names = call, node, names
        self.dependent = Dependent(call, node, names)

    def join(self) -> tuple[plan.Node, Expression]:
        """Return the rows with the subquery's columns, and the expression of its value."""
        if self.call.kind != "scalar":
            return self._membership()
        above, aggregate = _aggregate_of(self.call.plan)
        if aggregate is not None:
            return self._aggregate(above, aggregate)
        return self._value()

    def _left_join(
        self, right: plan.Node, keys: Keys, nullable: frozenset[str] = frozenset()
    ) -> plan.Join:
        """Return the LEFT JOIN of the rows to one row for each key at most.

        Columns of `nullable` are NULL where there is none, others have their default."""
        fields = tuple(
            plan.Field(f.name, make_nullable(f.type) if f.name in nullable else f.type)
            for f in right.schema
        )
        return plan.Join(
            self.outer,
            right,
            "LEFT",
            "ALL",
            tuple(left for left, _ in keys),
            tuple(right for _, right in keys),
            None,
            (*self.outer.schema, *fields),
        )

    def _marked(self, node: plan.Node) -> tuple[plan.Node, ColumnRef]:
        """Return the plan with a column that is 1: after a LEFT JOIN 0 says "no partner"."""
        marker = ColumnRef(UINT8, self.names.unique("matched"))
        own = tuple((f.name, ColumnRef(f.type, f.name)) for f in node.schema)
        return plan.Project(node, (*own, (marker.name, constants.unsigned_byte(1)))), marker

    def _membership(self) -> tuple[plan.Node, Expression]:
        """Return EXISTS or IN as a column of 1 and 0, NULL for `NULL IN`."""
        call = self.call
        below = self.dependent.joinable(call.plan)
        keys = _keys(call, below)
        columns = tuple((self.names.unique("key"), right) for _, right in keys)
        right, marker = self._marked(plan.Distinct(plan.Project(below.node, columns)))
        pairs: Keys = [
            (left, ColumnRef(key.type, name))
            for (left, key), (name, _) in zip(keys, columns, strict=True)
        ]
        value: Expression = marker
        if call.negated:
            value = scalar_call("not", (marker,))
        if is_nullable(call.type):
            null = Cast(call.type, constants.null())
            is_null = scalar_call("isNull", (call.arguments[0],))
            value = scalar_call("if", (is_null, null, Cast(call.type, value)))
        return self._left_join(right, pairs), _as(value, call)

    def _aggregate(
        self, above: list[plan.Project | plan.Filter], aggregate: plan.Aggregate
    ) -> tuple[plan.Node, Expression]:
        """Return the value of an aggregate without GROUP BY, which has a value over no rows too.

        The nodes above it, outermost first, are computed over the joined rows."""
        below = self.dependent.joinable(aggregate.child)
        keys = tuple((c.name, c) for c in below.columns)
        calls = tuple(
            (name, AggregateCall(c.aggregate, c.name, tuple(map(below.rewrite, c.arguments))))
            for name, c in aggregate.aggregates
        )
        counts = {name for name, c in calls if c.name.startswith(_COUNTS)}
        right, marker = self._marked(plan.Aggregate(below.node, keys, calls))
        joined = self._left_join(right, _keys(self.call, below))
        outer = dict(zip(self.call.parameters, self.call.outer, strict=True))
        values: dict[str, Expression] = {n: ColumnRef(c.type, n) for n, c in calls}
        conditions: list[Expression] = []
        for node in reversed(above):
            if isinstance(node, plan.Filter):
                conditions.append(substitute(replace_outer(node.predicate, outer), values))
            else:
                pairs = node.expressions
                values = {n: substitute(replace_outer(e, outer), values) for n, e in pairs}
        (value,) = values.values()
        read = columns_of(value).union(*map(columns_of, conditions)) & {n for n, _ in calls}
        if not read or not read <= counts:
            conditions.insert(0, marker)
        return joined, _as(_where(conditions, value, self.call), self.call)

    def _value(self) -> tuple[plan.Node, Expression]:
        """Return the only row's value for each combination of outer values, NULL for no row.

        More than one row is an error when the query runs."""
        below = self.dependent.joinable(self.call.plan)
        (column,) = self.call.plan.schema
        value = ColumnRef(column.type, column.name)
        any_value = resolve_aggregate("any", (), (column.type,))
        count = resolve_aggregate("count", (), ())
        names = self.names.unique("value"), self.names.unique("rows")
        aggregates = (
            (names[0], AggregateCall(any_value, "any", (value,))),
            (names[1], AggregateCall(count, "count", ())),
        )
        keys = tuple((c.name, c) for c in below.columns)
        grouped = plan.Aggregate(below.node, keys, aggregates)
        joined = self._left_join(grouped, _keys(self.call, below), frozenset(names[:1]))
        types = {f.name: f.type for f in joined.schema}
        one = constants.unsigned_byte(1)
        several = scalar_call("greater", (ColumnRef(types[names[1]], names[1]), one))
        failed = scalar_call("throwIf", (several, constants.string(_SEVERAL_ROWS)))
        single = scalar_call("equals", (failed, constants.unsigned_byte(0)))
        single_value = ColumnRef(types[names[0]], names[0])
        return joined, _as(_where([single], single_value, self.call), self.call)


_SEVERAL_ROWS = "A correlated scalar subquery returned more than one row. Aggregate it, or add LIMIT 1, or use IN."


def _aggregate_of(
    node: plan.Node,
) -> tuple[list[plan.Project | plan.Filter], plan.Aggregate | None]:
    """Return a plan's aggregate without GROUP BY, and the nodes above it, outermost first; None
    for any other plan."""
    above: list[plan.Project | plan.Filter] = []
    while True:
        match node:
            case plan.Project() | plan.Filter():
                above.append(node)
                node = node.child
            case plan.Sort() | plan.Distinct(keys=()):
                node = node.child
            case plan.Limit(count=count, offset=0) if count:
                node = node.child
            case plan.Aggregate(keys=(), sets=(), empty_without_rows=False):
                return above, node
            case _:
                return above, None


def _where(
    conditions: Sequence[Expression], value: Expression, call: CorrelatedSubquery
) -> Expression:
    """Return `value` where all conditions hold, else NULL, or the type's default where the type cannot be NULL; `value`
    alone without conditions."""
    if not conditions:
        return value
    missing = Constant(call.type, pa.scalar(None, call.type.arrow))
    if not is_nullable(call.type):
        missing = Constant(call.type, default_value(call.type))
    return scalar_call("if", (all_of(conditions), _as(value, call), missing))


def _as(value: Expression, call: CorrelatedSubquery) -> Expression:
    """Return the value cast to the type of the correlated subquery that it replaces."""
    return value if value.type == call.type else Cast(call.type, value)
