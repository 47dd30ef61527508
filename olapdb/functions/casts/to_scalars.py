"""Conversions to numbers, intervals, dates and times, by the kind of what is converted."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.casts import (
    clocks,
    intervals,
    numbers,
    parse_dates,
    parse_timestamps,
    parsing,
    temporal,
)
from olapdb.functions.kernels import calendar, columns

Number = types.Integer | types.Float | types.Decimal | types.Boolean
Timestamp = types.Date | types.Date32 | types.DateTime | types.DateTime64


def to_number(array: pa.Array, source: types.DataType, target: Number) -> pa.Array | None:
    """Convert a column without nulls to a number or Bool; return None if the types have no conversion.

    Texts are parsed; raises a DataError for the first that does not parse."""
    if isinstance(source, types.Time | types.Time64):
        return clocks.from_clock(array, source, target)
    if isinstance(source, types.String | types.FixedString):
        return _parse(columns.unpadded(array), target)
    is_number = types.is_number(source)
    match target:
        case types.Boolean() if is_number:
            return pc.not_equal(array, pa.scalar(0, array.type))
        case types.Integer() if is_number or isinstance(source, types.Interval):
            return numbers.to_integer(array, source, target)
        case types.ExactFloat() if is_number:
            return numbers.to_exact_float(array, source, target)
        case types.Float() if is_number:
            return numbers.to_float(array, source, target)
        case types.Float() if isinstance(source, types.Interval):
            return numbers.to_float(array, types.INT64, target)
        case types.Decimal() if isinstance(source, types.Boolean):
            return numbers.to_decimal(array.cast(pa.uint8()), source, target)
        case types.Decimal() if is_number:
            return numbers.to_decimal(array, source, target)
        case types.Integer() | types.Float() | types.Boolean() if isinstance(
            source, temporal.Timed
        ):
            return temporal.from_time(array, source, target)
        case types.Decimal() if isinstance(source, types.DateTime64 | types.DateTime):
            return _time_to_decimal(array, source, target)
    return None


def to_interval(array: pa.Array, source: types.DataType, target: types.Interval) -> pa.Array | None:
    """Convert a column without nulls to an interval; return None if the types have no conversion."""
    if isinstance(source, types.Time | types.Time64):
        return clocks.from_clock(array, source, target)
    if isinstance(source, types.Interval):
        return intervals.to_interval(array, source, target)
    if isinstance(source, types.Integer):
        return array.cast(pa.int64(), safe=False)
    if isinstance(source, types.Decimal):
        raise errors.IllegalConversion(f"Conversion from {source} to {target} is not supported.")
    return to_number(array, source, types.INT64)


def to_timestamp(
    array: pa.Array, source: types.DataType, target: Timestamp, zone: str
) -> pa.Array | None:
    """Convert a column without nulls to a date or time; return None if the types have no conversion.

    Texts are parsed; raises a DataError for the first that does not parse."""
    if isinstance(source, types.Time | types.Time64):
        return clocks.from_clock(array, source, target)
    if isinstance(source, types.String | types.FixedString):
        texts = columns.unpadded(array)
        if isinstance(target, types.Date | types.Date32):
            return parse_dates.parse_dates(texts, target)
        return parse_timestamps.parse_datetimes(texts, target, zone)
    if types.is_number(source) or isinstance(source, temporal.Timed):
        return temporal.to_time(array, source, target, zone)
    return None


def _parse(array: pa.Array, target: types.DataType) -> pa.Array:
    """Parse texts as numbers or, for any other target, Bool; raise a DataError if any does not
    parse.
    """
    match target:
        case types.Integer():
            return parsing.parse_integers(array, target)
        case types.Float():
            return parsing.parse_floats(array, target)
        case types.Decimal():
            return parsing.parse_decimals(array, target)
        case _:
            return parsing.parse_bools(array)


def _time_to_decimal(array: pa.Array, source: types.DataType, target: types.Decimal) -> pa.Array:
    """Convert a DateTime or DateTime64 to Unix seconds with their fraction, as a Decimal."""
    ticks = calendar.ticks_per_second(source)
    values = pa.array(columns.numpy_values(array)).cast(pa.decimal256(20, 0))
    scale = len(str(ticks)) - 1
    return numbers.to_decimal(
        columns.view(values.cast(pa.decimal256(76, 0)), pa.decimal256(76, scale)),
        types.Decimal(76, scale),
        target,
    )
