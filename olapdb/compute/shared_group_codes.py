"""Group codes of a block's columns, made once for all the views that group by them.

The views on a table all see the same block.  Ten of them that group by day and kind would encode
the same two columns ten times over; here the first one does.  Arrays are told by their memory, so
what a view filters or computes is its own, and made as ever.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.group_codes import RADIX_MAX, Factorised, encode, factorise, renumbered
from olapdb.config import tuning

HELD_BYTES_MAX = 256 << 20


class SharedCodes:
    """Codes of the columns of one block; safe for many threads. What is made beyond
    `HELD_BYTES_MAX` is given and forgotten.  `users` is how many queries the block is for."""

    def __init__(self, block: pa.Table, users: int) -> None:
        self._block = block  # keeps the addresses ours
        self.users = users
        self._addresses = {
            buffer.address
            for column in block.columns
            for chunk in column.chunks
            for buffer in chunk.buffers()
            if buffer is not None
        }
        self._lock = threading.Lock()
        self._found: dict[Hashable, Factorised] = {}
        self._encoded: dict[Hashable, tuple[np.ndarray, int]] = {}
        self._held_bytes = 0

    def factorise(
        self, columns: Sequence[pa.Array], rows: int, *, grouped_anyway: bool
    ) -> Factorised | None:
        """As `codes.factorise`; None where the columns are not the block's own, or where codes for
        one user are no gain, since the caller can group in another way (`grouped_anyway`)."""
        if (
            rows < tuning.SHARED_CODES_ROWS_MIN
            or not columns
            or (self.users == 1 and grouped_anyway)
        ):
            return None
        keys = [self._identity(column) for column in columns]
        if any(key is None for key in keys):
            return None
        key = tuple(keys)
        found = self._found.get(key)
        if found is None:
            found = self._make(columns, keys, rows)
            with self._lock:
                if self._holds(found.codes.nbytes):
                    found = self._found.setdefault(key, found)
        return found

    def _make(self, columns: Sequence[pa.Array], keys: Sequence[Hashable], rows: int) -> Factorised:
        encoded = [self._column(column, key) for column, key in zip(columns, keys, strict=True)]
        radix = 1
        for _, count in encoded:
            radix *= max(count, 1)
        if radix >= RADIX_MAX:
            return factorise(columns, rows)
        codes = encoded[0][0]
        for more, count in encoded[1:]:
            codes = codes * count + more
        return _renumbered(codes, radix)

    def _column(self, column: pa.Array, key: Hashable) -> tuple[np.ndarray, int]:
        found = self._encoded.get(key)
        if found is None:
            found = encode(column)
            with self._lock:
                if self._holds(found[0].nbytes):
                    self._encoded[key] = found
        return found

    def _holds(self, more_bytes: int) -> bool:
        if self._held_bytes + more_bytes > HELD_BYTES_MAX:
            return False
        self._held_bytes += more_bytes
        return True

    def _identity(self, column: pa.Array) -> Hashable | None:
        """What tells the array from all others while the block is alive; None for one that does
        not lie in the block."""
        if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
            return None
        addresses = tuple(b.address for b in column.buffers() if b is not None)
        if not self._addresses.issuperset(addresses):
            return None
        return column.type, column.offset, len(column), addresses


def _renumbered(codes: np.ndarray, radix: int) -> Factorised:
    """Codes by first appearance."""
    if radix > tuning.RENUMBER_RADIX_MAX:
        return factorise([pa.array(codes)], len(codes))
    return renumbered(codes, radix)
