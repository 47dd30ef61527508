"""The arithmetic of Decimals, exact: on 64-bit integers where the digits fit, else on Decimal256.

As in ClickHouse a result may have more digits than its precision where they fit its bits, of 32 and
64; of more bits 38 and 76 digits are the most.  Where ClickHouse's integers would overflow on the
way to a result that fits, the result is the exact one.
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
from olapdb.functions.kernels import columns, decimal_width
from olapdb.functions.numeric import numpy_arithmetic
from olapdb.types import Decimal, Integer

Digits: TypeAlias = np.ndarray | pa.Array
"""Numbers without their point: int64, or where these do not suffice Decimal256 of scale 0; one of
a constant."""

_WIDE = pa.decimal256(76, 0)
_INT64_MAX = 2**63 - 1
_INT64_DIGITS = 18
_LONG_BITS = 64


def overflow(operation: str, result: Decimal | Integer) -> DecimalOverflow:
    return DecimalOverflow(
        f"Decimal math overflow: {operation} does not fit {result}.",
        hint="Convert an argument to a wider Decimal first.",
    )


# --- plus, minus, multiply


def combine(operation: str, values: list[Column], result: Decimal, rows: int) -> Column:
    """The sum, difference or product; NULL of NULL, a constant of constants."""
    powers = [0 if operation == "multiply" else result.scale - scale_of(v) for v in values]
    constant = all(isinstance(v, pa.Scalar) for v in values)
    arrays = [columns.as_array(v, 1) for v in values] if constant else values
    count = 1 if constant else rows
    made = _combined_integers(operation, arrays, powers, result, count)
    if made is None:
        whole = (columns.as_array(v, count) for v in arrays)
        left, right = (_scaled(v, power) for v, power in zip(whole, powers, strict=True))
        made = fitted_to(_combined(operation, left, right, result), result, operation)
    return made[0] if constant else made


def _combined(operation: str, left: pa.Array, right: pa.Array, result: Decimal) -> pa.Array:
    """Of numbers of 76 digits at most, whose sum cannot wrap around."""
    if operation != "multiply":
        return _sum(left, right if operation == "plus" else pc.negate(right))
    sizes = np.abs(_floats(left)) * np.abs(_floats(right))
    if (sizes > _PRODUCT_MAX).any():
        raise overflow(operation, result)
    return _product(left, right)


_PRODUCT_MAX = 2e76
"""No float next to a number that Decimal256 has not the bits for is below."""


def _combined_integers(
    operation: str, values: list[Column], powers: list[int], result: Decimal, rows: int
) -> pa.Array | None:
    """In one pass of numpy, where no row is NULL and nothing can need more than 64 bits."""
    if any(v.null_count if isinstance(v, pa.Array) else not v.is_valid for v in values):
        return None
    held = [_int64_scaled(columns.single(v), by) for v, by in zip(values, powers, strict=True)]
    left, right = held
    if left is None or right is None:
        return None
    largest, other = _largest(left), _largest(right)
    if (largest * other if operation == "multiply" else largest + other) > _INT64_MAX:
        return None
    made = numpy_arithmetic.combined(
        numpy_arithmetic.UFUNCS[operation], left, right, rows, np.int64
    )
    return fitted_to(made, result, operation)


# --- divide, intDiv, modulo: of columns without NULL


def divide(values: list[Column], result: Decimal, rows: int) -> pa.Array:
    """Truncated at the result's scale."""
    top, bottom = values
    refuse_zero(bottom)
    dividend = digits(top, result.scale - scale_of(top) + scale_of(bottom))
    return fitted_to(_quotient(dividend, digits(bottom), rows), result, "divide")


def whole_quotient(values: list[Column], result: Integer, rows: int) -> np.ndarray:
    """intDiv: int64, cut towards zero."""
    refuse_zero(values[1])
    top, bottom = _at_one_scale(values)
    quotient = _narrowest(_quotient(top, bottom, rows))
    if not isinstance(quotient, np.ndarray) or not _within(quotient, result):
        raise overflow("intDiv", result)
    return quotient


def rest(values: list[Column], result: Decimal, rows: int, *, positive: bool) -> pa.Array:
    """The remainder with the dividend's sign, or `positive`: none below 0."""
    refuse_zero(values[1])
    top, bottom = _at_one_scale(values)
    if isinstance(top, np.ndarray) and isinstance(bottom, np.ndarray):
        made = numpy_arithmetic.combined(np.fmod, top, bottom, rows, np.int64)
        if positive:
            made += np.where(made < 0, np.abs(bottom), 0)
        return fitted_to(made, result, "modulo")
    top, bottom = _wide(top, rows), _wide(bottom, rows)
    left = _less(top, _divided(top, bottom), bottom)
    if positive:
        moved = columns.view(pc.add(_declared(left, 75), _declared(pc.abs(bottom), 75)), _WIDE)
        left = pc.if_else(pc.less(left, pa.scalar(PythonDecimal(0), _WIDE)), moved, left)
    return fitted_to(left, result, "modulo")


def refuse_zero(divisor: Column) -> None:
    """As `numpy_arithmetic.refuse_zero`, of decimals too."""
    fine = not_zero(columns.single(divisor))
    if not fine.all():
        raise numpy_arithmetic.zero_division(int(np.argmin(fine)))


def not_zero(array: pa.Array) -> np.ndarray:
    """Which numbers are not 0, of any type."""
    if pa.types.is_decimal(array.type):
        return np.asarray(_words(array).any(axis=1))
    return np.asarray(columns.numpy_values(array) != 0)


def _at_one_scale(values: list[Column]) -> tuple[Digits, Digits]:
    scale = max(scale_of(v) for v in values)
    left, right = (digits(v, scale - scale_of(v)) for v in values)
    return left, right


# --- digits


def scale_of(column: Column) -> int:
    """The places behind the point; 0 of an integer."""
    return int(column.type.scale) if pa.types.is_decimal(column.type) else 0


def digits(column: Column, power: int = 0) -> Digits:
    """The number without its point, times 10 ** power; DecimalOverflow beyond 76 digits."""
    array = columns.single(column)
    small = _int64_scaled(array, power)
    return _scaled(array, power) if small is None else small


def _scaled(array: pa.Array, power: int) -> pa.Array:
    """As Decimal256 of scale 0; a power of more than 76 digits is for zeros only."""
    if power > numbers.DIGITS_MAX and not not_zero(array).any():
        return _unscaled(array)
    made = numbers.decimal_rescaled(_unscaled(array), min(power, numbers.DIGITS_MAX))
    return columns.view(made, _WIDE)


def _int64_scaled(array: pa.Array, power: int) -> np.ndarray | None:
    small = _int64(array) if power <= _INT64_DIGITS else None
    if small is None or _largest(small) > _INT64_MAX // 10**power:
        return None
    return small * 10**power if power else small


def _int64(array: pa.Array) -> np.ndarray | None:
    """The digits as int64; None where one has not the room."""
    if not pa.types.is_decimal(array.type):
        held = columns.numpy_values(array)
        if held.dtype == np.uint64 and held.size and int(held.max()) > _INT64_MAX:
            return None
        return held.astype(np.int64)
    words = _words(array)
    low = np.ascontiguousarray(words[:, 0])
    sign = low >> 63
    if any((words[:, at] != sign).any() for at in range(1, words.shape[1])):
        return None
    return low


def _words(array: pa.Array) -> np.ndarray:
    """The 64-bit words of decimals, the lowest first: shape (rows, 2 or 4)."""
    count = array.type.byte_width // 8
    if not len(array):
        return np.zeros((0, count), np.int64)
    start = array.offset * array.type.byte_width
    return np.frombuffer(array.buffers()[1], np.int64, len(array) * count, start).reshape(-1, count)


def _unscaled(array: pa.Array) -> pa.Array:
    """A number's digits as Decimal256 of scale 0."""
    if pa.types.is_decimal(array.type):
        return columns.view(array.cast(pa.decimal256(76, array.type.scale)), _WIDE)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    return array.cast(pa.decimal256(20, 0)).cast(_WIDE)


def _wide(held: Digits, rows: int) -> pa.Array:
    """As Decimal256 of scale 0, a constant repeated."""
    array = _unscaled(pa.array(held)) if isinstance(held, np.ndarray) else held
    return array if len(array) == rows else pa.repeat(array[0], rows)


def _narrowest(held: Digits) -> Digits:
    if isinstance(held, np.ndarray):
        return held
    small = _int64(held)
    return held if small is None else small


def _largest(held: np.ndarray) -> int:
    """How far the furthest is from 0."""
    return max(int(held.max()), -int(held.min())) if held.size else 0


def _within(held: np.ndarray, result: Integer) -> bool:
    return not held.size or (
        result.minimum <= int(held.min()) and int(held.max()) <= result.maximum
    )


def fitted_to(held: Digits, result: Decimal, operation: str) -> pa.Array:
    """Digits at the result's scale as its Decimals; DecimalOverflow where they do not fit."""
    if isinstance(held, np.ndarray):
        bits = decimal_width.decimal_bits(result.arrow)
        if bits <= _LONG_BITS and not _within(held, Integer(bits, signed=True)):
            raise overflow(operation, result)
        return numbers.decimals_from(held, result)
    limit = pa.scalar(PythonDecimal(10**numbers.DIGITS_MAX - 1), _WIDE)
    longer = pc.any(pc.greater(pc.abs(held), limit)).as_py()
    wide = columns.view(held, pa.decimal256(76, result.scale))
    made = None if longer else decimal_width.decimal_within_bits(wide, result.arrow)
    if made is None:
        raise overflow(operation, result)
    return made


# --- division beyond 64 bits


def _quotient(top: Digits, bottom: Digits, rows: int) -> Digits:
    """Cut towards zero; no divisor is 0."""
    if isinstance(top, np.ndarray) and isinstance(bottom, np.ndarray):
        return numpy_arithmetic.whole_quotient(top, bottom, rows)
    return _divided(_wide(top, rows), _wide(bottom, rows))


def _divided(top: pa.Array, bottom: pa.Array) -> pa.Array:
    """The quotient of Decimal256, which Arrow divides exactly up to 74 digits: of longer numbers
    the last two digits are divided apart."""
    short = pa.scalar(PythonDecimal(10**_ARROW_DIGITS), _WIDE)
    longer = np.asarray(pc.greater_equal(pc.abs(top), short))
    if not longer.any():
        return _divided_by_arrow(top, bottom)
    hundred = _constant(100, len(top))
    high = _divided_by_arrow(
        columns.view(top, pa.decimal256(76, 2)).cast(_WIDE, safe=False), bottom
    )
    made = _product(high, hundred)
    for _ in range(2):  # what is left is less than 100 divisors, then less than one
        left = _less(top, made, bottom)
        made = _sum(made, _estimated(left, bottom))
    left = _less(top, made, bottom)
    return _sum(made, _corrections(top, left, bottom))


_ARROW_DIGITS = 74


def _divided_by_arrow(top: pa.Array, bottom: pa.Array) -> pa.Array:
    """Arrow makes room for as many places as the types ask for: they ask for the least, which are
    the two that its dividend is scaled by and two that are cut off again."""
    made = pc.divide(
        columns.view(top, pa.decimal256(_ARROW_DIGITS, 2)),
        columns.view(bottom, pa.decimal256(1, 0)),
    )
    cut = columns.view(made, pa.decimal256(76, 2)).cast(_WIDE, safe=False)
    return columns.view(cut, _WIDE)


def _less(top: pa.Array, quotient: pa.Array, bottom: pa.Array) -> pa.Array:
    """What is left of `top` without `quotient` times `bottom`."""
    made = pc.subtract(_declared(top, 75), _declared(_product(quotient, bottom), 75))
    return columns.view(made, _WIDE)


def _product(left: pa.Array, right: pa.Array) -> pa.Array:
    """Of numbers whose product has 76 digits at most, whatever their types could hold."""
    return columns.view(pc.multiply(_declared(left, 37), _declared(right, 37)), _WIDE)


def _sum(left: pa.Array, right: pa.Array) -> pa.Array:
    return columns.view(pc.add(_declared(left, 75), _declared(right, 75)), _WIDE)


def _declared(array: pa.Array, precision: int) -> pa.Array:
    """The same numbers under a precision that leaves Arrow's result within 76 digits."""
    return columns.view(array, pa.decimal256(precision, 0))


def _constant(value: int, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(PythonDecimal(value), _WIDE), rows)


def _estimated(left: pa.Array, bottom: pa.Array) -> pa.Array:
    """The whole quotient of numbers that are at most about 100 apart, by floats: off by 1 at most."""
    quotient = np.trunc(_floats(left) / _floats(bottom))
    return _unscaled(pa.array(quotient.astype(np.int64)))


def _floats(array: pa.Array) -> np.ndarray:
    return columns.numpy_values(array.cast(pa.float64(), safe=False))


def _corrections(top: pa.Array, left: pa.Array, bottom: pa.Array) -> pa.Array:
    """1 or -1 where what is left reaches the divisor, or has crossed zero."""
    size, divisor = pc.abs(left), pc.abs(bottom)
    sign = np.sign(_floats(top)) * np.sign(_floats(bottom))
    crossed = np.sign(_floats(left)) * np.sign(_floats(top)) < 0
    reaches = np.asarray(pc.greater_equal(size, divisor))
    step = np.where(crossed, -sign, np.where(reaches, sign, 0))
    return _unscaled(pa.array(step.astype(np.int64)))
