"""Calls of the kernels that aggregate over frames of rows. Each needs the library to be loaded.

Frames are [start, end), int64, within the rows.  The form in numpy is the tree of states in
`execute/operators/frame_aggregates.py`."""

from __future__ import annotations

import numpy as np

from olapdb.native.library import kernels
from olapdb.native.memory import empty

_SPARE = 64


def frame_sums(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the sum of each frame of floats, 0 for an empty one; float64. NULL is given as 0."""
    rows = len(values)
    starts, ends = _checked(starts, ends, rows)
    tree = empty(2 * rows + _SPARE, np.float64)
    tree[:rows] = values
    sums = empty(len(starts), np.float64)
    kernels().olapdb_frame_sums(tree, rows, starts, ends, len(starts), sums)
    return sums


def extreme_rows(
    keys: np.ndarray,
    valid: np.ndarray | None,
    starts: np.ndarray,
    ends: np.ndarray,
    *,
    largest: bool,
) -> np.ndarray:
    """Return the row with the least (largest) integer key of each frame, the first one of equal keys, of the rows
    that `valid` marks (None: of all); -1 for a frame without any. int64."""
    rows = len(keys)
    starts, ends = _checked(starts, ends, rows)
    if keys.dtype == np.uint64:
        keys = (keys ^ np.uint64(1 << 63)).view(np.int64)
    keys = np.ascontiguousarray(keys, np.int64)
    if largest:
        keys = ~keys
    tree = empty(2 * rows + _SPARE, np.int64)
    tree[:rows] = np.arange(rows)
    if valid is not None:
        tree[:rows][~valid] = -1
    chosen = empty(len(starts), np.int64)
    kernels().olapdb_frame_extremes(keys, tree, rows, starts, ends, len(starts), chosen)
    return chosen


def _checked(starts: np.ndarray, ends: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the frames in contiguous memory. Kernels read where they point, so that each is checked."""
    if len(starts) != len(ends):
        raise ValueError(f"{len(starts)} frames have {len(ends)} ends.")
    if len(starts) and (int(starts.min()) < 0 or int(ends.max()) > rows):
        raise IndexError(f"A frame is not within {rows} rows.")
    return np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
