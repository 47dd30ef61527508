"""ROLLUP, CUBE and GROUPING SETS: the sets of keys that a query groups by, and grouping().

GROUP BY ROLLUP(a, b)               (a, b), (a), ()
GROUP BY CUBE(a, b)                 (a, b), (b), (a), ()
GROUP BY GROUPING SETS ((a), (b))   (a), (b)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from olapdb.bind import constants
from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions.base import Environment
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.types import UINT64, Array, Map, Tuple, make_nullable, plain

KEYS_OF_CUBE_MAX = 16
"""CUBE of n keys has 2^n sets."""


@dataclass(frozen=True, slots=True)
class GroupingRef(Expression):
    """grouping(arguments), until the groups are known."""

    arguments: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class NullableKey(Expression):
    """A key of grouping sets as the groups show it under group_by_use_nulls: Nullable."""

    key: Expression

    def children(self) -> tuple[Expression, ...]:
        return ()


def nullable_keys(keys: Sequence[Expression]) -> dict[Expression, NullableKey]:
    """Return the nullable form of each key over the groups; arrays, tuples and maps are never NULL."""
    return {
        key: NullableKey(make_nullable(key.type), key)
        for key in keys
        if not isinstance(plain(key.type), Array | Map | Tuple) and not isinstance(key, Constant)
    }


def bind_grouping(arguments: tuple[Expression, ...]) -> GroupingRef:
    """Raises NumberOfArgumentsDoesntMatch where there is none, or more than a UInt64 has bits."""
    if not 1 <= len(arguments) <= 64:
        raise NumberOfArgumentsDoesntMatch(
            f"grouping() takes 1 to 64 arguments, {len(arguments)} given."
        )
    return GroupingRef(UINT64, arguments)


def sets_of(kind: str, keys: Sequence[Expression]) -> tuple[tuple[Expression, ...], ...]:
    """The sets of ROLLUP or CUBE of these keys, the largest first."""
    if kind == "ROLLUP":
        return tuple(tuple(keys[:count]) for count in range(len(keys), -1, -1))
    if len(keys) > KEYS_OF_CUBE_MAX:
        raise BadArguments(
            f"CUBE of {len(keys)} keys has 2^{len(keys)} sets; at most {KEYS_OF_CUBE_MAX} keys are"
            " allowed.",
            hint="Name the sets: GROUPING SETS (…).",
        )
    every = range(2 ** len(keys) - 1, -1, -1)
    return tuple(tuple(k for at, k in enumerate(keys) if chosen >> at & 1) for chosen in every)


def grouping_value(
    reference: GroupingRef,
    keys: Sequence[Expression],
    sets: Sequence[Sequence[Expression]],
    set_column: ColumnRef | None,
    environment: Environment,
    *,
    standard: bool,
) -> Expression:
    """grouping() over the groups: a bit for each argument, the last argument's the lowest.

    By the standard a bit is 1 where the key is not in the row's set; otherwise 1 where it is.
    BadArguments for what is no key."""
    arguments = [a.key if isinstance(a, NullableKey) else a for a in reference.arguments]

    def bits(members: Sequence[Expression]) -> int:
        value = 0
        for one in arguments:
            value = value << 1 | int((one not in members) == standard)
        return value

    if any(one not in keys for one in arguments):
        raise BadArguments("An argument of grouping() is not a key of GROUP BY.")
    if set_column is None:
        return Constant(UINT64, pa.scalar(bits(keys), pa.uint64()))
    of_sets = [bits(members) for members in sets]
    array = Constant(Array(UINT64), pa.scalar(of_sets, pa.list_(pa.uint64())))
    one = constants.unsigned_byte(1)
    at = constants.call("plus", (set_column, one), environment)
    return constants.call("arrayElement", (array, at), environment)
