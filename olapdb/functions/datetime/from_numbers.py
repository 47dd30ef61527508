"""Dates and times from numbers: makeDate32, makeDateTime64, YYYYMMDDToDate, days since year zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, BadArguments, DecimalOverflow
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import calendar, columns
from olapdb.types import DATE, DATE32, DataType, Date, DateTime, DateTime64, Decimal, Float, Integer

_NUMBERS = (Integer, Float, Decimal)
_FIRST_YEAR64 = 1900
"""The first year that makeDateTime64 makes."""
_BEYOND = 2.0**62
"""A number that no date or time has; greater ones count as it."""
_START_OF_RANGE = -25_567
"""1900-01-01, which a DateTime64 of numbers out of range is."""


def _integers(array: pa.Array) -> np.ndarray:
    """Truncate numbers to int64. Raises BadArguments for NaN and infinity."""
    if pa.types.is_floating(array.type):
        values = columns.numpy_values(array).astype(np.float64)
        if not np.isfinite(values).all():
            raise BadArguments("A date or a time is made of finite numbers, not of NaN or inf.")
        return np.clip(values, -_BEYOND, _BEYOND).astype(np.int64)
    return columns.numpy_values(array.cast(pa.int64(), safe=False))


def _rounded(array: pa.Array) -> pa.Array:
    """Round numbers with fractions, halves up, as ClickHouse reads packed dates; integers stay."""
    if pa.types.is_integer(array.type):
        return array
    return pc.floor(pc.add(array.cast(pa.float64(), safe=False), 0.5))


def _days(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the days since 1970-01-01, and whether month and day are in range."""
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    year = np.clip(year, -10_000, 20_000)
    days = calendar.days_from_civil(year, np.clip(month, 1, 12), np.clip(day, 0, 31))
    return days, exists


def _as_dates(days: np.ndarray, exists: np.ndarray, result: DataType) -> pa.Array:
    """Return days as Date or Date32; 1970-01-01 where `exists` is False or the day is out of the type's range."""
    first, last = (0, calendar.DATE_MAX) if isinstance(result, Date) else calendar.DATE32_RANGE
    exists = exists & (days >= first) & (days <= last)
    return columns.from_values(np.where(exists, days, 0), result.arrow)


def _make_date32(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return dates of (year, month, day) or (year, day of the year)."""
    numbers = [_integers(array) for array in arrays]
    if len(numbers) == 3:
        return _as_dates(*_days(*numbers), call.result)
    year, day = np.clip(numbers[0], -10_000, 20_000), np.clip(numbers[1], -1, 1_000)
    days = calendar.year_start(year) + day - 1
    exists = (day >= 1) & (days < calendar.year_start(year + 1))
    return _as_dates(days, exists, call.result)


def _unpack_date(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return dates of numbers of the form YYYYMMDD."""
    packed = _integers(_rounded(arrays[0]))
    return _as_dates(*_days(packed // 10_000, packed // 100 % 100, packed % 100), call.result)


def _times(
    parts: Sequence[np.ndarray], result: DateTime | DateTime64, zone: str
) -> tuple[np.ndarray, np.ndarray]:
    """Convert year, month, day, hour, minute, second in the zone to (UTC seconds, whether the time exists). Hours,
    minutes and seconds are from 0 to 99, and those beyond a clock count on."""
    days, exists = _days(*parts[:3])
    exists &= np.logical_and.reduce([(part >= 0) & (part <= 99) for part in parts[3:6]])
    hour, minute, second = (np.clip(part, -1_000, 1_000) for part in parts[3:6])
    wall = np.where(exists, days * calendar.DAY + hour * 3600 + minute * 60 + second, 0)
    low, high = calendar.SECONDS64_RANGE
    return calendar.utc_of_text(np.clip(wall, low, high), calendar.zone_of(result, zone)), exists


def _as_times(
    parts: Sequence[np.ndarray], fraction: np.ndarray | int, call: scalar.Invocation
) -> pa.Array:
    """Build times from the parts of their wall clock and a fraction in units of the type's last digit.

    Parts of no existing time give the start of the type's range. A DateTime beyond its range gives the nearest end.
    Raises DecimalOverflow for times that 64 bits of nanoseconds do not hold, from 2262 on."""
    result = call.result
    assert isinstance(result, DateTime | DateTime64)
    seconds, exists = _times(parts, result, call.environment.zone)
    exists &= (parts[0] >= _FIRST_YEAR64) | isinstance(result, DateTime)
    if isinstance(result, DateTime):
        seconds = np.where(exists, np.clip(seconds, 0, calendar.DATETIME_MAX), 0)
        return columns.from_values(seconds, result.arrow)
    first = np.full(len(seconds), _START_OF_RANGE * calendar.DAY)
    first = calendar.utc_from_local(first, calendar.zone_of(result, call.environment.zone))
    ticks = calendar.ticks_per_second(result)
    step = ticks // 10**result.precision
    seconds = np.where(exists, seconds, first)
    fractions = np.where(exists, fraction * step, 0)
    _, high = calendar.limits64(ticks)
    last, last_fraction = divmod(high, ticks)
    if ((seconds > last) | ((seconds == last) & (fractions > last_fraction))).any():
        raise DecimalOverflow(
            f"A time is beyond those that {result} holds.", hint="Give it a precision of 6 or less."
        )
    return columns.from_values(seconds * ticks + fractions, result.arrow)


def _make_time64(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve makeDateTime64(year, month, day, hour, minute, second[, fraction[, precision[,
    zone]]])."""
    precision = _precision(name, arguments, 7)
    zone = scalar.constant_zone(name, arguments, 8) if len(arguments) > 8 else None

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Build the times; a fraction out of the precision's range is clamped."""
        parts = [_integers(array) for array in arrays[:7]]
        fraction = np.clip(parts[6], 0, 10**precision - 1) if len(parts) > 6 else 0
        return _as_times(parts, fraction, call)

    result = DateTime64(precision, zone)
    rule = scalar.fixed_rule(result, _NUMBERS, "a number", checked=min(len(arguments), 7))
    return scalar.standard_call(name, arguments, rule, kernel)


def _precision(name: str, arguments: Sequence[Argument], at: int) -> int:
    """Return the precision that argument `at` names, 3 if it is absent.

    Raises ArgumentOutOfBound."""
    if len(arguments) <= at:
        return 3
    precision = scalar.constant_integer(name, arguments, at, "the precision")
    if not 0 <= precision <= 9:
        raise ArgumentOutOfBound(f"The precision of {name} is 0 to 9, not {precision}.")
    return precision


def _unpack_time(*, fractions: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of YYYYMMDDhhmmssToDateTime(n[, zone]), or, with `fractions`, of
    YYYYMMDDhhmmssToDateTime64(n[, precision[, zone]])."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; precision and zone are constants."""
        at = 2 if fractions else 1
        zone = scalar.constant_zone(name, arguments, at) if len(arguments) > at else None
        precision = _precision(name, arguments, 1) if fractions else 0
        result = DateTime64(precision, zone) if fractions else DateTime(zone)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Return times of numbers of the form YYYYMMDDhhmmss."""
            packed = _integers(arrays[0])
            fraction: np.ndarray | int = 0
            if fractions and not pa.types.is_integer(arrays[0].type):
                rest = columns.numpy_values(arrays[0].cast(pa.float64(), safe=False)) - packed
                with np.errstate(over="ignore"):
                    parts = np.clip(np.trunc(rest * 10**precision), -_BEYOND, _BEYOND)
                fraction = parts.astype(np.int64)
            date, clock = np.divmod(packed, 1_000_000)
            civil = (date // 10_000, date // 100 % 100, date % 100)
            return _as_times(
                (*civil, clock // 10_000, clock // 100 % 100, clock % 100), fraction, call
            )

        rule = scalar.fixed_rule(result, _NUMBERS, "a number", checked=1)
        return scalar.standard_call(name, arguments, rule, kernel)

    return resolve


def _from_year_zero(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the dates that are the given number of days after 0000-01-01. A Date wraps in 16 bits; a Date32 is
    clamped. Raises ArgumentOutOfBound for a negative number."""
    days = columns.numpy_values(arrays[0])
    if days.dtype.kind == "i" and (days < 0).any():
        raise ArgumentOutOfBound(f"Expected a non-negative integer, got: {int(days.min())}.")
    since_1970 = days.astype(np.int64) - _YEAR_ZERO
    if isinstance(call.result, Date):
        since_1970 = since_1970 & 0xFFFF
    return columns.from_values(np.clip(since_1970, *calendar.DATE32_RANGE), call.result.arrow)


_YEAR_ZERO = 719_528
"""Days from 0000-01-01 to 1970-01-01."""


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "makeDate32",
        scalar.fixed_rule(DATE32, _NUMBERS, "a number"),
        _make_date32,
        count=(2, 3),
        insensitive=True,
    ),
    scalar.custom("makeDateTime64", _make_time64, count=(6, 9), insensitive=True),
    scalar.define(
        "YYYYMMDDToDate",
        scalar.fixed_rule(DATE, _NUMBERS, "a number"),
        _unpack_date,
        insensitive=True,
    ),
    scalar.define(
        "YYYYMMDDToDate32",
        scalar.fixed_rule(DATE32, _NUMBERS, "a number"),
        _unpack_date,
        insensitive=True,
    ),
    scalar.custom(
        "YYYYMMDDhhmmssToDateTime", _unpack_time(fractions=False), count=(1, 2), insensitive=True
    ),
    scalar.custom("YYYYMMDDhhmmssToDateTime64", _unpack_time(fractions=True), count=(1, 3)),
    scalar.define(
        "fromDaysSinceYearZero",
        scalar.fixed_rule(DATE, (Integer,), "an integer"),
        _from_year_zero,
        aliases=("FROM_DAYS", "from_days"),
    ),
    scalar.define(
        "fromDaysSinceYearZero32",
        scalar.fixed_rule(DATE32, (Integer,), "an integer"),
        _from_year_zero,
    ),
)
