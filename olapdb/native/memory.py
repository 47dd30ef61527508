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


def empty(rows: int, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """Return an uninitialised array of `rows` values."""
    value_type = np.dtype(dtype)
    if rows * value_type.itemsize < POOLED_BYTES_MIN:
        return np.empty(rows, value_type)
    return np.frombuffer(pa.allocate_buffer(rows * value_type.itemsize), value_type)


def zeros(rows: int, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """Return an array of `rows` zeros."""
    if rows * np.dtype(dtype).itemsize < POOLED_BYTES_MIN:
        return np.zeros(rows, dtype)
    values = empty(rows, dtype)
    values.fill(0)
    return values
