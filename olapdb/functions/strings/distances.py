"""levenshteinDistance: the number of edits between two texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.errors import TooLargeStringSize
from olapdb.functions import scalar
from olapdb.functions.kernels import columns
from olapdb.functions.strings.arguments import text_rule
from olapdb.types import UINT64

_LENGTH_MAX = 65_536
_CELLS_MAX = 1 << 22
"""The numbers that a step keeps at once: rows times the longest text."""


def _matrix(codes: np.ndarray, offsets: np.ndarray, filler: int) -> np.ndarray:
    """Return texts as rows of codes, filled up with `filler`; shape (rows, longest)."""
    lengths = np.diff(offsets)
    out = np.full((len(lengths), int(lengths.max(initial=0))), filler, np.int32)
    owners = columns.parents_of(offsets)
    out[owners, np.arange(len(owners)) - offsets[:-1][owners]] = codes
    return out


def _codes(array: pa.Array, *, utf8: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes or code points of texts, and the offsets of each text's."""
    offsets, data = columns.bytes_of(columns.binary(array))
    if not utf8:
        return data.astype(np.int32), offsets
    text = data.tobytes().decode("utf-8", "surrogateescape")
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)
    heads = columns.offsets_from_counts((data & 0xC0) != 0x80)
    return points, heads[offsets]


def _edits(left: np.ndarray, right: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the distances of rows of codes. `ends` has the lengths, shape (rows, 2).

    One step takes a character of all left texts and a column of the table of Wagner and Fischer;
    within it, an insertion follows from the running minimum of cost minus position.
    """
    rows, width = len(left), right.shape[1]
    positions = np.arange(width + 1, dtype=np.int32)
    costs = np.broadcast_to(positions, (rows, width + 1)).copy()
    for at in range(left.shape[1]):
        changed = costs[:, :-1] + (left[:, at : at + 1] != right)
        step = np.empty_like(costs)
        step[:, 0] = at + 1
        np.minimum(changed, costs[:, 1:] + 1, out=step[:, 1:])
        step = np.minimum.accumulate(step - positions, axis=1) + positions
        costs = np.where((at < ends[:, 0])[:, None], step, costs)
    return np.asarray(costs[np.arange(rows), ends[:, 1]])


def _distance(*, utf8: bool) -> scalar.Kernel:
    """Return the kernel of levenshteinDistance, of bytes or code points."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Compare texts in slices of bounded memory; raise TooLargeStringSize for long ones."""
        sides = [_codes(columns.text(array), utf8=utf8) for array in arrays]
        ends = np.stack([np.diff(offsets) for _, offsets in sides], axis=1)
        longest = int(ends.max(initial=0))
        if longest > _LENGTH_MAX:
            raise TooLargeStringSize(
                f"levenshteinDistance takes texts of at most {_LENGTH_MAX} bytes."
            ).at_row(int(ends.max(axis=1).argmax()))
        result = np.zeros(len(ends), np.int64)
        step = max(1, _CELLS_MAX // (longest + 1))
        for start in range(0, len(ends), step):
            stop = min(start + step, len(ends))
            left, right = (
                _matrix(
                    codes[offsets[start] : offsets[stop]],
                    offsets[start : stop + 1] - offsets[start],
                    filler,
                )
                for (codes, offsets), filler in zip(sides, (-1, -2), strict=True)
            )
            result[start:stop] = _edits(left, right, ends[start:stop])
        return columns.from_values(result, pa.uint64())

    return kernel


_TWO = text_rule(UINT64, 2)
DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "levenshteinDistance", _TWO, _distance(utf8=False), count=2, aliases=("editDistance",)
    ),
    scalar.define(
        "levenshteinDistanceUTF8",
        _TWO,
        _distance(utf8=True),
        count=2,
        aliases=("editDistanceUTF8",),
    ),
)
