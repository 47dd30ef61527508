"""Conversions of stored values: each value survives, or is refused with its row.

A CAST wraps integers, cuts fractions and clamps dates, as ClickHouse does.  An INSERT must not: a
read returns what was inserted.  `convert` is CAST with that promise:

    300 -> UInt8           refused, it is out of range
    1.5 -> Int32           refused, it would become 1
    '1.239' -> Decimal(9, 2)   refused, it has more than 2 places
    2.0 -> Int32           2
    0.1 -> Float32         the nearest Float32: floats are approximate by their nature

Rounding to the nearest float is the only accepted change; a finite number that would become
infinite is refused.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import CannotConvertType, TypeMismatch
from olapdb.functions.casts import numbers, parse_dates, parse_timestamps, parsing, wide_numbers
from olapdb.functions.casts.numbers import first_bad
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.strings import rendering
from olapdb.types.arrow_values import to_numpy

Cast: TypeAlias = Callable[[pa.Array, types.DataType, types.DataType], pa.Array]
"""A plain CAST: (array without nulls, source type, target type) to the converted array."""

HINT = (
    "Give the column a wider type, or convert the value in the query. insert_allow_lossy_conversion"
    " = 1 converts the values of an INSERT as CAST does."
)
_NANOSECONDS = 9
_EXACT_FLOAT = 2.0**53
_POWERS_EXACT = 22
"""10**22 is the largest power of ten that a Float64 holds exactly."""
_DOT = ord(".")


def keeps_all(source: types.DataType, target: types.DataType) -> bool:
    """Return whether each value of `source` converts to `target` without a change; both types are not Nullable and
    no containers."""
    if source == target:
        return True
    match source, target:
        case (_, types.String()):
            return True
        case (types.Integer(), types.Integer()):
            return target.minimum <= source.minimum and source.maximum <= target.maximum
        case (types.Integer() | types.WideNumber(), types.WideNumber()):
            wider = target.bits > source.bits and target.signed >= source.signed
            return target.bits >= source.bits and (wider or target.signed == source.signed)
        case (types.WideNumber(), _) | (_, types.WideNumber()):
            return isinstance(source, types.Boolean)
        case (types.Boolean(), types.Integer() | types.Float()):
            return True
        case (types.Enum(), types.Enum()):
            return set(source.elements) <= set(target.elements)
        case (types.Enum(), types.Integer()):
            return target.signed and target.bits >= source.bits
        case (types.Integer(), types.Float()):
            return source.bits <= {16: 8, 32: 16, 64: 32}[target.bits]
        case (types.Float(), types.Float()):
            return source.bits <= target.bits
        case (types.Integer(), types.Decimal()):
            return len(str(source.maximum)) <= target.precision - target.scale
        case (types.Decimal(), types.Decimal()):
            whole = source.precision - source.scale <= target.precision - target.scale
            return whole and source.scale <= target.scale
        case (types.Date(), types.Date32()) | (
            types.DateTime(),
            types.DateTime() | types.DateTime64(),
        ):
            return True
        case (types.Date(), types.DateTime64()) | (types.Time(), types.Time64()):
            return True
        case (types.Time64(), types.Time64()):
            return source.precision <= target.precision
        case (types.Date32(), types.DateTime64()):
            return target.precision <= 6
        case (types.DateTime64(), types.DateTime64()):
            return source.precision <= target.precision <= 6 or source.precision == target.precision
        case (types.Date(), types.Integer()):
            return target.minimum <= 0 and target.maximum >= calendar.DATE_MAX
        case (types.DateTime(), types.Integer()):
            return target.minimum <= 0 and target.maximum >= calendar.DATETIME_MAX
        case (types.FixedString(), types.FixedString()):
            return source.length <= target.length
        case _:
            return False


def rounds(source: types.DataType, target: types.DataType) -> bool:
    """Return whether a conversion goes to the nearest float, which may differ from the value."""
    return isinstance(target, types.Float) and not keeps_all(source, target)


def convert(
    array: pa.Array, source: types.DataType, target: types.DataType, zone: str, cast: Cast
) -> pa.Array:
    """Convert values without nulls by `cast`; refuse the column if a value would change.

    Neither type is Nullable, LowCardinality or a container. Floats may lose digits, but not become infinite. The
    DataError has the row of the first refused value; `zone` is for times without one."""
    if keeps_all(source, target):
        return cast(array, source, target)
    if isinstance(source, types.Enum) and isinstance(target, types.Integer):
        return convert(array, source.number_type, target, zone, cast)
    match source, target:
        case (types.String() | types.FixedString(), _):
            return _from_text(columns.unpadded(array), target, zone, cast)
        case (types.Float() | types.Decimal(), types.Enum()):
            codes = convert(array, source, target.number_type, zone, cast)
            return cast(codes, target.number_type, target)
        case (types.Integer(), types.Integer()):
            _refuse_outside(array, source, target, zone)
            return cast(array, source, target)
        case (types.Integer(), types.IPv4()):
            _refuse_outside(array, source, types.UINT32, zone)
            return cast(array, source, target)
        case (types.Float(), types.WideNumber()):
            values = columns.numpy_values(array).astype(np.float64)
            outside = ~np.isfinite(values) | (np.abs(values) >= 2.0**255)
            _refuse(outside, array, source, target, zone, "it is out of range")
            return _convert_and_compare(array, source, target, zone, cast)
        case (types.Float(), types.Integer()):
            return _float_to_integer(array, source, target, zone, cast)
        case (types.Float(), types.Decimal()):
            return _float_to_decimal(array, source, target, zone, cast)
        case (types.Time64(), types.Time()):
            return _whole_seconds(array, source, target, zone)
        case (types.DateTime() | types.DateTime64(), types.Decimal()):
            ticks = types.Decimal(76, len(str(calendar.ticks_per_second(source))) - 1)
            return convert(cast(array, source, ticks), ticks, target, zone, cast)
        case (_, types.Float()):
            converted = cast(array, source, target)
            infinite = np.isinf(columns.numpy_values(converted))
            if infinite.any() and isinstance(source, types.Float):
                infinite &= np.isfinite(columns.numpy_values(array))
            _refuse(infinite, array, source, target, zone, "it is out of range")
            return converted
        case (
            _,
            types.Integer()
            | types.Decimal()
            | types.Boolean()
            | types.Date()
            | types.Date32()
            | types.DateTime()
            | types.DateTime64()
            | types.Time()
            | types.Time64(),
        ):
            return _convert_and_compare(array, source, target, zone, cast)
        case _:
            return cast(array, source, target)


def _refuse(
    bad: np.ndarray,
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    zone: str,
    reason: str,
) -> None:
    """Raise CannotConvertType about the first row that `bad` marks, with its value; do nothing if
    none is.
    """
    row = first_bad(bad)
    if row is None:
        return
    shown = rendering.display_array(array.slice(row, 1), source, zone)[0].as_py()
    value = repr(shown) if isinstance(source, types.String | types.FixedString) else shown
    raise CannotConvertType(f"Cannot convert {value} to {target}: {reason}.", hint=HINT).at_row(row)


def _refuse_outside(
    array: pa.Array, source: types.Integer, target: types.Integer, zone: str
) -> None:
    """Raise CannotConvertType if any integer is outside the target's range, with the first one's
    row.
    """
    bounds = pc.min_max(array)
    lowest, highest = bounds["min"].as_py(), bounds["max"].as_py()
    if lowest is None or (target.minimum <= lowest and highest <= target.maximum):
        return
    bad = np.zeros(len(array), bool)
    if lowest < target.minimum:
        bad |= to_numpy(pc.less(array, pa.scalar(target.minimum, array.type)))
    if highest > target.maximum:
        bad |= to_numpy(pc.greater(array, pa.scalar(target.maximum, array.type)))
    _refuse(bad, array, source, target, zone, "it is out of range")


def _convert_and_compare(
    array: pa.Array, source: types.DataType, target: types.DataType, zone: str, cast: Cast
) -> pa.Array:
    """Convert values by `cast`, and back; raise CannotConvertType if any does not return equal.

    Correct for these types: no two different values, one of which both types have, become the same. Also raises
    TypeMismatch."""
    converted = cast(array, source, target)
    if isinstance(target, types.Decimal) and not isinstance(target, types.WideNumber):
        _refuse_many_digits(converted, array, source, target, zone)
    try:
        returned = cast(converted, target, source)
    except TypeMismatch as error:  # there is no way back, so no way to see what was lost
        raise TypeMismatch(
            f"Storing a value of type {source} in a column of type {target} is not supported.",
            hint="Convert it in the query, for example with toDate(…).",
        ) from error
    is_changed = to_numpy(pc.not_equal(returned, array))
    if isinstance(source, types.WideNumber) or isinstance(target, types.WideNumber):
        wraps = _negative(array, source) != _negative(converted, target)  # and wraps back
        _refuse(wraps, array, source, target, zone, "it is out of range")
    if isinstance(source, types.Integer) and isinstance(target, types.Date | types.Date32):
        is_changed &= np.asarray(
            pc.not_equal(_midnights(converted, target, source, zone, cast), array)
        )
    changed = first_bad(is_changed)
    if changed is not None:
        became = rendering.display_array(converted.slice(changed, 1), target, zone)[0].as_py()
        at = np.arange(len(array)) == changed
        _refuse(at, array, source, target, zone, f"it would become {became}")
    return converted


def _refuse_many_digits(
    converted: pa.Array, array: pa.Array, source: types.DataType, target: types.Decimal, zone: str
) -> None:
    """Raise CannotConvertType if any converted value has more digits than its column's precision."""
    if target.precision >= numbers.DIGITS_MAX:
        return
    wide = pa.decimal256(numbers.DIGITS_MAX, target.scale)
    limit = pa.scalar(decimal.Decimal(10 ** (target.precision - target.scale)), wide)
    too_long = to_numpy(pc.greater_equal(pc.abs(converted.cast(wide)), limit))
    _refuse(too_long, array, source, target, zone, "it has too many digits")


def _negative(array: pa.Array, data_type: types.DataType) -> np.ndarray:
    """Return a mask of the values below zero. An unsigned wide integer never is, whatever decimal its bytes form,
    and no Bool is."""
    unsigned = isinstance(data_type, types.WideNumber) and not data_type.signed
    if unsigned or isinstance(data_type, types.Boolean):
        return np.zeros(len(array), bool)
    zero = pa.scalar(0, array.type)
    return to_numpy(pc.less(array, zero))


def _midnights(
    dates: pa.Array, of: types.DataType, target: types.Integer, zone: str, cast: Cast
) -> pa.Array:
    """Return dates as integers: the Unix times at which they begin in the zone, since a large number converts to a
    date as a Unix time."""
    clock = types.DateTime64(0, zone)
    return cast(cast(dates, of, clock), clock, target)


def _whole_seconds(
    array: pa.Array, source: types.Time64, target: types.Time, zone: str
) -> pa.Array:
    """Convert Time64 values to Time; raise CannotConvertType for one with a fraction of a second."""
    ticks, per_second = columns.numpy_values(array), 10**source.precision
    _refuse(ticks % per_second != 0, array, source, target, zone, "it has a fraction of a second")
    return columns.from_values(ticks // per_second, target.arrow)


def _float_to_integer(
    array: pa.Array, source: types.DataType, target: types.Integer, zone: str, cast: Cast
) -> pa.Array:
    """Convert floats to integers; raise CannotConvertType unless all are whole and in range."""
    values = columns.numpy_values(array).astype(np.float64)
    _refuse(~np.isfinite(values), array, source, target, zone, "it is no finite number")
    # Both bounds are exact as floats: the first integer that is too large is a power of two.
    outside = (values < float(target.minimum)) | (values >= float(target.maximum + 1))
    _refuse(outside, array, source, target, zone, "it is out of range")
    _refuse(values != np.trunc(values), array, source, target, zone, "it has a fraction")
    return cast(array, source, target)


def _float_to_decimal(
    array: pa.Array, source: types.DataType, target: types.Decimal, zone: str, cast: Cast
) -> pa.Array:
    """Convert a float to the decimal of its shortest text.

    0.29 becomes 0.29, although the Float64 is less.
    """
    values = columns.numpy_values(array)
    _refuse(~np.isfinite(values), array, source, target, zone, "it is no finite number")
    if values.dtype == np.float64 and target.scale <= _POWERS_EXACT and len(values):
        scaled = np.rint(values * 10.0**target.scale)
        limit = min(_EXACT_FLOAT, 10.0**target.precision)
        if float(np.abs(scaled).max()) < limit and (scaled / 10.0**target.scale == values).all():
            return numbers.decimals_from(scaled.astype(np.int64), target)
    return _from_text(array.cast(pa.string()), target, zone, cast)


# --- texts ---------------------------------------------------------------------------------------


def _from_text(array: pa.Array, target: types.DataType, zone: str, cast: Cast) -> pa.Array:
    """Parse texts by `cast`; raise a DataError if the target type cannot represent any of them exactly."""
    text_type = types.String()
    match target:
        case types.WideNumber():
            return wide_numbers.parse(array, target, wrap=False)
        case types.Integer():
            return parsing.parse_integers(array, target, wrap=False)
        case types.Float():
            converted = cast(array, text_type, target)
            infinite = np.isinf(columns.numpy_values(converted))
            if infinite.any():
                infinite &= ~to_numpy(pc.match_substring(array, "inf", ignore_case=True))
            _refuse(infinite, array, text_type, target, zone, "it is out of range")
            return converted
        case types.Decimal():
            converted = cast(array, text_type, target)
            _refuse_places(array, target, zone)
            return converted
        case types.Date() | types.Date32():
            return parse_dates.parse_dates(array, target, exact=True)
        case types.DateTime() | types.DateTime64():
            converted = cast(array, text_type, target)
            _refuse_changed_timestamps(array, converted, target, zone)
            return converted
        case _:
            return cast(array, text_type, target)


def _refuse_places(array: pa.Array, target: types.Decimal, zone: str) -> None:
    """Raise CannotConvertType if any text has a digit other than 0 beyond the Decimal's scale."""
    if _DOT not in columns.bytes_of(array)[1] and not _has_exponents(array):
        return
    without_powers = parsing.without_exponents(array) if _has_exponents(array) else array
    pattern = r"\.[0-9]{" + str(target.scale) + r"}[0-9]*[1-9]"
    bad = to_numpy(pc.match_substring_regex(without_powers, pattern))
    _refuse(bad, array, types.String(), target, zone, f"it has more than {target.scale} places")


def _has_exponents(array: pa.Array) -> bool:
    """Return whether any of the texts has an `e` or `E`."""
    data = columns.bytes_of(array)[1]
    return bool(((data | 0x20) == ord("e")).any())


def _refuse_changed_timestamps(
    array: pa.Array, parsed: pa.Array, target: types.DateTime | types.DateTime64, zone: str
) -> None:
    """Raise CannotConvertType about the first text, if any, that `parsed` does not hold exactly.

    Its fraction of a second was cut, or it is outside a DateTime's range. Only texts that may have changed are
    parsed again, with nanoseconds."""
    data = columns.bytes_of(array)[1]
    suspect = np.zeros(len(array), bool)
    if _DOT in data:
        places = target.precision if isinstance(target, types.DateTime64) else 0
        cut = r"\.[0-9]{" + str(places) + r"}[0-9]*[1-9]"
        suspect |= to_numpy(pc.match_substring_regex(array, cut))
    values = columns.numpy_values(parsed)
    if isinstance(target, types.DateTime):
        suspect |= (values <= 0) | (values >= calendar.DATETIME_MAX)
    if not suspect.any():
        return
    rows = np.flatnonzero(suspect)
    nanosecond_type = types.DateTime64(_NANOSECONDS, getattr(target, "zone", None))
    nanoseconds = parse_timestamps.timestamps_or_null(
        array.take(pa.array(rows)), nanosecond_type, zone
    )
    per_tick = 10**_NANOSECONDS // calendar.ticks_per_second(target)
    valid = to_numpy(nanoseconds.is_valid())
    exact = np.where(valid, columns.numpy_values(nanoseconds), 0)
    changed = ~valid | (exact != values[rows] * per_tick)
    bad = np.zeros(len(array), bool)
    bad[rows[changed]] = True
    why = f"it is not among the moments of {target}, or has more digits of a second"
    _refuse(bad, array, types.String(), target, zone, why)
