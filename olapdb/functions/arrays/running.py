"""Arrays element by element: running sums and differences, occurrences, resizing, zipping, what
several arrays have in common."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import (
    DecimalOverflow,
    IllegalTypeOfArgument,
    NoCommonType,
    SizesOfArraysDoNotMatch,
)
from olapdb.functions.aggregates import segments
from olapdb.functions.arrays.search import null_ranks
from olapdb.functions.arrays.whole import bounded, first_occurrences
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns, decimal_width
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import common_type, sum_type
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    custom,
    define,
    illegal,
    require,
    usual,
)
from olapdb.types import (
    FLOAT64,
    INT32,
    INT64,
    NOTHING,
    UINT32,
    Array,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    Decimal,
    Float,
    Integer,
    Nothing,
    Nullable,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)

_NUMBERS = (Integer, Float, Decimal, Boolean)


# --- running values


def _numbers(name: str, data_type: DataType) -> DataType:
    """The type of the elements, which are numbers and not NULL."""
    inner = data_type.inner if isinstance(data_type, Array) else data_type
    if not isinstance(data_type, Array) or is_nullable(inner) or not isinstance(inner, _NUMBERS):
        raise IllegalTypeOfArgument(f"{name} cannot add values of type {inner}.")
    return inner


def _sum_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    return Array(sum_type(_numbers(name, types[0])))


def _running_sum(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    result = call.result
    assert isinstance(result, Array)
    offsets, elements = columns.elements_of(arrays[0])
    wide = result.inner.arrow
    if pa.types.is_decimal(wide):
        return columns.lists_from(offsets, _running_decimals(offsets, elements.cast(wide)))
    values = columns.numpy_values(elements).astype(columns.dtype_of(wide))
    owners = columns.parents_of(offsets)
    if values.dtype.kind == "f":
        # Starting anew in each array, as a sum over all of them would carry its error along.
        sums = _restarted(values, offsets)
    else:
        with np.errstate(over="ignore"):
            total = np.cumsum(values, dtype=values.dtype)
            before = np.concatenate((np.zeros(1, values.dtype), total))[offsets[:-1]]
            sums = total - before[owners]
    return columns.lists_from(offsets, columns.from_values(sums, wide))


def _running_sum_from_zero(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return running sums that begin at zero again where they would fall below it.

    Goes place by place over all arrays that are as long, so it takes as many steps as the longest
    array has elements."""
    result = call.result
    assert isinstance(result, Array)
    wide = result.inner.arrow
    offsets, elements = columns.elements_of(arrays[0])
    values = elements.cast(wide)
    zero = default_value(result.inner)
    lengths = np.diff(offsets)
    sums: list[pa.Array] = []
    rows: list[np.ndarray] = []
    state = pa.repeat(zero, len(lengths))
    place = 0
    while len(longer := np.flatnonzero(lengths > place)):
        added = pc.add(state.take(pa.array(longer)), values.take(pa.array(offsets[longer] + place)))
        cut = pc.max_element_wise(added, zero).cast(wide)
        state = columns.replaced_rows(state, longer, cut)
        sums.append(cut)
        rows.append(offsets[longer] + place)
        place += 1
    if not sums:
        return columns.lists_from(offsets, values)
    order = np.argsort(np.concatenate(rows))
    return columns.lists_from(offsets, pa.concat_arrays(sums).take(pa.array(order)))


def _restarted(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Running sums of each array: array by array where there are few long ones, else place by place
    over all arrays that are as long. Either way at most sqrt(elements) steps."""
    lengths = np.diff(offsets)
    sums = values.copy()
    if len(lengths) <= lengths.max(initial=0):
        for start, end in itertools.pairwise(offsets):
            np.cumsum(values[start:end], out=sums[start:end])
        return sums
    at = 1
    longer = np.flatnonzero(lengths > at)
    while len(longer):
        rows = offsets[longer] + at
        sums[rows] += sums[rows - 1]
        at += 1
        longer = longer[lengths[longer] > at]
    return sums


def _running_decimals(offsets: np.ndarray, elements: pa.Array) -> pa.Array:
    """By limbs of 32 bits, each summed on its own, what runs over carried on: modulo the width."""
    count = elements.type.bit_width // 32
    limbs = segments.limbs_of(elements, count)
    owners = columns.parents_of(offsets)
    out = np.zeros(limbs.shape, np.uint32)
    carry = np.zeros(len(elements), np.int64)
    for at in range(count):
        total = np.cumsum(limbs[:, at], dtype=np.int64)
        before = np.concatenate(([0], total))[offsets[:-1]]
        sums = total - before[owners] + carry
        out[:, at] = (sums & 0xFFFFFFFF).astype(np.uint32)
        carry = sums >> 32
    return pa.Array.from_buffers(elements.type, len(elements), [None, pa.py_buffer(out)])


def _difference_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    inner = types[0].inner if isinstance(types[0], Array) else types[0]
    match inner:
        case _ if not isinstance(types[0], Array):
            raise illegal(name, types[0], "an Array of numbers or times")
        case Integer():
            return Array(Integer(min(2 * inner.bits, 64), True))
        case Boolean():
            return Array(Integer(16, True))
        case Float():
            return Array(FLOAT64)
        case Decimal():
            return Array(inner)
        case Date() | Date32():
            return Array(INT32)
        case DateTime():
            return Array(INT64)
    raise illegal(name, types[0], "an Array of numbers or times")


def _difference(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    result = call.result
    assert isinstance(result, Array)
    offsets, elements = columns.elements_of(arrays[0])
    wide = result.inner.arrow
    first = np.zeros(len(elements), bool)
    first[offsets[:-1][np.diff(offsets) > 0]] = True
    if pa.types.is_decimal(wide):
        before = elements.take(pa.array(np.arange(len(elements)) - ~first))
        less = decimal_width.decimal_within_bits(pc.subtract(elements, before), wide)
        if less is None:
            raise DecimalOverflow(f"A difference of two elements does not fit {result.inner}.")
        return columns.lists_from(offsets, less)
    values = columns.numpy_values(elements).astype(columns.dtype_of(wide))
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.diff(values, prepend=values[:1])
    found[first] = 0
    return columns.lists_from(offsets, columns.from_values(found, wide))


def _product_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    _numbers(name, types[0])
    return FLOAT64


def _product(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """In Float64; of nothing it is 0, as in ClickHouse."""
    offsets, elements = columns.elements_of(arrays[0])
    values = columns.numpy_values(elements.cast(pa.float64(), safe=False))
    lengths = np.diff(offsets)
    found = np.zeros(len(lengths))
    there = lengths > 0
    if there.any():
        with np.errstate(over="ignore", invalid="ignore"):
            found[there] = np.multiply.reduceat(values, offsets[:-1][there])
    return pa.array(found)


# --- several arrays at once


def _several(name: str, arrays: Sequence[pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
    """The elements of arrays of equal lengths; SizesOfArraysDoNotMatch otherwise."""
    split = [columns.elements_of(one) for one in arrays]
    offsets = split[0][0]
    if any(not np.array_equal(offsets, others) for others, _ in split[1:]):
        raise SizesOfArraysDoNotMatch(f"The arrays given to {name} have different lengths.")
    return offsets, [elements for _, elements in split]


def _arrays_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types, Array, "an Array")
        return result

    return rule


def _codes(elements: Sequence[pa.Array]) -> np.ndarray:
    """Equal numbers for equal elements (of all arrays together); NULL equals NULL."""
    found = null_ranks(elements[0])
    for one in elements[1:]:
        ranks = null_ranks(one)
        span = int(ranks.max()) + 1 if len(ranks) else 1
        _, found = np.unique(found * span + ranks, return_inverse=True)
    return np.asarray(found).reshape(-1)


def _occurrences(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """arrayEnumerateUniq: the how-manieth of its kind each element is."""
    offsets, elements = _several("arrayEnumerateUniq", arrays)
    codes = _codes(elements)
    order = np.lexsort((np.arange(len(codes)), codes, columns.parents_of(offsets)))
    owners, sorted_codes = columns.parents_of(offsets)[order], codes[order]
    fresh = np.ones(len(codes), bool)
    fresh[1:] = (owners[1:] != owners[:-1]) | (sorted_codes[1:] != sorted_codes[:-1])
    starts = np.flatnonzero(fresh)
    places = np.arange(len(codes)) - np.repeat(starts, np.diff(np.append(starts, len(codes)))) + 1
    found = np.zeros(len(codes), np.int64)
    found[order] = places
    return columns.lists_from(offsets, columns.from_values(found, pa.uint32()))


def _dense(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """arrayEnumerateDense: the number of each element's value, by first appearance."""
    offsets, elements = _several("arrayEnumerateDense", arrays)
    codes, owners = _codes(elements), columns.parents_of(offsets)
    first = first_occurrences(owners, codes)
    numbers = np.cumsum(first)
    numbers -= np.concatenate(([0], numbers))[offsets[:-1]][owners]
    span = int(codes.max()) + 1 if len(codes) else 1
    pairs = owners * span + codes
    kinds, inverse = np.unique(pairs, return_inverse=True)
    number_of = np.zeros(len(kinds), np.int64)
    number_of[inverse.reshape(-1)[first]] = numbers[first]
    found = number_of[inverse.reshape(-1)]
    return columns.lists_from(offsets, columns.from_values(found, pa.uint32()))


def _zip(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [plain(a.type) for a in arguments]
    require(name, types, Array, "an Array")
    inner = Tuple(tuple(one.inner for one in types if isinstance(one, Array)))

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, elements = _several(name, arrays)
        return columns.lists_from(offsets, columns.structs_from(elements, inner.arrow))

    return usual(name, arguments, Array(inner), kernel)


def _resize(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """arrayResize(a, size[, extender]); a negative size fills, or cuts, on the left."""
    container = plain(arguments[0].type)
    if not isinstance(container, Array):
        raise illegal(name, container, "an Array")
    require(name, [plain(arguments[1].type)], Integer, "an integer")
    own = plain_lc(container.inner)
    inner = own if len(arguments) < 3 else common_type([own, plain_lc(arguments[2].type)])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        lists, wanted, *extender = (columns.as_array(v, count) for v in values)
        offsets, elements = columns.elements_of(lists)
        given = cast_column(elements, container.inner, inner, environment, strict=False)
        if extender:
            filler = cast_column(extender[0], arguments[2].type, inner, environment, strict=False)
        else:
            filler = columns.as_array(default_value(inner), 1)
        sizes = columns.numpy_values(wanted).astype(np.int64)
        bounded(name, np.abs(sizes.astype(np.float64)))
        made = _resized(offsets, columns.single(given), sizes, columns.single(filler))
        return made[0] if constant else made

    return ScalarCall(name, Array(inner), kernel)


def _resized(
    offsets: np.ndarray, elements: pa.Array, sizes: np.ndarray, filler: pa.Array
) -> pa.Array:
    out = columns.offsets_from_counts(np.abs(sizes))
    owners = columns.parents_of(out)
    places = np.arange(len(owners)) - out[owners]
    lengths = np.diff(offsets)
    at = places + np.where(sizes < 0, lengths + sizes, 0)[owners]
    inside = (at >= 0) & (at < lengths[owners])
    fill = len(elements) + (owners if len(filler) > 1 else 0)
    rows = np.where(inside, offsets[:-1][owners] + at, fill)
    both = pa.concat_arrays([elements, filler])
    return columns.lists_from(out, both.take(pa.array(rows)))


# --- what arrays have in common


def _intersect(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [plain(a.type) for a in arguments]
    require(name, types, Array, "an Array")
    inners = [plain_lc(one.inner) for one in types if isinstance(one, Array)]
    shared = _subtype(name, inners)
    wide = Array(common_type(inners)) if not isinstance(shared, Nothing) else Array(shared)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        lists = [
            columns.as_array(cast_column(v, t, wide, environment, strict=False), count)
            for v, t in zip(values, types, strict=True)
        ]
        offsets, elements = _common(lists, count)
        found = cast_column(elements, wide.inner, shared, environment, strict=False)
        made = columns.lists_from(offsets, columns.single(found))
        return made[0] if constant else made

    if isinstance(shared, Nothing):
        return ScalarCall(name, Array(NOTHING), lambda v, r, e: default_value(Array(NOTHING)))
    return ScalarCall(name, Array(shared), kernel)


def _common(lists: Sequence[pa.Array], rows: int) -> tuple[np.ndarray, pa.Array]:
    """The elements of the first array, each once, that all others have too."""
    split = [columns.elements_of(one) for one in lists]
    owners = np.concatenate([columns.parents_of(offsets) for offsets, _ in split])
    number = np.repeat(np.arange(len(split)), [len(elements) for _, elements in split])
    elements = pa.concat_arrays([one for _, one in split])
    ranks = null_ranks(elements)
    span = int(ranks.max()) + 1 if len(ranks) else 1
    pairs = owners * span + ranks
    kinds, inverse = np.unique(pairs, return_inverse=True)
    inverse = inverse.reshape(-1)
    seen = np.zeros((len(kinds), len(split)), bool)
    seen[inverse, number] = True
    everywhere = np.logical_and.reduce(seen, axis=1)
    first = len(split[0][1])
    kept = everywhere[inverse[:first]] & first_occurrences(owners[:first], ranks[:first])
    counts = np.bincount(owners[:first][kept], minlength=rows)
    return columns.offsets_from_counts(counts), split[0][1].filter(pa.array(kept))


def _subtype(name: str, inners: Sequence[DataType]) -> DataType:
    """The type of what values of all of these types have in common; NoCommonType where nothing."""
    if any(isinstance(one, Nothing) for one in inners):
        return NOTHING
    bare = [plain(one) for one in inners]
    found = bare[0]
    if any(one != found for one in bare[1:]):
        if not all(isinstance(one, Integer | Float) for one in bare):
            shown = ", ".join(map(str, bare))
            raise NoCommonType(
                f"There is no subtype for types {shown} in {name}.", hint="Cast one of them."
            )
        integers = [one for one in bare if isinstance(one, Integer)]
        floats = [one for one in bare if isinstance(one, Float)]
        found = (
            min(integers, key=lambda one: (one.bits, one.signed))
            if integers
            else min(floats, key=lambda one: one.bits)
        )
    nullable = all(isinstance(one, Nullable) for one in inners)
    return make_nullable(found) if nullable else found


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("arrayCumSum", _sum_rule, _running_sum),
    define("arrayCumSumNonNegative", _sum_rule, _running_sum_from_zero),
    define("arrayDifference", _difference_rule, _difference),
    define("arrayProduct", _product_rule, _product),
    define("arrayEnumerateUniq", _arrays_rule(Array(UINT32)), _occurrences, count=(1, None)),
    define("arrayEnumerateDense", _arrays_rule(Array(UINT32)), _dense, count=(1, None)),
    custom("arrayZip", _zip, count=(1, None)),
    custom("arrayResize", _resize, count=(2, 3)),
    custom("arrayIntersect", _intersect, count=(1, None)),
)
