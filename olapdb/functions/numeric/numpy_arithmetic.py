"""The arithmetic of integers and floats without NULL, each in as few passes as it takes.

An operand is an array of the block's rows, or of one value: a constant.  Integers wrap around.
"""

from __future__ import annotations

import numpy as np

from olapdb.errors import IllegalDivision
from olapdb.functions.kernels.arrow_buffers import converted, empty

UFUNCS: dict[str, np.ufunc] = {"plus": np.add, "minus": np.subtract, "multiply": np.multiply}


def combined(
    operation: np.ufunc,
    left: np.ndarray,
    right: np.ndarray,
    rows: int,
    dtype: np.dtype | type[np.generic],
) -> np.ndarray:
    """What the operation of two operands makes, both taken at `dtype`."""
    made = empty(rows, dtype)
    with np.errstate(all="ignore"):
        operation(left, right, out=made, dtype=made.dtype, casting="unsafe")
    return made


def refuse_zero(divisor: np.ndarray, rows: int) -> None:
    """IllegalDivision for the first row whose divisor is 0."""
    if rows and not divisor.all():
        raise zero_division(int(np.argmax(divisor == 0)))


def zero_division(row: int) -> IllegalDivision:
    error = IllegalDivision("Division by zero.", hint="Use nullIf(divisor, 0) or an if.")
    error.row = row
    return error


def divided(left: np.ndarray, right: np.ndarray, rows: int) -> np.ndarray:
    """Float64; infinite or NaN where the divisor is 0."""
    return combined(np.true_divide, left, right, rows, np.float64)


def whole_quotient(left: np.ndarray, right: np.ndarray, rows: int) -> np.ndarray:
    """The quotient of integers cut towards zero, at the width it was computed in; UInt64 beside a
    signed number is taken as Int64, as ClickHouse does."""
    refuse_zero(right, rows)
    if _unsigned(left, right):
        if len(right) == 1 and int(right[0]) > _LARGEST[left.dtype.str[1:]]:
            return np.zeros(rows, left.dtype)
        dtype = left.dtype if len(right) == 1 else np.result_type(left, right)
        return combined(np.floor_divide, left, right, rows, dtype)
    top, bottom = converted(left, np.int64), converted(right, np.int64)
    _refuse_overflow(left, bottom)
    quotient = combined(np.floor_divide, top, bottom, rows, np.int64)
    negative = quotient < 0
    if negative.any():
        with np.errstate(over="ignore"):
            quotient += negative & (top != quotient * bottom)
    return quotient


def rest(
    left: np.ndarray, right: np.ndarray, rows: int, dtype: np.dtype | type[np.generic]
) -> np.ndarray:
    """The remainder with the dividend's sign; `dtype`, the result's, holds any divisor."""
    if len(right) == 1 and (divisor := int(right[0])) > 0:
        if divisor <= _LARGEST[left.dtype.str[1:]]:
            return _rest_by_constant(left, divisor, rows, np.dtype(dtype))
        if left.dtype.kind == "u":
            return left
    refuse_zero(right, rows)
    if left.dtype == np.uint64 and right.dtype.kind == "i":
        right = distances(right)
    if _unsigned(left, right):
        return combined(np.fmod, left, right, rows, np.result_type(left, right))
    if right.dtype == np.uint64:
        return _signed_rest(left, right, rows)
    bottom = converted(right, np.int64)
    _refuse_overflow(left, bottom)
    return combined(np.fmod, left, bottom, rows, np.int64)


def distances(values: np.ndarray) -> np.ndarray:
    """How far integers are from 0, as UInt64."""
    if values.dtype.kind == "u":
        return converted(values, np.uint64)
    far: np.ndarray = np.abs(converted(values, np.int64))
    return far.view(np.uint64)


def _signed_rest(left: np.ndarray, right: np.ndarray, rows: int) -> np.ndarray:
    """Of a signed dividend and a UInt64, which Int64 may not hold: no number is further from 0
    than such a one, and the least is as far as the smallest of them."""
    top = converted(left, np.int64)
    beyond = right > np.uint64(_INT64_MAX)
    made = combined(np.fmod, top, np.where(beyond, np.uint64(1), right), rows, np.int64)
    if beyond.any():
        np.copyto(made, np.where(distances(top) == right, 0, top), where=beyond)
    return made


_LARGEST = {
    f"{kind}{size}": (1 << 8 * size - (kind == "i")) - 1 for kind in "iu" for size in (1, 2, 4, 8)
}
"""By the kind and the bytes of an integer."""
_INT64_MAX = _LARGEST["i8"]


def _rest_by_constant(values: np.ndarray, divisor: int, rows: int, result: np.dtype) -> np.ndarray:
    """numpy divides by one divisor several times as fast as by a column.  What is left of the
    division fits the result, so it is computed there, where that is narrower."""
    by = np.array([divisor], values.dtype)
    quotient = combined(np.floor_divide, values, by, rows, values.dtype)
    fits = result.itemsize < values.dtype.itemsize and result.kind == values.dtype.kind
    narrow = result if fits else values.dtype
    taken = converted(quotient, narrow)
    taken *= narrow.type(divisor)
    made = taken
    np.subtract(converted(values, narrow), taken, out=made)
    if values.dtype.kind == "i" and rows and int(values.min()) < 0:
        made -= ((values < 0) & (made != 0)) * narrow.type(divisor)
    return made


def _unsigned(left: np.ndarray, right: np.ndarray) -> bool:
    return left.dtype.kind == "u" and right.dtype.kind == "u"


def _refuse_overflow(left: np.ndarray, right: np.ndarray) -> None:
    """The least number divided by -1 has no result."""
    if left.dtype.kind != "i":
        return
    ones = right == -1
    if ones.any() and (ones & (left == np.iinfo(left.dtype).min)).any():
        raise IllegalDivision("Division of minimal signed number by minus one.")
