"""Dates and times with one part replaced: changeYear … changeSecond."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.base import Argument
from olapdb.functions.casts import temporal
from olapdb.functions.datetime.components import DATES
from olapdb.functions.datetime.date_arithmetic import SECONDS, shifted_type
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, TypeRule, define, require
from olapdb.types import DataType, Date, Date32, DateTime, DateTime64, Integer

_BOUNDS = {
    "Year": (-(2**31), 2**31 - 1),
    "Month": (1, 12),
    "Day": (1, 31),
    "Hour": (0, 23),
    "Minute": (0, 59),
    "Second": (0, 59),
}
"""The least and the greatest value of each part."""


def _rule(unit: str) -> TypeRule:
    """Return the type rule of (date or time, integer); for the hour, minute and second, a Date gives a time."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument for other arguments."""
        require(name, types[:1], DATES, "a Date or DateTime")
        require(name, types[1:], Integer, "an integer")
        return shifted_type(name, types[0], unit) if unit in SECONDS else types[0]

    return rule


def _changed_days(days: np.ndarray, unit: str, value: np.ndarray) -> np.ndarray:
    """Return days with year, month or day replaced; a day past its month's end runs on into the
    next."""
    year, month, day = calendar.civil_from_days(days)
    if unit == "Year":
        year = np.clip(value, -10_000, 20_000)
    elif unit == "Month":
        month = np.clip(value, 1, 12)
    else:
        day = np.clip(value, 1, 31)
    return calendar.days_from_civil(year, month, day)


def _changed_wall(wall: np.ndarray, unit: str, value: np.ndarray) -> np.ndarray:
    """Return wall clock seconds with one part replaced."""
    if unit not in SECONDS:
        days, clock = np.divmod(wall, calendar.DAY)
        return np.asarray(_changed_days(days, unit, value) * calendar.DAY + clock)
    length = SECONDS[unit]
    parts = 24 if unit == "Hour" else 60
    return np.asarray(wall + (np.clip(value, 0, parts) - wall // length % parts) * length)


def _change(unit: str) -> Kernel:
    """Return the kernel of changeYear … changeSecond. Results are clamped to the type's range; a value that the part
    cannot have (month 13) gives the type's first value."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Replace the part `unit` of each value; a number that the part cannot have gives the type's first value."""
        raw = columns.numpy_values(arrays[1])
        value = np.clip(raw, -(2**31), 2**31 - 1).astype(np.int64)
        low, high = _BOUNDS[unit]
        exists = (raw >= low) & (raw <= high)
        if isinstance(call.result, Date | Date32):
            days = columns.numpy_values(arrays[0]).astype(np.int64)
            first, last = (
                (0, calendar.DATE_MAX) if isinstance(call.result, Date) else calendar.DATE32_RANGE
            )
            changed = np.clip(_changed_days(days, unit, value), first, last)
            return columns.from_values(np.where(exists, changed, first), call.result.arrow)
        assert isinstance(call.result, DateTime | DateTime64)
        return _changed_times(arrays[0], call, unit, value, exists)

    return kernel


def _changed_times(
    array: pa.Array, call: Invocation, unit: str, value: np.ndarray, exists: np.ndarray
) -> pa.Array:
    """Return times with one part of their wall clock replaced."""
    result, environment = call.result, call.environment
    assert isinstance(result, DateTime | DateTime64)
    if call.types[0] != result:
        array = temporal.to_time(array, call.types[0], result, environment.zone)
    ticks, zone = (calendar.ticks_per_second(result), calendar.zone_of(result, environment.zone))
    seconds, fraction = np.divmod(columns.numpy_values(array).astype(np.int64), ticks)
    wall = _changed_wall(calendar.unbounded_local(seconds, zone), unit, value)
    if isinstance(result, DateTime):
        wall = np.clip(wall, -calendar.DAY * 2, calendar.DATETIME_MAX + calendar.DAY * 2)
        moved = np.clip(calendar.utc_of_text(wall, zone), 0, calendar.DATETIME_MAX)
        return columns.from_values(np.where(exists, moved, 0), result.arrow)
    first, last = calendar.limits64(ticks)
    wall = np.clip(wall, first // ticks, last // ticks)
    moved = np.clip(calendar.utc_of_text(wall, zone), first // ticks, last // ticks)
    values = np.where(exists, moved * ticks + fraction, first)
    return columns.from_values(values, result.arrow)


def _definition(unit: str) -> ScalarDefinition:
    """Define the function that replaces a part."""
    return define(f"change{unit}", _rule(unit), _change(unit), count=2)


DEFINITIONS: tuple[ScalarDefinition, ...] = tuple(_definition(unit) for unit in _BOUNDS)
