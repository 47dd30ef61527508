"""Timestamps from Unix time and numbers, and the clock and zone of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, DecimalOverflow, TooManyArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import clocks, parse_timestamps, temporal
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.datetime.components import CLOCKS, DATES
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.registry import resolve_scalar
from olapdb.types import (
    DATE,
    DATETIME,
    INT64,
    STRING,
    UINT32,
    DataType,
    Date,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    String,
    Time,
    Time64,
    is_nullable,
    make_nullable,
    plain,
)


def _to_unix(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toUnixTimestamp(t[, zone]); a text is wall clock time in the zone."""
    zone = scalar.constant_zone(name, arguments, 1) if len(arguments) > 1 else None

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return Unix seconds as UInt32; texts are parsed, dates and times cast to DateTime."""
        array, source = arrays[0], call.types[0]
        if isinstance(source, String):
            array = _parsed(array, call.environment, zone or call.environment.zone)
        elif isinstance(source, Time | Time64):
            return clocks.from_clock(array, source, UINT32)
        elif isinstance(source, Integer | Float | Decimal):
            return cast_column(array, source, UINT32, call.environment, strict=False)
        else:
            _require_unix_seconds(array, source)
            array = temporal.to_time(array, source, DATETIME, call.environment.zone)
        return columns.from_values(columns.numpy_values(array), pa.uint32())

    rule = scalar.fixed_rule(
        UINT32,
        (*DATES, Time, Time64, String, Integer, Float, Decimal),
        "a Date, DateTime, String or number",
        checked=1,
    )
    # Texts are sorted bytewise, and numbers wrap.
    monotonic = isinstance(plain(arguments[0].type), (*DATES, Time, Time64))
    return scalar.standard_call(name, arguments, rule, kernel, monotonic=monotonic)


def _require_unix_seconds(array: pa.Array, source: DataType) -> None:
    """Raise DecimalOverflow if a DateTime64 lies outside of the 32 bits of toUnixTimestamp."""
    if not isinstance(source, DateTime64):
        return
    ticks = columns.numpy_values(array)
    per_second = calendar.ticks_per_second(source)
    last = (calendar.DATETIME_MAX + 1) * per_second
    outside = (ticks <= -per_second) | (ticks >= last)
    valid = columns.validity(array)
    if valid is not None:
        outside &= valid
    if outside.any():
        raise DecimalOverflow(
            "Convert overflow: a time before 1970 or after 2106-02-07 06:28:15 UTC has no Unix"
            " timestamp of 32 bits.",
            hint="toUnixTimestamp64Second takes all times.",
        ).at_row(int(np.argmax(outside)))


def _parsed(texts: pa.Array, environment: Environment, zone: str) -> pa.Array:
    """Parse texts as DateTime in the zone, in the mode of the setting cast_string_to_date_time_mode."""
    mode = environment.setting("cast_string_to_date_time_mode", "best_effort")
    if mode == "basic":
        return parse_timestamps.basic_timestamps(texts, DATETIME, zone)
    american = mode == "best_effort_us"
    return parse_timestamps.parse_datetimes(texts, DATETIME, zone, american=american)


def _to_unix64(digits: int) -> Callable[[list[pa.Array], scalar.Invocation], pa.Array]:
    """Return a kernel from DateTime64 to Unix time in units of 10^-digits seconds, truncated."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Convert the ticks to units of 10^-digits seconds, truncated."""
        ticks, values = calendar.ticks_per_second(call.types[0]), columns.numpy_values(arrays[0])
        if ticks > 10**digits:
            values = calendar.towards_zero(values, ticks // 10**digits)
        else:
            values = calendar.rescaled(values, ticks, 10**digits)
        return columns.from_values(values, pa.int64())

    return kernel


def _from_unix(changed: frozenset[str], name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve fromUnixTimestamp(seconds[, format[, zone]]); with a format the result is a text, also of a date or time.

    `changed` are the settings of formatDateTime that are not at their defaults."""
    source = plain(arguments[0].type)
    if len(arguments) == 1 or not isinstance(source, DATES):
        scalar.require(name, [source], (Integer,), "an integer")
    if len(arguments) > 1:
        in_joda_syntax = name.lower().endswith("injodasyntax")
        formatting = "formatDateTimeInJodaSyntax" if in_joda_syntax else "formatDateTime"
        formatting = " ".join((formatting, *sorted(changed)))
        if isinstance(source, DATES):
            return replace(resolve_scalar(formatting, arguments), name=name)
        return _formatted_unix(name, formatting, arguments)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Cast integers to DateTime."""
        return temporal.to_time(arrays[0], call.types[0], DATETIME, call.environment.zone)

    return scalar.standard_call(name, arguments, DATETIME, kernel)


def _formatted_unix(name: str, formatting: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve fromUnixTimestamp(seconds, format[, zone]) as the function `formatting` of the
    timestamp."""
    source, seconds = arguments[0].type, DateTime64(0)
    timestamp = make_nullable(seconds) if is_nullable(source) else seconds
    formatted = resolve_scalar(formatting, [Argument(timestamp), *arguments[1:]])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the integers to DateTime64(0) and format them."""
        times = cast_column(values[0], source, timestamp, environment, strict=True)
        return formatted.kernel([times, *values[1:]], rows, environment)

    return ScalarCall(name, formatted.type, kernel)


def _from_unix64(digits: int) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of fromUnixTimestamp64Milli and the like: integers of 10^-digits seconds to DateTime64,
    clamped to its range."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for an integer and an optional zone."""
        zone = scalar.constant_zone(name, arguments, 1) if len(arguments) > 1 else None
        scalar.require(name, [plain(arguments[0].type)], (Integer,), "an integer")
        result = DateTime64(digits, zone)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Take integers as ticks, clamped to the range of DateTime64."""
            first, last = calendar.limits64(calendar.ticks_per_second(result))
            ticks = columns.numpy_values(arrays[0])
            ticks = (
                np.minimum(ticks, last) if ticks.dtype == np.uint64 else np.clip(ticks, first, last)
            )
            return columns.from_values(ticks, result.arrow)

        return scalar.standard_call(name, arguments, result, kernel)

    return resolve


def _clock_reader(kind: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of now, now64, today or yesterday, by `kind`.

    One value for the whole query.
    """

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; now takes a zone, now64 a precision (3 if absent).

        Raises ArgumentOutOfBound."""
        result: DataType = DATE
        if kind == "localtime":
            result = Time()
        elif kind == "now":
            zone = scalar.constant_zone(name, arguments, 0) if arguments else None
            result = DateTime(zone)
        elif kind == "now64":
            digits = arguments[0].constant if arguments else None
            precision = digits.as_py() if digits is not None else 3
            scalar.require(name, [plain(a.type) for a in arguments[:1]], Integer, "an integer")
            if not isinstance(precision, int) or not 0 <= precision <= 9:
                raise ArgumentOutOfBound(f"The precision of {name} is 0 to 9.")
            zone = scalar.constant_zone(name, arguments, 1) if len(arguments) > 1 else None
            result = DateTime64(precision, zone)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Return the value of the query's clock as a constant."""
            return _now(kind, result, environment)

        return ScalarCall(name, result, kernel, "query")

    return resolve


def _now(kind: str, result: DataType, environment: Environment) -> pa.Scalar:
    """Return the value of now, now64, localtime, today or yesterday (`kind`) as a constant of type
    `result`."""
    seconds = int(environment.now_seconds)
    if kind in ("localtime", "today", "yesterday"):
        local = int(calendar.local_from_utc(np.array([seconds]), environment.zone)[0])
        if kind == "localtime":
            return columns.from_values(np.array([local % calendar.DAY]), result.arrow)[0]
        day = local // calendar.DAY - (kind == "yesterday")
        return columns.from_values(np.array([day]), result.arrow)[0]
    ticks = calendar.ticks_per_second(result)
    fraction = int((environment.now_seconds - seconds) * ticks)
    cut = calendar.cut_precision(np.array([seconds * ticks + fraction]), result)
    return columns.from_values(cut, result.arrow)[0]


def _time_zone(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve timezone(), the zone of the query, or serverTimezone(), that of the warehouse."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the name of the zone as a constant."""
        whose = environment if name == "timezone" else environment.of_warehouse
        return pa.scalar(whose.zone)

    return ScalarCall(name, STRING, kernel, "query")


def _time_zone_of(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve timezoneOf(t): the zone of a time's type, or the query's if the type has none."""
    data_type = plain(arguments[0].type)
    if not isinstance(data_type, CLOCKS):
        raise scalar.illegal(name, data_type, "a DateTime or DateTime64")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the name of the zone as a constant."""
        return pa.scalar(data_type.zone or environment.zone)

    return ScalarCall(name, STRING, kernel, "query")


def _make_date(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return dates of (year, month, day) or times of six numbers.

    1970-01-01 for a day or month out of range, in UTC for a time, and for a part of the clock below 0 or above 99.
    """
    numbers = [_whole_numbers(array) for array in arrays[:6]]
    year, month, day = numbers[:3]
    in_range = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    days = np.where(in_range, calendar.days_from_civil(year, np.clip(month, 1, 12), day), 0)
    if isinstance(call.result, Date):
        return columns.from_values(
            np.where((days < 0) | (days > calendar.DATE_MAX), 0, days), pa.date32()
        )
    hour, minute, second = numbers[3:6]
    for part in numbers[3:6]:
        in_range &= (part >= 0) & (part <= 99)
    wall = np.where(in_range, days * calendar.DAY + hour * 3600 + minute * 60 + second, 0)
    seconds = calendar.utc_of_text(wall, calendar.zone_of(call.result, call.environment.zone))
    seconds = np.where(in_range, seconds, 0)
    return columns.from_values(np.clip(seconds, 0, calendar.DATETIME_MAX), call.result.arrow)


def _whole_numbers(array: pa.Array) -> np.ndarray:
    """Return numbers without their fractions as int64; -1, which is no part of a date or a clock, for NaN."""
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(-1, array.type), array)
    return columns.numpy_values(array.cast(pa.int64(), safe=False))


def _resolve_date(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve makeDate(year, month, day) or makeDate(year, day of the year)."""
    rule = scalar.fixed_rule(DATE, _NUMBERS, "a number")
    kernel = _make_date if len(arguments) == 3 else _date_of_year
    return scalar.standard_call(name, arguments, rule, kernel)


def _date_of_year(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return dates of (year, day of the year); 1970-01-01 for a day out of range."""
    year, day = (columns.numpy_values(a.cast(pa.int64(), safe=False)) for a in arrays)
    days = calendar.year_start(year) + day - 1
    last = np.minimum(calendar.year_start(year + 1) - 1, calendar.DATE_MAX)
    exists = (day >= 1) & (days >= 0) & (days <= last)
    return columns.from_values(np.where(exists, days, 0), pa.date32())


def _resolve_time(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve makeDateTime(year, month, day, hour, minute, second[, zone])."""
    zone = scalar.constant_zone(name, arguments, 6) if len(arguments) > 6 else None
    rule = scalar.fixed_rule(DateTime(zone), _NUMBERS, "a number", checked=6)
    return scalar.standard_call(name, arguments, rule, _make_date)


_NUMBERS = (Integer, Float, Decimal)
_UNIX64_RULE = scalar.fixed_rule(INT64, (DateTime64,), "a DateTime64")

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("toUnixTimestamp", _to_unix, count=(1, 2)),
    *(
        scalar.define(f"toUnixTimestamp64{n}", _UNIX64_RULE, _to_unix64(d))
        for n, d in (("Second", 0), ("Milli", 3), ("Micro", 6), ("Nano", 9))
    ),
    replace(
        scalar.custom(
            "fromUnixTimestamp",
            partial(_from_unix, frozenset()),
            count=(1, 3),
            aliases=("FROM_UNIXTIME",),
            insensitive=True,
        ),
        by_settings=lambda changed: partial(_from_unix, changed),
    ),
    scalar.custom("fromUnixTimestampInJodaSyntax", partial(_from_unix, frozenset()), count=(1, 3)),
    *(
        scalar.custom(f"fromUnixTimestamp64{n}", _from_unix64(d), count=(1, 2))
        for n, d in (("Second", 0), ("Milli", 3), ("Micro", 6), ("Nano", 9))
    ),
    scalar.custom(
        "now",
        _clock_reader("now"),
        count=(0, 1),
        aliases=("current_timestamp", "localtimestamp"),
        insensitive=True,
    ),
    scalar.custom("localtime", _clock_reader("localtime"), count=0, insensitive=True),
    *scalar.with_count_errors(
        (scalar.custom("now64", _clock_reader("now64"), count=(0, 2), insensitive=True),),
        many=TooManyArguments,
    ),
    scalar.custom(
        "today",
        _clock_reader("today"),
        count=0,
        aliases=("curdate", "current_date"),
        insensitive=True,
    ),
    scalar.custom("yesterday", _clock_reader("yesterday"), count=0, insensitive=True),
    scalar.custom("timezone", _time_zone, count=0, insensitive=True),
    scalar.custom("serverTimezone", _time_zone, count=0, aliases=("serverTimeZone",)),
    scalar.custom("timezoneOf", _time_zone_of, aliases=("timeZoneOf",)),
    scalar.custom("makeDate", _resolve_date, count=(2, 3), insensitive=True),
    scalar.custom("makeDateTime", _resolve_time, count=(6, 7), insensitive=True),
)
