"""Casts between Time or Time64 and texts, numbers, dates and times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import (
    CannotConvertType,
    CannotParse,
    CannotParseDateTime,
    DecimalOverflow,
    IllegalColumn,
    TypeMismatch,
)
from olapdb.functions.casts import numbers
from olapdb.functions.casts.numbers import conversion_error, first_bad
from olapdb.functions.casts.parse_dates import POWERS, fixed_digits
from olapdb.functions.kernels import calendar, columns, regexes
from olapdb.functions.kernels.clocks import (
    SECONDS_MAX,
    Clock,
    cut,
    rescaled,
    stopped,
    ticks_max,
    ticks_per_second,
)
from olapdb.types.arrow_values import to_numpy

_GRAMMAR = (
    r"^(?P<sign>-?)(?:(?P<hours>\d{1,3}):(?P<minutes>\d\d):(?P<seconds>\d\d)"
    r"|(?P<short_minutes>\d{1,2}):(?P<short_seconds>\d\d)|(?P<alone>\d{1,2})|)"
)
_FRACTION = r"(?:\.(?P<fraction>\d*))?$"
_NANOSECOND_DIGITS = 9


# --- from texts


def parse(array: pa.Array, target: Clock) -> pa.Array:
    """Parse texts without NULL: hh:mm:ss, mm:ss or ss, with a sign and, for a Time64, a fraction.

    More digits than the precision has are cut off. Hours have up to three digits; minutes and
    seconds may exceed 59, and a sum beyond 999:59:59 is that.  Raises CannotParseDateTime for a
    text that does not begin with a number, else CannotParse for one of another form.
    """
    ticks, valid = _parsed(array, target)
    bad = first_bad(~valid)
    if bad is None:
        return columns.from_values(ticks, target.arrow)
    start = r"^(?:-?\d|-\.)" if isinstance(target, types.Time64) else r"^-?\d"
    begins = pc.match_substring_regex(array.slice(bad, 1), start)[0].as_py()
    error = CannotParse if begins else CannotParseDateTime
    raise conversion_error(error, array, bad, target, "it is no time; write hh:mm:ss")


def parse_or_null(array: pa.Array, target: Clock) -> pa.Array:
    """Parse as `parse`, with NULL for each text that it refuses."""
    ticks, valid = _parsed(array, target)
    return columns.from_values(ticks, target.arrow, valid)


def _parsed(array: pa.Array, target: Clock) -> tuple[np.ndarray, np.ndarray]:
    """Return the ticks that texts denote, and a mask of the texts that are times; texts that are all hh:mm:ss take a
    fast path."""
    digits = fixed_digits(array, 8, (2, 5), "::")
    if digits is not None:
        hours, minutes, seconds = (digits[:, at : at + 2] @ POWERS[2] for at in (0, 3, 6))
        whole = hours * 3600 + minutes * 60 + seconds
        return whole * ticks_per_second(target), np.ones(len(array), bool)
    fine = isinstance(target, types.Time64)
    parts = regexes.extracted(array, _GRAMMAR + (_FRACTION if fine else "$"))
    main = ("hours", "minutes", "seconds", "short_minutes", "short_seconds", "alone")
    hours, minutes, seconds, short_minutes, short_seconds, alone = (
        _numbers(pc.struct_field(parts, field)) for field in main
    )
    whole = hours * 3600 + (minutes + short_minutes) * 60 + seconds + short_seconds + alone
    ticks = np.minimum(whole, SECONDS_MAX) * ticks_per_second(target)
    negative = to_numpy(pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False))
    valid = to_numpy(parts.is_valid())
    valid &= to_numpy(pc.match_substring_regex(array, r"^(?:-?\d|-\.)" if fine else r"^-?\d"))
    if fine:
        fraction = pc.utf8_slice_codeunits(pc.struct_field(parts, "fraction"), 0, target.precision)
        ticks = ticks + _numbers(pc.utf8_rpad(fraction, width=target.precision, padding="0"))
    return np.where(negative, -ticks, ticks), valid


def _numbers(texts: pa.Array) -> np.ndarray:
    """Return texts of digits as int64; 0 for an empty text and for NULL."""
    padded = pc.utf8_lpad(pc.fill_null(texts, "0"), width=1, padding="0")
    return columns.numpy_values(padded.cast(pa.int64()))


# --- from other values


def to_clock(array: pa.Array, source: types.DataType, target: Clock, zone: str) -> pa.Array:
    """Cast a number of seconds, a date or a time to Time or Time64.

    Numbers stop at ±999:59:59.9…. A moment gives the time that a clock of its zone shows, a date
    00:00:00. Raises CannotConvertType from Time64 to Time, which ClickHouse does not have,
    IllegalColumn from a Decimal to Time, and an error for NaN and infinity.
    """
    if isinstance(source, types.Time64) and isinstance(target, types.Time):
        raise CannotConvertType("Conversion from Time64 to Time is not supported.").at_row(0)
    per_second = ticks_per_second(target)
    match source:
        case types.Time() | types.Time64():
            ticks = rescaled(
                columns.numpy_values(array).astype(np.int64), ticks_per_second(source), per_second
            )
        case types.Date() | types.Date32():
            ticks = np.zeros(len(array), np.int64)
        case types.DateTime() | types.DateTime64():
            ticks = _clock_of_moments(array, source, per_second, zone)
        case types.Decimal():
            ticks = _ticks_of_decimals(array, source, target)
        case types.Float():
            ticks = _ticks_of_floats(array, target)
        case types.Integer() | types.Boolean() | types.Interval():
            ticks = _ticks_of_integers(columns.numpy_values(array), target)
        case _:
            raise TypeMismatch(f"Conversion from {source} to {target} is not supported.")
    return columns.from_values(ticks, target.arrow)


def _clock_of_moments(
    array: pa.Array, source: types.DateTime | types.DateTime64, per_second: int, zone: str
) -> np.ndarray:
    """Return the time of day on a clock of the moments' zone, in ticks, truncated."""
    own = calendar.ticks_per_second(source)
    seconds, fraction = np.divmod(columns.numpy_values(array).astype(np.int64), own)
    wall = calendar.unbounded_local(seconds, calendar.zone_of(source, zone)) % calendar.DAY
    return calendar.rescaled(wall * own + fraction, own, per_second)


def _ticks_of_integers(values: np.ndarray, target: Clock) -> np.ndarray:
    """Return seconds as ticks of the target, stopped at the ends of its range, ±999:59:59."""
    limited = (
        np.minimum(values, np.uint64(SECONDS_MAX + 1)) if values.dtype == np.uint64 else values
    )
    seconds = np.clip(limited.astype(np.int64), -SECONDS_MAX - 1, SECONDS_MAX + 1)
    return stopped(seconds * ticks_per_second(target), target)


def _ticks_of_floats(array: pa.Array, target: Clock) -> np.ndarray:
    """Return seconds as ticks of the target, truncated, and stopped at the ends of its range.

    NaN and infinity raise CannotConvertType for a Time and DecimalOverflow for a Time64."""
    floats = columns.numpy_values(array).astype(np.float64)
    bad = first_bad(~np.isfinite(floats))
    if bad is not None:
        error = CannotConvertType if isinstance(target, types.Time) else DecimalOverflow
        raise conversion_error(error, array, bad, target, "it is no finite number")
    limited = np.clip(floats, -SECONDS_MAX - 1, SECONDS_MAX + 1) * ticks_per_second(target)
    return stopped(np.trunc(limited).astype(np.int64), target)


def _ticks_of_decimals(array: pa.Array, source: types.Decimal, target: Clock) -> np.ndarray:
    """Return decimal seconds as ticks of the target, truncated, and stopped at the ends of its range.

    Raises IllegalColumn for a Time: ClickHouse casts decimals to Time64 alone."""
    if isinstance(target, types.Time):
        raise IllegalColumn(f"Conversion from {source} to Time is not supported.")
    wide = types.Decimal(76, target.precision)
    scaled = numbers.to_decimal(array, source, wide)
    unscaled = columns.view(scaled, pa.decimal256(76, 0))
    most = pa.scalar(ticks_max(target)).cast(pa.decimal256(76, 0))
    limited = pc.max_element_wise(pc.min_element_wise(unscaled, most), pc.negate(most))
    return columns.numpy_values(limited.cast(pa.int64()))


# --- to other values


def from_clock(array: pa.Array, source: Clock, target: types.DataType) -> pa.Array:
    """Cast a Time or Time64 to a number of seconds, to a date (1970-01-01), or to the moment that many seconds after
    1970.

    Integers of a Time wrap, those of a Time64 raise DecimalOverflow beyond their range. Raises IllegalColumn from
    Time to a Decimal, CannotConvertType from Time64 to a DateTime, TypeMismatch for other types."""
    per_second = ticks_per_second(source)
    ticks = columns.numpy_values(array).astype(np.int64)
    match target:
        case types.Boolean():
            return columns.from_values(ticks != 0, target.arrow)
        case types.Float():
            return columns.from_values(ticks / per_second, target.arrow)
        case types.Integer():
            return _to_integers(array, cut(ticks, per_second), source, target)
        case types.Decimal():
            if isinstance(source, types.Time):
                raise IllegalColumn(f"Conversion from Time to {target} is not supported.")
            exact = types.Decimal(18, source.precision)
            return numbers.to_decimal(numbers.decimals_from(ticks, exact), exact, target)
        case types.Date() | types.Date32():
            return columns.from_values(np.zeros(len(array), np.int32), target.arrow)
        case types.DateTime():
            _refuse_fine(source, target)
            return columns.from_values(ticks & 0xFFFFFFFF, target.arrow)
        case types.Interval():
            _refuse_fine(source, target)
            return columns.from_values(ticks, target.arrow)
        case types.DateTime64():
            new = 10**target.precision
            exact_ticks = rescaled(ticks, per_second, new)
            return columns.from_values(
                exact_ticks * (calendar.ticks_per_second(target) // new), target.arrow
            )
        case _:
            raise TypeMismatch(f"Conversion from {source} to {target} is not supported.")


def _refuse_fine(source: Clock, target: types.DataType) -> None:
    """Raise CannotConvertType if the source is a Time64, which ClickHouse does not convert to `target`."""
    if isinstance(source, types.Time64):
        raise CannotConvertType(f"Conversion from {source} to {target} is not supported.").at_row(0)


def _to_integers(
    array: pa.Array, seconds: np.ndarray, source: Clock, target: types.Integer
) -> pa.Array:
    """Return seconds as integers, wrapped from a Time; raise DecimalOverflow for seconds of a
    Time64 beyond the range."""
    if isinstance(source, types.Time64):
        high = min(target.maximum, np.iinfo(np.int64).max)
        bad = first_bad((seconds < target.minimum) | (seconds > high))
        if bad is not None:
            raise conversion_error(DecimalOverflow, array, bad, target, "it is out of range")
    return columns.from_values(seconds, target.arrow)
