"""Casts between numbers and Date, Date32, DateTime, DateTime64."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb import types
from olapdb.errors import CannotConvertType, DataError, DecimalOverflow
from olapdb.functions.casts.numbers import conversion_error, first_bad
from olapdb.functions.kernels import calendar, columns

Timed = types.Date | types.Date32 | types.DateTime | types.DateTime64


def to_time(array: pa.Array, source: types.DataType, target: Timed, zone: str) -> pa.Array:
    """Cast a number, date or time to a date or time.

    Values out of range are clamped as ClickHouse does.
    """
    if isinstance(target, types.Date | types.Date32):
        return columns.from_values(_days(array, source, target, zone), target.arrow)
    per_second = calendar.ticks_per_second(target)
    if isinstance(source, types.DateTime | types.DateTime64):
        ticks = _rescaled_time(array, source, target)
    elif isinstance(source, types.Date | types.Date32):
        wall = columns.numpy_values(array).astype(np.int64) * calendar.DAY
        ticks = _ticks(calendar.utc_from_local(wall, calendar.zone_of(target, zone)), per_second)
    elif isinstance(source, types.Decimal):
        floats = np.clip(columns.numpy_values(array.cast(pa.float64())), *calendar.SECONDS64_RANGE)
        _refuse_beyond(floats, per_second, array, target)
        ticks = np.floor(floats * per_second).astype(np.int64)
    elif isinstance(source, types.Float):
        ticks = _ticks_of_floats(array, target)
    else:
        values = columns.numpy_values(array)
        if isinstance(target, types.DateTime) and _is_within(values, 0, calendar.DATETIME_MAX):
            return columns.from_values(values, target.arrow)
        ticks = _ticks(_clamped_seconds(values), per_second)
        late = (values > calendar.SECONDS64_RANGE[1]) & (ticks < calendar.INT64_MAX)
        ticks[late] += per_second - 1  # the last tick of the last second
    if isinstance(target, types.DateTime):
        ticks = np.clip(ticks, 0, calendar.DATETIME_MAX)
    return columns.from_values(calendar.cut_precision(ticks, target), target.arrow)


def _rescaled_time(
    array: pa.Array, source: types.DataType, target: types.DateTime | types.DateTime64
) -> np.ndarray:
    """Return a time's ticks at the precision of the target, truncated.

    Raises DecimalOverflow if any is beyond 64 bits."""
    ticks = columns.numpy_values(array)
    old, new = calendar.ticks_per_second(source), calendar.ticks_per_second(target)
    if new < old:
        return calendar.towards_zero(ticks, old // new)
    _refuse_beyond(ticks, new // old, array, target)
    return np.asarray(ticks * (new // old))


def _ticks_of_floats(array: pa.Array, target: types.DateTime | types.DateTime64) -> np.ndarray:
    """Return Unix seconds, given as floats, as ticks of the target, truncated and clamped.

    Raises DecimalOverflow for NaN, and for a DateTime CannotConvertType for NaN or infinity."""
    floats = columns.numpy_values(array).astype(np.float64)
    error: type[DataError] = DecimalOverflow
    bad = first_bad(np.isnan(floats))
    if isinstance(target, types.DateTime):
        error, bad = CannotConvertType, first_bad(~np.isfinite(floats))
    if bad is not None:
        raise conversion_error(error, array, bad, target, "it is no finite number")
    per_second = calendar.ticks_per_second(target)
    first, last = calendar.SECONDS64_RANGE
    exact = np.trunc(np.clip(floats, first, last + 1 - 1 / per_second) * per_second)
    beyond = np.abs(exact) >= float(calendar.INT64_MAX)
    ticks = np.where(beyond, 0.0, exact).astype(np.int64)
    ticks[beyond] = np.where(exact[beyond] > 0, calendar.INT64_MAX, -calendar.INT64_MAX - 1)
    return ticks


def _clamped_seconds(values: np.ndarray) -> np.ndarray:
    """Return integers, taken as Unix seconds, as int64 clamped to the range of a Date32."""
    if values.dtype == np.uint64:  # int64 may not hold them
        values = np.minimum(values, np.uint64(calendar.SECONDS64_RANGE[1]))
    return np.clip(values.astype(np.int64), *calendar.SECONDS64_RANGE)


def _ticks(seconds: np.ndarray, ticks: int) -> np.ndarray:
    """Return seconds as ticks, clamped to int64; `ticks` is the number of ticks per second."""
    whole = calendar.INT64_MAX // ticks
    result: np.ndarray = np.clip(seconds, -whole, whole) * ticks
    result[seconds > whole] = calendar.INT64_MAX
    result[seconds < -whole] = -calendar.INT64_MAX - 1
    return result


def _refuse_beyond(
    seconds: np.ndarray, ticks: int, array: pa.Array, target: types.DataType
) -> None:
    """Raise DecimalOverflow with its row for the first timestamp, if any, whose ticks need more than 64 bits.

    `ticks` is the number of ticks per second."""
    if ticks == 1 or not seconds.size:
        return
    limit = calendar.INT64_MAX // ticks - 1
    if int(np.nanmax(seconds, initial=0)) > limit or int(np.nanmin(seconds, initial=0)) < -limit:
        row = int(np.argmax((seconds > limit) | (seconds < -limit)))
        raise conversion_error(DecimalOverflow, array, row, target, "it is too far from 1970")


def _is_within(values: np.ndarray, low: int, high: int) -> bool:
    """Return whether the values are integers, not empty, and all between the limits."""
    if values.dtype.kind not in "iu" or not values.size:
        return False
    return low <= int(values.min()) and int(values.max()) <= high


def _days(
    array: pa.Array, source: types.DataType, target: types.Date | types.Date32, zone: str
) -> np.ndarray:
    """Return numbers, dates and times as days since 1970-01-01 for a Date or Date32.

    As in ClickHouse a number beyond the range of days counts as Unix seconds. Raises CannotConvertType from NaN and
    infinity to a Date."""
    if isinstance(source, types.DateTime64) and isinstance(target, types.Date):
        seconds = calendar.towards_zero(
            columns.numpy_values(array), calendar.ticks_per_second(source)
        )
        return (
            calendar.local_from_utc(seconds, calendar.zone_of(source, zone)) // calendar.DAY
            & 0xFFFF
        )
    if isinstance(source, Timed):
        days = calendar.local_days(array, source, zone)
        if isinstance(target, types.Date32):
            return days
        return np.maximum(days, 0) if isinstance(source, types.DateTime) else days & 0xFFFF
    if isinstance(source, types.Decimal):
        array = array.cast(pa.float64())
    if isinstance(source, types.Float) and isinstance(target, types.Date):
        bad = first_bad(~np.isfinite(columns.numpy_values(array)))
        if bad is not None:
            raise conversion_error(CannotConvertType, array, bad, target, "it is no finite number")
    with np.errstate(invalid="ignore"):
        numbers = columns.numpy_values(array)
        limits = (0, calendar.DATE_MAX) if isinstance(target, types.Date) else calendar.DATE32_RANGE
        if _is_within(numbers, *limits):
            return numbers
        if numbers.dtype == np.uint64 or numbers.dtype.kind == "f":  # int64 may not hold them
            numbers = np.clip(numbers, 0 if numbers.dtype.kind == "u" else -(2**62), 2**62)
        values = numbers.astype(np.int64)
    seconds_limits = (
        (0, calendar.DATETIME_MAX) if isinstance(target, types.Date) else calendar.SECONDS64_RANGE
    )
    wall = calendar.local_from_utc(np.clip(values, *seconds_limits), zone) // calendar.DAY
    if isinstance(target, types.Date):
        days = np.where(values > calendar.DATE_MAX, np.clip(wall, 0, calendar.DATE_MAX), values)
        return np.asarray(np.maximum(days, 0))
    return np.clip(
        np.where(values > calendar.DATE32_RANGE[1], wall, values), *calendar.DATE32_RANGE
    )


def from_time(array: pa.Array, source: Timed, target: types.DataType) -> pa.Array:
    """Cast a date or time to a number: days, or seconds since 1970.

    Floats keep the fraction of a DateTime64, integers truncate it.
    """
    values = columns.numpy_values(array)
    if isinstance(source, types.DateTime64) and calendar.ticks_per_second(source) > 1:
        ticks = calendar.ticks_per_second(source)
        if isinstance(target, types.Float):
            return columns.from_values(values / ticks, target.arrow)
        values = calendar.towards_zero(values, ticks)
    if isinstance(target, types.Boolean):
        return columns.from_values(values != 0, target.arrow)
    return columns.from_values(values, target.arrow)
