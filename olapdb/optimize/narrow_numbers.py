"""Numbers and primes below a Filter begin and end where its condition can hold; below a LIMIT numbers end at it.

`SELECT * FROM system.numbers WHERE number BETWEEN 5 AND 9` ends, and `primes() WHERE prime > 1e15`
does not make all smaller ones. The Filter stays: ranges may hold more than it keeps. Below a LIMIT a block has
no more rows than it, as functions of the block see.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.plan import nodes
from olapdb.plan.number_ranges import ALL, Ranges, allowed_ranges
from olapdb.plan.tree import bottom_up

_WRAP = 1 << 64
_RANGES_MAX = 100
"""More ranges than these are read as one, from the first number to the last."""


def narrow_numbers(root: nodes.Node) -> nodes.Node:
    """Give Numbers and Primes below a Filter the ranges that the Filter allows, and Numbers below a Limit
    as many rows as it takes."""
    return bottom_up(root, _narrowed)


def _narrowed(node: nodes.Node) -> nodes.Node:
    """Return a Filter or Limit over numbers with these narrowed; any other node unchanged."""
    if isinstance(node, nodes.Limit) and node.count is not None and not node.ties:
        first = _first(node.child, node.count + node.offset)
        return node if first is node.child else replace(node, child=first)
    if not isinstance(node, nodes.Filter):
        return node
    child = node.child
    if isinstance(child, nodes.Primes) and child.count is None:
        ranges = _ranges(node, child.name)
        return node if ranges == ALL else replace(node, child=replace(child, ranges=ranges))
    if isinstance(child, nodes.Numbers) and child.step > 0 and _rises(child):
        ranges = _ranges(node, child.name)
        return node if ranges == ALL else replace(node, child=_within(child, ranges))
    return node


def _first(node: nodes.Node, count: int) -> nodes.Node:
    """Return Numbers, or a Project over them, with the first `count` rows; other nodes unchanged."""
    if isinstance(node, nodes.Project):
        child = _first(node.child, count)
        return node if child is node.child else replace(node, child=child)
    if isinstance(node, nodes.Numbers) and (node.count is None or node.count > count):
        return replace(node, count=count)
    return node


def _ranges(node: nodes.Filter, column: str) -> Ranges:
    """Return the ranges of numbers outside of which the Filter drops every row."""
    ranges = allowed_ranges(node.predicate, column)
    return ((ranges[0][0], ranges[-1][1]),) if len(ranges) > _RANGES_MAX else ranges


def _rises(numbers: nodes.Numbers) -> bool:
    """Return whether the numbers rise to their end without wrapping around at 64 bits."""
    last = (numbers.count or 1) - 1
    return numbers.start + last * numbers.step < _WRAP


def _within(numbers: nodes.Numbers, ranges: Ranges) -> nodes.Node:
    """Return the numbers that lie in one of the ranges, in their order."""
    parts = tuple(
        part for first, last in ranges if (part := _part(numbers, first, last)).count != 0
    )
    if not parts:
        return replace(numbers, count=0)
    return parts[0] if len(parts) == 1 else nodes.Union(parts, numbers.schema)


def _part(numbers: nodes.Numbers, first: int, last: int) -> nodes.Numbers:
    """Return the numbers from `first` to `last`, included."""
    skipped = max(0, -((numbers.start - first) // numbers.step))
    start = numbers.start + skipped * numbers.step
    if start > last:
        return replace(numbers, count=0)
    if numbers.count is None and last == _WRAP - 1:
        return replace(numbers, start=start)
    count = (last - start) // numbers.step + 1
    if numbers.count is not None:
        count = max(0, min(count, numbers.count - skipped))
    return replace(numbers, start=start, count=count)
