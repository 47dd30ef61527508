"""ROLLUP, CUBE and GROUPING SETS: the sets of keys that a query groups by, and grouping().

GROUP BY ROLLUP(a, b)               (a, b), (a), ()
GROUP BY CUBE(a, b)                 (a, b), (b), (a), ()
GROUP BY GROUPING SETS ((a), (b))   (a), (b)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from olapdb.bind import constants
from olapdb.errors import BadArguments, IllegalAggregation, NumberOfArgumentsDoesntMatch, Position
from olapdb.functions.base import Environment
from olapdb.plan.expressions import ColumnRef, Constant, Expression, walk
from olapdb.records import dataclass
from olapdb.types import UINT64, Array, Map, Tuple, make_nullable, plain

KEYS_OF_CUBE_MAX = 16
"""CUBE of n keys has 2^n sets."""


@dataclass(frozen=True, slots=True)
class GroupingRef(Expression):
    """A call of grouping(arguments), until the groups are known."""

    arguments: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        """Return nothing: `arguments` are keys of the GROUP BY, which stay whole."""
        return ()


@dataclass(frozen=True, slots=True)
class NullableKey(Expression):
    """A key of grouping sets under group_by_use_nulls: Nullable over the groups."""

    key: Expression

    def children(self) -> tuple[Expression, ...]:
        """Return nothing: the key is replaced as a whole, by its column over the groups."""
        return ()


def nullable_keys(keys: Sequence[Expression]) -> dict[Expression, NullableKey]:
    """Return the nullable form of each key over the groups.

    Arrays, tuples and maps are never NULL; these and constants are left out."""
    return {
        key: NullableKey(make_nullable(key.type), key)
        for key in keys
        if not isinstance(plain(key.type), Array | Map | Tuple) and not isinstance(key, Constant)
    }


def bind_grouping(arguments: tuple[Expression, ...]) -> GroupingRef:
    """Bind grouping(); raise NumberOfArgumentsDoesntMatch unless it has 1 to 64 arguments."""
    if not 1 <= len(arguments) <= 64:
        raise NumberOfArgumentsDoesntMatch(
            f"grouping() takes 1 to 64 arguments, {len(arguments)} given."
        )
    return GroupingRef(UINT64, arguments)


def refuse_without_groups(bound: Iterable[Expression]) -> None:
    """Raise IllegalAggregation if one of the expressions of a SELECT without GROUP BY calls grouping()."""
    if any(isinstance(e, GroupingRef) for expression in bound for e in walk(expression)):
        raise IllegalAggregation(
            "grouping() needs a GROUP BY.", hint="Add GROUP BY ROLLUP, CUBE or GROUPING SETS."
        )


def refuse_grouping(expression: Expression, place: str, position: Position | None) -> None:
    """Raise IllegalAggregation if the expression calls grouping(), which is of the groups.

    `place` names the place in the message, as in "in WHERE"."""
    if any(isinstance(e, GroupingRef) for e in walk(expression)):
        raise IllegalAggregation(
            f"grouping() is not allowed {place}.",
            hint="SELECT, HAVING and ORDER BY may call it.",
            position=position,
        )


def rollup_or_cube(kind: str, keys: Sequence[Expression]) -> tuple[tuple[Expression, ...], ...]:
    """Return the sets of ROLLUP or CUBE over these keys, the largest first.

    Raises BadArguments for a CUBE of more than KEYS_OF_CUBE_MAX keys."""
    if kind == "ROLLUP":
        return tuple(tuple(keys[:count]) for count in range(len(keys), -1, -1))
    if len(keys) > KEYS_OF_CUBE_MAX:
        raise BadArguments(
            f"CUBE of {len(keys)} keys has 2^{len(keys)} sets; at most {KEYS_OF_CUBE_MAX} keys are"
            " allowed.",
            hint="Name the sets: GROUPING SETS (…).",
        )
    masks = range(2 ** len(keys) - 1, -1, -1)
    return tuple(tuple(k for at, k in enumerate(keys) if mask >> at & 1) for mask in masks)


def grouping_value(
    reference: GroupingRef,
    keys: Sequence[Expression],
    sets: Sequence[Sequence[Expression]],
    set_column: ColumnRef | None,
    environment: Environment,
    *,
    standard: bool,
) -> Expression:
    """Return grouping() over the groups: a bit for each argument, the last argument's the lowest.

    With `standard` a bit is 1 where the key is not in the row's set; otherwise 1 where it is.
    `set_column` holds the number of each row's set; None means one set of all keys. Raises
    BadArguments for an argument that is not a key."""
    arguments = [a.key if isinstance(a, NullableKey) else a for a in reference.arguments]

    def bits(members: Sequence[Expression]) -> int:
        """Return the bits of a row's set, whose keys are `members`."""
        value = 0
        for argument in arguments:
            value = value << 1 | int((argument not in members) == standard)
        return value

    if any(argument not in keys for argument in arguments):
        raise BadArguments("An argument of grouping() is not a key of GROUP BY.")
    if set_column is None:
        return Constant(UINT64, pa.scalar(bits(keys), pa.uint64()))
    set_bits = [bits(members) for members in sets]
    array = Constant(Array(UINT64), pa.scalar(set_bits, pa.list_(pa.uint64())))
    index = constants.call("plus", (set_column, constants.unsigned_byte(1)), environment)
    return constants.call("arrayElement", (array, index), environment)
