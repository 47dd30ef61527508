"""Ranges of keys: a row of a join has a key that both sides have, so it lies within the bounds of both.

    sales.day: 2450816 … 2452642        dates.day: 2415022 … 2488070, of which few are in sales

Of the dates just those between the bounds of sales.day have a partner. Which part of them a condition
such as `dates.year = 2000` keeps is another one than it keeps of all dates. Just estimates use this:
the conditions are in no plan that runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb.optimize.origins import origin
from olapdb.optimize.statistics import Statistics
from olapdb.plan import nodes
from olapdb.plan.conditions import all_of, conjuncts, scalar_call
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.plan.tree import with_inputs
from olapdb.types import INT64, Integer, plain
from olapdb.types.arrow_values import scalar_of

Bounds = tuple[int, int]

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
"""What bounds must be within to be constants of conditions; UInt64 and wider types can have others."""


def narrowed(
    node: nodes.Node,
    keys: Sequence[Expression],
    other: nodes.Node,
    other_keys: Sequence[Expression],
    statistics: Statistics,
) -> nodes.Node:
    """Return a scan with its keys within the bounds of those of another node; the same node where that
    drops nothing. Projections and filters may be above the scan; other nodes are returned as they are."""
    conditions: list[Expression] = []
    scan: nodes.Scan | None = None
    for key, other_key in zip(keys, other_keys, strict=True):
        ours = _bounds(key, node, statistics)
        theirs = _bounds(other_key, other, statistics)
        if ours is None or theirs is None:
            continue
        place = origin(key.name, node) if isinstance(key, ColumnRef) else None
        if place is None:
            continue
        scan, column = place
        unique = next((u for u, c in scan.columns if c == column), None)
        if unique is not None:
            conditions += _within(ColumnRef(key.type, unique), ours, theirs)
    if scan is None or not conditions:
        return node
    return _with_conditions(node, scan, conditions)


def _bounds(key: Expression, node: nodes.Node, statistics: Statistics) -> Bounds | None:
    """Return the least and the greatest value of a column of integers, None where they are not known."""
    if not isinstance(key, ColumnRef) or not isinstance(plain(key.type), Integer):
        return None
    place = origin(key.name, node)
    if place is None:
        return None
    low, high, _ = statistics(place[0].table).bounds.get(place[1], (None, None, 0))
    if not isinstance(low, int) or not isinstance(high, int):
        return None
    return (low, high) if low >= _LOWEST and high <= _HIGHEST else None


def _within(key: ColumnRef, ours: Bounds, theirs: Bounds) -> Iterator[Expression]:
    """Yield the conditions that keep a key within other bounds, without those that hold anyway."""
    if theirs[0] > ours[0]:
        yield scalar_call("greaterOrEquals", (key, _constant(theirs[0])))
    if theirs[1] < ours[1]:
        yield scalar_call("lessOrEquals", (key, _constant(theirs[1])))


def _constant(value: int) -> Constant:
    """Return a bound as a constant of 64 bits."""
    return Constant(INT64, scalar_of(value, pa.int64()))


def _with_conditions(
    node: nodes.Node, scan: nodes.Scan, conditions: list[Expression]
) -> nodes.Node:
    """Return the node with conditions on its scan; the same node if others than projections and filters
    are between them."""
    match node:
        case nodes.Scan() if node is scan:
            return replace(node, predicate=all_of([*conjuncts(node.predicate), *conditions]))
        case nodes.Project() | nodes.Filter():
            child = _with_conditions(node.child, scan, conditions)
            return node if child is node.child else with_inputs(node, (child,))
        case _:
            return node
