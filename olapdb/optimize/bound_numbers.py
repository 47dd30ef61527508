"""Numbers are made only from the first to the last that a condition or LIMIT above them can keep.

So `SELECT number FROM system.numbers WHERE number IN (1, 5)` ends, as in ClickHouse, and a condition
on numbers(1000000000) makes few of them. The Filter stays: it may keep fewer. Below a LIMIT a block has
no more rows than it, as functions of the block see.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from olapdb.plan import nodes
from olapdb.plan.conditions import conjuncts
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, InValues
from olapdb.plan.tree import bottom_up

_LARGEST = 2**64 - 1
_MIRRORED = {
    "equals": "equals",
    "less": "greater",
    "lessOrEquals": "greaterOrEquals",
    "greater": "less",
    "greaterOrEquals": "lessOrEquals",
}


def bound_numbers(root: nodes.Node) -> nodes.Node:
    """Cut the Numbers below each Filter and Limit to those that it can keep."""
    return bottom_up(root, _bounded)


def _bounded(node: nodes.Node) -> nodes.Node:
    """Return a Filter or Limit over Numbers with fewer numbers; any other node unchanged."""
    if isinstance(node, nodes.Limit) and node.count is not None and not node.ties:
        first = _first(node.child, node.count + node.offset)
        return node if first is node.child else replace(node, child=first)
    if not isinstance(node, nodes.Filter) or not isinstance(node.child, nodes.Numbers):
        return node
    numbers = node.child
    last = _last(numbers)
    if numbers.step <= 0 or not pa.types.is_integer(numbers.type.arrow) or last is None:
        return node
    low, high = _interval(conjuncts(node.predicate), numbers.name)
    low, high = max(low, numbers.start), min(high, last)
    if numbers.count is None and (low, high) == (numbers.start, _LARGEST):
        return node  # no condition bounds it
    skipped = -(-(low - numbers.start) // numbers.step)
    start = numbers.start + skipped * numbers.step
    count = max((high - start) // numbers.step + 1, 0)
    if numbers.count is not None and count >= numbers.count:
        return node
    kept = replace(numbers, start=start if count else numbers.start, count=count)
    return replace(node, child=kept)


def _first(node: nodes.Node, count: int) -> nodes.Node:
    """Return Numbers, or a Project over them, with the first `count` rows; other nodes unchanged."""
    if isinstance(node, nodes.Project):
        child = _first(node.child, count)
        return node if child is node.child else replace(node, child=child)
    if isinstance(node, nodes.Numbers) and (node.count is None or node.count > count):
        return replace(node, count=count)
    return node


def _last(numbers: nodes.Numbers) -> int | None:
    """Return the last number, or the largest there is; None if the numbers wrap around before it."""
    if numbers.count is None:
        return _LARGEST
    last = numbers.start + max(numbers.count - 1, 0) * numbers.step
    return last if numbers.start >= 0 and last <= _LARGEST else None


def _interval(conditions: Iterable[Expression], column: str) -> tuple[int, int]:
    """Return the least and the greatest number for which all conditions can hold."""
    low, high = 0, _LARGEST
    for condition in conditions:
        least, most = _bounds(condition, column)
        low, high = max(low, least), min(high, most)
    return low, high


def _bounds(condition: Expression, column: str) -> tuple[int, int]:
    """Return the least and the greatest number for which a condition can hold."""
    match condition:
        case Call(name=name, arguments=(ColumnRef(name=column_name), Constant(value=value))) if (
            column_name == column
        ):
            return _compared(name, value.as_py())
        case Call(name=name, arguments=(Constant(value=value), ColumnRef(name=column_name))) if (
            column_name == column
        ):
            return _compared(_MIRRORED.get(name, ""), value.as_py())
        case InValues(argument=ColumnRef(name=column_name), negated=False, values=values) if (
            column_name == column
        ):
            listed = [value for value in values.to_pylist() if isinstance(value, int)]
            if len(listed) == len(values):
                return min(listed, default=1), max(listed, default=0)
    return 0, _LARGEST


def _compared(name: str, value: object) -> tuple[int, int]:
    """Return the least and the greatest number that compare so with an integer."""
    if not isinstance(value, int):
        return 0, _LARGEST
    match name:
        case "equals":
            return value, value
        case "less" | "lessOrEquals":
            return 0, value - (name == "less")
        case "greater" | "greaterOrEquals":
            return value + (name == "greater"), _LARGEST
    return 0, _LARGEST
