"""Running sums, differences and products of the elements of an array."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import DecimalOverflow, IllegalTypeOfArgument
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, decimal_width
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import sum_type
from olapdb.functions.scalar import Invocation, ScalarDefinition, define, illegal
from olapdb.types import (
    FLOAT64,
    INT32,
    INT64,
    Array,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    Decimal,
    Float,
    Integer,
    is_nullable,
)

_NUMBERS = (Integer, Float, Decimal, Boolean)


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
    limbs = group_kernels.decimal_limbs(elements, count)
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


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("arrayCumSum", _sum_rule, _running_sum),
    define("arrayCumSumNonNegative", _sum_rule, _running_sum_from_zero),
    define("arrayDifference", _difference_rule, _difference),
    define("arrayProduct", _product_rule, _product),
)
