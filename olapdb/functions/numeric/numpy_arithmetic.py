"""Arithmetic of integers and floats without NULL by numpy, in as few passes as possible.

An operand is an array of the block's rows, or of one value, a constant.  Integers wrap around.
"""

from __future__ import annotations

import numpy as np

from olapdb.errors import IllegalDivision
from olapdb.functions.kernels.arrow_buffers import converted, empty

UFUNCS: dict[str, np.ufunc] = {"plus": np.add, "minus": np.subtract, "multiply": np.multiply}


def apply_ufunc(
    operation: np.ufunc,
    left: np.ndarray,
    right: np.ndarray,
    rows: int,
    dtype: np.dtype | type[np.generic],
) -> np.ndarray:
    """Return `operation` of two operands, of `rows` values or of one each, computed at `dtype`, in memory of Arrow's
    pool."""
    result = empty(rows, dtype)
    with np.errstate(all="ignore"):
        operation(left, right, out=result, dtype=result.dtype, casting="unsafe")
    return result


def refuse_zero(divisor: np.ndarray, rows: int) -> None:
    """Raise IllegalDivision about the first row, if any, whose divisor is 0."""
    if rows and not divisor.all():
        raise zero_division(int(np.argmax(divisor == 0)))


def zero_division(row: int) -> IllegalDivision:
    """Return the error about a division by zero in this row."""
    error = IllegalDivision("Division by zero.", hint="Use nullIf(divisor, 0) or an if.")
    error.row = row
    return error


def float_quotient(left: np.ndarray, right: np.ndarray, rows: int) -> np.ndarray:
    """Return the Float64 quotient; infinite or NaN where the divisor is 0."""
    return apply_ufunc(np.true_divide, left, right, rows, np.float64)


def whole_quotient(left: np.ndarray, right: np.ndarray, rows: int) -> np.ndarray:
    """Return the quotient of integers, truncated, at the width in which it was computed.

    UInt64 with a signed number becomes Int64, as in ClickHouse. Raises IllegalDivision if any
    divisor is 0, or -1 under the least number.
    """
    refuse_zero(right, rows)
    if _unsigned(left, right):
        if len(right) == 1 and int(right[0]) > _LARGEST[left.dtype.str[1:]]:
            return np.zeros(rows, left.dtype)
        dtype = left.dtype if len(right) == 1 else np.result_type(left, right)
        return apply_ufunc(np.floor_divide, left, right, rows, dtype)
    dividend, divisor = converted(left, np.int64), converted(right, np.int64)
    _refuse_overflow(left, divisor)
    quotient = apply_ufunc(np.floor_divide, dividend, divisor, rows, np.int64)
    negative = quotient < 0
    if negative.any():
        with np.errstate(over="ignore"):
            quotient += negative & (dividend != quotient * divisor)
    return quotient


def remainder(
    left: np.ndarray, right: np.ndarray, rows: int, dtype: np.dtype | type[np.generic]
) -> np.ndarray:
    """Return the remainder with the dividend's sign.

    `dtype` is the result's type, which holds any divisor; the array returned may have another type. Raises
    IllegalDivision if any divisor is 0, or -1 under the least signed number."""
    if len(right) == 1 and (divisor := int(right[0])) > 0:
        if divisor <= _LARGEST[left.dtype.str[1:]]:
            return _remainder_by_constant(left, divisor, rows, np.dtype(dtype))
        if left.dtype.kind == "u":
            return left
    refuse_zero(right, rows)
    if left.dtype == np.uint64 and right.dtype.kind == "i":
        right = magnitudes(right)
    if _unsigned(left, right):
        return apply_ufunc(np.fmod, left, right, rows, np.result_type(left, right))
    if right.dtype == np.uint64:
        return _signed_remainder(left, right, rows)
    signed_divisor = converted(right, np.int64)
    _refuse_overflow(left, signed_divisor)
    return apply_ufunc(np.fmod, left, signed_divisor, rows, np.int64)


def magnitudes(values: np.ndarray) -> np.ndarray:
    """Return absolute values of integers as UInt64."""
    if values.dtype.kind == "u":
        return converted(values, np.uint64)
    distances: np.ndarray = np.abs(converted(values, np.int64))
    return distances.view(np.uint64)


def _signed_remainder(left: np.ndarray, right: np.ndarray, rows: int) -> np.ndarray:
    """Return the remainder of a signed dividend and a UInt64 divisor, which Int64 may not hold.

    A divisor beyond Int64 exceeds every dividend but the least, whose absolute value it may equal.
    """
    top = converted(left, np.int64)
    beyond = right > np.uint64(_INT64_MAX)
    remainder = apply_ufunc(np.fmod, top, np.where(beyond, np.uint64(1), right), rows, np.int64)
    if beyond.any():
        np.copyto(remainder, np.where(magnitudes(top) == right, 0, top), where=beyond)
    return remainder


_LARGEST = {
    f"{kind}{size}": (1 << 8 * size - (kind == "i")) - 1 for kind in "iu" for size in (1, 2, 4, 8)
}
"""The greatest value of an integer type, by its kind and bytes ("u8")."""
_INT64_MAX = _LARGEST["i8"]
_DIVIDED_ROWS_MIN = 256


def _remainder_by_constant(
    values: np.ndarray, divisor: int, rows: int, result: np.dtype
) -> np.ndarray:
    """Return remainders by one positive divisor, by which numpy divides several times as fast as by an array.

    They are computed in the result's type if it is narrower. For few values one pass of the plain remainder costs
    less."""
    if rows < _DIVIDED_ROWS_MIN:
        return apply_ufunc(np.fmod, values, np.array([divisor], values.dtype), rows, values.dtype)
    divisor_array = np.array([divisor], values.dtype)
    quotient = apply_ufunc(np.floor_divide, values, divisor_array, rows, values.dtype)
    fits = result.itemsize < values.dtype.itemsize and result.kind == values.dtype.kind
    compute_type = result if fits else values.dtype
    multiples = converted(quotient, compute_type)
    multiples *= compute_type.type(divisor)
    remainder = multiples
    np.subtract(converted(values, compute_type), multiples, out=remainder)
    if values.dtype.kind == "i" and rows and int(values.min()) < 0:
        remainder -= ((values < 0) & (remainder != 0)) * compute_type.type(divisor)
    return remainder


def _unsigned(left: np.ndarray, right: np.ndarray) -> bool:
    """Return whether both operands have an unsigned integer type."""
    return left.dtype.kind == "u" and right.dtype.kind == "u"


def _refuse_overflow(left: np.ndarray, right: np.ndarray) -> None:
    """Raise IllegalDivision if the least number is divided by -1, which has no result."""
    if left.dtype.kind != "i":
        return
    minus_one = right == -1
    if minus_one.any() and (minus_one & (left == np.iinfo(left.dtype).min)).any():
        raise IllegalDivision("Division of minimal signed number by minus one.")
