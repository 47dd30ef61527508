"""Values as bytes: rows of fixed width, and parts that are joined to rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


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
