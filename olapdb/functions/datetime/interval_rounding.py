"""toStartOfInterval: times rounded down to multiples of an interval, from its own start or an origin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound, BadArguments, IllegalColumn
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.datetime import date_arithmetic
from olapdb.functions.datetime.components import CLOCKS, DATES, seconds_of
from olapdb.functions.datetime.rounding import (
    days_kernel,
    from_seconds,
    month_start,
    moved_back,
    multiples,
)
from olapdb.functions.datetime.zones import own_zone
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.kernels.calendar import DAY
from olapdb.functions.registry import resolve_scalar
from olapdb.types import (
    DATE,
    INT64,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Interval,
    String,
    plain,
)

_DIGITS = {"Millisecond": 3, "Microsecond": 6, "Nanosecond": 9}
"""The digits behind the second of the units shorter than one."""


def _start_of_interval(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toStartOfInterval(t, INTERVAL n unit[, origin][, zone]) of a constant interval.

    Raises ArgumentOutOfBound unless n is positive.
    """
    source, interval = plain(arguments[0].type), plain(arguments[1].type)
    scalar.require(name, [source], DATES, "a Date or DateTime")
    if not isinstance(interval, Interval) or arguments[1].constant is None:
        raise scalar.illegal(name, interval, "a constant INTERVAL")
    count = arguments[1].constant.as_py()
    if count <= 0:
        raise ArgumentOutOfBound(f"The interval of {name} must be positive.")
    if len(arguments) > 2 and not isinstance(plain(arguments[2].type), String):
        return _from_origin(name, arguments, interval.unit, count)
    if len(arguments) > 3:
        raise scalar.illegal(name, arguments[2].type, "an origin before the time zone")
    zone = scalar.constant_zone(name, arguments, 2) if len(arguments) > 2 else None
    return scalar.standard_call(
        name,
        arguments,
        *_interval_rounding(name, source, interval.unit, count, zone),
        monotonic=True,
    )


def _interval_rounding(
    name: str, source: DataType, unit: str, count: int, zone: str | None
) -> tuple[DataType, scalar.Kernel]:
    """Return (result type, kernel) of rounding down to multiples of `count` units.

    Seconds and minutes count from 1970, hours from midnight, days from 1970, weeks from a Monday,
    months from 1900, years from 0. Weeks and longer units give a Date, days to seconds a DateTime,
    shorter units, which take a DateTime64 only, a DateTime64.
    """
    if unit == "Year":
        return DATE, days_kernel(
            lambda days: calendar.year_start(calendar.civil_from_days(days)[0] // count * count)
        )
    if unit == "Week":
        return DATE, days_kernel(lambda days: 4 + (days - 4) // (7 * count) * (7 * count))
    if unit in date_arithmetic.MONTHS:
        months = date_arithmetic.MONTHS[unit] * count
        return DATE, days_kernel(lambda days: month_start(days, months))
    result = DateTime(zone or own_zone(source))
    if unit in date_arithmetic.SUBSECOND:
        return _fraction_rounding(name, source, unit, count, zone)
    if unit == "Day":

        def to_day(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Round down to the start of periods of `count` days of the wall clock."""
            days = multiples(seconds_of(arrays[0], call), DAY * count)
            own = calendar.zone_of(result, call.environment.zone)
            return from_seconds(calendar.utc_from_local(days, own), result, out=days)

        return result, to_day
    if not isinstance(source, CLOCKS):
        raise scalar.illegal(name, source, f"a DateTime to round to {unit}s")
    return result, _clock_kernel(source, result, unit, count)


def _clock_kernel(source: DataType, result: DataType, unit: str, count: int) -> scalar.Kernel:
    """Return the kernel that rounds timestamps down to multiples of `count` hours, minutes or seconds."""
    step = date_arithmetic.SECONDS[unit] * count

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Round the timestamps down to multiples of `count` units."""
        ticks = calendar.ticks_per_second(source)
        values = columns.numpy_values(arrays[0])
        seconds = values if ticks == 1 else values // ticks
        own = calendar.zone_of(result, call.environment.zone)
        if unit == "Second" or (unit == "Minute" and not calendar.counts_seconds(own)):
            whole = multiples(seconds, step)
            return from_seconds(whole, result, out=whole)
        wall = seconds_of(arrays[0], call)
        if count == 1:
            start = moved_back(seconds, wall, multiples(wall, step))
            return from_seconds(start, result, out=start)
        # by the wall clock, which may have been changed since midnight
        return from_seconds(calendar.utc_from_local(wall - wall % DAY % step, own), result)

    return kernel


def _fraction_rounding(
    name: str, source: DataType, unit: str, count: int, zone: str | None
) -> tuple[DataType, scalar.Kernel]:
    """Return (result type, kernel) of rounding a DateTime64 down to `count` parts of a second."""
    scalar.require(name, [source], (DateTime64,), f"a DateTime64 to round to {unit}s")
    result = DateTime64(_DIGITS[unit], zone or own_zone(source))

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Round the ticks of the unit, counted from 1970, down to multiples of `count`."""
        ticks = _ticks(columns.numpy_values(arrays[0]), source, result)
        return columns.from_values(ticks - ticks % count, result.arrow)

    return result, kernel


def _ticks(values: np.ndarray, source: DataType, result: DataType) -> np.ndarray:
    """Convert a time's values to ticks of the type `result`, rounded down."""
    old, new = calendar.ticks_per_second(source), calendar.ticks_per_second(result)
    return values // (old // new) if old > new else calendar.rescaled(values, old, new)


# --- from an origin


def _from_origin(name: str, arguments: Sequence[Argument], unit: str, count: int) -> ScalarCall:
    """Resolve the call with an origin: the periods begin at it, a constant of the time's type.

    Raises BadArguments for a time before the origin. Also raises IllegalColumn."""
    source, origin = plain(arguments[0].type), plain(arguments[2].type)
    if type(source) is not type(origin):
        raise scalar.illegal(name, arguments[2].type, f"an origin of type {source}")
    if arguments[2].constant is None:
        raise IllegalColumn(f"The origin of {name} must be a constant.")
    if unit in _DIGITS:
        scalar.require(name, [source], (DateTime64,), f"a DateTime64 to round to {unit}s")
    if isinstance(source, Date | Date32) and unit in ("Second", "Minute", "Hour"):
        raise scalar.illegal(name, source, f"a DateTime to round to {unit}s")
    zone = scalar.constant_zone(name, arguments, 3) if len(arguments) > 3 else own_zone(source)
    result = _type_from_origin(source, unit, zone)
    if unit in date_arithmetic.MONTHS or unit == "Year":
        months = 12 * count if unit == "Year" else date_arithmetic.MONTHS[unit] * count
        kernel = _months_from_origin(source, months)
    else:
        kernel = _steps_from_origin(source, result, unit, count)

    def run(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Round the times down from the origin. Raises BadArguments for times before the origin."""
        times, starts = columns.numpy_values(arrays[0]), columns.numpy_values(arrays[2])
        if (times < _scaled(starts, origin, source)).any():
            raise BadArguments(f"The origin of {name} must not be later than the time.")
        return kernel(arrays, call).cast(result.arrow)

    return scalar.standard_call(name, arguments, result, run, monotonic=True)


def _type_from_origin(source: DataType, unit: str, zone: str | None) -> DataType:
    """Return the result type with an origin: the time's own type; for units shorter than a second a DateTime64 with
    the unit's digits."""
    if unit in _DIGITS:
        return DateTime64(_DIGITS[unit], zone)
    if isinstance(source, DateTime64):
        return DateTime64(source.precision, zone)
    return DateTime(zone) if isinstance(source, DateTime) else source


def _scaled(values: np.ndarray, source: DataType, target: DataType) -> np.ndarray:
    """Convert the origin's ticks to the unit of the type `target`."""
    if isinstance(source, Date | Date32):
        return values
    return _ticks(values, source, target)


def _steps_from_origin(source: DataType, result: DataType, unit: str, count: int) -> scalar.Kernel:
    """Return the kernel that rounds down to the origin plus a multiple of `count` units of fixed length.

    Times with more digits than the result keep them until they are rounded, since the origin's digits count."""
    finest = result
    if isinstance(source, DateTime64) and unit in _DIGITS:
        finest = DateTime64(max(source.precision, _DIGITS[unit]))

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Round the distance from the origin down to a multiple."""
        times, starts = (columns.numpy_values(arrays[i]).astype(np.int64) for i in (0, 2))
        if isinstance(source, Date | Date32):
            step = count * (7 if unit == "Week" else 1)
        else:
            times = _ticks(times, source, finest)
            starts = _ticks(starts, plain(call.types[2]), finest)
            if unit in _DIGITS:
                step = count * calendar.ticks_per_second(finest) // 10 ** _DIGITS[unit]
            else:
                seconds = {"Day": DAY, "Week": 7 * DAY, **date_arithmetic.SECONDS}[unit]
                step = count * seconds * calendar.ticks_per_second(result)
        passed = times - starts
        if unit == "Hour":  # hours count from the last whole day behind the origin
            passed = passed % (DAY * calendar.ticks_per_second(result))
        rounded = _ticks(times - passed % step, finest, result)
        return columns.from_values(rounded, result.arrow)

    return kernel


def _months_from_origin(source: DataType, months: int) -> scalar.Kernel:
    """Return the kernel that rounds down to the origin plus a multiple of `months` months, by the calendar."""
    add = resolve_scalar("addMonths", [Argument(source), Argument(INT64)])

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Add the greatest multiple of `months` whole months that fits between origin and time to the origin."""
        zone = call.environment.zone
        (year, month, day), (first_year, first_month, first_day) = (
            calendar.civil_from_days(calendar.local_days(arrays[i], call.types[i], zone))
            for i in (0, 2)
        )
        passed = (year - first_year) * 12 + month - first_month - (day < first_day)
        whole = columns.from_values(passed // months * months, pa.int64())
        added = add.kernel([arrays[2], whole], len(whole), call.environment)
        return columns.as_array(added, len(whole))

    return kernel


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom(
        "toStartOfInterval",
        _start_of_interval,
        count=(2, 4),
        insensitive=True,
        aliases=("date_bin", "time_bucket"),
    ),
)
