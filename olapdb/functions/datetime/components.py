"""Parts of dates and times as numbers: toYear … toNanosecond, weeks, packed numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalColumn
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.composition import as_call, parts_of
from olapdb.functions.composition import call as call_of
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    TypeRule,
    constant_zone,
    define,
    fixed_rule,
    illegal,
    require,
)
from olapdb.types import (
    BOOL,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    String,
    known_zone,
    plain,
)

DATES = (Date, Date32, DateTime, DateTime64)
CLOCKS = (DateTime, DateTime64)
Civil = tuple[np.ndarray, np.ndarray, np.ndarray]


def date_rule(result: DataType) -> TypeRule:
    """Return the type rule of a function whose first argument is a date or time and whose result type is always
    `result`."""
    return fixed_rule(result, DATES, "a Date or DateTime", checked=1)


def seconds_of(array: pa.Array, call: Invocation) -> np.ndarray:
    """Return wall clock seconds since 1970 of the first argument, in the zone of argument 1 or 2 (from 0), else in
    its own or the environment's zone."""
    zone = _zone_of(call)
    return calendar.local_seconds(array, call.types[0], call.environment.zone, zone)


def _zone_of(call: Invocation) -> str | None:
    """Return the time zone that argument 1 or 2 (from 0) gives; None without one. Raises an error for an unknown
    zone."""
    zone = next((c for c in (call.constant(i) for i in (1, 2)) if isinstance(c, str)), None)
    return None if zone is None else known_zone(zone)


def days_of(array: pa.Array, call: Invocation) -> np.ndarray:
    """Return local days since 1970-01-01 of the first argument, in the zone that argument 1 or 2
    (from 0) names, else in its type's or the environment's zone."""
    if isinstance(call.types[0], Date | Date32):
        _zone_of(call)
        return calendar.local_days(array, call.types[0], "")
    return seconds_of(array, call) // calendar.DAY


def iso_week(days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (ISO year, ISO week), which are those of the Thursday of each day's week."""
    thursday = days + 3 - (days + 3) % 7
    year, _, _ = calendar.civil_from_days(thursday)
    return year, (thursday - calendar.year_start(year)) // 7 + 1


def _part(
    name: str,
    result: DataType,
    part: Callable[[np.ndarray], np.ndarray],
    *,
    kinds: tuple[type, ...] = DATES,
    aliases: tuple[str, ...] = (),
    monotonic: bool = False,
    insensitive: bool = False,
) -> ScalarDefinition:
    """Define a function `name` of a date or time; `part` computes its result from wall clock seconds since 1970."""

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument unless the first argument is of
        `kinds`.
        """
        require(spelt, types[:1], kinds, "a Date or DateTime" if kinds == DATES else "a DateTime")
        if len(arguments) > 1:
            constant_zone(spelt, arguments, 1)
        return result

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Return `part` of the first argument's wall clock seconds."""
        return columns.from_values(part(seconds_of(arrays[0], call)), result.arrow)

    return define(
        name,
        rule,
        kernel,
        count=(1, 2),
        aliases=aliases,
        monotonic=monotonic,
        insensitive=insensitive,
    )


def _civil(pick: Callable[[Civil], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that converts wall clock seconds to (year, month, day) and applies `pick`."""
    return lambda seconds: pick(calendar.civil_from_days(seconds // calendar.DAY))


def _day_of_year(seconds: np.ndarray) -> np.ndarray:
    """Return the day of the year, from 1, of wall clock seconds."""
    days = seconds // calendar.DAY
    year, _, _ = calendar.civil_from_days(days)
    return np.asarray(days - calendar.year_start(year) + 1)


def _relative_day(seconds: np.ndarray) -> np.ndarray:
    """Return days since 1970-01-01, clamped to the range of Date, as toRelativeDayNum counts them."""
    return np.asarray(np.clip(seconds // calendar.DAY, 0, calendar.DATE_MAX))


def _days_in_month(seconds: np.ndarray) -> np.ndarray:
    """Return the number of days of the month of wall clock seconds."""
    year, month, _ = calendar.civil_from_days(seconds // calendar.DAY)
    first = np.ones(len(year), np.int64)
    following = calendar.days_from_civil(year + month // 12, month % 12 + 1, first)
    return np.asarray(following - calendar.days_from_civil(year, month, first))


def _packed_second(seconds: np.ndarray) -> np.ndarray:
    """Return numbers of the form YYYYMMDDhhmmss from wall clock seconds."""
    year, month, day = calendar.civil_from_days(seconds // calendar.DAY)
    clock = seconds % calendar.DAY
    date = year * 10_000 + month * 100 + day
    return np.asarray(
        date * 1_000_000 + clock // 3600 * 10_000 + clock // 60 % 60 * 100 + clock % 60
    )


def _weekday_kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the weekday by mode. 0: Monday 1 … Sunday 7; 1: Monday 0; 2: Sunday 0; 3: Sunday 1."""
    mode = call.constant(1)
    mode = mode & 3 if isinstance(mode, int) else 0
    days = days_of(arrays[0], call)
    since = (days + 4) % 7 if mode in (2, 3) else (days + 3) % 7
    return columns.from_values(since + (mode in (0, 3)), pa.uint8())


def _week_kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the week of the year by MySQL's mode, 0 if absent: the kernel of toWeek."""
    mode = call.constant(1)
    return columns.from_values(
        week_of(days_of(arrays[0], call), mode if isinstance(mode, int) else 0)[1], pa.uint8()
    )


def _year_week_kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return year * 100 + week by MySQL's mode; a week that the year lacks is the last before."""
    mode = call.constant(1)
    year, week = week_of(days_of(arrays[0], call), (mode if isinstance(mode, int) else 0) | 2)
    return columns.from_values(year * 100 + week, pa.uint32())


def _week_with_new_year(days: np.ndarray, *, monday_first: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return (year, week), where a year begins with the week of its January 1."""
    since = (days + 3) % 7 if monday_first else (days + 4) % 7
    last_day = days - since + 6
    year, _, _ = calendar.civil_from_days(last_day)
    return year, (last_day - calendar.year_start(year)) // 7 + 1


def week_of(days: np.ndarray, mode: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (year, week) of days since 1970-01-01 by MySQL's modes 0 to 7.

    In ClickHouse's modes 8 and 9 the week with January 1 is the first, by Sunday or Monday.

    Source: WEEK() in MySQL's manual, and calc_week in its source.
    """
    if mode & 8:
        return _week_with_new_year(days, monday_first=bool(mode & 1))
    monday_first, week_year, first_weekday = bool(mode & 1), bool(mode & 2), bool(mode & 4)
    if not monday_first:
        first_weekday = not first_weekday
    year, month, day = calendar.civil_from_days(days)
    first = calendar.year_start(year)
    weekday = (first + 3) % 7 if monday_first else (first + 4) % 7
    late = (weekday != 0) if first_weekday else (weekday >= 4)
    early = (month == 1) & (day <= 7 - weekday) & late & (not week_year)
    before = (month == 1) & (day <= 7 - weekday) & late & week_year
    first_before = calendar.year_start(year - 1)
    weekday_before = (weekday + 53 * 7 - (first - first_before)) % 7
    use_first = np.where(before, first_before, first)
    use_weekday = np.where(before, weekday_before, weekday)
    use_year = np.where(before, year - 1, year)
    use_late = (use_weekday != 0) if first_weekday else (use_weekday >= 4)
    start = use_first + np.where(use_late, 7 - use_weekday, -use_weekday)
    week = (days - start) // 7 + 1
    next_first = calendar.year_start(use_year + 1)
    next_weekday = (next_first + 3) % 7 if monday_first else (next_first + 4) % 7
    opens = (next_weekday == 0) if first_weekday else (next_weekday < 4)
    last = week_year & (days - start >= 52 * 7) & opens & (days >= next_first - next_weekday)
    return use_year + last, np.where(early, 0, np.where(last, 1, week))


def _with_mode(
    name: str,
    kernel: Callable[[list[pa.Array], Invocation], pa.Array],
    result: DataType,
    aliases: tuple[str, ...] = (),
) -> ScalarDefinition:
    """Define a function of (date[, mode[, zone]]) that `kernel` computes."""
    insensitive = bool(aliases)

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return `result`. Raises an error unless the first argument is a date or time and the mode a UInt8, and
        IllegalColumn for a mode that is not constant."""
        if len(arguments) > 1 and plain(types[1]) not in (UINT8, BOOL):
            raise illegal(spelt, types[1], "a constant UInt8")
        if len(arguments) > 1 and arguments[1].constant is None:
            raise IllegalColumn(f"The mode of {spelt} must be a constant.")
        return date_rule(result)(spelt, types, arguments)

    of_dates = define(name, rule, kernel, count=(1, 3), aliases=aliases, insensitive=insensitive)

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; a text is read as a DateTime."""
        if not isinstance(plain(arguments[0].type), String):
            return of_dates.resolver(spelt, arguments)
        date, *rest = parts_of(arguments)
        return as_call(spelt, call_of(spelt, call_of("toDateTime", date), *rest))

    return replace(of_dates, resolver=resolve)


def _fraction(
    name: str, digits: int, result: DataType, aliases: tuple[str, ...]
) -> ScalarDefinition:
    """Define a function that returns the fraction of the second in units of 10^-digits seconds."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Return the fraction of each timestamp's second in units of 10^-digits seconds, floored."""
        ticks = calendar.ticks_per_second(call.types[0])
        fraction = columns.numpy_values(arrays[0]) % ticks
        return columns.from_values(calendar.rescaled(fraction, ticks, 10**digits), result.arrow)

    rule = fixed_rule(result, CLOCKS, "a DateTime or DateTime64")
    return define(name, rule, kernel, aliases=aliases, insensitive=True)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    _part(
        "toYear",
        UINT16,
        _civil(lambda c: c[0]),
        aliases=("YEAR", "__toYearCalendarOnly"),
        monotonic=True,
        insensitive=True,
    ),
    _part(
        "toQuarter",
        UINT8,
        _civil(lambda c: (c[1] + 2) // 3),
        aliases=("QUARTER",),
        insensitive=True,
    ),
    _part("toMonth", UINT8, _civil(lambda c: c[1]), aliases=("MONTH",), insensitive=True),
    _part(
        "toDayOfMonth",
        UINT8,
        _civil(lambda c: c[2]),
        aliases=("DAY", "DAYOFMONTH"),
        insensitive=True,
    ),
    _part("toDayOfYear", UINT16, _day_of_year, aliases=("DAYOFYEAR",), insensitive=True),
    _part(
        "toHour", UINT8, lambda s: s // 3600 % 24, kinds=CLOCKS, aliases=("HOUR",), insensitive=True
    ),
    _part(
        "toMinute",
        UINT8,
        lambda s: s // 60 % 60,
        kinds=CLOCKS,
        aliases=("MINUTE",),
        insensitive=True,
    ),
    _part("toSecond", UINT8, lambda s: s % 60, kinds=CLOCKS, aliases=("SECOND",), insensitive=True),
    _part("toYYYYMM", UINT32, _civil(lambda c: c[0] * 100 + c[1]), monotonic=True),
    _part(
        "toYYYYMMDD", UINT32, _civil(lambda c: c[0] * 10_000 + c[1] * 100 + c[2]), monotonic=True
    ),
    _part("toYYYYMMDDhhmmss", UINT64, _packed_second),
    _part("toISOYear", UINT16, lambda s: iso_week(s // calendar.DAY)[0], monotonic=True),
    _part("toISOWeek", UINT8, lambda s: iso_week(s // calendar.DAY)[1]),
    _part("toRelativeDayNum", UINT32, _relative_day),
    _part("toRelativeYearNum", UINT16, _civil(lambda c: c[0])),
    _part("toRelativeQuarterNum", UINT32, _civil(lambda c: c[0] * 4 + (c[1] - 1) // 3)),
    _part("toRelativeMonthNum", UINT32, _civil(lambda c: c[0] * 12 + c[1])),
    _part("toRelativeWeekNum", UINT32, lambda s: np.maximum((s // calendar.DAY + 3) // 7, 0)),
    _part(
        "toYearNumSinceEpoch", UINT16, _civil(lambda c: np.maximum(c[0] - 1970, 0)), monotonic=True
    ),
    _part(
        "toMonthNumSinceEpoch",
        UINT32,
        _civil(lambda c: np.maximum((c[0] - 1970) * 12 + c[1] - 1, 0)),
        monotonic=True,
    ),
    _part("toDaysInMonth", UINT8, _days_in_month),
    _part(
        "toDaysSinceYearZero",
        UINT32,
        lambda s: s // calendar.DAY + 719_528,
        aliases=("TO_DAYS",),
        monotonic=True,
        insensitive=True,
    ),
    _with_mode("toDayOfWeek", _weekday_kernel, UINT8, ("DAYOFWEEK",)),
    _with_mode("toWeek", _week_kernel, UINT8, ("week",)),
    _with_mode("toYearWeek", _year_week_kernel, UINT32, ("yearweek",)),
    _fraction("toMillisecond", 3, UINT16, ("MILLISECOND",)),
    _fraction("toMicrosecond", 6, UINT32, ("MICROSECOND",)),
    _fraction("toNanosecond", 9, UINT32, ("NANOSECOND",)),
)
