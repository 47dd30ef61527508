"""Memory for the arrays that kernels create, from Arrow's memory pool.

numpy returns large arrays to the system when they are freed, so that each new one costs a page
fault for every 4 KiB: on a virtual machine several times the cost of the arithmetic on it.  Arrow's
memory pool keeps freed memory.  So a kernel that a query runs on every batch allocates here, and
passes the arrays to numpy as `out`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

POOLED_BYTES_MIN = 32_768
"""Smaller arrays come from numpy, which keeps freed memory of this size and is faster."""

_SEED_ROWS = 12_288
"""The number of 64-bit values that numpy still serves from memory that it kept."""


def empty(rows: int, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """Return an uninitialised array of `rows` values."""
    value_type = np.dtype(dtype)
    if rows * value_type.itemsize < POOLED_BYTES_MIN:
        return np.empty(rows, value_type)
    return np.frombuffer(pa.allocate_buffer(rows * value_type.itemsize), value_type)


def converted(values: np.ndarray, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """Return the values at another width, as `astype` converts them.

    An array that has the type is returned without a copy.
    """
    if values.dtype == dtype:
        return values
    if values.ndim != 1:
        return values.astype(dtype)
    result = empty(len(values), dtype)
    np.copyto(result, values, casting="unsafe")
    return result


def progression(start: int, step: int, rows: int, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """Return start, start + step, …; integers that wrap around at the type's width."""
    values = empty(rows, dtype)
    bits = values.dtype.itemsize * 8
    seed = np.arange(min(rows, _SEED_ROWS), dtype=np.uint64)
    if step != 1:
        seed *= np.uint64(step % (1 << 64))
    if start:
        seed += np.uint64(start % (1 << 64))
    filled = len(seed)
    np.copyto(values[:filled], seed, casting="unsafe")
    while filled < rows:  # the filled part doubles
        count = min(filled, rows - filled)
        distance = np.array(filled * step % (1 << bits), f"u{bits // 8}").astype(values.dtype)
        np.add(values[:count], distance, out=values[filled : filled + count])
        filled += count
    return values
