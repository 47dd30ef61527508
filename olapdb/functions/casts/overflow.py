"""Casts to dates and times under date_time_overflow_behavior: out of range is an error, or the nearest value.

Numbers are clamped in every mode, as ClickHouse does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from olapdb import types
from olapdb.errors import DataError, OutOfRange
from olapdb.functions.casts.temporal import Timed
from olapdb.functions.kernels import calendar, columns

SETTING = "date_time_overflow_behavior"
LAST_WHOLE_DAY = calendar.DATETIME_MAX // calendar.DAY - 1
"""The last day that a DateTime holds in every zone, since 1970-01-01."""
Convert = Callable[[pa.Array, types.DataType, types.DataType], pa.Array]
"""A cast of an array from one type to another."""


def converted(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    throws: bool,
    cast: Convert,
    zone: str,
) -> pa.Array | None:
    """Return a column without nulls as dates or times within the target's range; None for types whose casts are the
    same in every mode.

    `throws`: raise OutOfRange with its row for the first value outside the range; else such a value becomes the
    nearest one. `cast` converts as the mode `ignore` does."""
    if isinstance(source, types.String | types.FixedString):
        wide = _wide(target)
        if wide is None:
            return None
        parsed = cast(array, source, wide)
        return converted(parsed, wide, target, throws, cast, zone) or cast(parsed, wide, target)
    if not isinstance(source, Timed):
        return None
    match target:
        case types.Date():
            days = calendar.local_days(array, source, zone)
            kept = _within(days, 0, calendar.DATE_MAX, throws, target)
            return columns.from_values(kept.astype(np.int32), target.arrow)
        case types.DateTime() if isinstance(source, types.Date | types.Date32):
            days = calendar.local_days(array, source, zone)
            kept = _within(days, 0, LAST_WHOLE_DAY, throws, target)
            return cast(columns.from_values(kept.astype(np.int32), pa.date32()), source, target)
        case types.DateTime() if isinstance(source, types.DateTime64):
            ticks = calendar.ticks_per_second(source)
            seconds = calendar.towards_zero(columns.numpy_values(array), ticks)
            kept = _within(seconds, 0, calendar.DATETIME_MAX, throws, target)
            return columns.from_values(kept, target.arrow)
        case types.DateTime64() if throws and isinstance(source, types.Date | types.Date32):
            days = calendar.local_days(array, source, zone)
            limit = calendar.INT64_MAX // calendar.ticks_per_second(target) // calendar.DAY
            _within(days, -limit, limit, throws, target)
    return None


def _wide(target: types.DataType) -> types.DataType | None:
    """Return the wider type as which a text is parsed first, before its value is brought into the target's range;
    None if the target needs none."""
    match target:
        case types.Date():
            return types.DATE32
        case types.DateTime(zone=zone):
            return types.DateTime64(0, zone)
        case _:
            return None


def _within(
    values: np.ndarray, low: int, high: int, throws: bool, target: types.DataType
) -> np.ndarray:
    """Return values clipped to low … high; if `throws`, raise OutOfRange with its row for the first value outside
    instead."""
    outside = (values < low) | (values > high)
    if throws and outside.any():
        row = int(np.argmax(outside))
        error: DataError = OutOfRange(
            f"Value {int(values[row])} is out of bounds of type {target}.",
            hint=f"SETTINGS {SETTING} = 'saturate' takes the nearest value.",
        )
        raise error.at_row(row)
    return np.asarray(np.clip(values, low, high))
