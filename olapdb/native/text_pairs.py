"""Calls of the kernels that compare the two texts of each row. Each needs the library.

The forms in numpy are in `functions/strings/distances.py`, `jaro.py` and `ngram_distances.py`."""

from __future__ import annotations

import numpy as np

from olapdb.native.library import kernels

_SLOTS_PER_KEY = 2


def edit_distances(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray], *, swaps: bool
) -> np.ndarray:
    """Return the edits between the texts of each row, int64; `swaps`: neighbours may be swapped.

    A side has the int32 codes of all its texts and their int64 offsets."""
    rows = len(left[1]) - 1
    room_codes = _longest(right[1]) + 1
    distances = np.zeros(rows, np.int64)
    room = np.empty(3 * room_codes, np.int32)
    kernels().olapdb_edit_distances(*left, *right, rows, swaps, room, room_codes, distances)
    return distances


def jaro_counts(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return Jaro's numbers of each row, int64, shape (rows, 3): codes in common, those of them at
    another place, equal codes at the beginning."""
    rows = len(left[1]) - 1
    right_most = _longest(right[1])
    counts = np.zeros((rows, 3), np.int64)
    room = np.zeros(_longest(left[1]) + right_most, np.uint8)
    kernels().olapdb_jaro_counts(*left, *right, rows, room, right_most, counts)
    return counts


def common_keys(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return how many keys the two bags of each row share, int64. A side has uint64 keys and their
    int64 offsets."""
    rows = len(left[1]) - 1
    slots = 1 << (_SLOTS_PER_KEY * _longest(right[1]) + 1).bit_length()
    common = np.zeros(rows, np.int64)
    taken, counts = np.empty(slots, np.uint64), np.zeros(slots, np.int32)
    kernels().olapdb_common_keys(*left, *right, rows, taken, counts, slots, common)
    return common


def _longest(offsets: np.ndarray) -> int:
    """Return the number of codes of the longest text."""
    return int(np.diff(offsets).max(initial=0))
