"""Values of BFloat16: the upper 16 bits of a Float32, which Arrow holds as the Float32 that they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels import columns

_LOWER_BITS = 16
_UPPER = np.uint32(0xFFFF0000)
_QUIET_NAN = np.uint32(0x7FC00000)


def truncated(array: pa.Array) -> pa.Array:
    """Truncate (not round) Float32 values to the bits that a BFloat16 has."""
    values = columns.numpy_values(array)
    bits = np.ascontiguousarray(values).view(np.uint32)
    kept = np.where(np.isnan(values), (bits & _UPPER) | _QUIET_NAN, bits & _UPPER)
    return columns.from_values(kept.view(np.float32), pa.float32())


def words_of(array: pa.Array) -> np.ndarray:
    """Return the upper 16 bits of each Float32 value, its BFloat16 form, as uint16."""
    values = np.ascontiguousarray(columns.numpy_values(array)).view(np.uint32)
    return np.asarray((values >> np.uint32(_LOWER_BITS)).astype("<u2"))


def of_words(words: np.ndarray) -> pa.Array:
    """Convert BFloat16 words of 16 bits to Float32 values."""
    bits = words.astype(np.uint32) << np.uint32(_LOWER_BITS)
    return columns.from_values(bits.view(np.float32), pa.float32())
