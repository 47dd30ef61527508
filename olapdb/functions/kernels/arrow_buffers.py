"""Memory for the values that kernels make.

numpy gives arrays of a batch's size back to the system as soon as they are dropped, so that each
new one costs a page fault for every 4 KiB: on a virtual machine several times what the arithmetic
on it costs.  Arrow's memory pool keeps what is freed.  So a kernel that a query runs on every batch
makes its arrays here, and hands them to numpy as `out`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

POOLED_BYTES_MIN = 32_768
"""Below this numpy keeps freed memory itself, and is faster at handing it out."""

_SEED_ROWS = 12_288
"""So many 64-bit numbers are less than what the system is asked for anew each time."""


def empty(rows: int, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """An array of `rows` values that are not set yet."""
    kind = np.dtype(dtype)
    if rows * kind.itemsize < POOLED_BYTES_MIN:
        return np.empty(rows, kind)
    return np.frombuffer(pa.allocate_buffer(rows * kind.itemsize), kind)


def converted(values: np.ndarray, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """The values at another width as `astype` makes them, themselves where they have it."""
    if values.dtype == dtype:
        return values
    if values.ndim != 1:
        return values.astype(dtype)
    made = empty(len(values), dtype)
    np.copyto(made, values, casting="unsafe")
    return made


def progression(start: int, step: int, rows: int, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """start, start + step, …: integers, which wrap around at the type's width."""
    made = empty(rows, dtype)
    bits = made.dtype.itemsize * 8
    seed = np.arange(min(rows, _SEED_ROWS), dtype=np.uint64)
    if step != 1:
        seed *= np.uint64(step % (1 << 64))
    if start:
        seed += np.uint64(start % (1 << 64))
    filled = len(seed)
    np.copyto(made[:filled], seed, casting="unsafe")
    while filled < rows:  # doubles what is there
        more = min(filled, rows - filled)
        ahead = np.array(filled * step % (1 << bits), f"u{bits // 8}").astype(made.dtype)
        np.add(made[:more], ahead, out=made[filled : filled + more])
        filled += more
    return made
