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
from olapdb.functions.kernels import columns, decimal_width, wide_numbers
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
    DateTime64,
    Decimal,
    Float,
    Integer,
    WideNumber,
    is_nullable,
    wide_number,
)
from olapdb.types.arrow_values import from_numpy

_NUMBERS = (Integer, Float, Decimal, Boolean)


def _number_type(name: str, data_type: DataType) -> DataType:
    """Return the type of the array's elements; raise IllegalTypeOfArgument unless these are
    numbers, not Nullable.
    """
    inner = data_type.inner if isinstance(data_type, Array) else data_type
    if not isinstance(data_type, Array) or is_nullable(inner) or not isinstance(inner, _NUMBERS):
        raise IllegalTypeOfArgument(f"{name} cannot add values of type {inner}.")
    return inner


def _sum_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the array type of running sums; raise IllegalTypeOfArgument unless elements are
    numbers.
    """
    return Array(sum_type(_number_type(name, types[0])))


def _running_sum(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return running sums; integers wrap, decimals are exact: the kernel of arrayCumSum."""
    result = call.result
    assert isinstance(result, Array)
    offsets, elements = columns.elements_of(arrays[0])
    wide = result.inner.arrow
    if pa.types.is_decimal(wide):
        return columns.lists_from(offsets, _running_decimals(offsets, elements.cast(wide)))
    values = columns.numpy_values(elements).astype(columns.dtype_of(wide))
    owners = columns.parents_of(offsets)
    if values.dtype.kind == "f":
        # Each array is summed by itself: a sum over all arrays would carry rounding errors along.
        sums = _running_floats(values, offsets)
    else:
        with np.errstate(over="ignore"):
            total = np.cumsum(values, dtype=values.dtype)
            before = np.concatenate((np.zeros(1, values.dtype), total))[offsets[:-1]]
            sums = total - before[owners]
    return columns.lists_from(offsets, columns.from_values(sums, wide))


def _running_sum_from_zero(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return running sums, set to zero where they would be negative: arrayCumSumNonNegative.

    Each step handles one position of all arrays that are long enough, so there are as many steps as
    the longest array has elements.
    """
    result = call.result
    assert isinstance(result, Array)
    wide = result.inner.arrow
    offsets, elements = columns.elements_of(arrays[0])
    if isinstance(result.inner, WideNumber):
        sums_of_wide = _wide_sums_from_zero(wide_numbers.limbs_of(elements), offsets)
        return columns.lists_from(offsets, wide_numbers.column_of(sums_of_wide, result.inner))
    values = elements.cast(wide)
    if pa.types.is_decimal(wide):
        unscaled = _wide_sums_from_zero(wide_numbers.limbs_of(values), offsets)
        return columns.lists_from(offsets, _decimals_of(unscaled, wide))
    zero = default_value(result.inner)
    lengths = np.diff(offsets)
    sums: list[pa.Array] = []
    rows: list[np.ndarray] = []
    state = pa.repeat(zero, len(lengths))
    position = 0
    while len(longer := np.flatnonzero(lengths > position)):
        at = offsets[longer] + position
        added = pc.add(state.take(from_numpy(longer)), values.take(from_numpy(at)))
        clamped = pc.max_element_wise(added, zero).cast(wide)
        state = columns.replaced_rows(state, longer, clamped)
        sums.append(clamped)
        rows.append(at)
        position += 1
    if not sums:
        return columns.lists_from(offsets, values)
    order = np.argsort(np.concatenate(rows))
    return columns.lists_from(offsets, pa.concat_arrays(sums).take(from_numpy(order)))


def _decimals_of(limbs: np.ndarray, decimal_type: pa.DataType) -> pa.Array:
    """Return unscaled integers, four limbs of 64 bits each, as decimals of an Arrow type, modulo its width."""
    data = np.ascontiguousarray(limbs[:, : decimal_type.byte_width // 8])
    return pa.Array.from_buffers(decimal_type, len(data), [None, pa.py_buffer(data)])


def _wide_sums_from_zero(limbs: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return running sums of numbers of up to 256 bits as limbs, set to zero where they would be negative; one step
    for each position, as in `_running_sum_from_zero`."""
    sums = limbs.copy()
    lengths = np.diff(offsets)
    for position in range(int(lengths.max(initial=0))):
        rows = offsets[np.flatnonzero(lengths > position)] + position
        if position:
            sums[rows] = wide_numbers.added(sums[rows - 1], limbs[rows])
        sums[rows[wide_numbers.is_negative(sums[rows])]] = 0
    return sums


def _running_floats(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the running sums of each array.

    Few long arrays are summed one by one, many short ones position by position over all that are
    long enough. Either way takes at most sqrt(elements) steps."""
    lengths = np.diff(offsets)
    sums = values.copy()
    if len(lengths) <= lengths.max(initial=0):
        for start, end in itertools.pairwise(offsets):
            np.cumsum(values[start:end], out=sums[start:end])
        return sums
    position = 1
    longer = np.flatnonzero(lengths > position)
    while len(longer):
        rows = offsets[longer] + position
        sums[rows] += sums[rows - 1]
        position += 1
        longer = longer[lengths[longer] > position]
    return sums


def _running_decimals(offsets: np.ndarray, elements: pa.Array) -> pa.Array:
    """Return exact running sums of each array, modulo the width of the elements' type.

    Sums limbs of 32 bits and carries between them."""
    count = elements.type.bit_width // 32
    limbs = group_kernels.decimal_limbs(elements, count)
    owners = columns.parents_of(offsets)
    out = np.zeros(limbs.shape, np.uint32)
    carry = np.zeros(len(elements), np.int64)
    for limb in range(count):
        total = np.cumsum(limbs[:, limb], dtype=np.int64)
        before = np.concatenate(([0], total))[offsets[:-1]]
        sums = total - before[owners] + carry
        out[:, limb] = (sums & 0xFFFFFFFF).astype(np.uint32)
        carry = sums >> 32
    return pa.Array.from_buffers(elements.type, len(elements), [None, pa.py_buffer(out)])


def _difference_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the array type of arrayDifference: its elements have a signed type wide enough for all differences of
    the argument's elements."""
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
        case WideNumber():
            return Array(wide_number(inner.bits, signed=True))
        case Decimal():
            return Array(inner)
        case Date():
            return Array(INT32)
        case Date32() | DateTime():
            return Array(INT64)
        case DateTime64():
            return Array(Decimal(18, inner.precision))
    raise illegal(name, types[0], "an Array of numbers or times")


def _difference(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return each element minus the one before, 0 for the first: the kernel of arrayDifference.

    Raises DecimalOverflow if any difference does not fit the result's type.
    """
    result = call.result
    assert isinstance(result, Array)
    offsets, elements = columns.elements_of(arrays[0])
    wide = result.inner.arrow
    first = np.zeros(len(elements), bool)
    first[offsets[:-1][np.diff(offsets) > 0]] = True
    if isinstance(result.inner, WideNumber):
        limbs = wide_numbers.limbs_of(elements)
        earlier = limbs[np.arange(len(limbs)) - ~first]
        exact = wide_numbers.added(limbs, wide_numbers.negated(earlier))
        return columns.lists_from(offsets, wide_numbers.column_of(exact, result.inner))
    if pa.types.is_decimal(wide) and pa.types.is_decimal(elements.type):
        before_each = np.arange(len(elements)) - ~first
        if wide.precision >= 38:  # Arrow would want a digit more than the type can have
            limbs = wide_numbers.limbs_of(elements)
            exact = wide_numbers.added(limbs, wide_numbers.negated(limbs[before_each]))
            return columns.lists_from(offsets, _decimals_of(exact, wide))
        before = elements.take(from_numpy(before_each))
        differences = decimal_width.decimal_within_bits(pc.subtract(elements, before), wide)
        if differences is None:
            raise DecimalOverflow(f"A difference of two elements does not fit {result.inner}.")
        return columns.lists_from(offsets, differences)
    ticks = pa.int64() if pa.types.is_decimal(wide) else wide
    values = columns.numpy_values(elements).astype(columns.dtype_of(ticks))
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = np.diff(values, prepend=values[:1])
    numbers[first] = 0
    if pa.types.is_decimal(wide):  # of times with digits of a second
        unscaled = wide_numbers.limbs_of(from_numpy(numbers))
        return columns.lists_from(offsets, _decimals_of(unscaled, wide))
    return columns.lists_from(offsets, columns.from_values(numbers, wide))


def _product_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return Float64; raise IllegalTypeOfArgument unless the elements are numbers."""
    _number_type(name, types[0])
    return FLOAT64


def _product(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return products in Float64, 0 for an empty array as in ClickHouse: the kernel of
    arrayProduct.
    """
    offsets, elements = columns.elements_of(arrays[0])
    values = columns.numpy_values(elements.cast(pa.float64(), safe=False))
    lengths = np.diff(offsets)
    products = np.zeros(len(lengths))
    nonempty = lengths > 0
    if nonempty.any():
        with np.errstate(over="ignore", invalid="ignore"):
            products[nonempty] = np.multiply.reduceat(values, offsets[:-1][nonempty])
    return pa.array(products)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("arrayCumSum", _sum_rule, _running_sum),
    define("arrayCumSumNonNegative", _sum_rule, _running_sum_from_zero),
    define("arrayDifference", _difference_rule, _difference),
    define("arrayProduct", _product_rule, _product),
)
