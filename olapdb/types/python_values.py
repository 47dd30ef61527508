"""The values of columns as Python objects, as rows of a result have them."""

from __future__ import annotations

import decimal
import ipaddress
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import CannotConvertType
from olapdb.types import (
    UUID,
    AggregateFunction,
    Array,
    DataType,
    DateTime,
    DateTime64,
    Enum,
    IPv4,
    IPv6,
    LowCardinality,
    Map,
    Nullable,
    SimpleAggregateFunction,
    Time,
    Time64,
    Tuple,
    Variant,
    WideNumber,
    with_elements,
    with_inner,
)
from olapdb.types.arrow_values import scalar_of, to_numpy
from olapdb.types.variant import NUMBER


def python_values(
    column: pa.Array | pa.ChunkedArray, data_type: DataType, zone: str | None = None
) -> list[object]:
    """Return a column as Python values: tuples for Tuple, dicts for Map, uuid.UUID, Decimal, date,
    timedelta for Time.

    A DateTime without a zone of its own is a naive datetime in `zone`, None for the warehouse's, one
    with a zone an aware one.  Nanoseconds are truncated to microseconds, datetime's precision.  A String
    that is not UTF-8 is bytes; within an array or a tuple it raises CannotConvertType.
    """
    if zone is not None and (shown := _in_zone(data_type, zone)) != data_type:
        column = column.cast(shown.arrow)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    convert = _converter(data_type)
    try:
        if _has_zone(column.type):
            values = _datetimes(column, aware=convert is not _without_zone)
            convert = None
        elif pa.types.is_date32(column.type):
            values = _dates(column)
        else:
            values = column.to_pylist()
    except UnicodeDecodeError as error:
        values = _with_bytes(column, error)
    except (OverflowError, ValueError) as error:
        raise CannotConvertType(
            f"A value of type {data_type} is none that Python has: {error}.",
            hint="Read it by toString(…), or as Arrow data.",
        ) from error
    return values if convert is None else [None if v is None else convert(v) for v in values]


def _has_zone(arrow: pa.DataType) -> bool:
    """Return whether the Arrow type is a timestamp type with a zone."""
    return pa.types.is_timestamp(arrow) and arrow.tz is not None


_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The days from 1970-01-01 of Python's first and last date."""
_NO_TIME = -(1 << 63)
"""What numpy takes for no time."""
_DAYS_2037 = 24_472
"""The days until 2037-01-01: Arrow knows no daylight saving time of the years from 2038 on."""


def _datetimes(column: pa.Array | pa.ChunkedArray, aware: bool) -> list[object]:
    """Convert timestamps with a zone to datetimes, aware of the zone if `aware`, else naive. Avoids `to_pylist`,
    which imports pandas where it is installed and takes longer than a first query. Raises OverflowError and
    ValueError for times outside Python's range."""
    zone = _zone(column.type.tz)
    utc = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))
    is_utc = column.type.tz == "UTC"
    days = (_FIRST_DAY, _LAST_DAY) if is_utc else (0, _DAYS_2037)
    if not _within(utc.cast(pa.int64()), _PER_DAY[utc.type.unit], *days):
        moments = utc.to_pylist()
        shown = [None if m is None else m.replace(tzinfo=UTC).astimezone(zone) for m in moments]
        return shown if aware else [None if m is None else m.replace(tzinfo=None) for m in shown]
    local = utc if is_utc else pc.local_timestamp(column)
    moments = _as_objects(local, "datetime64[us]")
    if not is_utc:
        for place in _second_times(column, local):
            moments[place] = moments[place].replace(fold=1)
    return [None if m is None else m.replace(tzinfo=zone) for m in moments] if aware else moments


def _within(ticks: pa.Array | pa.ChunkedArray, per_day: int, first: int, last: int) -> bool:
    """Return whether all ticks are between the start of day `first` and the end of day `last`; `per_day` ticks a day."""
    bounds = pc.min_max(ticks).as_py()
    if bounds["min"] is None:
        return True
    return bool(first * per_day <= bounds["min"] and bounds["max"] < (last + 1) * per_day)


def _second_times(
    column: pa.Array | pa.ChunkedArray, local: pa.Array | pa.ChunkedArray
) -> list[int]:
    """Return the positions of the local times that repeat one an hour earlier, because clocks went back."""
    earliest = pc.assume_timezone(local, column.type.tz, ambiguous="earliest")
    later = pc.indices_nonzero(pc.not_equal(earliest, column))
    places: list[int] = later.to_pylist()
    return places


def _dates(column: pa.Array | pa.ChunkedArray) -> list[object]:
    """Convert days to dates. Raises OverflowError and ValueError for days outside Python's range."""
    if not _within(column.cast(pa.int32()), 1, _FIRST_DAY, _LAST_DAY):
        return list(column.to_pylist())
    return _as_objects(column, "datetime64[D]")


def _as_objects(column: pa.Array | pa.ChunkedArray, unit: str) -> list[Any]:
    """Convert days, or timestamps without a zone, to Python's dates and datetimes; all are in Python's range. Arrow's
    own conversion would import pandas."""
    own_unit = "D" if pa.types.is_date32(column.type) else column.type.unit
    ticks = column.cast(pa.int32()) if own_unit == "D" else column
    numbers = pc.fill_null(ticks.cast(pa.int64()), scalar_of(_NO_TIME, pa.int64()))
    values: list[Any] = to_numpy(numbers).astype(f"datetime64[{own_unit}]").astype(unit).tolist()
    return values


def _zone(name: str) -> tzinfo | None:
    """Return the tzinfo of a zone name, or of an offset such as +05:30, which Arrow files may have."""
    return datetime.strptime(name, "%z").tzinfo if name[:1] in "+-" else ZoneInfo(name)


def _in_zone(data_type: DataType, zone: str) -> DataType:
    """Return the type with `zone` in each DateTime that has no zone."""
    match data_type:
        case DateTime(None):
            return DateTime(zone)
        case DateTime64(precision, None):
            return DateTime64(precision, zone)
        case Nullable(inner) | LowCardinality(inner):
            return type(data_type)(_in_zone(inner, zone))
        case Array(inner):
            return with_inner(data_type, _in_zone(inner, zone))
        case SimpleAggregateFunction(function, inner):
            return SimpleAggregateFunction(function, _in_zone(inner, zone))
        case Map(key, value):
            return Map(_in_zone(key, zone), _in_zone(value, zone))
        case Tuple(elements):
            return with_elements(data_type, tuple(_in_zone(element, zone) for element in elements))
        case _:
            return data_type


def _with_bytes(column: pa.Array | pa.ChunkedArray, error: UnicodeDecodeError) -> list[object]:
    """Return a String column's values as texts, values that are not UTF-8 as bytes. Raises CannotConvertType for a
    nested column; `error` is the failed decoding."""
    if not pa.types.is_string(column.type):
        raise CannotConvertType(
            f"A String within {column.type} is not UTF-8: {error}.",
            hint="Read it by hex(…), or as Arrow data.",
        ) from error
    return [_text_or_bytes(value) for value in column.cast(pa.binary()).to_pylist()]


def _text_or_bytes(value: bytes | None) -> object:
    """Decode UTF-8. Return the bytes unchanged if they are not UTF-8, None for None."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _converter(data_type: DataType) -> Callable[[object], object] | None:
    """Return the function that converts a value of Arrow's `to_pylist` to the Python value of the type; None if no
    conversion is needed."""
    match data_type:
        case UUID():
            return _to_uuid
        case IPv4():
            return _to_ipv4
        case IPv6():
            return _to_ipv6
        case Enum():
            return _enum_converter(data_type.texts)
        case WideNumber():
            return _to_int
        case Time() | Time64():
            return _timedelta_converter(data_type.precision)
        case DateTime(zone) | DateTime64(zone=zone):
            return _without_zone if zone is None else None
        case Nullable(inner) | LowCardinality(inner) | SimpleAggregateFunction(inner=inner):
            return _converter(inner)
        case AggregateFunction(state=state):
            return _converter(state)
        case Array(inner):
            return _array_converter(inner)
        case Map(key, value):
            return _map_converter(key, value)
        case Tuple(elements):
            return _tuple_converter(elements)
        case Variant(alternatives):
            return _variant_converter(alternatives)
        case _:
            return None


def _enum_converter(texts: Mapping[int, str]) -> Callable[[object], object]:
    """Return the function that maps an Enum's number to its text."""
    return lambda number: texts.get(number) if isinstance(number, int) else number


def _to_int(value: object) -> object:
    """Convert a decimal to an int; return any other value unchanged.

    The types that call it have whole numbers alone, so that there is no fraction to lose."""
    return int(value) if isinstance(value, decimal.Decimal) else value


def _timedelta_converter(precision: int) -> Callable[[object], object]:
    """Return the function that converts a time's ticks to a timedelta; nanoseconds are truncated."""
    per_second = 10**precision

    def convert(ticks: object) -> object:
        """Convert integer ticks to a timedelta; return any other value unchanged."""
        if not isinstance(ticks, int):
            return ticks
        microseconds = abs(ticks) * 1_000_000 // per_second
        return timedelta(microseconds=microseconds if ticks >= 0 else -microseconds)

    return convert


def _to_uuid(value: object) -> object:
    """Convert 16 bytes to a UUID; return any other value unchanged."""
    return uuid.UUID(bytes=value) if isinstance(value, bytes) else value


def _to_ipv4(value: object) -> object:
    """Convert the number of an IPv4 to an address; return any other value unchanged."""
    return ipaddress.IPv4Address(value) if isinstance(value, int) else value


def _to_ipv6(value: object) -> object:
    """Convert the 16 bytes of an IPv6 to an address; return any other value unchanged."""
    return ipaddress.IPv6Address(value) if isinstance(value, bytes) else value


def _without_zone(value: object) -> object:
    """Remove the zone from a datetime; return any other value unchanged."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _identity(value: object) -> object:
    """Return the value unchanged."""
    return value


def _nullable_converter(data_type: DataType) -> Callable[[object], object]:
    """Return the function that converts a value of the type, and leaves None as None."""
    convert = _converter(data_type)
    if convert is None:
        return _identity
    convert_value = convert
    return lambda value: None if value is None else convert_value(value)


def _array_converter(inner: DataType) -> Callable[[object], object] | None:
    """Return the function that converts each element of a list; None if the elements need no conversion."""
    if _converter(inner) is None:
        return None
    convert = _nullable_converter(inner)
    return lambda value: [convert(v) for v in value] if isinstance(value, list) else value


def _map_converter(key: DataType, value: DataType) -> Callable[[object], object]:
    """Return the function that converts Arrow's list of (key, value) pairs to a dict. Keys that are arrays or maps
    become tuples."""
    to_key, to_value = _nullable_converter(key), _nullable_converter(value)

    def convert(pairs: object) -> object:
        """Convert a list of pairs; return any other value unchanged."""
        if not isinstance(pairs, list):
            return pairs
        return {_as_key(to_key(k)): to_value(v) for k, v in pairs}

    return convert


def _as_key(value: object) -> object:
    """Convert a map's key to a hashable value: arrays to tuples, maps to tuples of their pairs."""
    match value:
        case list() | tuple():
            return tuple(map(_as_key, value))
        case dict():
            return tuple((key, _as_key(item)) for key, item in value.items())
        case _:
            return value


def _tuple_converter(elements: Sequence[DataType]) -> Callable[[object], object]:
    """Return the function that converts Arrow's dict of element names to a tuple."""
    converters = [_nullable_converter(element) for element in elements]

    def convert(value: object) -> object:
        """Convert a dict; return any other value unchanged."""
        if not isinstance(value, dict):
            return value
        return tuple(c(v) for c, v in zip(converters, value.values(), strict=True))

    return convert


def _variant_converter(alternatives: Sequence[DataType]) -> Callable[[object], object]:
    """Return the function that converts Arrow's dict of a Variant to the value of the row's alternative."""
    converters = [(t.name, _nullable_converter(t)) for t in alternatives]

    def convert(value: object) -> object:
        """Convert a dict; return any other value unchanged."""
        if not isinstance(value, dict):
            return value
        name, to_value = converters[value[NUMBER]]
        return to_value(value[name])

    return convert
