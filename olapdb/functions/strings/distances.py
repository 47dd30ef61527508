"""Edits between two texts: levenshteinDistance, and damerauLevenshteinDistance, which swaps neighbours.

Sources: Wagner and Fischer, "The string-to-string correction problem" (1974); Damerau, "A technique
for computer detection and correction of spelling errors" (1964), as optimal string alignment.
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
from olapdb.types import UINT64


def _edits(left: np.ndarray, right: np.ndarray, ends: np.ndarray, *, swaps: bool) -> np.ndarray:
    """Return the edit distance of each row of codes. `ends` has the lengths, shape (rows, 2); with `swaps` exchanging
    two neighbours is one edit.

    One step takes a character of all left texts and a column of the table of Wagner and Fischer; within it, an
    insertion follows from the running minimum of cost minus position."""
    rows, width = len(left), right.shape[1]
    positions = np.arange(width + 1, dtype=np.int32)
    costs = np.broadcast_to(positions, (rows, width + 1)).copy()
    before = costs
    for at in range(left.shape[1]):
        unit = left[:, at : at + 1]
        step = np.empty_like(costs)
        step[:, 0] = at + 1
        np.minimum(costs[:, :-1] + (unit != right), costs[:, 1:] + 1, out=step[:, 1:])
        if swaps and at:
            swapped = (unit == right[:, :-1]) & (left[:, at - 1 : at] == right[:, 1:])
            cost = np.where(swapped, before[:, :-2] + 1, step[:, 2:])
            np.minimum(step[:, 2:], cost, out=step[:, 2:])
        step = np.minimum.accumulate(step - positions, axis=1) + positions
        before, costs = costs, np.where((at < ends[:, 0])[:, None], step, costs)
    return np.asarray(costs[np.arange(rows), ends[:, 1]])


def _distances(left: Codes, right: Codes, *, swaps: bool) -> np.ndarray:
    """Return the edit distance of each row's texts, computed in slices of bounded memory; int64."""
    if library() is not None:
        return text_pairs.edit_distances(left, right, swaps=swaps)
    ends = np.stack([np.diff(left[1]), np.diff(right[1])], axis=1)
    result = np.zeros(len(ends), np.int64)
    for rows, first, second in matrices(left, right):
        result[rows] = _edits(first, second, ends[rows], swaps=swaps)
    return result


def _distance(name: str, *, utf8: bool = False, swaps: bool = False) -> scalar.Kernel:
    """Return the kernel of the function `name`: the edit distance in bytes, or with `utf8` in code points; `swaps`
    as in `_edits`."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Compare the texts of each row; raise TooLargeStringSize for long ones."""
        left, right = (text_codes(array, utf8=utf8) for array in arrays)
        check_lengths(name, left, right)
        result = _distances(left, right, swaps=swaps)
        if utf8:  # as ClickHouse: against an empty text the other's bytes count
            sizes = [np.diff(columns.bytes_of(columns.text(array))[0]) for array in arrays]
            result = np.where(np.minimum(*sizes) == 0, np.maximum(*sizes), result)
        return columns.from_values(result, pa.uint64())

    return kernel


_TWO = text_rule(UINT64, 2)
DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "levenshteinDistance",
        _TWO,
        _distance("levenshteinDistance"),
        count=2,
        aliases=("editDistance",),
    ),
    scalar.define(
        "levenshteinDistanceUTF8",
        _TWO,
        _distance("levenshteinDistanceUTF8", utf8=True),
        count=2,
        aliases=("editDistanceUTF8",),
    ),
    scalar.define(
        "damerauLevenshteinDistance",
        _TWO,
        _distance("damerauLevenshteinDistance", swaps=True),
        count=2,
    ),
)
