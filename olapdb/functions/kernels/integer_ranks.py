"""Ranks of integers among their distinct values."""

from __future__ import annotations

import numpy as np

from olapdb.functions.kernels.integer_order import stable_order

_CELLS_PER_ROW = 4
"""A range of at most so many values a row is ranked by a table, without sorting."""

_CELLS_MIN = 1024
_SAMPLE_ROWS = 1024


def rank_integers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the rank of each integer among the distinct ones, and for each rank the last row with it; both int64.
    Returns None where hashing is likely to be faster: for a wide range of values with many repeats."""
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low < max(_CELLS_MIN, _CELLS_PER_ROW * len(values)):
        wide = values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
        return _by_table((wide - wide.dtype.type(low)).view(np.int64), high - low + 1)
    sample = values[:: -(-len(values) // _SAMPLE_ROWS)]
    if len(np.unique(sample)) * 2 < len(sample):
        return None
    return _by_sorting(values)


def _by_table(places: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks and rows as `rank_integers` does, by a table of `cells` entries, one for each possible value;
    `places` are the values minus the least one."""
    row_of_place = np.full(cells, -1, np.int64)
    row_of_place[places] = np.arange(len(places))
    seen = row_of_place >= 0
    return (np.cumsum(seen) - 1)[places], row_of_place[seen]


def _by_sorting(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks and rows as `rank_integers` does, by sorting."""
    order = stable_order(values)
    ordered = values[order]
    ends = np.append(ordered[1:] != ordered[:-1], True)
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(ends) - ends
    return ranks, order[ends]
