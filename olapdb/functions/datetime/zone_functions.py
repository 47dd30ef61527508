"""Times and time zones: UTCTimestamp, toUTCTimestamp, timezoneOffset, times of a fixed day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.composition import call, literal
from olapdb.functions.datetime.components import CLOCKS, DATES
from olapdb.functions.kernels import calendar, columns
from olapdb.types import INT32, STRING, UINT32, DataType, Date, Date32, DateTime, plain


def _utc_now(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve UTCTimestamp(): now() in UTC."""
    now = call("now", literal("UTC", STRING))
    return ScalarCall(name, now.type, now.compute, now.volatility)


def _between_zones(
    convert: Callable[[np.ndarray, str], np.ndarray],
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of toUTCTimestamp or fromUTCTimestamp, (time, zone); `convert` maps seconds between the
    zone and UTC."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; the type stays. Raises IllegalTypeOfArgument."""
        source = plain(arguments[0].type)
        if not isinstance(source, CLOCKS):
            raise scalar.illegal(name, source, "a DateTime or DateTime64")
        if source.zone is not None:
            raise IllegalTypeOfArgument(
                f"Function {name} takes a time whose type names no zone, not {source}."
            )
        zone = scalar.constant_zone(name, arguments, 1)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Move each time by the zone's offset; a DateTime is clamped to its range."""
            ticks = calendar.ticks_per_second(source)
            seconds, fraction = np.divmod(columns.numpy_values(arrays[0]).astype(np.int64), ticks)
            moved = convert(seconds, zone)
            if isinstance(source, DateTime):
                moved = np.clip(moved, 0, calendar.DATETIME_MAX)
            return columns.from_values(moved * ticks + fraction, source.arrow)

        return scalar.standard_call(name, arguments, source, kernel)

    return resolve


def _offset(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the seconds by which the zone of the time is ahead of UTC."""
    ticks = calendar.ticks_per_second(call.types[0])
    seconds = columns.numpy_values(arrays[0]).astype(np.int64) // ticks
    zone = calendar.zone_of(call.types[0], call.environment.zone)
    return columns.from_values(calendar.unbounded_local(seconds, zone) - seconds, pa.int32())


def _fixed_day(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toTimeWithFixedDate(t[, zone]): the time of day on 1970-01-02."""
    source = plain(arguments[0].type)
    if not isinstance(source, CLOCKS):
        raise scalar.illegal(name, source, "a DateTime or DateTime64")
    zone = scalar.constant_zone(name, arguments, 1) if len(arguments) > 1 else source.zone
    result = DateTime(zone)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return the times of day, by the zone's wall clock, on 1970-01-02."""
        own = zone or call.environment.zone
        ticks = calendar.ticks_per_second(source)
        seconds = columns.numpy_values(arrays[0]).astype(np.int64) // ticks
        wall = calendar.unbounded_local(seconds, own) % calendar.DAY + calendar.DAY
        return columns.from_values(calendar.utc_from_local(wall, own), result.arrow)

    return scalar.standard_call(name, arguments, result, kernel)


@cache
def _epoch_shift(zone: str) -> int:
    """Return the seconds that ClickHouse adds before it counts units in a zone: 0 if the zone's offset has always
    been whole hours since 1970, else a day less the offset in 1970."""
    days = np.arange(0, calendar.DATETIME_MAX, calendar.DAY * 7)
    offsets = calendar.unbounded_local(days, zone) - days
    return 0 if not (offsets % 3600).any() else calendar.DAY - int(offsets[0])


def _relative(length: int) -> scalar.Kernel:
    """Return the kernel of toRelativeHourNum and the like, for units of `length` seconds."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Count units since 1970; earlier times give 0, and more than 32 bits hold the greatest number."""
        named = call.constant(1)
        zone = str(named) if named else calendar.zone_of(call.types[0], call.environment.zone)
        values = columns.numpy_values(arrays[0]).astype(np.int64)
        if isinstance(call.types[0], Date | Date32):
            seconds = calendar.utc_from_local(values * calendar.DAY, zone)
        else:
            seconds = values // calendar.ticks_per_second(call.types[0])
        shift = _epoch_shift(zone) if length == 3600 else 0
        counted = (np.clip(seconds, 0, None) + shift) // length
        return columns.from_values(np.minimum(counted, np.iinfo(np.uint32).max), pa.uint32())

    return kernel


_relative_rule = scalar.fixed_rule(UINT32, DATES, "a Date or DateTime", checked=1)


def _zoned_relative_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return UInt32. Raises an error for an argument that is no date or time, and for an unknown zone."""
    result = _relative_rule(name, types, arguments)
    if len(arguments) > 1:
        scalar.constant_zone(name, arguments, 1)
    return result


def _relative_definition(name: str, length: int) -> scalar.ScalarDefinition:
    """Define `name`: the number of units of `length` seconds since 1970."""
    return scalar.define(name, _zoned_relative_rule, _relative(length), count=(1, 2))


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("UTCTimestamp", _utc_now, count=0, aliases=("UTC_timestamp",), insensitive=True),
    scalar.custom(
        "toUTCTimestamp",
        _between_zones(calendar.utc_from_local),
        count=2,
        aliases=("to_utc_timestamp",),
        insensitive=True,
    ),
    scalar.custom(
        "fromUTCTimestamp",
        _between_zones(calendar.unbounded_local),
        count=2,
        aliases=("from_utc_timestamp",),
        insensitive=True,
    ),
    scalar.define(
        "timezoneOffset",
        scalar.fixed_rule(INT32, CLOCKS, "a DateTime or DateTime64"),
        _offset,
        aliases=("timeZoneOffset",),
    ),
    scalar.custom("toTimeWithFixedDate", _fixed_day, count=(1, 2)),
    _relative_definition("toRelativeHourNum", 3600),
    _relative_definition("toRelativeMinuteNum", 60),
    _relative_definition("toRelativeSecondNum", 1),
)
