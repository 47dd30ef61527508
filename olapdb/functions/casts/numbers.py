"""Casts between numbers: wrapping integers, truncating floats, decimals by their unscaled digits.

Inputs hold no nulls (see `cast`); errors have the row.
"""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import CannotConvertType, DataError, DecimalOverflow
from olapdb.functions.kernels import columns, decimal_width
from olapdb.types import DataType, Decimal, Float, Integer
from olapdb.types.arrow_values import to_numpy


def first_bad(bad: np.ndarray) -> int | None:
    """Return the index, from 0, of the first True; None if there is none."""
    return int(np.argmax(bad)) if bad.any() else None


def conversion_error(
    error: type[DataError], array: pa.Array, row: int, target: DataType, why: str
) -> DataError:
    """Return an error of the class `error`, with its row, that shows the row's value; `why` gives the reason."""
    value = array[row].as_py()
    shown = value if isinstance(value, str) else repr(value)
    return error(f"Cannot convert {shown!r} to {target}: {why}.").at_row(row)


def to_integer(array: pa.Array, source: DataType, target: Integer) -> pa.Array:
    """Cast numbers to an integer type.

    Integers wrap; floats truncate and wrap; decimals truncate, and raise DecimalOverflow if they do not fit. NaN and
    infinity raise CannotConvertType."""
    arrow = target.arrow
    if isinstance(source, Decimal):
        return _decimal_to_integer(array, target)
    values = columns.numpy_values(array)
    if isinstance(source, Float):
        bad = first_bad(~np.isfinite(values))
        if bad is not None:
            raise conversion_error(CannotConvertType, array, bad, target, "it is no finite number")
        values = _truncated(values.astype(np.float64), target)
    return columns.from_values(values, arrow)


def _truncated(values: np.ndarray, target: Integer) -> np.ndarray:
    """Return floats without their fractions as integers, converted as the processor does: to Int32 or UInt64 if
    `target` is that, to Int64 for every other target."""
    with np.errstate(invalid="ignore"):
        if target == Integer(64, False):
            return np.where(
                values < 0, values.astype(np.int64).astype(np.uint64), values.astype(np.uint64)
            )
        if target == Integer(32, True):
            return values.astype(np.int32)
        return values.astype(np.int64)


def _decimal_to_integer(array: pa.Array, target: Integer) -> pa.Array:
    """Truncate decimals to integers; raise DecimalOverflow if any is out of range."""
    whole = decimal_rescaled(array, 0)
    try:
        return whole.cast(target.arrow)
    except pa.ArrowInvalid:
        limits = (
            pa.scalar(decimal.Decimal(bound), whole.type)
            for bound in (target.minimum, target.maximum)
        )
        low, high = limits
        bad = pc.or_(pc.less(whole, low), pc.greater(whole, high))
        row = first_bad(np.asarray(bad))
        raise conversion_error(
            DecimalOverflow, array, row or 0, target, "it is out of range"
        ) from None


def decimal_rescaled(array: pa.Array, scale: int) -> pa.Array:
    """Return decimals of 76 digits rescaled to `scale` digits behind the point, truncated towards zero.

    Raises DecimalOverflow if a value would have more than 76 digits."""
    wide = array.cast(pa.decimal256(DIGITS_MAX, array.type.scale))
    more = scale - array.type.scale
    if more > 0 and decimal_width.decimal_class(array.type).precision + 1 + more > DIGITS_MAX:
        _refuse_longer(wide, scale)
    return wide.cast(pa.decimal256(DIGITS_MAX, scale), safe=False)


DIGITS_MAX = 76


def _refuse_longer(wide: pa.Array, scale: int) -> None:
    """Raise DecimalOverflow with its row for the first value, if any, that has more than 76 digits at the scale.

    Arrow's cast would wrap or name no row."""
    whole = columns.view(wide, pa.decimal256(DIGITS_MAX, 0))
    limit = decimal.Decimal(10 ** (DIGITS_MAX - scale + wide.type.scale))
    size = pc.abs(whole)
    bad = first_bad(
        to_numpy(pc.fill_null(pc.greater_equal(size, pa.scalar(limit, whole.type)), False))
    )
    if bad is not None:
        raise DecimalOverflow(
            f"Decimal math overflow: {wide[bad].as_py()} with {scale} places has more than"
            f" {DIGITS_MAX} digits.",
            hint="Convert it to a Decimal of fewer places.",
        ).at_row(bad)


def to_float(array: pa.Array, source: DataType, target: Float) -> pa.Array:
    """Cast numbers to the nearest float; beyond its range they become infinite."""
    if isinstance(source, Decimal):
        return decimal_width.floats_of_decimals(array).cast(target.arrow, safe=False)
    with np.errstate(over="ignore"):
        return columns.from_values(columns.numpy_values(array), target.arrow)


def to_exact_float(array: pa.Array, source: DataType, target: Float) -> pa.Array:
    """Cast as `to_float`; raise CannotConvertType for an integer that a Float64 does not hold exactly."""
    cast = to_float(array, source, target)
    row = first_bad(inexact(array, cast))
    if row is not None:
        raise conversion_error(
            CannotConvertType,
            array,
            row,
            target,
            "no Float64 is this integer; convert it with toFloat64 first",
        )
    return cast


def inexact(integers: pa.Array, floats: pa.Array) -> np.ndarray:
    """Return a mask of the rows in which a float differs from the integer that it was cast from.

    All are False for other sources than wide or 64-bit integers."""
    if pa.types.is_decimal(integers.type):
        round_trip = floats.cast(pa.decimal128(38, 0), safe=False)
        return to_numpy(pc.not_equal(round_trip, integers.cast(pa.decimal128(38, 0))))
    values, near = columns.numpy_values(integers), columns.numpy_values(floats)
    if values.dtype.itemsize < _WORD_BYTES or values.dtype.kind == "f":
        return np.zeros(len(values), bool)
    below = near < _FLOAT_END[values.dtype.kind]
    round_trip = np.where(below, near, 0).astype(values.dtype)
    return np.asarray((round_trip != values) | ~below)


_WORD_BYTES = 8
_FLOAT_END = {"i": 2.0**63, "u": 2.0**64}


def to_decimal(array: pa.Array, source: DataType, target: Decimal) -> pa.Array:
    """Cast to a Decimal; digits beyond the scale are cut off.

    Integers and decimals must fit the target's width in bits, which may hold more digits than its
    precision, as in ClickHouse.
    """
    if isinstance(source, Float):
        return _float_to_decimal(array, target)
    wide = decimal_rescaled(
        array if isinstance(source, Decimal) else array.cast(pa.decimal256(20, 0)), target.scale
    )
    return fitted(wide, target, array)


def fitted(wide: pa.Array, target: Decimal, shown: pa.Array) -> pa.Array:
    """Return decimals of 76 digits as the target; raise DecimalOverflow if one exceeds its width in
    bits.

    `shown` has the source values for the error's text.
    """
    roomy = decimal_width.decimal_within_bits(wide, target.arrow)
    return narrowed(wide, target, shown) if roomy is None else roomy


def narrowed(
    wide: pa.Array, target: Decimal, shown: pa.Array, error: type[DataError] = DecimalOverflow
) -> pa.Array:
    """Return decimals of 76 digits as the target; raise `error` if one exceeds its precision.

    `shown` has the source values for the error's text.
    """
    try:
        return wide.cast(target.arrow)
    except pa.ArrowInvalid:
        limit = decimal.Decimal(10) ** (target.precision - target.scale)
        bound = pa.scalar(limit, pa.decimal256(76, target.scale))
        bad = pc.greater_equal(pc.abs(wide), bound)
        row = first_bad(np.asarray(bad))
        raise conversion_error(error, shown, row or 0, target, "it has too many digits") from None


def _float_to_decimal(array: pa.Array, target: Decimal) -> pa.Array:
    """Cast floats to decimals, truncated at the scale.

    Like ClickHouse, a Float32 is multiplied as one, which rounds: 999999.9 stays, where its Float64 is less.
    Raises DecimalOverflow if any is not finite or beyond the precision.
    """
    values = columns.numpy_values(array)
    bad = first_bad(~np.isfinite(values))
    if bad is not None:
        raise conversion_error(DecimalOverflow, array, bad, target, "it is no finite number")
    with np.errstate(over="ignore", invalid="ignore"):  # an infinity has too many digits too
        scaled = np.trunc(values * values.dtype.type(10.0**target.scale)).astype(np.float64)
    scaled[values == 0] = 0  # no Float32 has more than 38 digits: 0 times infinity is NaN
    bad = first_bad(np.abs(scaled) >= 10.0**target.precision)
    if bad is not None:
        raise conversion_error(DecimalOverflow, array, bad, target, "it has too many digits")
    if not len(scaled) or float(np.abs(scaled).max()) < 2.0**63:
        return decimals_from(scaled.astype(np.int64), target)
    whole = pa.array(scaled).cast(pa.decimal256(76, 0))
    unscaled = columns.view(whole, pa.decimal256(76, target.scale))
    return narrowed(unscaled, target, array)


def decimals_from(unscaled: np.ndarray, target: Decimal) -> pa.Array:
    """Return Decimals of int64 values, taken as unscaled integers: 125 is 1.25 at scale 2.

    Nothing is checked."""
    words = 2 if target.precision <= 38 else 4
    data = np.empty((len(unscaled), words), np.int64)
    data[:, 0] = unscaled
    data[:, 1:] = (unscaled >> 63)[:, None]
    return pa.Array.from_buffers(target.arrow, len(unscaled), [None, pa.py_buffer(data)])
