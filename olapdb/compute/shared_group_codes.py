"""Group codes of a block's columns, computed once for all views that group by them.

All views on a table see the same block.  Ten views that group by day and kind would encode the same
two columns ten times; here the first view encodes them for all.  Arrays are identified by their
memory, so columns that a view filters or computes are not shared.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.group_codes import RADIX_MAX, Factorised, encode, factorise, number_by_table
from olapdb.config import tuning
from olapdb.types.arrow_values import from_numpy

HELD_BYTES_MAX = 256 << 20


class SharedCodes:
    """A cache of the group codes of one block's columns, for `users` queries; thread-safe.

    Codes beyond `HELD_BYTES_MAX` are returned but not cached."""

    def __init__(self, block: pa.Table, users: int) -> None:
        self._block = block  # while it lives, no other array can have its addresses
        self.users = users
        self._addresses = {
            buffer.address
            for column in block.columns
            for chunk in column.chunks
            for buffer in chunk.buffers()
            if buffer is not None
        }
        self._lock = threading.Lock()
        self._groups: dict[Hashable, Factorised] = {}
        self._encoded: dict[Hashable, tuple[np.ndarray, int]] = {}
        self._held_bytes = 0

    def factorise(
        self, columns: Sequence[pa.Array], rows: int, *, grouped_anyway: bool
    ) -> Factorised | None:
        """Group equal rows as `group_codes.factorise`, with a cache of results.

        Returns None if a column is not one of the block's, if there are few rows, or if a single
        user could group without codes (`grouped_anyway`)."""
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
        groups = self._groups.get(key)
        if groups is None:
            groups = self._compute(columns, keys, rows)
            with self._lock:
                if self._reserve(groups.codes.nbytes):
                    groups = self._groups.setdefault(key, groups)
        return groups

    def _compute(
        self, columns: Sequence[pa.Array], keys: Sequence[Hashable], rows: int
    ) -> Factorised:
        """Group the rows by the cached codes of each column, combined into one number."""
        encoded = [self._encode(column, key) for column, key in zip(columns, keys, strict=True)]
        radix = 1
        for _, count in encoded:
            radix *= max(count, 1)
        if radix >= RADIX_MAX:
            return factorise(columns, rows)
        codes = encoded[0][0]
        for column_codes, count in encoded[1:]:
            codes = codes * count + column_codes
        if radix > tuning.RENUMBER_RADIX_MAX:
            return factorise([from_numpy(codes)], rows)
        return number_by_table(codes, radix)

    def _encode(self, column: pa.Array, key: Hashable) -> tuple[np.ndarray, int]:
        """Return (codes, number of codes) of the column, from the cache if possible."""
        encoded = self._encoded.get(key)
        if encoded is None:
            encoded = encode(column)
            with self._lock:
                if self._reserve(encoded[0].nbytes):
                    self._encoded[key] = encoded
        return encoded

    def _reserve(self, more_bytes: int) -> bool:
        """Count more bytes of the cache; return False if they would exceed the limit."""
        if self._held_bytes + more_bytes > HELD_BYTES_MAX:
            return False
        self._held_bytes += more_bytes
        return True

    def _identity(self, column: pa.Array) -> Hashable | None:
        """Return a key that no other array has while the block lives; None for an array that is not
        in the block's memory."""
        if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
            return None
        addresses = tuple(buffer.address for buffer in column.buffers() if buffer is not None)
        if not self._addresses.issuperset(addresses):
            return None
        return column.type, column.offset, len(column), addresses
