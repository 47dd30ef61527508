"""reinterpretAs…: the bytes of a value, in little-endian order, as another type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.kernels import columns
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
    DataType,
    Date,
    DateTime,
    DateTime64,
    FixedString,
    Float,
    Integer,
    String,
)

_FIXED = (Integer, Float, Date, DateTime, DateTime64, UUID)
_SOURCES = (*_FIXED, String, FixedString)
_STORED: dict[type[DataType], np.dtype] = {Date: np.dtype("<u2"), DateTime: np.dtype("<u4")}
"""ClickHouse's widths of types that Arrow stores wider."""


def _value_bytes(array: pa.Array, data_type: DataType) -> np.ndarray:
    """Return the bytes that ClickHouse stores for values of a fixed width; shape (rows, width)."""
    if isinstance(data_type, UUID):
        halves = rendering.fixed_bytes(array).reshape(len(array), 2, 8)
        return halves[:, :, ::-1].reshape(len(array), 16)
    if isinstance(data_type, FixedString):
        return rendering.fixed_bytes(array)
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
    """Return the kernel that takes the first bytes of a value as a number of `dtype`."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the bytes as numbers; missing ones are zero."""
        raw = _first_bytes(arrays[0], call.types[0], dtype.itemsize)
        return columns.from_values(raw.view(dtype).reshape(-1), result.arrow)

    return kernel


def _as_uuid(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Take the first 16 bytes of a value as a UUID."""
    halves = _first_bytes(arrays[0], call.types[0], 16).reshape(-1, 2, 8)[:, :, ::-1]
    data = np.ascontiguousarray(halves).tobytes()
    return pa.Array.from_buffers(UUID_TYPE.arrow, len(arrays[0]), [None, pa.py_buffer(data)])


def _as_string(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Take the bytes of a value as text, without the zero bytes at its end."""
    if isinstance(call.types[0], String):
        return arrays[0]
    raw = _value_bytes(arrays[0], call.types[0])
    offsets = np.arange(len(raw) + 1, dtype=np.int64) * raw.shape[1]
    whole = columns.strings_from(offsets, np.ascontiguousarray(raw).reshape(-1))
    return pc.ascii_rtrim(whole, characters="\0")


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

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(_definition(t.name, t, _as_number(t, dtype)) for t, dtype in _NUMBERS),
    _definition("UUID", UUID_TYPE, _as_uuid),
    _definition("String", STRING, _as_string),
)
