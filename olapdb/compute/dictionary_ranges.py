"""Ranges of a dictionary's keys: which range of a key holds a value.

Rows are sorted by key, first and last value. Ranks in place of values make each pair of key and
value one integer, so that a binary search over all rows stays within the key's rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.types.arrow_values import from_numpy, to_numpy


class Ranges:
    """The ranges of the keys, as codes from 0; `bounds` are the first and last values, both within
    the range. A range whose last value is before its first holds nothing.

    Of several ranges that hold a value the one with the least first value counts, then the least
    last value; with `latest` the greatest of both. Equal ranges are decided by `ranks`, the rows'
    order: the greatest row counts."""

    def __init__(
        self,
        codes: np.ndarray,
        count: int,
        bounds: tuple[pa.Array, pa.Array],
        ranks: np.ndarray,
        latest: bool,
    ) -> None:
        first, last = _numbers(bounds[0]), _numbers(bounds[1])
        self._latest = latest
        self._order = np.lexsort((ranks if latest else -ranks, last, first, codes))
        codes = codes[self._order]
        self._starts = np.searchsorted(codes, np.arange(count + 1))
        self._firsts, first_ranks = np.unique(first[self._order], return_inverse=True)
        self._lasts, self._last_ranks = np.unique(last[self._order], return_inverse=True)
        # The greatest last value of the key's rows up to each row: codes ascend, so one pass does.
        packed = codes * (len(self._lasts) + 1) + self._last_ranks
        self._reached = np.maximum.accumulate(packed)
        self._begun = codes * (len(self._firsts) + 1) + first_ranks + 1

    @property
    def nbytes(self) -> int:
        """Return the bytes of the index in memory."""
        arrays = (self._order, self._starts, self._last_ranks, self._reached, self._begun)
        return sum(array.nbytes for array in (*arrays, self._firsts, self._lasts))

    def find(self, codes: np.ndarray, values: pa.Array) -> np.ndarray:
        """Return the row of the range that holds each value, -1 where none does; int64."""
        positions = np.full(len(codes), -1, np.int64)
        known = np.flatnonzero((codes >= 0) & ~to_numpy(values.is_null()))
        if not len(known):
            return positions
        codes = codes[known]
        wanted = _numbers(values.take(from_numpy(known)))
        begun = codes * (len(self._firsts) + 1) + np.searchsorted(self._firsts, wanted, "right")
        end = np.searchsorted(self._begun, begun, "right") - 1
        needed = np.searchsorted(self._lasts, wanted, "left")
        search = self._last_match if self._latest else self._first_match
        at = search(codes, end, needed)
        hits = at >= 0
        positions[known[hits]] = self._order[at[hits]]
        return positions

    def _first_match(self, codes: np.ndarray, end: np.ndarray, needed: np.ndarray) -> np.ndarray:
        """Return the first row of each key, up to `end`, whose last value has rank `needed` or
        more; -1 without one."""
        at = np.searchsorted(self._reached, codes * (len(self._lasts) + 1) + needed, "left")
        return np.where(at <= end, at, -1)

    def _last_match(self, codes: np.ndarray, end: np.ndarray, needed: np.ndarray) -> np.ndarray:
        """Return the last row of each key, up to `end`, whose last value has rank `needed` or more;
        -1 without one."""
        lowest = codes * (len(self._lasts) + 1) + needed
        positions = np.full(len(codes), -1, np.int64)
        open_rows = np.arange(len(codes))
        at = end
        while len(open_rows):
            can_match = at >= self._starts[codes[open_rows]]
            can_match &= self._reached[np.maximum(at, 0)] >= lowest[open_rows]
            open_rows, at = open_rows[can_match], at[can_match]
            matches = self._last_ranks[at] >= needed[open_rows]
            positions[open_rows[matches]] = at[matches]
            open_rows, at = open_rows[~matches], at[~matches] - 1
        return positions


def _numbers(values: pa.Array) -> np.ndarray:
    """Return numbers, dates or times without nulls as numpy numbers of the same order."""
    arrow = values.type
    if pa.types.is_date32(arrow):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(arrow):
        values = values.view(pa.int64())
    numbers: np.ndarray = to_numpy(values)
    return numbers
