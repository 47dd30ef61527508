"""Aggregates below joins: rows that have the same partners are grouped before they are joined, where that pays.

    SELECT name, sum(price) FROM lines JOIN parts ON lines.part = parts.id GROUP BY name

    SELECT name, sum(s) FROM (SELECT part, sum(price) AS s FROM lines GROUP BY part) AS l
    JOIN parts ON l.part = parts.id GROUP BY name

The lines of a part have the same partners, so each partner meets their sum as often as it met the lines. The join
looks up a row for each part, and the GROUP BY above adds sums by name. The rows are grouped by all their columns
that something above reads. (Yan and Larson, Eager Aggregation and Lazy Aggregation, 1995.) Queries use it after
the order of their joins is chosen; views keep the plans of their block functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from olapdb.config import tuning
from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.partial_aggregates import KEPT_BY_DUPLICATES, of_partials
from olapdb.plan.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    columns_of,
    is_repeatable,
    substitute,
)
from olapdb.plan.nodes import Aggregate, Field, Filter, Join, Node, Plan, Project
from olapdb.plan.tree import bottom_up, expressions_of, map_subqueries, with_inputs
from olapdb.records import dataclass
from olapdb.types import (
    UUID,
    Boolean,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    FixedString,
    Integer,
    String,
    plain,
)

Names = frozenset[str]
Calls = tuple[tuple[str, AggregateCall], ...]

_KEYS = (Integer, Boolean, Decimal, String, FixedString, UUID, Date, Date32, DateTime, DateTime64)
"""The types of which equal values are the same: 0. and -0. are equal."""
_KEY_COST = 0.5
"""The cost of a key of a row that is grouped, over that of looking a row up in a join."""


def push_aggregates(plan: Plan, estimator: Estimator) -> Plan:
    """Return the plan with the rows below its joins grouped first, wherever that is expected to pay."""
    root = _pushed_tree(plan.root, estimator)
    return plan if root is plan.root else replace(plan, root=root)


def _pushed_tree(root: Node, estimator: Estimator) -> Node:
    """Return one tree with its aggregates, and those of the subqueries in it, below joins; the same tree if
    none is."""
    done: dict[int, tuple[Node, Node]] = {}
    changed: list[Node] = []

    def subquery(node: Node) -> Node:
        """Return the plan of a subquery with its aggregates pushed below joins, the same object for the same plan."""
        if id(node) not in done:
            done[id(node)] = (node, _pushed_tree(node, estimator))
        if done[id(node)][1] is not node:
            changed.append(node)
        return done[id(node)][1]

    def pushed(node: Node) -> Node:
        """Return a node with its aggregate pushed below joins, and the aggregates in its subqueries too; the same node
        if nothing changed."""
        inner = map_subqueries(node, subquery)
        grouped = _pushed(inner, estimator) if isinstance(inner, Aggregate) else inner
        if grouped is not inner:
            changed.append(node)
        return grouped

    tree = bottom_up(root, pushed)
    return tree if changed else root


@dataclass(frozen=True, eq=False)
class _Step:
    """A node above the rows to group: they are below its input `at`."""

    node: Node
    at: int


@dataclass(frozen=True, eq=False)
class _Place:
    """Rows below joins that may be grouped: the steps down to their node, the columns that are read above, the
    aggregates of the node's columns, and those that stay where they are."""

    steps: tuple[_Step, ...]
    node: Node
    needed: Names
    calls: Calls
    staying: Calls


def _pushed(node: Aggregate, estimator: Estimator) -> Aggregate:
    """Return an Aggregate over rows that are grouped before they are joined; the same one where that does not pay."""
    if node.sets or node.totals is not None or not all(map(is_repeatable, expressions_of(node))):
        return node
    if not any(call.name not in KEPT_BY_DUPLICATES for _, call in node.aggregates):
        return node
    if estimator.rows(node.child) < tuning.PUSHED_AGGREGATE_ROWS_MIN:
        return node
    best: tuple[float, Aggregate] | None = None
    for place in _places(node, estimator):
        grouped = _grouped(place)
        if grouped is None:
            continue
        before, after = _costs(node, place, grouped, estimator)
        pays = 100 * after <= tuning.PUSHED_AGGREGATE_COST_PERCENT_MAX * before
        saved = before - after
        if pays and (best is None or saved > best[0]):
            best = saved, _over(node, place, grouped)
    return node if best is None else best[1]


def _places(node: Aggregate, estimator: Estimator) -> Iterator[_Place]:
    """Yield the places below the joins of an Aggregate's input, the highest first."""
    read = _read(key for _, key in node.keys)
    place: _Place | None = _Place((), node.child, read, node.aggregates, ())
    is_joined = False
    while place is not None:
        is_joined |= isinstance(place.node, Join)
        place = _below(place, estimator)
        if place is not None and is_joined:
            yield place


def _below(place: _Place, estimator: Estimator) -> _Place | None:
    """Return the place one node further down, None where there is none."""
    node = place.node
    if not all(map(is_repeatable, expressions_of(node))):
        return None
    match node:
        case Filter():
            return _step(place, node, 0, place.needed | columns_of(node.predicate), place.calls)
        case Project():
            by_name = dict(node.expressions)
            calls = tuple((name, _substituted(call, by_name)) for name, call in place.calls)
            return _step(place, node, 0, _read(by_name[name] for name in place.needed), calls)
        case Join():
            return _below_join(place, node, estimator)
        case _:
            return None


def _step(place: _Place, node: Node, at: int, needed: Names, calls: Calls) -> _Place:
    """Return the place at input `at` of the node, with this node as one more step; `needed` and `calls` are what the
    input must give."""
    steps = (*place.steps, _Step(node, at))
    return replace(place, steps=steps, node=node.children()[at], needed=needed, calls=calls)


def _below_join(place: _Place, join: Join, estimator: Estimator) -> _Place | None:
    """Return the place on a side of a join whose columns alone the sums and counts read, the larger one of two; None if
    there is no such side. min and max of the other side's columns are computed above the join."""
    sides = [
        at
        for at in _preserved(join)
        if all(
            columns_of_call(call) <= _names(join.children()[at])
            for _, call in place.calls
            if call.name not in KEPT_BY_DUPLICATES
        )
    ]
    if not sides:
        return None
    at = max(sides, key=lambda side: estimator.rows(join.children()[side]))
    own = _names(join.children()[at])
    calls = tuple(pair for pair in place.calls if columns_of_call(pair[1]) <= own)
    staying = tuple(pair for pair in place.calls if pair not in calls)
    conditions = [] if join.residual is None else [join.residual]
    read = _read([*join.left_keys, *join.right_keys, *conditions])
    above = place.needed | frozenset().union(*(columns_of_call(call) for _, call in staying))
    below = _step(place, join, at, (above | read) & own, calls)
    return replace(below, staying=(*place.staying, *staying))


def _preserved(join: Join) -> tuple[int, ...]:
    """Return the inputs (0: left, 1: right) of a join that can be grouped first: rows with equal columns have the same
    partners, and the join returns the input's columns unchanged."""
    left, right = join.left.schema, join.right.schema
    if join.strictness in ("SEMI", "ANTI"):
        return (0,) if join.kind == "LEFT" and join.fields == left else ()
    if join.strictness != "ALL" or len(join.fields) != len(left) + len(right):
        return ()
    sides = {"INNER": (0, 1), "CROSS": (0, 1), "LEFT": (0,), "RIGHT": (1,)}.get(join.kind, ())
    fields = (join.fields[: len(left)], join.fields[len(left) :])
    return tuple(at for at in sides if fields[at] == (left, right)[at])


def _grouped(place: _Place) -> Aggregate | None:
    """Return the rows of a place grouped; None where their columns do not say which rows are equal, or an aggregate
    cannot be computed from those of parts."""
    fields = [field for field in place.node.schema if field.name in place.needed]
    if not all(isinstance(plain(field.type), _KEYS) for field in fields):
        return None
    if any(of_partials(name, call) is None for name, call in place.calls):
        return None
    keys = tuple((field.name, ColumnRef(field.type, field.name)) for field in fields)
    prefix = _free_prefix(place)
    partials = tuple((prefix + name, call) for name, call in place.calls)
    return Aggregate(place.node, keys, partials, empty_without_rows=not keys, limited=False)


def _costs(
    node: Aggregate, place: _Place, grouped: Aggregate, estimator: Estimator
) -> tuple[float, float]:
    """Return the expected cost of the joins and of the grouping above a place as they are, and with its rows grouped
    first."""
    rows, last = estimator.rows(place.node), estimator.rows(node.child)
    joins = [step for step in place.steps if isinstance(step.node, Join)]
    looked_up = sum(estimator.rows(step.node.children()[step.at]) for step in joins)
    before = looked_up + last * _group_cost(len(node.keys))
    # Rows that the joins above drop are expected to be dropped before they are grouped.
    kept = min(1.0, estimator.rows(grouped) / max(min(rows, last), 1.0))
    return before, rows * _group_cost(len(grouped.keys)) + kept * before


def _group_cost(key_count: int) -> float:
    """Return the cost of grouping one row by `key_count` keys."""
    return 1 + _KEY_COST * key_count


def _over(node: Aggregate, place: _Place, grouped: Aggregate) -> Aggregate:
    """Return the Aggregate over the joins of the grouped rows of a place: its aggregates merge the partial ones."""
    below: Node = grouped
    for step in reversed(place.steps):
        below = _with_partials(step, below, grouped.aggregates)
    merged = {
        name: of_partials(partial, call)
        for (name, call), (partial, _) in zip(place.calls, grouped.aggregates, strict=True)
    }
    aggregates = tuple((name, merged.get(name) or call) for name, call in node.aggregates)
    return replace(node, child=below, aggregates=aggregates)


def _with_partials(step: _Step, below: Node, partials: Calls) -> Node:
    """Return the node of a step over another input, passing on its columns and those of the partial aggregates."""
    node = step.node
    match node:
        case Project():
            there = _names(below)
            kept = tuple((n, e) for n, e in node.expressions if columns_of(e) <= there)
            return Project(below, (*kept, *((n, ColumnRef(c.type, n)) for n, c in partials)))
        case Join():
            split = len(node.left.schema)
            own: Sequence[Field] = below.schema
            if node.strictness in ("SEMI", "ANTI"):
                fields = tuple(own)
            elif step.at == 0:
                fields = (*own, *node.fields[split:])
            else:
                fields = (*node.fields[:split], *own)
            inputs = (below, node.right) if step.at == 0 else (node.left, below)
            return with_inputs(replace(node, fields=fields), inputs)
        case _:
            return with_inputs(node, (below,))


def _free_prefix(place: _Place) -> str:
    """Return what the names of the aggregates of grouped rows begin with: no column that they may meet does."""
    met = [place.node, *(child for step in place.steps for child in step.node.children())]
    taken = frozenset().union(*map(_names, (*met, *(step.node for step in place.steps))))
    prefix = "__partial_"
    while any(name.startswith(prefix) for name in taken):
        prefix = f"_{prefix}"
    return prefix


def _substituted(call: AggregateCall, by_name: dict[str, Expression]) -> AggregateCall:
    """Return a call over the columns that its own columns are computed from."""
    return replace(call, arguments=tuple(substitute(e, by_name) for e in call.arguments))


def columns_of_call(call: AggregateCall) -> Names:
    """Return the columns that an aggregate reads."""
    return _read(call.arguments)


def _names(node: Node) -> Names:
    """Return the names of a node's columns."""
    return frozenset(field.name for field in node.schema)


def _read(expressions: Iterable[Expression]) -> Names:
    """Return the columns that expressions read."""
    return frozenset().union(*(columns_of(e) for e in expressions))
