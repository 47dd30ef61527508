"""Moments: Unix time, dates made of numbers, the moment and the zone of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import parse_timestamps, temporal
from olapdb.functions.datetime.components import CLOCKS, DATES
from olapdb.functions.kernels import calendar, columns
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
    plain,
)


def _to_unix(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    array, source = arrays[0], call.types[0]
    if isinstance(source, String):
        array = parse_timestamps.parse_datetimes(array, DATETIME, call.environment.zone)
    else:
        array = temporal.to_time(array, source, DATETIME, call.environment.zone)
    return columns.from_values(columns.numpy_values(array), pa.uint32())


def _unix_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    scalar.require(name, types[:1], (*DATES, String), "a Date, DateTime or String")
    return UINT32


def _to_unix64(digits: int) -> Callable[[list[pa.Array], scalar.Invocation], pa.Array]:
    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        ticks, wanted = calendar.ticks_per_second(call.types[0]), 10**digits
        values = columns.numpy_values(arrays[0])
        return columns.from_values(
            values * (wanted // ticks) if wanted >= ticks else values // (ticks // wanted),
            pa.int64(),
        )

    return kernel


def _unix64_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    scalar.require(name, types, (DateTime64,), "a DateTime64")
    return INT64


def _from_unix(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    zone = scalar.constant_zone(name, arguments, 1) if len(arguments) > 1 else None
    result = DateTime(zone)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        return temporal.to_time(arrays[0], call.types[0], result, call.environment.zone)

    scalar.require(name, [plain(arguments[0].type)], (Integer,), "an integer")
    return scalar.usual(name, arguments, result, kernel)


def _from_unix64(digits: int) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        zone = scalar.constant_zone(name, arguments, 1) if len(arguments) > 1 else None
        scalar.require(name, [plain(arguments[0].type)], (Integer,), "an integer")
        result = DateTime64(digits, zone)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            first, last = calendar.limits64(calendar.ticks_per_second(result))
            ticks = columns.numpy_values(arrays[0])
            ticks = (
                np.minimum(ticks, last) if ticks.dtype == np.uint64 else np.clip(ticks, first, last)
            )
            return columns.from_values(ticks, result.arrow)

        return scalar.usual(name, arguments, result, kernel)

    return resolve


def _moment(kind: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """now, now64, today, yesterday: one value for the whole query."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        result: DataType = DATE
        if kind == "now":
            zone = scalar.constant_zone(name, arguments, 0) if arguments else None
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
        local = int(calendar.local_from_utc(np.array([seconds]), environment.zone)[0])
        day = local // calendar.DAY - (kind == "yesterday")
        return columns.from_values(np.array([day]), result.arrow)[0]
    ticks = calendar.ticks_per_second(result)
    fraction = int((environment.now_seconds - seconds) * ticks)
    moment = calendar.cut_precision(np.array([seconds * ticks + fraction]), result)
    return columns.from_values(moment, result.arrow)[0]


def _time_zone(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        return pa.scalar(environment.zone)

    return ScalarCall(name, STRING, kernel, "query")


def _time_zone_of(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    data_type = plain(arguments[0].type)
    if not isinstance(data_type, CLOCKS):
        raise scalar.illegal(name, data_type, "a DateTime or DateTime64")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        return pa.scalar(data_type.zone or environment.zone)

    return ScalarCall(name, STRING, kernel, "query")


def _make_date(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    numbers = [columns.numpy_values(a.cast(pa.int64(), safe=False)) for a in arrays]
    year, month, day = numbers[:3]
    fine = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    days = np.where(fine, calendar.days_from_civil(year, np.clip(month, 1, 12), day), 0)
    if isinstance(call.result, Date):
        return columns.from_values(
            np.where((days < 0) | (days > calendar.DATE_MAX), 0, days), pa.date32()
        )
    hour, minute, second = numbers[3:6]
    wall = np.where(fine, days * calendar.DAY + hour * 3600 + minute * 60 + second, 0)
    seconds = calendar.utc_from_local(wall, calendar.zone_of(call.result, call.environment.zone))
    return columns.from_values(np.clip(seconds, 0, calendar.DATETIME_MAX), call.result.arrow)


def _numbers(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        scalar.require(
            name,
            types[: 3 if isinstance(result, Date) else 6],
            (Integer, Float, Decimal),
            "a number",
        )
        return result

    return rule


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("toUnixTimestamp", _unix_rule, _to_unix, count=(1, 2), monotonic=True),
    *(
        scalar.define(f"toUnixTimestamp64{n}", _unix64_rule, _to_unix64(d))
        for n, d in (("Second", 0), ("Milli", 3), ("Micro", 6), ("Nano", 9))
    ),
    scalar.custom(
        "fromUnixTimestamp", _from_unix, count=(1, 2), aliases=("FROM_UNIXTIME",), insensitive=True
    ),
    *(
        scalar.custom(f"fromUnixTimestamp64{n}", _from_unix64(d), count=(1, 2))
        for n, d in (("Second", 0), ("Milli", 3), ("Micro", 6), ("Nano", 9))
    ),
    scalar.custom(
        "now",
        _moment("now"),
        count=(0, 1),
        aliases=("current_timestamp", "localtimestamp"),
        insensitive=True,
    ),
    scalar.custom("now64", _moment("now64"), count=(0, 1), insensitive=True),
    scalar.custom(
        "today", _moment("today"), count=0, aliases=("curdate", "current_date"), insensitive=True
    ),
    scalar.custom("yesterday", _moment("yesterday"), count=0, insensitive=True),
    scalar.custom("timezone", _time_zone, count=0, insensitive=True),
    scalar.custom("serverTimezone", _time_zone, count=0, aliases=("serverTimeZone",)),
    scalar.custom("timezoneOf", _time_zone_of, aliases=("timeZoneOf",)),
    scalar.define("makeDate", _numbers(DATE), _make_date, count=3, insensitive=True),
    scalar.define("makeDateTime", _numbers(DATETIME), _make_date, count=6, insensitive=True),
)
