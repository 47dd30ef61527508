"""Differences of dates and times in units: dateDiff, age."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.datetime import date_arithmetic
from olapdb.functions.datetime.addition import unit_named
from olapdb.functions.datetime.components import DATES
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.kernels.calendar import DAY
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    constant_text,
    constant_zone,
    custom,
    standard_call,
)
from olapdb.types import INT64, DataType, Date, Date32, plain


def _date_diff(*, full: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of (unit, start, end[, zone]): dateDiff counts the unit's boundaries between the two times;
    age (`full`) counts complete units."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for a constant unit and two dates or times.

        Raises IllegalTypeOfArgument."""
        unit = unit_named(name, constant_text(name, arguments, 0, "the unit"))
        kinds = [plain(a.type) for a in arguments[1:3]]
        for kind in kinds:
            if not isinstance(kind, DATES):
                raise IllegalTypeOfArgument(
                    f"Illegal type {kind} of argument of function {name}: a date expected."
                )
        zone = constant_zone(name, arguments, 3) if len(arguments) > 3 else None

        def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
            """Count units between start and end; Int64, negative if end comes first."""
            finest = 1_000_000_000 if unit == "Nanosecond" else 1_000_000
            if full:
                finest = max(finest, *(calendar.ticks_per_second(kind) for kind in kinds))
            start, end = (
                _ticks(a, t, unit, zone, call, finest)
                for a, t in zip(arrays[1:3], kinds, strict=True)
            )
            if full and unit in date_arithmetic.SUBSECOND:
                length = finest // 10 ** date_arithmetic.SUBSECOND[unit]
                counted = np.sign(end - start) * (np.abs(end - start) // length)
            elif full:
                micro = finest // 1_000_000
                counted = _full_units(start // micro, end // micro, unit)
            else:
                counted = _units(end, unit) - _units(start, unit)
            return columns.from_values(counted, pa.int64())

        return standard_call(name, arguments, INT64, kernel)

    return resolve


def _ticks(
    array: pa.Array, data_type: DataType, unit: str, zone: str | None, call: Invocation, finest: int
) -> np.ndarray:
    """Return the times in ticks of which a second has `finest`, at least a million. Days and longer units use the wall clock in the
    zone, shorter units UTC, so that a day of 25 hours has 25."""
    values = columns.numpy_values(array).astype(np.int64)
    own = zone or calendar.zone_of(data_type, call.environment.zone)
    per_second = calendar.ticks_per_second(data_type)
    if isinstance(data_type, Date | Date32):
        values = values * DAY
        if unit in date_arithmetic.SECONDS or unit in date_arithmetic.SUBSECOND:
            values = calendar.utc_from_local(values, own)
    elif unit in (*date_arithmetic.DAYS, *date_arithmetic.MONTHS) or (unit == "Hour" and zone):
        seconds, fraction = np.divmod(values, per_second)
        return np.asarray(
            calendar.local_from_utc(seconds, own) * finest + fraction * finest // per_second
        )
    return calendar.rescaled(values, per_second, finest)


def _units(ticks: np.ndarray, unit: str) -> np.ndarray:
    """Return for each timestamp the index of its unit since 1970, rounded down. `ticks` are microseconds, nanoseconds
    for that unit."""
    if unit in date_arithmetic.SUBSECOND:
        digits = date_arithmetic.SUBSECOND[unit]
        return ticks if digits == 9 else ticks // 10 ** (6 - digits)
    seconds = ticks // 1_000_000
    if unit in date_arithmetic.SECONDS:
        return seconds // date_arithmetic.SECONDS[unit]
    days = seconds // DAY
    if unit == "Day":
        return days
    if unit == "Week":
        # as in ClickHouse, whose division by 7 cuts towards the week of 1970-01-01
        weeks = (days + 3) // 7
        return weeks + ((weeks < 0) & (unit == "Week"))
    year, month, _ = calendar.civil_from_days(days)
    return np.asarray((year * 12 + month - 1) // date_arithmetic.MONTHS[unit])


def _full_units(start: np.ndarray, end: np.ndarray, unit: str) -> np.ndarray:
    """Return the number of full seconds or longer units from start to end, in microseconds, negative if end comes
    first."""
    span = end - start
    if unit in date_arithmetic.SECONDS or unit in date_arithmetic.DAYS:
        length = date_arithmetic.SECONDS.get(unit) or DAY * date_arithmetic.DAYS[unit]
        quotient = np.abs(span) // (length * 1_000_000)
        return np.asarray(np.where(span < 0, -quotient, quotient))
    low, high = np.minimum(start, end), np.maximum(start, end)
    months = _units(high, "Month") - _units(low, "Month")
    months = months - (_within_month(high) < _within_month(low))
    counted = months // date_arithmetic.MONTHS[unit]
    return np.asarray(np.where(span < 0, -counted, counted))


def _within_month(ticks: np.ndarray) -> np.ndarray:
    """Return the time since the month's start in microseconds, plus one day. `ticks` are microseconds of the wall
    clock."""
    days, time_of_day = np.divmod(ticks, DAY * 1_000_000)
    _, _, day = calendar.civil_from_days(days)
    return day * DAY * 1_000_000 + time_of_day


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom(
        "dateDiff",
        _date_diff(full=False),
        count=(3, 4),
        insensitive=True,
        aliases=("date_diff", "timestampDiff", "timestamp_diff"),
    ),
    custom("age", _date_diff(full=True), count=(3, 4), insensitive=True),
)
