"""Renders values as ClickHouse prints them: toString, TabSeparated, and elements of arrays.

All is vectorised over Arrow's string kernels. Formats escape the text themselves; here only strings
inside arrays, tuples and maps are quoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import InternalError
from olapdb.functions.kernels import calendar, columns, regexes
from olapdb.functions.kernels.addresses import ipv4_texts, ipv6_texts
from olapdb.functions.kernels.arrow_buffers import converted, empty, progression
from olapdb.functions.kernels.clocks import clock_texts
from olapdb.lazy import LazyModule
from olapdb.records import dataclass
from olapdb.types.arrow import enum_texts

if TYPE_CHECKING:
    from olapdb.functions.aggregates import state_bytes
    from olapdb.functions.dynamic import render as dynamic_render
    from olapdb.functions.strings import time_spans
    from olapdb.functions.variants import values as variants
else:
    dynamic_render = LazyModule("olapdb.functions.dynamic.render")
    state_bytes = LazyModule("olapdb.functions.aggregates.state_bytes")
    time_spans = LazyModule("olapdb.functions.strings.time_spans")
    variants = LazyModule("olapdb.functions.variants.values")

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_HEX_UPPER = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_NS_A_DAY = calendar.DAY * 1_000_000_000
_SAFE_NS_DAYS = calendar.INT64_MAX // _NS_A_DAY - 1
"""Days from 1970 within which the clock of any zone fits 64 bits of nanoseconds."""
TEXT_ESCAPES = (
    ("\\", "\\\\"),
    ("'", "\\'"),
    ("\t", "\\t"),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\0", "\\0"),
    ("\b", "\\b"),
    ("\f", "\\f"),
)


@dataclass(frozen=True)
class Style:
    """The way in which a format writes some values; functions write them in the plain way.

    `times`: the clock (simple), the clock of UTC with T and Z (iso), or seconds since 1970 (unix_timestamp).
    `zeros`: a decimal has all digits of its scale. `trimmed`: a FixedString has no zero bytes at its end.
    `doubled_quotes`: a quote within quotes is doubled, and a backslash stands for itself. `digits`: the most digits
    of a float behind the point; 0 for as many as it needs. `points`: whole floats and decimals end with a point.
    `short_times`: a DateTime64 has 0, 3, 6 or 9 digits behind the point, as it needs. `spans`: intervals are spans
    of time, 1.02:03:04."""

    times: str = "simple"
    zeros: bool = False
    trimmed: bool = False
    doubled_quotes: bool = False
    digits: int = 0
    points: bool = False
    short_times: bool = False
    spans: bool = False


PLAIN = Style()


def display(array: pa.Array, data_type: types.DataType, zone: str = "UTC") -> list[str | None]:
    """Return the values as ClickHouse prints them, as Python strings.

    NULL is None. Bytes that are not UTF-8 are kept by surrogateescape. `zone` is as of
    `display_array`."""
    shown = columns.binary(display_array(array, data_type, zone))
    return [
        None if value is None else value.decode("utf-8", "surrogateescape")
        for value in shown.to_pylist()
    ]


def readable(array: pa.Array, data_type: types.DataType) -> list[str]:
    """Return the values as `display` does, for messages: NULL is "NULL", bytes that are not UTF-8
    are written as `\\xff`.
    """
    return [
        "NULL"
        if value is None
        else value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        for value in display(array, data_type)
    ]


def display_array(
    array: pa.Array, data_type: types.DataType, zone: str = "UTC", style: Style = PLAIN
) -> pa.Array:
    """Return the values as ClickHouse prints them at top level, a string array; NULL stays null.

    `zone` is the warehouse's time zone; DateTime types that name no zone are shown in it.
    """
    inner = types.plain(data_type)
    match inner:
        case types.String():
            return array
        case types.FixedString():
            return _fixed_strings(array, style)
        case types.Interval() if style.spans:
            return time_spans.time_spans(array, inner)
        case types.Integer() | types.Interval():
            return _integers(array)
        case types.Enum():
            return enum_texts(array, inner)
        case types.Float():
            shown = _rounded_floats(array, style.digits) if style.digits else _floats(array)
            return _with_points(shown) if style.points else shown
        case types.Boolean():
            return pc.if_else(array, "true", "false")
        case types.Decimal():
            shown = _decimals(array, inner, style.zeros)
            return _with_points(shown) if style.points else shown
        case types.Date() | types.Date32():
            return array.cast(pa.string())
        case types.DateTime() | types.DateTime64():
            return _times(array, inner, zone, style)
        case types.Time() | types.Time64():
            return clock_texts(array, inner)
        case types.UUID():
            return _uuids(array)
        case types.IPv4():
            return ipv4_texts(array)
        case types.IPv6():
            return ipv6_texts(array)
        case types.Nothing():
            return array.cast(pa.string())
        case types.Array(element):
            return _lists(array, element, zone, style)
        case types.Tuple():
            return _tuples(array, inner, zone, style)
        case types.Map():
            return _maps(array, inner, zone, style)
        case types.AggregateFunction(state=state):
            encoded = state_bytes.state_bytes(columns.single(array), inner)
            if encoded is not None:
                return columns.text(encoded)
            return display_array(array, state, zone, style)
        case types.Variant() | types.Dynamic():
            return variants.gathered(
                array,
                inner,
                lambda v, t: columns.text(display_array(v, t, zone, style)),
                pa.string(),
            )
        case types.Json():
            return dynamic_render.plain_texts(array, zone)
        case _:
            raise InternalError(f"No rendering of type {data_type}.")


def _fixed_strings(array: pa.Array, style: Style) -> pa.Array:
    """Return FixedStrings as text, without zero bytes at the end if the style says so."""
    texts = columns.text(array)
    return pc.ascii_rtrim(texts, characters="\0") if style.trimmed else texts


def _integers(array: pa.Array) -> pa.Array:
    """Return integers as text.

    Numbers of one length are computed digit by digit; a column with few distinct values renders
    each value once."""
    if len(array) >= _ROWS_PER_NUMBER and not array.null_count:
        values = columns.numpy_values(array)
        low, high = int(values.min()), int(values.max())
        width = len(str(high))
        if low >= 0 and len(str(low)) == width and width * len(array) < _OFFSET_END:
            return _digits(values, high, width)
        if (high - low + 1) * _ROWS_PER_NUMBER <= len(array):
            texts = pa.array(range(low, high + 1), array.type).cast(pa.string())
            wide = pa.uint64() if pa.types.is_unsigned_integer(array.type) else pa.int64()
            return texts.take(pc.subtract(array.cast(wide), pa.scalar(low, wide)))
    return array.cast(pa.string())


_ROWS_PER_NUMBER = 64
_OFFSET_END = 1 << 31


def _digits(values: np.ndarray, high: int, width: int) -> pa.Array:
    """Return the text of numbers up to `high`, none negative, that all have `width` digits.

    Computes one digit of all numbers at a time, from the last to the first.
    """
    rows = len(values)
    remaining = converted(values, np.uint32 if high < 1 << 32 else np.uint64)
    ten = remaining.dtype.type(10)
    text = empty(rows * width, np.uint8)
    by_digit = text.reshape(rows, width)
    for place in range(width - 1, 0, -1):
        tens = np.floor_divide(remaining, ten, out=empty(rows, remaining.dtype))
        digit = converted(remaining, np.uint8)
        digit -= converted(tens, np.uint8) * np.uint8(10)
        np.add(digit, _ZERO, out=by_digit[:, place])
        remaining = tens
    np.add(converted(remaining, np.uint8), _ZERO, out=by_digit[:, 0])
    return columns.strings_from(progression(0, width, rows + 1, np.int32), text)


_ZERO = np.uint8(ord("0"))


_QUOTED = (
    types.Date,
    types.Date32,
    types.DateTime,
    types.DateTime64,
    types.Time,
    types.Time64,
    types.UUID,
    types.IPv4,
    types.IPv6,
)
"""The types without text whose values stand between quotes inside an array, tuple or map."""


def display_nested(
    array: pa.Array, data_type: types.DataType, zone: str = "UTC", style: Style = PLAIN
) -> pa.Array:
    """Return the values as printed inside an array, tuple or map: strings and times quoted, NULL as
    the word."""
    inner = types.plain(data_type)
    if isinstance(inner, types.Variant | types.Dynamic):
        shown = variants.gathered(
            array, inner, lambda v, t: display_nested(v, t, zone, style), pa.string()
        )
        return pc.fill_null(shown, "NULL") if shown.null_count else shown
    texts_of = types.String | types.FixedString | types.Enum | types.Json | types.AggregateFunction
    if isinstance(inner, texts_of):
        texts = display_array(array, inner, zone, style)
        shown = quote_strings(texts, doubled=style.doubled_quotes)
    else:
        shown = display_array(array, inner, zone, style)
        if isinstance(inner, _QUOTED) or (style.spans and isinstance(inner, types.Interval)):
            shown = pc.binary_join_element_wise("'", shown, "'", "")
    return pc.fill_null(shown, "NULL") if shown.null_count else shown


def quote_strings(array: pa.Array, *, doubled: bool = False) -> pa.Array:
    """Return strings as SQL literals, quoted and escaped: 'it\\'s'; `doubled`: 'it''s'."""
    escapes = (("'", "''"), *TEXT_ESCAPES[2:]) if doubled else TEXT_ESCAPES
    for plain_text, escaped in escapes:
        array = pc.replace_substring(array, plain_text, escaped)
    return pc.binary_join_element_wise("'", array, "'", "")


def _floats(array: pa.Array) -> pa.Array:
    """Return floats with their shortest digits, without exponent from 1e-6 up to 1e21, as
    ClickHouse prints them.
    """
    shown = pc.replace_substring(array.cast(pa.string()), "-nan", "nan")
    if not pc.any(pc.match_substring(shown, "e+")).as_py():
        return shown
    parts = regexes.extracted(shown, r"^(?P<s>-?)(?P<i>\d)\.?(?P<f>\d*)e\+(?P<e>\d+)$")
    exponents = pc.struct_field(parts, "e").cast(pa.int32())
    digits = pc.binary_join_element_wise(
        pc.struct_field(parts, "i"), pc.struct_field(parts, "f"), ""
    )
    for exponent in pc.unique(exponents.drop_null()).to_pylist():
        if exponent < 21:
            padded = pc.utf8_rpad(digits, width=exponent + 1, padding="0")
            whole = pc.utf8_slice_codeunits(padded, 0, exponent + 1)
            fraction = pc.utf8_slice_codeunits(padded, exponent + 1)
            point = pc.if_else(pc.equal(fraction, ""), "", ".")
            signed = pc.binary_join_element_wise(
                pc.struct_field(parts, "s"), whole, point, fraction, ""
            )
            shown = pc.if_else(pc.fill_null(pc.equal(exponents, exponent), False), signed, shown)
    return pc.replace_substring(shown, "e+", "e")


def _rounded_floats(array: pa.Array, digits: int) -> pa.Array:
    """Return floats as texts with at most `digits` digits behind the point, without zeros at the end."""
    shown = _floats(array)
    longer = pc.match_substring_regex(shown, rf"\.\d{{{digits + 1},}}$")
    if not pc.any(longer, min_count=0).as_py():
        return shown
    power = np.longdouble(10) ** digits
    with np.errstate(invalid="ignore", over="ignore"):
        values = columns.numpy_values(array).astype(np.longdouble)
        whole = np.floor(np.abs(values) * power + np.longdouble(0.5))
        rounded = np.copysign(whole / power, values).astype(np.float64)
    return pc.if_else(longer, _floats(pa.array(rounded)), shown)


def _with_points(texts: pa.Array) -> pa.Array:
    """Return texts of numbers; those of whole numbers get a point at their end."""
    is_whole = pc.match_substring_regex(texts, r"^-?\d+$")
    return pc.if_else(is_whole, pc.binary_join_element_wise(texts, ".", ""), texts)


def _decimals(array: pa.Array, data_type: types.Decimal, zeros: bool) -> pa.Array:
    """Return decimals as text, with the zeros at the end of the fraction if `zeros`."""
    unscaled_type = (
        pa.decimal128(38, 0) if pa.types.is_decimal128(array.type) else pa.decimal256(76, 0)
    )
    unscaled = columns.view(array, unscaled_type).cast(pa.string())
    if data_type.scale == 0:
        return unscaled
    negative = pc.starts_with(unscaled, "-")
    digits = pc.utf8_ltrim(unscaled, "-")
    digits = pc.utf8_lpad(digits, width=data_type.scale + 1, padding="0")
    units = pc.utf8_slice_codeunits(digits, 0, -data_type.scale)
    fraction = pc.utf8_slice_codeunits(digits, -data_type.scale)
    if not zeros:
        fraction = pc.utf8_rtrim(fraction, "0")
    point = pc.if_else(pc.equal(fraction, ""), "", ".")
    return pc.binary_join_element_wise(pc.if_else(negative, "-", ""), units, point, fraction, "")


def _times(
    array: pa.Array, data_type: types.DateTime | types.DateTime64, zone: str, style: Style
) -> pa.Array:
    """Return DateTime and DateTime64 values as texts in the style, with as many digits of the fraction as their
    precision."""
    if style.times == "unix_timestamp":
        return _timestamps(array, data_type)
    if style.times == "iso":
        clocks = _clocks(array, data_type, "UTC", style.short_times)
        shown = pc.replace_substring(clocks, " ", "T")
        return pc.binary_join_element_wise(shown, "Z", "")
    return _clocks(array, data_type, data_type.zone or zone, style.short_times)


def _timestamps(array: pa.Array, data_type: types.DateTime | types.DateTime64) -> pa.Array:
    """Return times as seconds since 1970, with their precision's digits behind the point."""
    precision = data_type.precision if isinstance(data_type, types.DateTime64) else 0
    ticks = array.cast(pa.int64())
    surplus = {"s": 0, "ms": 3, "us": 6, "ns": 9}[array.type.unit] - precision
    if surplus:
        values = columns.numpy_values(ticks) // 10**surplus
        ticks = columns.from_values(values, pa.int64(), columns.validity(array))
    return _decimals(ticks.cast(pa.decimal128(38, 0)), types.Decimal(38, precision), zeros=True)


def _clocks(
    array: pa.Array, data_type: types.DateTime | types.DateTime64, zone: str, short: bool = False
) -> pa.Array:
    """Return times as texts of the clock in the zone. `short`: with 0, 3, 6 or 9 digits of the fraction."""
    ticks, unit = columns.numpy_values(array), array.type.unit
    last_digits = None
    if unit == "ns" and ticks.size and int(np.abs(ticks // _NS_A_DAY).max()) >= _SAFE_NS_DAYS:
        # the clock's nanoseconds may need more than 64 bits
        unit, last_digits = "us", _three_digits(ticks % 1_000)
        array = columns.from_values(ticks // 1_000, pa.timestamp("us"), columns.validity(array))
    wall = pc.local_timestamp(columns.view(array, pa.timestamp(unit, tz=zone)))
    shown = _stopped(wall).cast(pa.string())
    if last_digits is not None:
        shown = pc.binary_join_element_wise(shown, last_digits, "")
    if isinstance(data_type, types.DateTime) or data_type.precision == 0:
        return shown
    shown = pc.utf8_slice_codeunits(shown, 0, 20 + data_type.precision)
    return _in_thousands(shown) if short else shown


def _in_thousands(texts: pa.Array) -> pa.Array:
    """Return texts of times with 0, 3, 6 or 9 digits behind the point: the fewest that lose no digit but zeros."""
    padded = pc.utf8_slice_codeunits(pc.utf8_rpad(texts, width=29, padding="0"), 0, 29)
    return regexes.replaced(padded, r"(\.000000000|000000|000)$", "")


def _three_digits(values: np.ndarray) -> pa.Array:
    """Return numbers below 1000 as text of three digits."""
    return pc.utf8_lpad(pa.array(values).cast(pa.string()), width=3, padding="0")


def _stopped(wall: pa.Array) -> pa.Array:
    """Return wall clock timestamps; those after the year 9999 become its last second."""
    if wall.type.unit == "ns":
        return wall  # ends in 2262
    ticks = columns.numpy_values(wall)
    stopped = calendar.stopped_clock(ticks, calendar.UNIT_TICKS[wall.type.unit])
    if stopped is ticks:
        return wall
    return columns.from_values(stopped, wall.type, columns.validity(wall))


def _uuids(array: pa.Array) -> pa.Array:
    """Return UUIDs as text with dashes, in lower case; NULL stays null."""
    digits = hex_matrix(fixed_bytes(array), upper=False)
    text = np.full((len(array), 36), ord("-"), np.uint8)
    digit = 0
    for start, stop in ((0, 8), (9, 13), (14, 18), (19, 23), (24, 36)):
        text[:, start:stop] = digits[:, digit : digit + stop - start]
        digit += stop - start
    offsets = np.arange(len(array) + 1, dtype=np.int64) * 36
    return columns.strings_from(offsets, text.reshape(-1), columns.validity(array))


def fixed_bytes(array: pa.Array) -> np.ndarray:
    """Return the bytes of a fixed-size binary array; uint8, shape (rows, width)."""
    width = array.type.byte_width
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros((len(array), width), np.uint8)
    data = np.frombuffer(buffer, np.uint8, len(array) * width, array.offset * width)
    return data.reshape(len(array), width)


def hex_matrix(data: np.ndarray, *, upper: bool = True) -> np.ndarray:
    """Return two hexadecimal ASCII digits for each byte; uint8, the last axis twice as long."""
    table = _HEX_UPPER if upper else _HEX
    digits = np.empty((*data.shape[:-1], 2 * data.shape[-1]), np.uint8)
    digits[..., 0::2] = table[data >> 4]
    digits[..., 1::2] = table[data & 15]
    return digits


def _join_lists(offsets: np.ndarray, pieces: pa.Array, opening: str, closing: str) -> pa.Array:
    """Return each list of texts as one text, joined by commas between `opening` and `closing`."""
    lists = columns.lists_from(offsets, pieces)
    return pc.binary_join_element_wise(opening, pc.binary_join(lists, ","), closing, "")


def _restore_nulls(shown: pa.Array, array: pa.Array) -> pa.Array:
    """Return the texts with null where `array` is null."""
    if not array.null_count:
        return shown
    return pc.if_else(array.is_valid(), shown, pa.scalar(None, shown.type))


def _lists(array: pa.Array, element: types.DataType, zone: str, style: Style) -> pa.Array:
    """Return arrays as `[1,2]`; NULL stays null."""
    offsets, elements = columns.elements_of(array)
    return _restore_nulls(
        _join_lists(offsets, display_nested(elements, element, zone, style), "[", "]"), array
    )


def _tuples(array: pa.Array, data_type: types.Tuple, zone: str, style: Style) -> pa.Array:
    """Return tuples as `(1,'a')`; NULL stays null."""
    fields = columns.struct_fields(array)
    if not fields:
        return pa.array(["()"] * len(array), pa.string())
    pieces = [
        display_nested(f, t, zone, style) for f, t in zip(fields, data_type.elements, strict=True)
    ]
    inside = pc.binary_join_element_wise(*pieces, ",") if len(pieces) > 1 else pieces[0]
    return _restore_nulls(pc.binary_join_element_wise("(", inside, ")", ""), array)


def _maps(array: pa.Array, data_type: types.Map, zone: str, style: Style) -> pa.Array:
    """Return maps as `{'a':1,'b':2}`; NULL stays null."""
    offsets = columns.offsets_of(array)
    start, stop = int(offsets[0]), int(offsets[-1])
    keys = display_nested(array.keys.slice(start, stop - start), data_type.key, zone, style)
    items = display_nested(array.items.slice(start, stop - start), data_type.value, zone, style)
    pairs = pc.binary_join_element_wise(keys, items, ":")
    return _restore_nulls(_join_lists(offsets - start, pairs, "{", "}"), array)
