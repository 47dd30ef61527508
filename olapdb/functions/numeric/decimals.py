"""Exact arithmetic of Decimals: on 64-bit integers where the digits fit, else on Decimal256.

As in ClickHouse a result of 32 or 64 bits may have more digits than its precision if they fit the
bits; wider results have at most 38 or 76 digits.  Where ClickHouse's integers would overflow on the
way to a result that fits, the result here is the exact one.
"""

from __future__ import annotations

from decimal import Decimal as PythonDecimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import DecimalOverflow
from olapdb.functions.base import Column
from olapdb.functions.casts import numbers
from olapdb.functions.kernels import columns, decimal_width, wide_numbers
from olapdb.functions.numeric import numpy_arithmetic
from olapdb.native import decimals as compiled_decimals
from olapdb.native.library import library
from olapdb.types import Decimal, Integer, WideNumber
from olapdb.types.arrow_values import from_numpy

Digits: TypeAlias = np.ndarray | pa.Array
"""Unscaled numbers: int64, or Decimal256 of scale 0 if int64 is too small; one value for a constant."""

_WIDE = pa.decimal256(76, 0)
_INT64_MAX = 2**63 - 1
_INT64_DIGITS = 18
_LONG_BITS = 64


def overflow(operation: str, result: Decimal | Integer | WideNumber) -> DecimalOverflow:
    """Return the error about an operation whose result does not fit its type."""
    return DecimalOverflow(
        f"Decimal math overflow: {operation} does not fit {result}.",
        hint="Convert an argument to a wider Decimal first.",
    )


# --- plus, minus, multiply


def combine_decimals(operation: str, values: list[Column], result: Decimal, rows: int) -> Column:
    """Return the sum, difference or product of two columns; NULL where either is NULL.

    `operation` is "plus", "minus" or "multiply". Two constants give a constant. Raises
    DecimalOverflow if any value does not fit `result`."""
    powers = [0 if operation == "multiply" else result.scale - scale_of(v) for v in values]
    constant = all(isinstance(v, pa.Scalar) for v in values)
    arrays = [columns.as_array(v, 1) for v in values] if constant else values
    count = 1 if constant else rows
    result_column = _combine_int64(operation, arrays, powers, result, count)
    if result_column is None:
        repeated = (columns.as_array(v, count) for v in arrays)
        left, right = (_scaled(v, power) for v, power in zip(repeated, powers, strict=True))
        result_column = fitted_to(_combine_wide(operation, left, right, result), result, operation)
    return result_column[0] if constant else result_column


def _combine_wide(operation: str, left: pa.Array, right: pa.Array, result: Decimal) -> pa.Array:
    """Return the sum, difference or product of numbers of at most 76 digits.

    Raises DecimalOverflow if a product is too large; the caller checks sums.
    """
    if operation != "multiply":
        return _sum(left, right if operation == "plus" else pc.negate(right))
    sizes = np.abs(_floats(left)) * np.abs(_floats(right))
    if (sizes > _PRODUCT_MAX).any():
        raise overflow(operation, result)
    return _product(left, right)


_PRODUCT_MAX = 2e76
"""A bound of products: the float of every number beyond Decimal256's bits is above."""


def _combine_int64(
    operation: str, values: list[Column], powers: list[int], result: Decimal, rows: int
) -> pa.Array | None:
    """Return the sum, difference or product computed on int64 by a kernel or numpy; `powers` of ten bring the operands
    to one scale.

    None if it may need more than 64 bits; numpy's also if a row is NULL."""
    compiled = _combine_compiled(operation, values, powers, result, rows)
    if compiled is not None:
        return compiled
    if any(v.null_count if isinstance(v, pa.Array) else not v.is_valid for v in values):
        return None
    operands = [_int64_scaled(columns.single(v), by) for v, by in zip(values, powers, strict=True)]
    left, right = operands
    if left is None or right is None:
        return None
    largest, other = _largest(left), _largest(right)
    if (largest * other if operation == "multiply" else largest + other) > _INT64_MAX:
        return None
    result_values = numpy_arithmetic.apply_ufunc(
        numpy_arithmetic.UFUNCS[operation], left, right, rows, np.int64
    )
    return fitted_to(result_values, result, operation)


def _combine_compiled(
    operation: str, values: list[Column], powers: list[int], result: Decimal, rows: int
) -> pa.Array | None:
    """Return the result of the compiled kernel; None without one, or if it reports that a number needs more than 64
    bits."""
    arrow = result.arrow
    if library() is None or not pa.types.is_decimal128(arrow) or max(powers) > _INT64_DIGITS:
        return None
    arrays = [columns.single(value) for value in values]
    bits = decimal_width.decimal_bits(arrow)
    tens = [10**power for power in powers]
    return compiled_decimals.combine(operation, arrays, tens, rows, (arrow, bits))


# --- divide, intDiv, modulo: of columns without NULL


def divide(values: list[Column], result: Decimal, rows: int) -> pa.Array:
    """Return the quotient, truncated at the result's scale; columns without NULL.

    Raises IllegalDivision if any divisor is 0, DecimalOverflow if any quotient does not fit.
    """
    dividend_column, divisor = values
    refuse_zero(divisor)
    dividend = digits(dividend_column, result.scale - scale_of(dividend_column) + scale_of(divisor))
    return fitted_to(_quotient(dividend, digits(divisor), rows), result, "divide")


def whole_quotient(values: list[Column], result: Integer, rows: int) -> np.ndarray:
    """Return the quotient truncated to an integer, int64.

    Raises IllegalDivision if any divisor is 0, DecimalOverflow if any quotient does not fit.
    """
    refuse_zero(values[1])
    dividend, divisor = _at_one_scale(values)
    quotient = _narrowest(_quotient(dividend, divisor, rows))
    if not isinstance(quotient, np.ndarray) or not _within(quotient, result):
        raise overflow("intDiv", result)
    return quotient


def wide_whole_quotient(values: list[Column], result: WideNumber, rows: int) -> pa.Array:
    """Return the quotient truncated to a wide integer.

    Raises IllegalDivision if any divisor is 0, DecimalOverflow if any quotient does not fit.
    """
    refuse_zero(values[1])
    dividend, divisor = _at_one_scale(values)
    quotient = _quotient(dividend, divisor, rows)
    whole = from_numpy(quotient) if isinstance(quotient, np.ndarray) else quotient
    limbs = wide_numbers.limbs_of(whole)
    if not wide_numbers.fits(limbs, result).all():
        raise overflow("intDiv", result)
    return wide_numbers.column_of(limbs, result)


def remainder(values: list[Column], result: Decimal, rows: int, *, positive: bool) -> pa.Array:
    """Return the remainder with the dividend's sign, or with `positive` one of at least 0.

    Raises IllegalDivision if any divisor is 0.
    """
    refuse_zero(values[1])
    dividend, divisor = _at_one_scale(values)
    if isinstance(dividend, np.ndarray) and isinstance(divisor, np.ndarray):
        result_values = numpy_arithmetic.apply_ufunc(np.fmod, dividend, divisor, rows, np.int64)
        if positive:
            result_values += np.where(result_values < 0, np.abs(divisor), 0)
        return fitted_to(result_values, result, "modulo")
    dividend, divisor = _wide(dividend, rows), _wide(divisor, rows)
    difference = _remaining(dividend, _divided(dividend, divisor), divisor)
    if positive:
        lifted = columns.view(
            pc.add(_declared(difference, 75), _declared(pc.abs(divisor), 75)), _WIDE
        )
        difference = pc.if_else(
            pc.less(difference, pa.scalar(PythonDecimal(0), _WIDE)), lifted, difference
        )
    return fitted_to(difference, result, "modulo")


def refuse_zero(divisor: Column) -> None:
    """Raise IllegalDivision about the first row, if any, whose divisor is 0; any number type."""
    valid = not_zero(columns.single(divisor))
    if not valid.all():
        raise numpy_arithmetic.zero_division(int(np.argmin(valid)))


def not_zero(array: pa.Array) -> np.ndarray:
    """Return which numbers are not 0, of any type."""
    if pa.types.is_decimal(array.type):
        return np.asarray(_words(array).any(axis=1))
    return np.asarray(columns.numpy_values(array) != 0)


def _at_one_scale(values: list[Column]) -> tuple[Digits, Digits]:
    """Return the unscaled integers of both operands at the larger of their scales."""
    scale = max(scale_of(v) for v in values)
    left, right = (digits(v, scale - scale_of(v)) for v in values)
    return left, right


# --- digits


def scale_of(column: Column) -> int:
    """Return the digits behind the point; 0 for an integer."""
    return int(column.type.scale) if pa.types.is_decimal(column.type) else 0


def digits(column: Column, power: int = 0) -> Digits:
    """Return the unscaled integers of numbers, times 10 ** power: 1.25 with power 1 is 1250. As int64 if they fit, else
    as Decimal256 of scale 0.

    Raises DecimalOverflow if any has more than 76 digits."""
    array = columns.single(column)
    small = _int64_scaled(array, power)
    return _scaled(array, power) if small is None else small


def _scaled(array: pa.Array, power: int) -> pa.Array:
    """Return the unscaled integers of numbers, times 10 ** power, as Decimal256 of scale 0."""
    if power > numbers.DIGITS_MAX and not not_zero(array).any():
        return _unscaled(array)
    rescaled = numbers.decimal_rescaled(_unscaled(array), min(power, numbers.DIGITS_MAX))
    return columns.view(rescaled, _WIDE)


def _int64_scaled(array: pa.Array, power: int) -> np.ndarray | None:
    """Return the unscaled integers of numbers, times 10 ** power, as int64; None if any does not fit."""
    small = _int64(array) if power <= _INT64_DIGITS else None
    if small is None or _largest(small) > _INT64_MAX // 10**power:
        return None
    return small * 10**power if power else small


def _int64(array: pa.Array) -> np.ndarray | None:
    """Return the unscaled integers of numbers as int64 (1.25 gives 125); None if any does not fit."""
    if not pa.types.is_decimal(array.type):
        values = columns.numpy_values(array)
        if values.dtype == np.uint64 and values.size and int(values.max()) > _INT64_MAX:
            return None
        return values.astype(np.int64)
    words = _words(array)
    low = np.ascontiguousarray(words[:, 0])
    sign = low >> 63
    if any((words[:, at] != sign).any() for at in range(1, words.shape[1])):
        return None
    return low


def _words(array: pa.Array) -> np.ndarray:
    """Return the 64-bit words of each decimal's unscaled integer, the lowest first; shape (rows, 2 or 4)."""
    count = array.type.byte_width // 8
    if not len(array):
        return np.zeros((0, count), np.int64)
    start = array.offset * array.type.byte_width
    return np.frombuffer(array.buffers()[1], np.int64, len(array) * count, start).reshape(-1, count)


def _unscaled(array: pa.Array) -> pa.Array:
    """Return the unscaled integers of numbers as Decimal256 of scale 0."""
    if pa.types.is_decimal(array.type):
        return columns.view(array.cast(pa.decimal256(76, array.type.scale)), _WIDE)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    return array.cast(pa.decimal256(20, 0)).cast(_WIDE)


def _wide(values: Digits, rows: int) -> pa.Array:
    """Return digits as Decimal256 of scale 0; one value is repeated to `rows`."""
    array = _unscaled(pa.array(values)) if isinstance(values, np.ndarray) else values
    return array if len(array) == rows else pa.repeat(array[0], rows)


def _narrowest(values: Digits) -> Digits:
    """Return digits as int64 if they fit, else as given."""
    if isinstance(values, np.ndarray):
        return values
    small = _int64(values)
    return values if small is None else small


def _largest(values: np.ndarray) -> int:
    """Return the greatest absolute value; 0 for an empty array."""
    return max(int(values.max()), -int(values.min())) if values.size else 0


def _within(values: np.ndarray, result: Integer) -> bool:
    """Return whether all values are in the range of `result`; True for an empty array."""
    return not values.size or (
        result.minimum <= int(values.min()) and int(values.max()) <= result.maximum
    )


def fitted_to(values: Digits, result: Decimal, operation: str) -> pa.Array:
    """Return digits at the result's scale as its Decimals; `operation` is for the error.

    Raises DecimalOverflow if any does not fit.
    """
    if isinstance(values, np.ndarray):
        bits = decimal_width.decimal_bits(result.arrow)
        if bits <= _LONG_BITS and not _within(values, Integer(bits, signed=True)):
            raise overflow(operation, result)
        return numbers.decimals_from(values, result)
    limit = pa.scalar(PythonDecimal(10**numbers.DIGITS_MAX - 1), _WIDE)
    too_long = pc.any(pc.greater(pc.abs(values), limit)).as_py()
    wide = columns.view(values, pa.decimal256(76, result.scale))
    fitted = None if too_long else decimal_width.decimal_within_bits(wide, result.arrow)
    if fitted is None:
        raise overflow(operation, result)
    return fitted


# --- division beyond 64 bits


def _quotient(dividend: Digits, divisor: Digits, rows: int) -> Digits:
    """Return the quotient, truncated; no divisor is 0."""
    if isinstance(dividend, np.ndarray) and isinstance(divisor, np.ndarray):
        return numpy_arithmetic.whole_quotient(dividend, divisor, rows)
    return _divided(_wide(dividend, rows), _wide(divisor, rows))


def _divided(dividend: pa.Array, divisor: pa.Array) -> pa.Array:
    """Return the exact quotient of Decimal256.

    Arrow divides exactly up to 74 digits; of longer dividends the last two digits are divided
    apart.
    """
    short = pa.scalar(PythonDecimal(10**_ARROW_DIGITS), _WIDE)
    longer = np.asarray(pc.greater_equal(pc.abs(dividend), short))
    if not longer.any():
        return _divided_by_arrow(dividend, divisor)
    hundred = _constant(100, len(dividend))
    high = _divided_by_arrow(
        columns.view(dividend, pa.decimal256(76, 2)).cast(_WIDE, safe=False), divisor
    )
    quotient = _product(high, hundred)
    for _ in range(2):  # the remainder is less than 100 divisors, then less than one
        remaining = _remaining(dividend, quotient, divisor)
        quotient = _sum(quotient, _estimated(remaining, divisor))
    remaining = _remaining(dividend, quotient, divisor)
    return _sum(quotient, _corrections(dividend, remaining, divisor))


_ARROW_DIGITS = 74


def _divided_by_arrow(dividend: pa.Array, divisor: pa.Array) -> pa.Array:
    """Divide by Arrow, which reserves as many digits as the types require.

    The types require the least: the two digits that the dividend is scaled by, cut off afterwards.
    """
    quotient = pc.divide(
        columns.view(dividend, pa.decimal256(_ARROW_DIGITS, 2)),
        columns.view(divisor, pa.decimal256(1, 0)),
    )
    cut = columns.view(quotient, pa.decimal256(76, 2)).cast(_WIDE, safe=False)
    return columns.view(cut, _WIDE)


def _remaining(dividend: pa.Array, quotient: pa.Array, divisor: pa.Array) -> pa.Array:
    """Return the dividend minus the quotient times the divisor, of Decimal256 of scale 0."""
    difference = pc.subtract(_declared(dividend, 75), _declared(_product(quotient, divisor), 75))
    return columns.view(difference, _WIDE)


def _product(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the product as Decimal256 of scale 0; the caller knows that it has at most 76 digits."""
    return columns.view(pc.multiply(_declared(left, 37), _declared(right, 37)), _WIDE)


def _sum(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the sum as Decimal256 of scale 0; the caller knows that it fits."""
    return columns.view(pc.add(_declared(left, 75), _declared(right, 75)), _WIDE)


def _declared(array: pa.Array, precision: int) -> pa.Array:
    """Return integers of Decimal256 declared with `precision` digits, so that the type of Arrow's result fits in 76
    digits. Nothing is checked."""
    return columns.view(array, pa.decimal256(precision, 0))


def _constant(value: int, rows: int) -> pa.Array:
    """Return an integer repeated to `rows` rows of Decimal256 of scale 0."""
    return pa.repeat(pa.scalar(PythonDecimal(value), _WIDE), rows)


def _estimated(dividend: pa.Array, divisor: pa.Array) -> pa.Array:
    """Return the quotient as a whole number by floats, off by at most 1 for quotients up to about
    100.
    """
    quotient = np.trunc(_floats(dividend) / _floats(divisor))
    return _unscaled(pa.array(quotient.astype(np.int64)))


def _floats(array: pa.Array) -> np.ndarray:
    """Return decimals as the nearest Float64 values."""
    return columns.numpy_values(array.cast(pa.float64(), safe=False))


def _corrections(dividend: pa.Array, remaining: pa.Array, divisor: pa.Array) -> pa.Array:
    """Return what to add to an estimated quotient: 1 or -1 where the remainder reaches the divisor or has the wrong
    sign, else 0."""
    size, divisor_size = pc.abs(remaining), pc.abs(divisor)
    sign = np.sign(_floats(dividend)) * np.sign(_floats(divisor))
    crossed = np.sign(_floats(remaining)) * np.sign(_floats(dividend)) < 0
    reaches = np.asarray(pc.greater_equal(size, divisor_size))
    step = np.where(crossed, -sign, np.where(reaches, sign, 0))
    return _unscaled(pa.array(step.astype(np.int64)))
