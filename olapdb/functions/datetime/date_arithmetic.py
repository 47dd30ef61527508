"""plus and minus of dates and times with numbers, intervals and each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb import types
from olapdb.errors import DecimalOverflow, IllegalTypeOfArgument
from olapdb.functions.base import Argument, Column, ScalarCall
from olapdb.functions.casts import temporal
from olapdb.functions.casts.numbers import decimals_from
from olapdb.functions.composition import as_call, call, literal, parts_of
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.kernels.arrow_buffers import converted
from olapdb.functions.numeric import numpy_arithmetic
from olapdb.functions.registry import resolve_scalar
from olapdb.functions.scalar import Invocation, Kernel, illegal, standard_call

SUBSECOND = {"Millisecond": 3, "Microsecond": 6, "Nanosecond": 9}
SECONDS = {"Second": 1, "Minute": 60, "Hour": 3600}
DAYS = {"Day": 1, "Week": 7}
MONTHS = {"Month": 1, "Quarter": 3, "Year": 12}
_TIMED = (types.Date, types.Date32, types.DateTime, types.DateTime64)


def resolve(name: str, operation: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call of plus or minus with a date, time or interval as an argument.

    `operation` is "plus" or "minus", `name` is for errors. Raises IllegalTypeOfArgument if the two
    types cannot be added or subtracted.
    """
    left, right = (types.plain(a.type) for a in arguments)
    swapped = operation == "plus" and not isinstance(left, _TIMED) and isinstance(right, _TIMED)
    if swapped:
        left, right = right, left
    sign = 1 if operation == "plus" else -1
    if isinstance(left, _TIMED) and isinstance(right, _TIMED) and operation == "minus":
        return standard_call(name, arguments, _difference_type(name, left, right), _difference)
    if {type(left), type(right)} == {types.String, types.Interval} and (
        operation == "plus" or isinstance(right, types.Interval)
    ):
        text_first = isinstance(left, types.String)
        text, interval = parts_of(arguments)[:: 1 if text_first else -1]
        moment = call("toDateTime64", text, literal(3, types.UINT8))
        return as_call(name, call(operation, moment, interval))
    if isinstance(left, types.Interval) and left == right:
        return standard_call(name, arguments, left, _intervals(sign))
    if isinstance(left, _TIMED) and isinstance(right, types.Interval):
        result = shifted_type(name, left, right.unit)
        kernel = shift(right.unit, sign, swapped=swapped)
        return standard_call(name, arguments, result, kernel, keeps_constants=True)
    if isinstance(left, _TIMED) and isinstance(right, types.Integer | types.Float | types.Decimal):
        unit = "Day" if isinstance(left, types.Date | types.Date32) else "Second"
        kernel = shift(unit, sign, swapped=swapped)
        return standard_call(name, arguments, left, kernel, keeps_constants=True)
    prefix = "add" if operation == "plus" else "subtract"
    if isinstance(left, types.Interval | types.Tuple) and isinstance(right, types.Interval):
        return _resolved(f"{prefix}Interval", arguments)
    if isinstance(left, _TIMED) and isinstance(right, types.Tuple) and not swapped:
        return _resolved(f"{prefix}TupleOfIntervals", arguments)
    raise IllegalTypeOfArgument(
        f"Illegal types of arguments of function {name}: {arguments[0].type} and {arguments[1].type}."
    )


def _resolved(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve the function `name` on the arguments."""
    return resolve_scalar(name, arguments)


def _difference_type(name: str, left: types.DataType, right: types.DataType) -> types.DataType:
    """Return the type of the difference: Int32, or a Decimal if one is a DateTime64.

    Raises IllegalTypeOfArgument for other pairs of two different types.
    """
    clocks = isinstance(left, types.DateTime | types.DateTime64) and isinstance(
        right, types.DateTime | types.DateTime64
    )
    if clocks and types.DateTime64 in (type(left), type(right)):
        digits = max(t.precision if isinstance(t, types.DateTime64) else 0 for t in (left, right))
        return types.Decimal(18, digits)
    if type(left) is type(right):
        return types.INT32
    raise IllegalTypeOfArgument(
        f"Illegal types of arguments of function {name}: {left} and {right}."
    )


def _difference(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the days between dates or the seconds between times; Int32, or a Decimal that keeps fractions.

    Raises DecimalOverflow for a Decimal beyond 64 bits."""
    if not isinstance(call.result, types.Decimal):
        left, right = (columns.numpy_values(a).astype(np.int64) for a in arrays)
        return columns.from_values(left - right, call.result.arrow)
    left, right = (
        _exactly_rescaled(columns.numpy_values(array), kind, call.result.scale)
        for array, kind in zip(arrays, call.types, strict=True)
    )
    difference = left - right
    wraps = ((left ^ right) & (left ^ difference)) < 0
    if wraps.any():
        raise _too_far().at_row(int(np.argmax(wraps)))
    return decimals_from(difference, call.result)


def _exactly_rescaled(ticks: np.ndarray, kind: types.DataType, scale: int) -> np.ndarray:
    """Return a time's ticks as int64 with `scale` digits behind the second. Raises DecimalOverflow beyond 64 bits."""
    own, wanted = calendar.ticks_per_second(kind), 10**scale
    whole = ticks.astype(np.int64)
    beyond = np.abs(whole) > calendar.INT64_MAX // max(wanted // own, 1)
    if beyond.any():
        raise _too_far().at_row(int(np.argmax(beyond)))
    return calendar.rescaled(whole, own, wanted)


def _too_far() -> DecimalOverflow:
    """Return the error about times whose difference has too many digits."""
    return DecimalOverflow(
        "Decimal math overflow: the times are too far apart for the digits of their difference.",
        hint="dateDiff counts whole seconds; a DateTime64(6) has fewer digits.",
    )


def _intervals(sign: int) -> Kernel:
    """Return the kernel of the sum or difference of two intervals of one unit."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Add or subtract the numbers of units."""
        left, right = (columns.numpy_values(a) for a in arrays)
        return columns.from_values(left + sign * right, pa.int64())

    return kernel


def shifted_type(name: str, data_type: types.DataType, unit: str) -> types.DataType:
    """Return the type of a date or time after adding units `unit`. Raises IllegalTypeOfArgument for a date and a unit
    shorter than a second."""
    if unit in SUBSECOND:
        if isinstance(data_type, types.Date | types.Date32):
            raise illegal(name, data_type, f"a DateTime to add an interval of {unit}s to")
        precision = SUBSECOND[unit]
        zone = data_type.zone if isinstance(data_type, types.DateTime | types.DateTime64) else None
        own = data_type.precision if isinstance(data_type, types.DateTime64) else 0
        return types.DateTime64(max(own, precision), zone)
    if unit in SECONDS and isinstance(data_type, types.Date):
        return types.DATETIME
    if unit in SECONDS and isinstance(data_type, types.Date32):
        return types.DateTime64(3)
    return data_type


def shift(unit: str, sign: int, *, swapped: bool = False) -> Kernel:
    """Return the kernel that adds `sign` times amounts of `unit` to dates or times. `swapped`: the amounts are the
    first argument."""

    def kernel(values: list[Column], call: Invocation) -> pa.Array:
        """Add the amounts to the dates or times; fractions of amounts are truncated, and NaN counts as 0."""
        times, amounts = reversed(values) if swapped else values
        source = call.types[1] if swapped else call.types[0]
        if pa.types.is_decimal(amounts.type):
            amounts = amounts.cast(pa.float64())
        amount = columns.operand(amounts)
        if amount.dtype.kind == "f":
            finite = np.nan_to_num(np.trunc(amount), nan=0.0)  # NaN moves nothing
            amount = np.clip(finite, -(2.0**55), 2.0**55).astype(np.int64)
        if isinstance(call.result, types.Date | types.Date32) and unit in DAYS:
            return _days_shifted(columns.operand(times), amount, sign * DAYS[unit], call)
        array = columns.single(times)
        signed_amounts = converted(amount, np.int64) * sign
        return add_units(array, source, call.result, signed_amounts, unit, call.environment.zone)

    return kernel


def _days_shifted(days: np.ndarray, amounts: np.ndarray, factor: int, call: Invocation) -> pa.Array:
    """Add `factor` times `amounts` days to dates.

    The result stops at the ends of the type's range.
    """
    dtype = np.int32 if amounts.dtype.itemsize <= _NARROW_BYTES else np.int64
    if abs(factor) != 1:
        amounts = np.multiply(amounts, abs(factor), dtype=dtype, casting="unsafe")
    operation = np.add if factor > 0 else np.subtract
    shifted_days = numpy_arithmetic.apply_ufunc(operation, days, amounts, call.rows, dtype)
    first, last = _limits(call.result)
    np.maximum(shifted_days, first, out=shifted_days)
    np.minimum(shifted_days, last, out=shifted_days)
    return columns.from_values(shifted_days, call.result.arrow)


_NARROW_BYTES = 2
"""Amounts of weeks of this width, added to any date, fit 32 bits."""


def _limits(result: types.DataType) -> tuple[int, int]:
    """Return the first and the last day of a date type, in days since 1970-01-01."""
    return (0, calendar.DATE_MAX) if isinstance(result, types.Date) else calendar.DATE32_RANGE


def add_units(
    array: pa.Array,
    source: types.DataType,
    result: types.DataType,
    count: np.ndarray,
    unit: str,
    zone: str,
) -> pa.Array:
    """Return dates or times plus `count` units; either may have one value for all rows.

    Months keep the day, or take the month's last; days keep the wall clock; shorter units add
    seconds.
    """
    if isinstance(result, types.Date | types.Date32):
        days = columns.numpy_values(array).astype(np.int64)
        result_values = _months_later(days, _clipped(count) * MONTHS[unit])
        return columns.from_values(np.clip(result_values, *_limits(result)), result.arrow)
    assert isinstance(result, types.DateTime | types.DateTime64)
    if source != result:
        array = temporal.to_time(array, source, result, zone)
    ticks = columns.numpy_values(array)
    per_second = calendar.ticks_per_second(result)
    if unit in SUBSECOND:
        result_values = _ticks_moved(ticks, count, per_second // 10 ** SUBSECOND[unit], result)
    elif unit in SECONDS:
        result_values = _ticks_moved(ticks, count, SECONDS[unit] * per_second, result)
    else:
        result_values = _days_moved(ticks, count, unit, result, calendar.zone_of(result, zone))
    if isinstance(result, types.DateTime):
        # months stop at the ends of the range, days and seconds wrap around
        result_values = (
            np.clip(result_values, 0, calendar.DATETIME_MAX)
            if unit in MONTHS
            else result_values & 0xFFFFFFFF
        )
    return columns.from_values(result_values, result.arrow)


_COUNT_MAX = 10_000_000
"""Larger amounts of days and months leave the range of every type."""


def _clipped(count: np.ndarray) -> np.ndarray:
    """Clamp counts of days or months to ±10 million, so that later sums do not overflow."""
    return np.asarray(np.clip(count, -_COUNT_MAX, _COUNT_MAX))


def _ticks_moved(
    ticks: np.ndarray, count: np.ndarray, factor: int, result: types.DateTime | types.DateTime64
) -> np.ndarray:
    """Return ticks plus `count` units of `factor` ticks; the caller wraps a DateTime.

    A DateTime64 stops at the ends of its range. Raises DecimalOverflow beyond its 64 bits.
    """
    moved = ticks + count * factor
    if isinstance(result, types.DateTime64):
        exact = ticks.astype(np.float64) + count.astype(np.float64) * factor
        overflowed = np.abs(exact - moved) > _FLOAT_ERROR_MAX
        if overflowed.any():
            raise DecimalOverflow(
                f"Decimal math overflow: a {result} is moved too far from 1970."
            ).at_row(int(np.argmax(overflowed)))
        first, last = calendar.limits64(calendar.ticks_per_second(result))
        moved = np.clip(moved, first, last)
    return np.asarray(moved)


_FLOAT_ERROR_MAX = 2.0**60
"""A wrapped sum differs from the float by 2 ** 64, one that float rounding changed by less than this."""


def _days_moved(
    ticks: np.ndarray,
    count: np.ndarray,
    unit: str,
    result: types.DateTime | types.DateTime64,
    zone: str,
) -> np.ndarray:
    """Add days, weeks or months to timestamps: the wall clock time in the zone stays."""
    per_second = calendar.ticks_per_second(result)
    seconds, fraction = np.divmod(ticks, per_second)
    days, clock = np.divmod(calendar.unbounded_local(seconds, zone), calendar.DAY)
    stops = isinstance(result, types.DateTime64)
    if unit in MONTHS:
        days = _months_later(days, _clipped(count) * MONTHS[unit])
    else:
        days = days + (_clipped(count) if stops else count) * DAYS[unit]
    if not stops:
        return calendar.utc_of_text(days * calendar.DAY + clock, zone)
    days = np.clip(days, *calendar.DATE32_RANGE)
    moved = calendar.utc_of_text(days * calendar.DAY + clock, zone)
    first, last = calendar.limits64(per_second)
    seconds = np.clip(moved, first // per_second, (last - per_second + 1) // per_second)
    return np.asarray(seconds * per_second + fraction)


def _months_later(days: np.ndarray, months: np.ndarray) -> np.ndarray:
    """Return the days moved by a number of months; a day that the new month lacks becomes the month's last day."""
    year, month, day = calendar.civil_from_days(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    return calendar.days_from_civil(year, month, np.minimum(day, month_lengths(year, month)))


def month_lengths(year: np.ndarray, month: np.ndarray) -> np.ndarray:
    """Return the number of days of each month; months count from 1."""
    one = np.ones_like(month)
    wrap = month == 12
    following = calendar.days_from_civil(year + wrap, np.where(wrap, 1, month + 1), one)
    return np.asarray(following - calendar.days_from_civil(year, month, one))
