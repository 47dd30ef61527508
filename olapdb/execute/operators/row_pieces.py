"""Pieces of batches for which wide values are computed: as many rows at a time as the values have room for.

How large the values of repeat(s, n) are shows when they are there. The first piece has few rows, and each later one
as many as the bytes of the piece before suggest, but not many times as many rows. Once a piece had much more bytes than
wanted, as few of its rows were large, pieces grow slowly: the next large rows are then among few again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa

_FIRST_ROWS = 16
_GROWTH, _GROWTH_OF_UNEVEN = 16, 2
_MUCH = 2
"""A piece of more than this many times the wanted bytes shows that rows are uneven."""


class RowPieces:
    """Cuts batches into pieces whose values have about `bytes_max` bytes. Thread-safe."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._rows, self._growth = _FIRST_ROWS, _GROWTH
        self._lock = threading.Lock()

    def cut(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of batches in their order, in pieces."""
        for batch in batches:
            start = 0
            while start < batch.num_rows:
                rows = self._rows
                yield batch.slice(start, rows)
                start += rows

    def learn(self, rows: int, nbytes: int) -> None:
        """Take note that the values of a piece of `rows` rows had `nbytes` bytes."""
        fitting = self._bytes_max * rows // max(nbytes, 1)
        with self._lock:
            if nbytes > _MUCH * self._bytes_max:
                self._growth = _GROWTH_OF_UNEVEN
            self._rows = max(min(fitting, max(self._rows, self._growth * rows)), 1)
