"""Calls of the kernels that find the tokens and rows of JSON. Each needs the library.

The forms in numpy are in `functions/json/index.py` and `formats/json_row_blocks.py`."""

from __future__ import annotations

import numpy as np

from olapdb.native.library import kernels
from olapdb.native.memory import empty


def json_index(data: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return the tokens of JSON texts: kind, start, end, row, parent, rank and close of each, and the token of each
    text's value, as `JsonIndex` has them. Text i has the bytes offsets[i] to offsets[i + 1]. None where a number is so
    near the largest Float64 that its digits decide whether it is one."""
    rows = len(offsets) - 1
    most = 2 * int(kernels().olapdb_json_marks(data, len(data))) + rows
    kind, root = empty(most, np.uint8), empty(rows, np.int64)
    fields = [empty(most, np.int64) for _ in range(6)]
    count = kernels().olapdb_json_index(data, offsets, rows, kind, *fields, root)
    if count < 0:
        return None
    return (kind[:count], *(field[:count] for field in fields), root)


def json_rows(data: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where each object or array at nesting depth `depth` begins and ends; of those that end."""
    most = int(kernels().olapdb_json_marks(data, len(data)))
    starts, ends = empty(most, np.int64), empty(most, np.int64)
    count = kernels().olapdb_json_rows(data, len(data), depth, starts, ends)
    return starts[:count], ends[:count]
