"""plus, minus and the add… functions of Time and Time64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb import types
from olapdb.errors import DecimalOverflow, IllegalTypeOfArgument
from olapdb.functions.base import Argument, Column, ScalarCall
from olapdb.functions.casts import temporal
from olapdb.functions.casts.clocks import from_clock
from olapdb.functions.casts.numbers import decimals_from
from olapdb.functions.datetime import date_arithmetic
from olapdb.functions.datetime.date_arithmetic import SECONDS, SUBSECOND
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.kernels.clocks import (
    SECONDS_MAX,
    Clock,
    cut,
    rescaled,
    stopped,
    ticks_per_second,
)
from olapdb.functions.scalar import Invocation, Kernel, illegal, standard_call

CLOCKS = (types.Time, types.Time64)
_DATES = (types.Date, types.Date32, types.DateTime, types.DateTime64)
_MOMENTS = (types.DateTime, types.DateTime64)
_INT64_END = 2.0**63


def resolve(name: str, operation: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call of plus or minus with a Time or Time64 as an argument.

    A number counts seconds. A time added to a date or a moment gives a moment; a moment minus a
    time as well. The difference of two times is in seconds.  `operation` is "plus" or "minus";
    raises IllegalTypeOfArgument for other pairs.
    """
    left, right = (types.plain(a.type) for a in arguments)
    swapped = operation == "plus" and not isinstance(left, CLOCKS)
    if swapped:
        left, right = right, left
    sign = 1 if operation == "plus" else -1
    if isinstance(left, CLOCKS):
        if isinstance(right, CLOCKS) and operation == "minus":
            return standard_call(name, arguments, _difference_type(left, right), _difference)
        if isinstance(right, types.Interval):
            result = shifted_type(name, left, right.unit)
            kernel = shift(right.unit, sign, swapped=swapped)
            return standard_call(name, arguments, result, kernel, keeps_constants=True)
        if isinstance(right, types.Integer | types.Float | types.Boolean):
            kernel = shift("Second", sign, swapped=swapped)
            return standard_call(name, arguments, left, kernel, keeps_constants=True)
        if isinstance(right, _DATES) and operation == "plus":
            return standard_call(name, arguments, _moment_type(right, left), _moved(1))
    elif isinstance(left, _MOMENTS) and isinstance(right, CLOCKS):
        return standard_call(name, arguments, _moment_type(left, right), _moved(-1))
    raise IllegalTypeOfArgument(
        f"Illegal types of arguments of function {name}: {arguments[0].type} and {arguments[1].type}."
    )


def _difference_type(left: Clock, right: Clock) -> types.DataType:
    """Return the type of the difference of two times, in seconds: Int32, or a Decimal if either one is a Time64."""
    if isinstance(left, types.Time) and isinstance(right, types.Time):
        return types.INT32
    return types.Decimal(18, max(left.precision, right.precision))


def _difference(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the seconds between two times; as a Decimal with their fraction."""
    scale = call.result.scale if isinstance(call.result, types.Decimal) else 0
    left, right = (_ticks(a, kind, scale) for a, kind in zip(arrays, call.types, strict=True))
    if isinstance(call.result, types.Decimal):
        return decimals_from(left - right, call.result)
    return columns.from_values(left - right, call.result.arrow)


def _ticks(array: pa.Array, kind: types.DataType, precision: int) -> np.ndarray:
    """Convert times to integer ticks of 10^-precision seconds."""
    assert isinstance(kind, CLOCKS)
    ticks = columns.numpy_values(array).astype(np.int64)
    return rescaled(ticks, ticks_per_second(kind), 10**precision)


def _moment_type(moment: types.DataType, clock: types.DataType) -> types.DataType:
    """Return the type of a date or timestamp plus a time of type `clock`."""
    assert isinstance(clock, CLOCKS)
    zone = moment.zone if isinstance(moment, types.DateTime | types.DateTime64) else None
    own = moment.precision if isinstance(moment, types.DateTime64) else 0
    narrow = isinstance(moment, types.Date | types.DateTime)
    if narrow and isinstance(clock, types.Time):
        return types.DateTime(zone)
    return types.DateTime64(max(own, clock.precision), zone)


def _moved(sign: int) -> Kernel:
    """Return the kernel that adds `sign` times a time to a date, its midnight, or to a moment.

    DateTimes wrap around; a DateTime64 stops at the ends of its range.
    """

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Return the moments moved by the times of a clock. A DateTime wraps around beyond its range, a DateTime64
        stays at the end of it."""
        at = 0 if isinstance(call.types[0], CLOCKS) else 1
        moments, source, result = arrays[1 - at], call.types[1 - at], call.result
        assert isinstance(result, types.DateTime | types.DateTime64)
        zone = call.environment.zone
        if isinstance(result, types.DateTime) and isinstance(source, types.Date):
            # dates beyond the last DateTime wrap around with it
            moments = _wrapped_midnights(moments, calendar.zone_of(result, zone))
        elif source != result:
            moments = temporal.to_time(moments, source, result, zone)
        per_second = calendar.ticks_per_second(result)
        clock = call.types[at]
        assert isinstance(clock, CLOCKS)
        span = _ticks(arrays[at], clock, clock.precision) * (per_second // ticks_per_second(clock))
        moved = columns.numpy_values(moments).astype(np.int64) + sign * span
        if isinstance(result, types.DateTime):
            return columns.from_values(moved & 0xFFFFFFFF, result.arrow)
        return columns.from_values(np.clip(moved, *calendar.limits64(per_second)), result.arrow)

    return kernel


def _wrapped_midnights(days: pa.Array, zone: str) -> pa.Array:
    """Return the midnights of dates in a zone as Unix seconds, int64."""
    wall = columns.numpy_values(days).astype(np.int64) * calendar.DAY
    return columns.from_values(calendar.utc_from_local(wall, zone), pa.int64())


def shifted_type(name: str, data_type: types.DataType, unit: str) -> types.DataType:
    """Return the type of a time after adding units `unit`. Raises IllegalTypeOfArgument for a Time and a unit other
    than hour, minute and second."""
    if isinstance(data_type, types.Time):
        if unit not in SECONDS:
            raise illegal(name, data_type, f"a date or a Time64 to add an interval of {unit}s to")
        return data_type
    assert isinstance(data_type, types.Time64)
    return types.Time64(max(data_type.precision, SUBSECOND.get(unit, 0)))


def shift(unit: str, sign: int, *, swapped: bool = False) -> Kernel:
    """Return the kernel that adds `sign` times amounts of `unit` to times. Beyond the range, the whole seconds are
    clamped and the fraction stays. Fractions of amounts are truncated. `swapped`: the amounts are the first argument.
    """

    def kernel(values: list[Column], call: Invocation) -> pa.Array:
        """Add the amounts. Sums of a Time wrap in 32 bits; a Time64 raises DecimalOverflow beyond 64 bits."""
        times, amounts = reversed(values) if swapped else values
        source, result = call.types[1 if swapped else 0], call.result
        assert isinstance(result, CLOCKS)
        assert isinstance(source, CLOCKS)
        array = columns.single(times)
        amount = sign * _whole(columns.single(amounts))
        if isinstance(result, types.Time):
            seconds = columns.numpy_values(array).astype(np.int64) + amount * SECONDS[unit]
            return columns.from_values(stopped(seconds.astype(np.int32), result), result.arrow)
        ticks = _ticks(array, source, result.precision)
        per_second = ticks_per_second(result)
        if unit in SUBSECOND:
            moved = _added(ticks, amount, per_second // 10 ** SUBSECOND[unit])
        elif unit in SECONDS:
            moved = _added(ticks, amount, SECONDS[unit] * per_second)
        else:
            moved = _days_later(ticks, amount, unit, result)
        return columns.from_values(_stopped_seconds(moved, per_second), result.arrow)

    return kernel


def _whole(amounts: pa.Array) -> np.ndarray:
    """Truncate numbers to integers; NaN becomes 0. Raises DecimalOverflow beyond 63 bits."""
    values = columns.numpy_values(amounts)
    if values.dtype.kind == "f":
        finite = np.nan_to_num(np.trunc(values), nan=0.0)
        return np.asarray(np.clip(finite, -(2.0**55), 2.0**55).astype(np.int64))
    if values.dtype == np.uint64 and len(values) and int(values.max()) >= int(_INT64_END):
        raise DecimalOverflow("Numeric overflow: an amount needs more than 63 bits.")
    return np.asarray(values.astype(np.int64))


def _added(ticks: np.ndarray, amount: np.ndarray, factor: int) -> np.ndarray:
    """Return ticks plus `amount` units of `factor` ticks; raise DecimalOverflow beyond 64 bits."""
    exact = ticks.astype(np.float64) + amount.astype(np.float64) * factor
    if exact.size and float(np.abs(exact).max()) >= _INT64_END:
        raise DecimalOverflow("Decimal math overflow: a time is moved too far.").at_row(
            int(np.argmax(np.abs(exact)))
        )
    return np.asarray(ticks + amount * factor)


def _days_later(
    ticks: np.ndarray, amount: np.ndarray, unit: str, result: types.Time64
) -> np.ndarray:
    """Add days, weeks or months to times, taken as times of the day 1970-01-01, as ClickHouse does."""
    moment = types.DateTime64(result.precision, "UTC")
    moments = from_clock(columns.from_values(ticks, pa.int64()), result, moment)
    moved = date_arithmetic.add_units(moments, moment, moment, amount, unit, "UTC")
    return rescaled(
        columns.numpy_values(moved), calendar.ticks_per_second(moment), ticks_per_second(result)
    )


def _stopped_seconds(ticks: np.ndarray, per_second: int) -> np.ndarray:
    """Clamp the whole seconds of ticks to ±999:59:59; the fraction stays."""
    whole = cut(ticks, per_second)
    return np.asarray(
        np.clip(whole, -SECONDS_MAX, SECONDS_MAX) * per_second + (ticks - whole * per_second)
    )
