"""Bitmaps: sets of integers, or of Bool, that are the states of groupBitmap, so that they merge and are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.aggregates.signatures import distinct_set_type, state_type_of
from olapdb.functions.arrays.ordering import first_occurrences
from olapdb.functions.arrays.search import ranks_with_null
from olapdb.functions.arrays.type_rules import element_type
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.functions.kernels.integer_order import order_by
from olapdb.functions.kernels.nested import filter_elements
from olapdb.types import UINT8, UINT64, AggregateFunction, Array, Boolean, DataType, Integer
from olapdb.types.arrow_values import from_numpy

Chosen = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(whether a value is in the left bitmap, in the right one) -> whether it is in the result."""

_OPERATIONS: dict[str, Chosen] = {
    "And": lambda left, right: left & right,
    "Or": lambda left, right: left | right,
    "Xor": lambda left, right: left ^ right,
    "Andnot": lambda left, right: left & ~right,
}


def _bitmap_of(inner: DataType) -> AggregateFunction:
    """Return the type of bitmaps of an integer type or of Bool."""
    return state_type_of("groupBitmap", (), (inner,), distinct_set_type((inner,)))


def _member(name: str, data_type: DataType) -> Integer | Boolean:
    """Return the type of a bitmap's members; raise IllegalTypeOfArgument for another type."""
    if isinstance(data_type, AggregateFunction) and data_type.function == "groupBitmap":
        inner = data_type.arguments[0]
        if isinstance(inner, Integer | Boolean):
            return inner
    raise scalar.illegal(name, data_type, "a bitmap")


def _build_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the bitmap's type; raise IllegalTypeOfArgument unless an array of integers."""
    inner = element_type(name, types[0])
    scalar.require(name, [inner], (Integer, Boolean), "an Array of integers")
    return _bitmap_of(inner)


def _rule(result: Callable[[DataType], DataType], bitmaps: int = 1) -> scalar.TypeRule:
    """Return the type rule of a function whose first `bitmaps` arguments are bitmaps of one type and whose others are
    integers; `result` maps the bitmap's type to the result type."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument for other arguments."""
        members = [_member(name, t) for t in types[:bitmaps]]
        if any(member != members[0] for member in members):
            raise scalar.illegal(name, types[1], f"a bitmap of {members[0]}")
        scalar.require(name, types[bitmaps:], Integer, "an integer")
        return result(members[0])

    return rule


def _build(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the distinct elements of each array, sorted: the kernel of bitmapBuild."""
    offsets, elements = columns.elements_of(arrays[0])
    owners, codes = columns.parents_of(offsets), ranks_with_null(elements)
    order = order_by(owners, codes)
    keep = first_occurrences(owners[order], codes[order])
    return filter_elements(offsets, elements.take(from_numpy(order)), keep)


def _to_array(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the members of each bitmap: the kernel of bitmapToArray."""
    return columns.retype(arrays[0], call.result.arrow)


def _counts(array: pa.Array) -> np.ndarray:
    """Return the number of members of each bitmap."""
    return np.diff(columns.elements_of(array)[0])


def _cardinality(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the number of members of each bitmap: the kernel of bitmapCardinality."""
    return columns.from_values(_counts(arrays[0]), pa.uint64())


def _combined(arrays: list[pa.Array], chosen: Chosen) -> pa.Array:
    """Return one sorted bitmap a row: the members of the row's two bitmaps that `chosen` selects."""
    parts = [columns.elements_of(array) for array in arrays]
    elements = pa.concat_arrays([own for _, own in parts])
    owners = np.concatenate([columns.parents_of(offsets) for offsets, _ in parts])
    codes = ranks_with_null(elements)
    right = np.arange(len(codes)) >= len(parts[0][1])
    keys = owners * (int(codes.max(initial=0)) + 1) + codes
    distinct, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    in_left, in_right = np.zeros(len(distinct), bool), np.zeros(len(distinct), bool)
    in_left[inverse[~right]] = True
    in_right[inverse[right]] = True
    places = first[chosen(in_left, in_right)]
    counts = np.bincount(owners[places], minlength=len(arrays[0]))
    return columns.lists_from(
        columns.offsets_from_counts(counts), elements.take(from_numpy(places))
    )


def _combine(chosen: Chosen) -> scalar.Kernel:
    """Return the kernel of bitmapAnd, Or, Xor or Andnot: `chosen` decides which members stay."""
    return lambda arrays, call: _combined(arrays, chosen)


def _combined_count(chosen: Chosen) -> scalar.Kernel:
    """Return the kernel that counts the members which `chosen` takes, such as bitmapAndCardinality."""
    return lambda arrays, call: columns.from_values(
        _counts(_combined(arrays, chosen)), call.result.arrow
    )


def _has_any(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return whether two bitmaps have a common member."""
    return columns.from_values(_counts(_combined(arrays, _OPERATIONS["And"])) > 0, pa.uint8())


def _has_all(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return whether the left bitmap has all members of the right one."""
    missing = _combined(arrays[::-1], _OPERATIONS["Andnot"])
    return columns.from_values(_counts(missing) == 0, pa.uint8())


def _members(array: pa.Array) -> tuple[np.ndarray, pa.Array, np.ndarray]:
    """Return the offsets of bitmaps, their members, and the members as uint64. A negative member becomes the unsigned
    number of its own width, as in ClickHouse."""
    offsets, elements = columns.elements_of(array)
    values = columns.numpy_values(elements)
    return offsets, elements, values.view(f"u{values.dtype.itemsize}").astype(np.uint64)


def _contains(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return for each row whether its bitmap has the number of the second argument: the kernel of bitmapContains."""
    offsets, _, numbers = _members(arrays[0])
    owners = columns.parents_of(offsets)
    wanted = columns.numpy_values(arrays[1]).astype(np.uint64)
    hits = np.bincount(owners[numbers == wanted[owners]], minlength=len(arrays[0]))
    return columns.from_values(hits > 0, pa.uint8())


def _extreme(*, largest: bool) -> scalar.Kernel:
    """Return the kernel of bitmapMax, or without `largest` of bitmapMin."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return each bitmap's least (greatest) member. An empty bitmap gives 0 for bitmapMax, and the largest 32-bit
        or 64-bit number for bitmapMin."""
        offsets, elements, numbers = _members(arrays[0])
        highest = 2**64 - 1 if elements.type.bit_width == 64 else 2**32 - 1
        out = np.full(len(arrays[0]), 0 if largest else highest, np.uint64)
        (np.maximum if largest else np.minimum).at(out, columns.parents_of(offsets), numbers)
        return columns.from_values(out, pa.uint64())

    return kernel


def _subset(*, limited: bool) -> scalar.Kernel:
    """Return the kernel of bitmapSubsetInRange(b, from, to), or of bitmapSubsetLimit(b, from, n)."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Keep the members from `from` up to `to`, excluded, or with `limited` the first `n` members from `from` on."""
        offsets, elements, numbers = _members(arrays[0])
        owners = columns.parents_of(offsets)
        start, end = (columns.numpy_values(a).astype(np.uint64)[owners] for a in arrays[1:])
        keep = numbers >= start
        if limited:
            before = np.concatenate(([0], np.cumsum(keep)))
            keep &= (before[:-1] - before[offsets[:-1]][owners]).astype(np.uint64) < end
        else:
            keep &= numbers < end
        return filter_elements(offsets, elements, keep)

    return kernel


def _slice(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Drop the first `offset` members and keep the next `n`: the kernel of subBitmap(b, offset, n)."""
    offsets, elements = columns.elements_of(arrays[0])
    owners = columns.parents_of(offsets)
    at = (np.arange(len(owners)) - offsets[owners]).astype(np.uint64)
    skipped, count = (columns.numpy_values(a).astype(np.uint64)[owners] for a in arrays[1:])
    return filter_elements(offsets, elements, (at >= skipped) & (at - skipped < count))


def _transform_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the bitmap's type; raise IllegalTypeOfArgument unless two arrays of UInt follow it."""
    member = _member(name, types[0])
    for data_type in types[1:]:
        inner = data_type.inner if isinstance(data_type, Array) else data_type
        if inner is data_type or not isinstance(inner, Integer) or inner.signed:
            raise scalar.illegal(name, data_type, "an array of UInt8, UInt16, UInt32 or UInt64")
    return _bitmap_of(member)


def _transform(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Replace members of bitmaps, pair by pair: the kernel of bitmapTransform.

    The changes are computed once for each distinct row."""
    kind = _member("bitmapTransform", call.types[0])
    member, span = (UINT8, 2) if isinstance(kind, Boolean) else (kind, 1 << kind.bits)

    def transform(members: list[int], old: list[int], new: list[int]) -> list[int]:
        """Apply the replacements `old` to `new` to the members, pair by pair. Raises BadArguments if the lists differ
        in length or a new value is not in the type's range."""
        if len(old) != len(new):
            raise BadArguments("The arrays of bitmapTransform differ in size.")
        if new and max(new) >= span:
            raise BadArguments(f"The value {max(new)} of bitmapTransform is no {kind}.")
        held = {value % span for value in members}
        for before, after in zip(old, new, strict=True):
            if before in held:
                held.remove(before)
                held.add(after)
        return sorted((value - member.minimum) % span + member.minimum for value in held)

    members = columns.retype(arrays[0], Array(kind).arrow).cast(Array(member).arrow)
    changed = values_by_row([members, *arrays[1:]], transform, Array(member).arrow)
    return columns.retype(changed.cast(Array(kind).arrow), call.result.arrow)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("bitmapBuild", _build_rule, _build),
    scalar.define("bitmapToArray", _rule(Array), _to_array),
    scalar.define("bitmapCardinality", _rule(lambda t: UINT64), _cardinality),
    *(
        scalar.define(f"bitmap{name}", _rule(_bitmap_of, 2), _combine(chosen), count=2)
        for name, chosen in _OPERATIONS.items()
    ),
    *(
        scalar.define(
            f"bitmap{name}Cardinality", _rule(lambda t: UINT64, 2), _combined_count(chosen), count=2
        )
        for name, chosen in _OPERATIONS.items()
    ),
    scalar.define("bitmapHasAny", _rule(lambda t: UINT8, 2), _has_any, count=2),
    scalar.define("bitmapHasAll", _rule(lambda t: UINT8, 2), _has_all, count=2),
    scalar.define("bitmapContains", _rule(lambda t: UINT8), _contains, count=2),
    scalar.define("bitmapMin", _rule(lambda t: UINT64), _extreme(largest=False)),
    scalar.define("bitmapMax", _rule(lambda t: UINT64), _extreme(largest=True)),
    scalar.define("bitmapSubsetInRange", _rule(_bitmap_of), _subset(limited=False), count=3),
    scalar.define("bitmapSubsetLimit", _rule(_bitmap_of), _subset(limited=True), count=3),
    scalar.define("bitmapTransform", _transform_rule, _transform, count=3),
    scalar.define("subBitmap", _rule(_bitmap_of), _slice, count=3),
)
