"""Which integers a condition on a column allows, as ranges; for numbers() and primes()."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import TypeAlias

from olapdb.plan.conditions import MIRRORED, conjuncts, disjuncts
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, InValues

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Disjoint ranges of integers in rising order; the first and the last of each belong to it."""

_MAX = (1 << 64) - 1
ALL: Ranges = ((0, _MAX),)


def allowed_ranges(condition: Expression, column: str) -> Ranges:
    """Return ranges of UInt64 numbers outside of which the condition cannot hold for the column. A part of the
    condition that is not understood allows all numbers."""
    match condition:
        case Call(name="and"):
            every = [allowed_ranges(c, column) for c in conjuncts(condition)]
            return reduce(_intersection, every, ALL)
        case Call(name="or"):
            return _union(
                allowed_range
                for c in disjuncts(condition)
                for allowed_range in allowed_ranges(c, column)
            )
        case Call(name=name, arguments=(ColumnRef(name=left), Constant() as bound)) if (
            left == column and name in MIRRORED
        ):
            return _compared(name, bound)
        case Call(name=name, arguments=(Constant() as bound, ColumnRef(name=right))) if (
            right == column and name in MIRRORED
        ):
            return _compared(MIRRORED[name], bound)
        case InValues(argument=ColumnRef(name=name), negated=False, values=values) if (
            name == column
        ):
            numbers = values.to_pylist()
            if all(isinstance(n, int) for n in numbers):
                return _union((n, n) for n in numbers if 0 <= n <= _MAX)
    return ALL


def _compared(name: str, bound: Constant) -> Ranges:
    """Return the integers that a comparison with a constant number allows."""
    value = bound.value.as_py()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ALL
    if isinstance(value, float) and (not math.isfinite(value) or abs(value) >= 1 << 53):
        return ALL  # the comparison of floats rounds there
    first, last = 0, _MAX
    match name:
        case "less":
            last = math.ceil(value) - 1
        case "lessOrEquals":
            last = math.floor(value)
        case "greater":
            first = math.floor(value) + 1
        case "greaterOrEquals":
            first = math.ceil(value)
        case "equals":
            first, last = math.ceil(value), math.floor(value)
    return _union([(max(first, 0), min(last, _MAX))])


def _union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges, each (first, last) inclusive, in rising order; those that overlap or touch are joined,
    empty ones are left out."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(
        block_range for block_range in ranges if block_range[0] <= block_range[1]
    ):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def _intersection(left: Ranges, right: Ranges) -> Ranges:
    """Return the numbers that both ranges allow."""
    return _union((max(a, c), min(b, d)) for a, b in left for c, d in right)
