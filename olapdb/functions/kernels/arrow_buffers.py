"""Arrays in Arrow's memory pool (see `native/memory.py`): conversions and progressions."""

from __future__ import annotations

import numpy as np

from olapdb.native.memory import empty as empty

_SEED_ROWS = 12_288
"""The number of 64-bit values that numpy still serves from memory that it kept."""


def converted(values: np.ndarray, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """Convert the values to `dtype`, as `astype` does. An array that has the type already is returned without a copy."""
    if values.dtype == dtype:
        return values
    if values.ndim != 1:
        return values.astype(dtype)
    result = empty(len(values), dtype)
    np.copyto(result, values, casting="unsafe")
    return result


def progression(start: int, step: int, rows: int, dtype: np.dtype | type[np.generic]) -> np.ndarray:
    """Return `rows` integers start, start + step, …, which wrap around at the type's width."""
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
