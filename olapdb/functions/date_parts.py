"""Parts of dates and times: toYear … toSecond, packed numbers, Unix time, names, formats, now."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments
from olapdb.functions import cast_times, columns
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.scalar import (
    Definition,
    Invocation,
    constant_text,
    constant_zone,
    custom,
    define,
    illegal,
    require,
    usual,
)
from olapdb.types import (
    DATE,
    DATETIME,
    INT64,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    String,
    plain,
)

DATES = (Date, Date32, DateTime, DateTime64)
CLOCKS = (DateTime, DateTime64)
Civil = tuple[np.ndarray, np.ndarray, np.ndarray]


def seconds_of(array: pa.Array, call: Invocation) -> np.ndarray:
    """Wall clock seconds of the first argument, in the zone that a second one names."""
    zone = next((c for c in (call.constant(i) for i in (1, 2)) if isinstance(c, str)), None)
    data_type = call.types[0]
    if zone is not None and isinstance(data_type, CLOCKS):
        seconds = columns.numpy_values(array) // cast_times.ticks_per_second(data_type)
        return cast_times.local_from_utc(seconds, zone)
    return cast_times.local_seconds(array, data_type, call.environment.zone)


def days_of(array: pa.Array, call: Invocation) -> np.ndarray:
    return seconds_of(array, call) // cast_times.DAY


def iso_week(days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(ISO year, ISO week): the week of the Thursday of each day's week."""
    thursday = days + 3 - (days + 3) % 7
    year, _, _ = cast_times.civil_from_days(thursday)
    one = np.ones_like(year)
    return year, (thursday - cast_times.days_from_civil(year, one, one)) // 7 + 1


def _part(name: str, result: DataType, part: Callable[[np.ndarray], np.ndarray], *,
          kinds: tuple[type, ...] = DATES, aliases: tuple[str, ...] = (), monotonic: bool = False,
          insensitive: bool = False) -> Definition:  # fmt: skip
    """A function of wall clock seconds."""

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(spelt, types[:1], kinds, "a Date or DateTime" if kinds == DATES else "a DateTime")
        if len(arguments) > 1:
            constant_zone(spelt, arguments, 1)
        return result

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        return columns.from_values(part(seconds_of(arrays[0], call)), result.arrow)

    return define(name, rule, kernel, count=(1, 2), aliases=aliases, monotonic=monotonic,
                  insensitive=insensitive)  # fmt: skip


def _civil(pick: Callable[[Civil], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda seconds: pick(cast_times.civil_from_days(seconds // cast_times.DAY))


def _day_of_year(seconds: np.ndarray) -> np.ndarray:
    days = seconds // cast_times.DAY
    year, _, _ = cast_times.civil_from_days(days)
    one = np.ones_like(year)
    return np.asarray(days - cast_times.days_from_civil(year, one, one) + 1)


def _packed_second(seconds: np.ndarray) -> np.ndarray:
    year, month, day = cast_times.civil_from_days(seconds // cast_times.DAY)
    clock = seconds % cast_times.DAY
    date = year * 10_000 + month * 100 + day
    return np.asarray(
        date * 1_000_000 + clock // 3600 * 10_000 + clock // 60 % 60 * 100 + clock % 60
    )


def _weekday_kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Mode 0: Monday 1 … Sunday 7; 1: Monday 0; 2: Sunday 0; 3: Sunday 1."""
    mode = call.constant(1)
    mode = mode & 3 if isinstance(mode, int) else 0
    days = days_of(arrays[0], call)
    since = (days + 4) % 7 if mode in (2, 3) else (days + 3) % 7
    return columns.from_values(since + (mode in (0, 3)), pa.uint8())


def _week_kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    mode = call.constant(1)
    return columns.from_values(
        week_of(days_of(arrays[0], call), mode if isinstance(mode, int) else 0)[1], pa.uint8()
    )


def week_of(days: np.ndarray, mode: int) -> tuple[np.ndarray, np.ndarray]:
    """(year, week) by MySQL's modes 0 to 7 (its manual, WEEK(), and calc_week of its source)."""
    monday_first, week_year, first_weekday = bool(mode & 1), bool(mode & 2), bool(mode & 4)
    if not monday_first:
        first_weekday = not first_weekday
    year, month, day = cast_times.civil_from_days(days)
    one = np.ones_like(year)
    first = cast_times.days_from_civil(year, one, one)
    weekday = (first + 3) % 7 if monday_first else (first + 4) % 7
    late = (weekday != 0) if first_weekday else (weekday >= 4)
    early = (month == 1) & (day <= 7 - weekday) & late & (not week_year)
    before = (month == 1) & (day <= 7 - weekday) & late & week_year
    first_before = cast_times.days_from_civil(year - 1, one, one)
    weekday_before = (weekday + 53 * 7 - (first - first_before)) % 7
    use_first = np.where(before, first_before, first)
    use_weekday = np.where(before, weekday_before, weekday)
    use_year = np.where(before, year - 1, year)
    use_late = (use_weekday != 0) if first_weekday else (use_weekday >= 4)
    start = use_first + np.where(use_late, 7 - use_weekday, -use_weekday)
    week = (days - start) // 7 + 1
    next_first = cast_times.days_from_civil(use_year + 1, one, one)
    next_weekday = (next_first + 3) % 7 if monday_first else (next_first + 4) % 7
    opens = (next_weekday == 0) if first_weekday else (next_weekday < 4)
    last = week_year & (days - start >= 52 * 7) & opens & (days >= next_first - next_weekday)
    return use_year + last, np.where(early, 0, np.where(last, 1, week))


def _with_mode(name: str, kernel: Callable[[list[pa.Array], Invocation], pa.Array], result: DataType,
               aliases: tuple[str, ...] = ()) -> Definition:  # fmt: skip
    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(spelt, types[:1], DATES, "a Date or DateTime")
        return result

    return define(name, rule, kernel, count=(1, 3), aliases=aliases, insensitive=bool(aliases))


def _fraction(name: str, digits: int, result: DataType) -> Definition:
    """toMillisecond, toMicrosecond, toNanosecond: the part of the second."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        ticks = cast_times.ticks_per_second(call.types[0])
        fraction = columns.numpy_values(arrays[0]) % ticks
        wanted = 10**digits
        scaled = fraction * (wanted // ticks) if wanted >= ticks else fraction // (ticks // wanted)
        return columns.from_values(scaled, result.arrow)

    def rule(spelt: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(spelt, types, CLOCKS, "a DateTime or DateTime64")
        return result

    return define(name, rule, kernel)


def _to_unix(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    array, source = arrays[0], call.types[0]
    if isinstance(source, String):
        array = cast_times.parse_datetimes(array, DATETIME, call.environment.zone)
    else:
        array = cast_times.to_time(array, source, DATETIME, call.environment.zone)
    return columns.from_values(columns.numpy_values(array), pa.uint32())


def _unix_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    require(name, types[:1], (*DATES, String), "a Date, DateTime or String")
    return UINT32


def _to_unix64(digits: int) -> Callable[[list[pa.Array], Invocation], pa.Array]:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        ticks, wanted = cast_times.ticks_per_second(call.types[0]), 10**digits
        values = columns.numpy_values(arrays[0])
        return columns.from_values(
            values * (wanted // ticks) if wanted >= ticks else values // (ticks // wanted),
            pa.int64(),
        )

    return kernel


def _unix64_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    require(name, types, (DateTime64,), "a DateTime64")
    return INT64


def _from_unix(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    zone = constant_zone(name, arguments, 1) if len(arguments) > 1 else None
    result = DateTime(zone)

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        return cast_times.to_time(arrays[0], call.types[0], result, call.environment.zone)

    require(name, [plain(arguments[0].type)], (Integer,), "an integer")
    return usual(name, arguments, result, kernel)


def _from_unix64(digits: int) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        zone = constant_zone(name, arguments, 1) if len(arguments) > 1 else None
        require(name, [plain(arguments[0].type)], (Integer,), "an integer")
        result = DateTime64(digits, zone)

        def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
            return columns.from_values(columns.numpy_values(arrays[0]), result.arrow)

        return usual(name, arguments, result, kernel)

    return resolve


_FORMATS = {
    "Y": "%Y", "m": "%m", "d": "%d", "H": "%H", "j": "%j", "a": "%a", "b": "%b",
    "y": "%y", "p": "%p", "I": "%I", "h": "%I", "F": "%Y-%m-%d", "T": "%H:%M:%S", "D": "%m/%d/%y",
    "i": "%M", "M": "%B", "W": "%A", "R": "%H:%M", "S": "%S", "s": "%S", "u": "%u", "w": "%w",
    "V": "%V", "G": "%G", "r": "%I:%M %p", "n": "%n", "t": "%t", "%": "%%",
}  # fmt: skip


def _format_datetime(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """formatDateTime(t, format[, zone]); MySQL's letters: %M is the month's name, %i the minute."""
    template = constant_text(name, arguments, 1, "the format")
    pieces = [_translated(name, p) for p in re.split(r"(%[efQ])", template)]

    def rule(spelt: str, types: tuple[DataType, ...], given: Sequence[Argument]) -> DataType:
        require(spelt, types[:1], DATES, "a Date or DateTime")
        return STRING

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        zone = call.constant(2)
        data_type = call.types[0]
        seconds = (
            cast_times.local_from_utc(
                columns.numpy_values(arrays[0]) // cast_times.ticks_per_second(data_type), zone
            )
            if isinstance(zone, str) and isinstance(data_type, CLOCKS)
            else cast_times.local_seconds(arrays[0], data_type, call.environment.zone)
        )
        wall = columns.from_values(seconds, pa.timestamp("s"))
        shown: list[Column] = []
        for piece in pieces:
            if piece == "%f":
                shown.append(_fraction_text(arrays[0], data_type))
            elif piece == "%e":
                shown.append(pc.day(wall).cast(pa.string()))
            elif piece == "%Q":
                shown.append(pc.quarter(wall).cast(pa.string()))
            elif piece:
                shown.append(pc.strftime(wall, format=piece))
        if not shown:
            return pa.array([""] * len(wall), pa.string())
        return pc.binary_join_element_wise(*shown, "") if len(shown) > 1 else shown[0]

    return usual(name, arguments, rule, kernel)


def _translated(name: str, piece: str) -> str:
    if piece in ("%e", "%f", "%Q"):
        return piece

    def one(match: re.Match[str]) -> str:
        letter = match.group(1)
        if letter not in _FORMATS:
            raise BadArguments(f"{name} does not know the format %{letter}.")
        return _FORMATS[letter]

    return re.sub(r"%(.)", one, piece)


def _fraction_text(array: pa.Array, data_type: DataType) -> pa.Array:
    if not isinstance(data_type, DateTime64) or data_type.precision == 0:
        return pa.array(["000000"] * len(array), pa.string())
    ticks = cast_times.ticks_per_second(data_type)
    digits = len(str(ticks)) - 1
    text = pa.array(columns.numpy_values(array) % ticks).cast(pa.string())
    padded = pc.utf8_lpad(text, width=digits, padding="0")
    return pc.utf8_rpad(
        pc.utf8_slice_codeunits(padded, 0, data_type.precision), width=6, padding="0"
    )


_NAMES = {"year": "%Y", "month": "%B", "day": "%d", "hour": "%H", "minute": "%M", "second": "%S",
          "weekday": "%A"}  # fmt: skip


def _date_name(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    part = constant_text(name, arguments, 0, "the part").lower()
    if part not in (*_NAMES, "quarter", "dayofyear", "week"):
        raise BadArguments(f"{name} does not know the part {part!r}.")

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        seconds = cast_times.local_seconds(arrays[1], call.types[1], call.environment.zone)
        wall = columns.from_values(seconds, pa.timestamp("s"))
        if part == "quarter":
            return pc.quarter(wall).cast(pa.string())
        if part == "dayofyear":
            return pc.day_of_year(wall).cast(pa.string())
        if part == "week":
            return pc.iso_week(wall).cast(pa.string())
        shown = pc.strftime(wall, format=_NAMES[part])
        trimmed = (
            pc.utf8_ltrim(shown, "0") if part in ("day", "hour", "minute", "second") else shown
        )
        return pc.if_else(pc.equal(trimmed, ""), "0", trimmed)

    require(name, [plain(arguments[1].type)], DATES, "a Date or DateTime")
    return usual(name, arguments, STRING, kernel)


def _month_name(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    wall = columns.from_values(seconds_of(arrays[0], call), pa.timestamp("s"))
    return pc.strftime(wall, format="%B")


def _date_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types[:1], DATES, "a Date or DateTime")
        return result

    return rule


# --- the moment of the query --------------------------------------------------------------------


def _moment(kind: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """now, now64, today, yesterday: one value for the whole query."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        result: DataType = DATE
        if kind == "now":
            zone = constant_zone(name, arguments, 0) if arguments else None
            result = DateTime(zone)
        elif kind == "now64":
            digits = arguments[0].constant if arguments else None
            precision = digits.as_py() if digits is not None else 3
            if not isinstance(precision, int) or not 0 <= precision <= 9:
                raise BadArguments(f"The precision of {name} is 0 to 9.")
            result = DateTime64(precision)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            return _now(kind, result, environment)

        return ScalarCall(name, result, kernel, "query")

    return resolve


def _now(kind: str, result: DataType, environment: Environment) -> pa.Scalar:
    seconds = int(environment.now_seconds)
    if kind in ("today", "yesterday"):
        local = int(cast_times.local_from_utc(np.array([seconds]), environment.zone)[0])
        day = local // cast_times.DAY - (kind == "yesterday")
        return columns.from_values(np.array([day]), result.arrow)[0]
    ticks = cast_times.ticks_per_second(result)
    fraction = int((environment.now_seconds - seconds) * ticks)
    moment = cast_times.cut_precision(np.array([seconds * ticks + fraction]), result)
    return columns.from_values(moment, result.arrow)[0]


def _time_zone(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        return pa.scalar(environment.zone)

    return ScalarCall(name, STRING, kernel, "query")


def _time_zone_of(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    data_type = plain(arguments[0].type)
    if not isinstance(data_type, CLOCKS):
        raise illegal(name, data_type, "a DateTime or DateTime64")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        return pa.scalar(data_type.zone or environment.zone)

    return ScalarCall(name, STRING, kernel, "query")


def _make_date(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    numbers = [columns.numpy_values(a.cast(pa.int64(), safe=False)) for a in arrays]
    year, month, day = numbers[:3]
    from olapdb.functions.date_arithmetic import month_lengths

    fine = (month >= 1) & (month <= 12) & (day >= 1)
    fine &= day <= month_lengths(year, np.clip(month, 1, 12))
    days = np.where(fine, cast_times.days_from_civil(year, np.clip(month, 1, 12), day), 0)
    if isinstance(call.result, Date):
        return columns.from_values(
            np.where((days < 0) | (days > cast_times.DATE_MAX), 0, days), pa.date32()
        )
    hour, minute, second = numbers[3:6]
    wall = days * cast_times.DAY + hour * 3600 + minute * 60 + second
    seconds = cast_times.utc_from_local(
        wall, cast_times.zone_of(call.result, call.environment.zone)
    )
    return columns.from_values(np.clip(seconds, 0, cast_times.DATETIME_MAX), call.result.arrow)


def _numbers(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(
            name,
            types[: 3 if isinstance(result, Date) else 6],
            (Integer, Float, Decimal),
            "a number",
        )
        return result

    return rule


DEFINITIONS: tuple[Definition, ...] = (
    _part("toYear", UINT16, _civil(lambda c: c[0]), aliases=("YEAR",), monotonic=True, insensitive=True),
    _part("toQuarter", UINT8, _civil(lambda c: (c[1] + 2) // 3), aliases=("QUARTER",), insensitive=True),
    _part("toMonth", UINT8, _civil(lambda c: c[1]), aliases=("MONTH",), insensitive=True),
    _part("toDayOfMonth", UINT8, _civil(lambda c: c[2]), aliases=("DAY", "DAYOFMONTH"), insensitive=True),
    _part("toDayOfYear", UINT16, _day_of_year, aliases=("DAYOFYEAR",), insensitive=True),
    _part("toHour", UINT8, lambda s: s // 3600 % 24, kinds=CLOCKS, aliases=("HOUR",), insensitive=True),
    _part("toMinute", UINT8, lambda s: s // 60 % 60, kinds=CLOCKS, aliases=("MINUTE",), insensitive=True),
    _part("toSecond", UINT8, lambda s: s % 60, kinds=CLOCKS, aliases=("SECOND",), insensitive=True),
    _part("toYYYYMM", UINT32, _civil(lambda c: c[0] * 100 + c[1]), monotonic=True),
    _part("toYYYYMMDD", UINT32, _civil(lambda c: c[0] * 10_000 + c[1] * 100 + c[2]), monotonic=True),
    _part("toYYYYMMDDhhmmss", UINT64, _packed_second),
    _part("toISOYear", UINT16, lambda s: iso_week(s // cast_times.DAY)[0], monotonic=True),
    _part("toISOWeek", UINT8, lambda s: iso_week(s // cast_times.DAY)[1]),
    _part("toRelativeDayNum", UINT32, lambda s: s // cast_times.DAY),
    _part("toDaysSinceYearZero", UINT32, lambda s: s // cast_times.DAY + 719_528,
          aliases=("TO_DAYS",), monotonic=True, insensitive=True),
    _with_mode("toDayOfWeek", _weekday_kernel, UINT8, ("DAYOFWEEK",)),
    _with_mode("toWeek", _week_kernel, UINT8, ("week",)),
    _fraction("toMillisecond", 3, UINT16),
    _fraction("toMicrosecond", 6, UINT32),
    _fraction("toNanosecond", 9, UINT32),
    define("toUnixTimestamp", _unix_rule, _to_unix, count=(1, 2), monotonic=True),
    *(define(f"toUnixTimestamp64{n}", _unix64_rule, _to_unix64(d))
      for n, d in (("Second", 0), ("Milli", 3), ("Micro", 6), ("Nano", 9))),
    custom("fromUnixTimestamp", _from_unix, count=(1, 2), aliases=("FROM_UNIXTIME",), insensitive=True),
    *(custom(f"fromUnixTimestamp64{n}", _from_unix64(d), count=(1, 2))
      for n, d in (("Second", 0), ("Milli", 3), ("Micro", 6), ("Nano", 9))),
    custom("formatDateTime", _format_datetime, count=(2, 3), aliases=("DATE_FORMAT",), insensitive=True),
    custom("dateName", _date_name, count=(2, 3), insensitive=True),
    define("monthName", _date_rule(STRING), _month_name, insensitive=True),
    custom("now", _moment("now"), count=(0, 1), aliases=("current_timestamp", "localtimestamp"), insensitive=True),
    custom("now64", _moment("now64"), count=(0, 1), insensitive=True),
    custom("today", _moment("today"), count=0, aliases=("curdate", "current_date"), insensitive=True),
    custom("yesterday", _moment("yesterday"), count=0, insensitive=True),
    custom("timezone", _time_zone, count=0, insensitive=True),
    custom("serverTimezone", _time_zone, count=0, aliases=("serverTimeZone",)),
    custom("timezoneOf", _time_zone_of, aliases=("timeZoneOf",)),
    define("makeDate", _numbers(DATE), _make_date, count=3, insensitive=True),
    define("makeDateTime", _numbers(DATETIME), _make_date, count=6, insensitive=True),
)  # fmt: skip
