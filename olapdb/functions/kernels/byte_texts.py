"""Values as bytes, as ClickHouse stores them: rows of fixed width, and parts that are joined to rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.functions.kernels import brain_floats, columns

_VARINT_BYTES = 5
"""Bytes of the largest size: an Arrow text has less than 2^31."""
_DECIMAL_BYTES = ((9, 4), (18, 8), (38, 16), (76, 32))
"""The bytes of a decimal of at most so many digits."""


def joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Concatenate the parts of each row, in order."""
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, b"")


def fixed_bytes(values: np.ndarray) -> pa.Array:
    """Convert rows of bytes, shape (rows, width), to binary values."""
    rows, width = values.shape
    return binaries(np.arange(rows + 1) * width, np.ascontiguousarray(values).ravel())


def binaries(offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    """Make binary values from int offsets into `data`."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def number_bytes(numbers: np.ndarray) -> np.ndarray:
    """Return the bytes of numbers, shape (rows, bytes of a number)."""
    return np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), numbers.itemsize)


def length_prefixed(offsets: np.ndarray, elements: pa.Array) -> pa.Array:
    """Encode each list: the number of elements, then their bytes."""
    starts, data = columns.bytes_of(elements)
    first = offsets[0] if len(offsets) else 0
    bounds = starts[offsets - first] if len(elements) else np.zeros(len(offsets), np.int64)
    return joined([varints(np.diff(offsets)), binaries(bounds, data)])


def varints(numbers: np.ndarray) -> pa.Array:
    """Encode numbers as varints: groups of 7 bits, lowest first, with the high bit set in all but the last."""
    shifts = np.arange(_VARINT_BYTES, dtype=np.uint64) * np.uint64(7)
    groups = numbers.astype(np.uint64)[:, None] >> shifts
    used = groups > 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    values = ((groups & np.uint64(0x7F)) | (more * np.uint64(0x80))).astype(np.uint8)
    return binaries(columns.offsets_from_counts(used.sum(axis=1)), values[used])


def _bytes_of_values(array: pa.Array, width: int) -> np.ndarray:
    """Return the bytes of values of a fixed width, shape (rows, width)."""
    data = np.frombuffer(array.buffers()[1], np.uint8) if len(array) else np.zeros(0, np.uint8)
    start = array.offset * width
    return data[start : start + len(array) * width].reshape(len(array), width)


def scalar_bytes(array: pa.Array, data_type: types.DataType) -> np.ndarray:
    """Return the bytes of values of a type of fixed width, shape (rows, width)."""
    match data_type:
        case types.Boolean():
            return number_bytes(array.cast(pa.uint8()).to_numpy())
        case types.BFloat16():
            return number_bytes(brain_floats.words_of(array))
        case types.Date():
            return number_bytes(array.cast(pa.int32()).to_numpy().astype(np.uint16))
        case types.DateTime():
            return number_bytes(array.cast(pa.int64()).to_numpy().astype(np.uint32))
        case types.DateTime64(precision=precision):
            ticks = array.cast(pa.int64()).to_numpy()
            unit = {"s": 0, "ms": 3, "us": 6, "ns": 9}[data_type.unit]
            return number_bytes(ticks // 10 ** (unit - precision))
        case types.WideNumber():
            width = array.type.byte_width
            return _bytes_of_values(array, width)[:, : data_type.bits // 8]
        case types.Decimal(precision=precision):
            width = array.type.byte_width
            used = next(size for digits, size in _DECIMAL_BYTES if precision <= digits)
            return _bytes_of_values(array, width)[:, :used]
        case types.UUID():
            return _bytes_of_values(array, 16).reshape(-1, 2, 8)[:, :, ::-1].reshape(-1, 16)
        case types.Nothing():
            return np.zeros((len(array), 1), np.uint8)
        case _:
            return _bytes_of_values(array, array.type.byte_width)
