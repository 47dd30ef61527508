"""reinterpretAs…: the bytes of a value, in little-endian order, as another type.

The bytes of an array are those of its elements, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.aggregates.registry import state_representation
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import brain_floats, columns, wide_numbers
from olapdb.functions.strings import rendering
from olapdb.types import (
    DATE,
    DATETIME,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UUID,
    UUID_TYPE,
    Array,
    BFloat16,
    DataType,
    Date,
    DateTime,
    DateTime64,
    Decimal,
    FixedString,
    Float,
    Integer,
    String,
    WideNumber,
    parse_type,
    plain,
    wide_number,
)

_FIXED = (Integer, Float, Date, DateTime, DateTime64, UUID, WideNumber, Decimal)
_SOURCES = (*_FIXED, String, FixedString)
_STORED: dict[type[DataType], np.dtype] = {
    Date: np.dtype("<u2"),
    DateTime: np.dtype("<u4"),
    BFloat16: np.dtype("<u2"),
}
"""ClickHouse's widths of types that Arrow stores wider."""
_DECIMAL_WIDTHS = ((4, 9), (8, 18), (16, 38), (32, 76))
"""The bytes of a Decimal, and the digits that they hold."""


def _value_bytes(array: pa.Array, data_type: DataType) -> np.ndarray:
    """Return the bytes that ClickHouse stores for values of a fixed width; shape (rows, width)."""
    if isinstance(data_type, UUID):
        halves = rendering.fixed_bytes(array).reshape(len(array), 2, 8)
        return halves[:, :, ::-1].reshape(len(array), 16)
    if isinstance(data_type, FixedString):
        return rendering.fixed_bytes(array)
    if isinstance(data_type, WideNumber):
        limbs = wide_numbers.limbs_of(array).astype("<u8", copy=False)
        return limbs.view(np.uint8)[:, : data_type.bits // 8]
    if isinstance(data_type, Decimal):
        limbs = wide_numbers.limbs_of(array).astype("<u8", copy=False)
        return limbs.view(np.uint8)[:, : _decimal_width(data_type)]
    if isinstance(data_type, BFloat16):
        return brain_floats.words_of(array).view(np.uint8).reshape(len(array), 2)
    values = columns.numpy_values(array)
    values = values.astype(_STORED.get(type(data_type), values.dtype.newbyteorder("<")))
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(array), values.dtype.itemsize)


def _first_bytes(array: pa.Array, data_type: DataType, width: int) -> np.ndarray:
    """Return the first `width` bytes of each value, filled up with zeros; shape (rows, width)."""
    out = np.zeros((len(array), width), np.uint8)
    if not isinstance(data_type, String):
        stored = _value_bytes(array, data_type)[:, :width]
        out[:, : stored.shape[1]] = stored
        return out
    offsets, data = columns.bytes_of(columns.binary(array))
    lengths = np.minimum(np.diff(offsets), width)
    ends = columns.offsets_from_counts(lengths)
    rows = np.repeat(np.arange(len(array)), lengths)
    places = np.arange(int(ends[-1])) - np.repeat(ends[:-1], lengths)
    out[rows, places] = data[offsets[rows] + places]
    return out


def _as_number(result: DataType, dtype: np.dtype) -> scalar.Kernel:
    """Return the kernel that reads the first bytes of a value, little-endian, as a number of `dtype`."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the bytes as numbers; missing ones are zero."""
        raw = _first_bytes(arrays[0], call.types[0], dtype.itemsize)
        if isinstance(result, BFloat16):
            return brain_floats.of_words(raw.view(dtype).reshape(-1))
        return columns.from_values(raw.view(dtype).reshape(-1), result.arrow)

    return kernel


def _as_wide_number(result: WideNumber) -> scalar.Kernel:
    """Return the kernel that takes the first 16 or 32 bytes of a value as a wide integer."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the bytes as integers; missing ones are zero. Raise DecimalOverflow."""
        limbs = _first_bytes(arrays[0], call.types[0], result.bits // 8).view("<u8")
        if result.bits == 128:
            limbs = wide_numbers.extended(limbs)
        return wide_numbers.column_of(limbs, result)

    return kernel


def _as_decimal(result: Decimal) -> scalar.Kernel:
    """Return the kernel that takes the first bytes of a value, as many as ClickHouse stores for a value of `result`, as
    an unscaled integer."""
    width = _decimal_width(result)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the bytes as unscaled integers; missing ones are zero."""
        raw = _first_bytes(arrays[0], call.types[0], width)
        out = np.zeros((len(raw), result.arrow.byte_width), np.uint8)
        out[:, :width] = raw
        out[:, width:] = np.where(raw[:, -1:] >= 128, 255, 0)
        return pa.Array.from_buffers(result.arrow, len(raw), [None, pa.py_buffer(out)])

    return kernel


def _as_uuid(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Take the first 16 bytes of a value as a UUID."""
    halves = _first_bytes(arrays[0], call.types[0], 16).reshape(-1, 2, 8)[:, :, ::-1]
    data = np.ascontiguousarray(halves).tobytes()
    return pa.Array.from_buffers(UUID_TYPE.arrow, len(arrays[0]), [None, pa.py_buffer(data)])


def _as_string(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Take the bytes of a value as text, without the zero bytes at its end."""
    source = call.types[0]
    if isinstance(source, String):
        return arrays[0]
    if isinstance(source, Array):
        offsets, elements = columns.elements_of(arrays[0])
        data = np.ascontiguousarray(_value_bytes(elements, source.inner)).reshape(-1)
        return columns.strings_from(offsets * _width(source.inner), data)
    raw = _value_bytes(arrays[0], call.types[0])
    offsets = np.arange(len(raw) + 1, dtype=np.int64) * raw.shape[1]
    whole = columns.strings_from(offsets, np.ascontiguousarray(raw).reshape(-1))
    return pc.ascii_rtrim(whole, characters="\0")


def _as_array(result: Array, element: scalar.Kernel) -> scalar.Kernel:
    """Return the kernel that cuts a text's bytes into pieces of the element's width and reads each by the kernel
    `element`."""
    width = _width(result.inner)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Cut the bytes into elements; raise BadArguments if some are left over."""
        offsets, data = columns.bytes_of(columns.binary(arrays[0]))
        if (offsets % width).any():
            raise BadArguments(f"The bytes of a text are no whole number of {result.inner}.")
        buffers = [None, pa.py_buffer(np.ascontiguousarray(data))]
        pieces = pa.Array.from_buffers(pa.binary(width), len(data) // width, buffers)
        inner = replace(call, types=(FixedString(width),), result=result.inner, rows=len(pieces))
        return columns.lists_from(offsets // width, element([pieces], inner))

    return kernel


def _decimal_width(data_type: Decimal) -> int:
    """Return how many bytes ClickHouse stores for a value of a Decimal type."""
    return next(w for w, digits in _DECIMAL_WIDTHS if data_type.precision <= digits)


def _width(data_type: DataType) -> int:
    """Return how many bytes ClickHouse stores for a value of a type of fixed width."""
    if isinstance(data_type, FixedString):
        return data_type.length
    if isinstance(data_type, UUID):
        return 16
    if isinstance(data_type, WideNumber):
        return data_type.bits // 8
    if isinstance(data_type, Decimal):
        return _decimal_width(data_type)
    arrow = data_type.arrow
    stored = _STORED.get(type(data_type))
    return stored.itemsize if stored is not None else arrow.bit_width // 8


def _fixed_bytes_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the FixedString of a value's width; raise IllegalTypeOfArgument for a text."""
    scalar.require(name, types[:1], (*_FIXED, FixedString), "a value of fixed width")
    return FixedString(_width(types[0]))


def _as_fixed_bytes(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Take the bytes of a value, with as many zeros behind them as the result has room for."""
    assert isinstance(call.result, FixedString)
    raw = _first_bytes(arrays[0], call.types[0], call.result.length)
    buffers = [None, pa.py_buffer(raw.tobytes())]
    return pa.Array.from_buffers(call.result.arrow, len(arrays[0]), buffers)


def _as_type(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve reinterpret(x, type): the bytes of x as a value of the type, a constant name.

    Raises IllegalTypeOfArgument."""
    target = parse_type(scalar.constant_text(name, arguments, 1, "the type"), state_representation)
    source = plain(arguments[0].type)
    kernel = _kernel_of(name, source, target)
    return scalar.standard_call(name, arguments, target, kernel)


def _kernel_of(name: str, source: DataType, target: DataType) -> scalar.Kernel:
    """Return the kernel that reads the bytes of `source` as `target`; raise IllegalTypeOfArgument if there is none."""
    if not (isinstance(source, Array) and isinstance(target, String)):
        scalar.require(name, [source], _SOURCES, "a number, date, UUID or text")
    if isinstance(target, Array) and isinstance(source, String | FixedString):
        scalar.require(name, [target.inner], (*_FIXED, FixedString), "an element of fixed width")
        return _as_array(target, _kernel_of(name, FixedString(1), target.inner))
    if isinstance(target, String):
        if isinstance(source, Array):
            scalar.require(name, [source.inner], (*_FIXED, FixedString), "elements of fixed width")
        kernel: scalar.Kernel = _as_string
    elif isinstance(target, UUID):
        kernel = _as_uuid
    elif isinstance(target, FixedString) and not isinstance(source, String):
        kernel = _as_fixed_bytes
    elif isinstance(target, WideNumber):
        kernel = _as_wide_number(target)
    elif isinstance(target, Decimal):
        kernel = _as_decimal(target)
    elif isinstance(target, _FIXED):
        dtype = _STORED.get(type(target)) or np.dtype(columns.dtype_of(target.arrow))
        kernel = _as_number(target, dtype.newbyteorder("<"))
    else:
        raise IllegalTypeOfArgument(f"{name} of a {source} as {target} is not possible.")
    return kernel


def _string_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument for a value whose bytes are not known."""
    _kernel_of(name, types[0], STRING)
    return STRING


def _definition(name: str, result: DataType, kernel: scalar.Kernel) -> scalar.ScalarDefinition:
    """Define a function of one value of fixed width or text."""
    rule = scalar.fixed_rule(result, _SOURCES, "a number, date, UUID or String")
    return scalar.define(f"reinterpretAs{name}", rule, kernel)


_NUMBERS = (
    *((t, np.dtype(f"<i{t.bits // 8}")) for t in (INT8, INT16, INT32, INT64)),
    *((t, np.dtype(f"<u{t.bits // 8}")) for t in (UINT8, UINT16, UINT32, UINT64)),
    *((t, np.dtype(f"<f{t.bits // 8}")) for t in (FLOAT32, FLOAT64)),
    (DATE, np.dtype("<u2")),
    (DATETIME, np.dtype("<u4")),
)
_WIDE_NUMBERS = tuple(wide_number(bits, signed) for bits in (128, 256) for signed in (True, False))

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(_definition(t.name, t, _as_number(t, dtype)) for t, dtype in _NUMBERS),
    *(_definition(t.name, t, _as_wide_number(t)) for t in _WIDE_NUMBERS),
    _definition("UUID", UUID_TYPE, _as_uuid),
    scalar.define("reinterpretAsString", _string_rule, _as_string),
    scalar.define("reinterpretAsFixedString", _fixed_bytes_rule, _as_fixed_bytes),
    scalar.custom("reinterpret", _as_type, count=2),
)
