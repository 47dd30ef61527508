"""Rounding dates and times: toStartOf…, toMonday, dateTrunc."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.datetime import date_arithmetic
from olapdb.functions.datetime.components import CLOCKS, DATES, days_of, iso_week, seconds_of
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.kernels.calendar import DAY
from olapdb.types import DATE, DATE32, DataType, Date, Date32, DateTime, DateTime64, Interval, plain

_MIN_YEAR = 1900
Days = Callable[[np.ndarray], np.ndarray]


def month_start(days: np.ndarray, months: int = 1) -> np.ndarray:
    """The first day of each day's period of so many months."""
    year, month, _ = calendar.civil_from_days(days)
    index = (year - _MIN_YEAR) * 12 + month - 1
    index = index // months * months
    return calendar.days_from_civil(index // 12 + _MIN_YEAR, index % 12 + 1, np.ones_like(index))


def month_end(days: np.ndarray) -> np.ndarray:
    year, month, day = calendar.civil_from_days(days)
    return np.asarray(days - day + date_arithmetic.month_lengths(year, month))


def monday(days: np.ndarray) -> np.ndarray:
    return np.asarray(days - (days + 3) % 7)


def sunday(days: np.ndarray) -> np.ndarray:
    return np.asarray(days - (days + 4) % 7)


def _iso_year_start(days: np.ndarray) -> np.ndarray:
    year, _ = iso_week(days)
    january4 = calendar.days_from_civil(year, np.ones_like(year), np.full_like(year, 4))
    return monday(january4)


def _to_date(
    name: str,
    move: Days,
    aliases: tuple[str, ...] = (),
    *,
    insensitive: bool = False,
    monotonic: bool = True,
) -> scalar.ScalarDefinition:
    """A rounding of days; the result is a Date."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        moved = move(days_of(arrays[0], call))
        return columns.from_values(np.clip(moved, 0, calendar.DATE_MAX), pa.date32())

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        scalar.require(spelt, types[:1], DATES, "a Date or DateTime")
        return DATE

    return scalar.define(
        name,
        rule,
        kernel,
        count=(1, 2),
        aliases=aliases,
        insensitive=insensitive,
        monotonic=monotonic,
    )


def _week(name: str, *, last: bool) -> scalar.ScalarDefinition:
    """toStartOfWeek and toLastDayOfWeek: mode 0 begins on Sunday, odd modes on Monday."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        mode = call.constant(1)
        first = monday if isinstance(mode, int) and mode & 1 else sunday
        days = first(days_of(arrays[0], call)) + (6 if last else 0)
        return columns.from_values(np.clip(days, 0, calendar.DATE_MAX), pa.date32())

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        scalar.require(spelt, types[:1], DATES, "a Date or DateTime")
        return DATE

    return scalar.define(name, rule, kernel, count=(1, 3), monotonic=True)


def zone_of_argument(argument: DataType, zone: str | None) -> str | None:
    return zone or (argument.zone if isinstance(argument, CLOCKS) else None)


def _clock_start(name: str, step: int) -> scalar.ScalarDefinition:
    """Rounds down to so many seconds (a day: to midnight); the result is a DateTime."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        zone = scalar.constant_zone(spelt, arguments, 1) if len(arguments) > 1 else None
        source = plain(arguments[0].type)
        kinds = DATES if step == DAY else CLOCKS
        scalar.require(spelt, [source], kinds, "a DateTime")
        result = DateTime(zone_of_argument(source, zone))

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            return rounded_clock(arrays[0], call, step)

        return scalar.usual(spelt, arguments, result, kernel, monotonic=True)

    return scalar.custom(name, resolve, count=(1, 2))


def rounded_clock(array: pa.Array, call: scalar.Invocation, step: int) -> pa.Array:
    wall = seconds_of(array, call)
    zone = calendar.zone_of(call.result, call.environment.zone)
    if step == DAY or isinstance(call.types[0], Date | Date32):
        seconds = calendar.utc_from_local(wall // step * step, zone)
    else:  # keeps the offset of the moment, so that an hour repeated in autumn stays two
        ticks = columns.numpy_values(array) // calendar.ticks_per_second(call.types[0])
        seconds = ticks - wall % step
    return seconds_as(seconds, call.result)


def seconds_as(seconds: np.ndarray, result: DataType) -> pa.Array:
    """Instants as DateTime (clamped) or DateTime64."""
    if isinstance(result, DateTime):
        return columns.from_values(np.clip(seconds, 0, calendar.DATETIME_MAX), result.arrow)
    return columns.from_values(seconds * calendar.ticks_per_second(result), result.arrow)


def _start_of_second(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    source = plain(arguments[0].type)
    scalar.require(name, [source], (DateTime64,), "a DateTime64")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        ticks = calendar.ticks_per_second(source)
        return columns.from_values(columns.numpy_values(arrays[0]) // ticks * ticks, source.arrow)

    return scalar.usual(name, arguments, source, kernel, monotonic=True)


def _start_of_interval(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """toStartOfInterval(t, INTERVAL n unit[, zone])."""
    source, interval = plain(arguments[0].type), plain(arguments[1].type)
    scalar.require(name, [source], DATES, "a Date or DateTime")
    if not isinstance(interval, Interval) or arguments[1].constant is None:
        raise scalar.illegal(name, interval, "a constant INTERVAL")
    count = arguments[1].constant.as_py()
    if count <= 0:
        raise BadArguments(f"The interval of {name} must be positive.")
    zone = scalar.constant_zone(name, arguments, 2) if len(arguments) > 2 else None
    return scalar.usual(
        name,
        arguments,
        *_interval_rounding(name, source, interval.unit, count, zone),
        monotonic=True,
    )


def _interval_rounding(
    name: str, source: DataType, unit: str, count: int, zone: str | None
) -> tuple[DataType, Callable[[list[pa.Array], scalar.Invocation], pa.Array]]:
    """(result type, kernel); seconds and minutes count from 1970, hours from midnight, days from
    1970, weeks from a Monday, months from 1900, years from 0."""
    if unit == "Year":

        def to_year(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            year, _, _ = calendar.civil_from_days(days_of(arrays[0], call))
            one = np.ones_like(year)
            moved = calendar.days_from_civil(year // count * count, one, one)
            return columns.from_values(np.clip(moved, 0, calendar.DATE_MAX), pa.date32())

        return DATE, to_year
    if unit in date_arithmetic.MONTHS or unit == "Week":
        months = date_arithmetic.MONTHS.get(unit, 0) * count

        def to_date(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            days = days_of(arrays[0], call)
            moved = (
                month_start(days, months) if months else 4 + (days - 4) // (7 * count) * (7 * count)
            )
            return columns.from_values(np.clip(moved, 0, calendar.DATE_MAX), pa.date32())

        return DATE, to_date
    result = DateTime(zone_of_argument(source, zone))
    if unit in date_arithmetic.SUBSECOND:
        raise BadArguments(f"{name} by {unit}s is not supported.")
    if unit == "Day":

        def to_day(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            wall = seconds_of(arrays[0], call) // (DAY * count) * (DAY * count)
            return seconds_as(
                calendar.utc_from_local(wall, calendar.zone_of(result, call.environment.zone)),
                result,
            )

        return result, to_day
    if not isinstance(source, CLOCKS):
        raise scalar.illegal(name, source, f"a DateTime to round to {unit}s")
    step = date_arithmetic.SECONDS[unit] * count

    def to_clock(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        ticks = columns.numpy_values(arrays[0]) // calendar.ticks_per_second(source)
        if unit == "Hour" and count > 1:  # by the wall clock, which may have moved since midnight
            wall = seconds_of(arrays[0], call)
            rounded = wall - wall % DAY % step
            own = calendar.zone_of(result, call.environment.zone)
            return seconds_as(calendar.utc_from_local(rounded, own), result)
        base = seconds_of(arrays[0], call) if unit == "Hour" else ticks
        return seconds_as(ticks - base % step, result)

    return result, to_clock


_TRUNCATIONS: dict[str, Days] = {
    "year": lambda d: month_start(d, 12),
    "quarter": lambda d: month_start(d, 3),
    "month": month_start,
    "week": monday,
}
_CLOCK_STEPS = {"day": DAY, "hour": 3600, "minute": 60, "second": 1}


def _date_trunc(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    unit = scalar.constant_text(name, arguments, 0, "the unit").lower()
    source = plain(arguments[1].type)
    scalar.require(name, [source], DATES, "a Date or DateTime")
    zone = scalar.constant_zone(name, arguments, 2) if len(arguments) > 2 else None
    if unit in _TRUNCATIONS:
        wide = isinstance(source, Date32 | DateTime64)
        result: DataType = DATE32 if wide else DATE
        move = _TRUNCATIONS[unit]

        def to_date(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            moved = move(_second_days(arrays[1], call, source, zone))
            limits = calendar.DATE32_RANGE if wide else (0, calendar.DATE_MAX)
            return columns.from_values(np.clip(moved, *limits), pa.date32())

        return _monotonic_second(scalar.usual(name, arguments, result, to_date), arguments)
    if unit not in _CLOCK_STEPS:
        raise BadArguments(f"{name} does not know the unit {unit!r}.")
    if unit != "day":
        scalar.require(name, [source], CLOCKS, f"a DateTime to truncate to the {unit}")
    own = zone_of_argument(source, zone)
    result = DateTime64(0, own) if isinstance(source, DateTime64 | Date32) else DateTime(own)

    def to_clock(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        zoned = (None, None if zone is None else pa.scalar(zone))
        inner = scalar.Invocation((source,), result, call.rows, call.environment, zoned)
        return rounded_clock(arrays[1], inner, _CLOCK_STEPS[unit])

    return _monotonic_second(scalar.usual(name, arguments, result, to_clock), arguments)


def _second_days(
    array: pa.Array, call: scalar.Invocation, source: DataType, zone: str | None
) -> np.ndarray:
    inner = scalar.Invocation(
        (source,),
        call.result,
        call.rows,
        call.environment,
        (None, None if zone is None else pa.scalar(zone)),
    )
    return days_of(array, inner)


def _monotonic_second(call: ScalarCall, arguments: Sequence[Argument]) -> ScalarCall:
    return ScalarCall(call.name, call.type, call.kernel, monotonic=arguments[1].constant is None)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    _to_date("toStartOfYear", _TRUNCATIONS["year"]),
    _to_date("toStartOfQuarter", _TRUNCATIONS["quarter"]),
    _to_date("toStartOfMonth", month_start),
    _to_date("toStartOfISOYear", _iso_year_start),
    _to_date("toMonday", monday),
    _to_date("toLastDayOfMonth", month_end, ("LAST_DAY",), insensitive=True),
    _week("toStartOfWeek", last=False),
    _week("toLastDayOfWeek", last=True),
    _clock_start("toStartOfDay", DAY),
    _clock_start("toStartOfHour", 3600),
    _clock_start("toStartOfMinute", 60),
    _clock_start("toStartOfFiveMinutes", 300),
    _clock_start("toStartOfFiveMinute", 300),
    _clock_start("toStartOfTenMinutes", 600),
    _clock_start("toStartOfFifteenMinutes", 900),
    _clock_start("timeSlot", 1800),
    scalar.custom("toStartOfSecond", _start_of_second),
    scalar.custom(
        "toStartOfInterval",
        _start_of_interval,
        count=(2, 3),
        insensitive=True,
        aliases=("date_bin", "time_bucket"),
    ),
    scalar.custom(
        "dateTrunc", _date_trunc, count=(2, 3), aliases=("date_trunc",), insensitive=True
    ),
)
