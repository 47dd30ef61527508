"""jaroSimilarity and jaroWinklerSimilarity: common bytes near each other, and their transpositions.

Sources: Jaro, "Advances in record-linkage methodology" (1989); Winkler, "String comparator metrics and
enhanced decision rules in the Fellegi-Sunter model of record linkage" (1990).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.kernels import columns
from olapdb.functions.strings.arguments import text_rule
from olapdb.functions.strings.text_codes import Codes, check_lengths, matrices, text_codes
from olapdb.native import text_pairs
from olapdb.native.library import library
from olapdb.types import FLOAT64

_PREFIX_MAX = 4
_PREFIX_WEIGHT = 0.1
_ALIKE = 0.7
"""The similarity above which Winkler counts a common prefix."""


def _slice_counts(left: np.ndarray, right: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return for each row of codes how many are common, transposed, and in the common prefix; shape (rows, 3). `ends`
    has the lengths, shape (rows, 2).

    One step compares a character of all left texts with one place of all right ones."""
    reach = np.maximum(ends.max(axis=1) // 2 - 1, 0)
    in_left, in_right = np.zeros(left.shape, bool), np.zeros(right.shape, bool)
    most = int(reach.max(initial=0))
    for at in range(left.shape[1]):
        for to in range(max(0, at - most), min(right.shape[1], at + most + 1)):
            taken = (left[:, at] == right[:, to]) & ~in_left[:, at] & ~in_right[:, to]
            taken &= abs(at - to) <= reach
            in_left[:, at] |= taken
            in_right[:, to] |= taken
    common = in_left.sum(axis=1)
    differs = left[in_left] != right[in_right]  # row by row, as many of the left as of the right
    moved = np.bincount(np.repeat(np.arange(len(left)), common), differs, len(left))
    width = min(left.shape[1], right.shape[1], _PREFIX_MAX)
    prefix = np.cumprod(left[:, :width] == right[:, :width], axis=1, dtype=np.int64).sum(axis=1)
    return np.stack([common, moved.astype(np.int64), prefix], axis=1)


def _counts(left: Codes, right: Codes, ends: np.ndarray) -> np.ndarray:
    """Return three counts for each row: common codes, transposed ones, and codes of the common prefix, computed in
    slices of bounded memory."""
    if library() is not None:
        return text_pairs.jaro_counts(left, right)
    result = np.zeros((len(ends), 3), np.int64)
    for rows, first, second in matrices(left, right):
        result[rows] = _slice_counts(first, second, ends[rows])
    return result


def _similarity(name: str, *, winkler: bool) -> scalar.Kernel:
    """Return the kernel of jaroSimilarity, or with `winkler` of jaroWinklerSimilarity, which adds for a common
    prefix."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return each row's similarity from 0 to 1. As in ClickHouse, an empty text gives the length of the other
        one."""
        left, right = (text_codes(array, utf8=False) for array in arrays)
        check_lengths(name, left, right)
        ends = np.stack([np.diff(left[1]), np.diff(right[1])], axis=1)
        common, moved, prefix = _counts(left, right, ends).T
        some = np.maximum(common, 1)
        of_left, of_right = (common / np.maximum(ends[:, side], 1) for side in (0, 1))
        alike = (of_left + of_right + (common - moved / 2) / some) * (1 / 3)
        alike = np.where(common > 0, alike, 0.0)
        if winkler:
            weight = np.minimum(prefix, _PREFIX_MAX) * _PREFIX_WEIGHT
            alike = np.where(alike > _ALIKE, alike + weight * (1 - alike), alike)
        alike = np.where(ends.min(axis=1) == 0, ends.max(axis=1), alike)
        return columns.from_values(alike, pa.float64())

    return kernel


_TWO = text_rule(FLOAT64, 2)
DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = tuple(
    scalar.define(name, _TWO, _similarity(name, winkler=winkler), count=2)
    for name, winkler in (("jaroSimilarity", False), ("jaroWinklerSimilarity", True))
)
