"""Bytes and characters of texts as sets: Jaccard's index, Hamming's distance, distinct bytes, entropy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.kernels import columns
from olapdb.functions.strings.arguments import text_rule
from olapdb.functions.strings.text_codes import Codes, text_codes
from olapdb.types import FLOAT64, UINT16, UINT64

_BYTES = 256
_ROWS_AT_ONCE = 8192
"""The rows whose bytes are counted at once: a table of 16 MiB."""


def _distinct(side: Codes) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct (row, code) pairs as sorted integers, row * 2^32 + code, and their number by row."""
    rows = columns.parents_of(side[1])
    pairs = np.unique((rows << 32) | side[0].astype(np.int64))
    return pairs, np.bincount(pairs >> 32, minlength=len(side[1]) - 1)


def _jaccard(*, utf8: bool) -> scalar.Kernel:
    """Return the kernel of stringJaccardIndex, of bytes or of characters."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return for each row the number of common distinct codes, divided by that of all distinct codes; 0 for two
        empty texts."""
        sides = [_distinct(text_codes(array, utf8=utf8)) for array in arrays]
        common = np.intersect1d(sides[0][0], sides[1][0], assume_unique=True)
        both = np.bincount(common >> 32, minlength=call.rows)
        union = sides[0][1] + sides[1][1] - both
        return columns.from_values(both / np.maximum(union, 1), pa.float64())

    return kernel


def _hamming(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return in how many places the bytes of two texts differ; the bytes by which one text is longer count too."""
    (left, left_offsets), (right, right_offsets) = (text_codes(a, utf8=False) for a in arrays)
    sizes, others = np.diff(left_offsets), np.diff(right_offsets)
    shared = np.minimum(sizes, others)
    rows = np.repeat(np.arange(len(shared)), shared)
    places = np.arange(len(rows)) - columns.offsets_from_counts(shared)[:-1][rows]
    differs = left[left_offsets[:-1][rows] + places] != right[right_offsets[:-1][rows] + places]
    total = np.bincount(rows[differs], minlength=len(shared)) + np.abs(sizes - others)
    return columns.from_values(total, pa.uint64())


def _byte_counts(array: pa.Array) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of rows, each with the counts of all 256 bytes in their texts, shape (rows, 256)."""
    offsets, data = columns.bytes_of(columns.binary(columns.text(array)))
    for start in range(0, len(array), _ROWS_AT_ONCE):
        rows = slice(start, min(start + _ROWS_AT_ONCE, len(array)))
        some = offsets[rows.start : rows.stop + 1]
        cells = columns.parents_of(some) * _BYTES + data[some[0] : some[-1]]
        counts = np.bincount(cells, minlength=(len(some) - 1) * _BYTES)
        yield rows, counts.reshape(-1, _BYTES)


def _of_counts(
    function: Callable[[np.ndarray], np.ndarray], arrow: pa.DataType
) -> Callable[[list[pa.Array], scalar.Invocation], pa.Array]:
    """Return a kernel that applies `function` to the byte counts of texts, shape (rows, 256), and returns the type
    `arrow`."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Count the bytes of each text and apply the function."""
        result = np.zeros(len(arrays[0]), columns.dtype_of(arrow))
        for rows, counts in _byte_counts(arrays[0]):
            result[rows] = function(counts)
        return columns.from_values(result, arrow)

    return kernel


def _entropy(counts: np.ndarray) -> np.ndarray:
    """Return Shannon's entropy of the byte counts of texts, in bits per byte; 0 for an empty text."""
    shares = counts / np.maximum(counts.sum(axis=1), 1)[:, None]
    terms = shares * np.log2(np.where(shares > 0, shares, 1.0))
    return np.asarray(
        0.0 - np.cumsum(terms, axis=1)[:, -1]
    )  # one after the other, as ClickHouse adds


def _distinct_bytes(counts: np.ndarray) -> np.ndarray:
    """Return how many different bytes occur in each text."""
    return np.asarray((counts > 0).sum(axis=1))


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("stringJaccardIndex", text_rule(FLOAT64, 2), _jaccard(utf8=False), count=2),
    scalar.define("stringJaccardIndexUTF8", text_rule(FLOAT64, 2), _jaccard(utf8=True), count=2),
    scalar.define(
        "byteHammingDistance", text_rule(UINT64, 2), _hamming, count=2, aliases=("mismatches",)
    ),
    scalar.define("stringBytesUniq", text_rule(UINT16), _of_counts(_distinct_bytes, pa.uint16())),
    scalar.define("stringBytesEntropy", text_rule(FLOAT64), _of_counts(_entropy, pa.float64())),
)
