"""The call of the kernel that writes addresses as texts, which needs the library.

The form in Arrow is in `functions/kernels/addresses.py`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import empty

_BYTES = 15
ROWS_MAX = ((1 << 31) - 1) // _BYTES
"""The texts of more addresses may not fit an array."""


def ipv4_texts(addresses: np.ndarray) -> pa.Array:
    """Return the texts of IPv4 addresses, uint32, such as 10.0.0.1; at most ROWS_MAX."""
    rows = len(addresses)
    offsets, texts = empty(rows + 1, np.int32), empty(rows * _BYTES, np.uint8)
    kernels().olapdb_ipv4_texts(np.ascontiguousarray(addresses), rows, offsets, texts)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.string(), rows, buffers)
