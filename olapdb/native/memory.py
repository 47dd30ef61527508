"""Memory for the arrays that kernels create, from Arrow's memory pool.

numpy returns large arrays to the system when they are freed, so that each new one costs a page
fault for every 4 KiB: on a virtual machine several times the cost of the arithmetic on it.  Arrow's
memory pool keeps freed memory.  So a kernel that a query runs on every batch allocates here, and
passes the arrays to numpy as `out`.

Large arrays that are written once and then kept are another case: see `lasting_pool`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

POOLED_BYTES_MIN = 32_768
"""Smaller arrays come from numpy, which keeps freed memory of this size and is faster."""


@cache
def lasting_pool() -> pa.MemoryPool:
    """Return the memory pool for large arrays that the column cache keeps, and for decoded and encoded pages.

    mimalloc, Arrow's choice, takes such memory from the system in pages of 2 MiB, clears twice as
    much as the array has, and gives it back after 10 ms. That was a third of the processor time of
    an INSERT of a million rows. jemalloc takes pages of 4 KiB and gives them back after a second. The
    default pool is returned where the program or its environment chose another one than mimalloc,
    and where pyarrow comes without jemalloc."""
    default = pa.default_memory_pool()
    if default.backend_name != "mimalloc":
        return default
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:
        return default


def lasting(size: int, dtype: np.dtype | type[np.generic] = np.uint8) -> np.ndarray:
    """Return an uninitialised array of `size` values of the lasting pool: for what is kept, or taken again and again
    within a second."""
    value_type = np.dtype(dtype)
    if size * value_type.itemsize < POOLED_BYTES_MIN:
        return np.empty(size, value_type)
    buffer = pa.allocate_buffer(size * value_type.itemsize, memory_pool=lasting_pool())
    return np.frombuffer(buffer, value_type)


def address_of(array: np.ndarray) -> int:
    """Return the address of the first value of a contiguous array. numpy itself takes ten times as long to tell it."""
    return int(pa.py_buffer(array).address)


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
