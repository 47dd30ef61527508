"""The set of distinct rows so far, which grows batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.group_codes import factorise
from olapdb.compute.hash_table import Lookup, build_bytes, estimate_build_bytes
from olapdb.compute.memory import MemoryAccount
from olapdb.native.key_set import SLOT_BYTES, SLOTS_PER_KEY_MAX, KeySet, has_keys
from olapdb.native.library import library
from olapdb.types.arrow_values import from_numpy


class SeenRows:
    """The distinct rows so far: one set of keys where a row is a key of 64 bits (`native/key_set.py`), else
    a few sets of growing size.

    A new batch is looked up in each set. The newest sets are joined when they are as large as the one
    before, so that each row is inserted log(rows) times.
    """

    def __init__(self, account: MemoryAccount, threads: int = 0) -> None:
        self._account = account
        self._threads = threads
        self._levels: list[tuple[list[pa.Array], Lookup]] = []
        self._keys: KeySet | None = None
        self._added: list[list[pa.Array]] = []
        """The columns of the rows in `_keys`, batch by batch."""
        self._added_bytes = 0

    @property
    def nbytes(self) -> int:
        """Return the bytes of all sets in memory; 0 without rows."""
        key_bytes = 0 if self._keys is None else self._keys.nbytes
        return self._added_bytes + key_bytes + sum(lookup.nbytes for _, lookup in self._levels)

    def needed_bytes(self, columns: Sequence[pa.Array]) -> int:
        """Return the bytes that adding these rows may need: all sets joined to one with them."""
        rows = len(columns[0]) if columns else 0
        nbytes: int = self.nbytes + sum(column.nbytes for column in columns)
        if self._keys is not None:
            return nbytes + 2 * self._keys.nbytes + rows * SLOTS_PER_KEY_MAX * SLOT_BYTES
        count = rows + sum(lookup.count for _, lookup in self._levels)
        types = [column.type for column in columns]
        return 3 * nbytes + estimate_build_bytes(types, count, nbytes)

    def drain(self) -> Iterator[list[pa.Array]]:
        """Yield the columns of each set, and release it."""
        self._keys = None
        while self._added:
            columns = self._added.pop()
            self._added_bytes -= sum(column.nbytes for column in columns)
            yield columns
            self._account.set(self.nbytes)
        while self._levels:
            columns, _ = self._levels.pop()
            yield columns
            self._account.set(self.nbytes)

    def add(
        self, columns: Sequence[pa.Array], rows: int, *, are_distinct: bool = False
    ) -> np.ndarray:
        """Add rows, which the caller may know to be distinct; return the positions of the first
        occurrences of new rows, ascending.

        Raises MemoryLimitExceeded if the sets would be too large."""
        if self._keys is None and not self._levels and _are_keys(columns):
            self._keys = KeySet()
        if self._keys is not None:
            return self._add_keys(self._keys, columns, rows)
        new_rows = (
            np.arange(rows)
            if are_distinct
            else factorise(columns, rows, threads=self._threads).first
        )
        for _, lookup in self._levels:
            if not len(new_rows):
                return new_rows
            taken = [column.take(from_numpy(new_rows)) for column in columns]
            new_rows = new_rows[lookup.find(taken, len(new_rows)) < 0]
        if len(new_rows):
            self._insert([column.take(from_numpy(new_rows)) for column in columns], len(new_rows))
        return new_rows

    def _add_keys(self, keys: KeySet, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Add rows to the set of keys; return the positions of new ones."""
        self._account.set(self.needed_bytes(columns))
        new_rows = keys.add(columns, rows)
        if len(new_rows):
            added = [column.take(from_numpy(new_rows)) for column in columns]
            self._added.append(added)
            self._added_bytes += sum(column.nbytes for column in added)
        self._account.set(self.nbytes)
        return new_rows

    def _insert(self, columns: list[pa.Array], rows: int) -> None:
        """Add new distinct rows as the newest set. Older sets of at most twice as many rows are joined to it, so that
        there are few sets."""
        parts = [columns]
        while self._levels and self._levels[-1][1].count <= 2 * rows:
            older, lookup = self._levels.pop()
            parts.insert(0, older)
            rows += lookup.count
            del lookup
        before = sum(column.nbytes for part in parts for column in part)
        self._account.set(self.nbytes + 2 * before)
        if len(parts) > 1:
            columns = [pa.concat_arrays(column) for column in zip(*parts, strict=True)]
        parts.clear()
        self._account.set(self.nbytes + before + build_bytes(columns, rows))
        lookup = Lookup(columns, rows, matches_null=True, threads=self._threads)
        self._levels.append((columns, lookup))
        self._account.set(self.nbytes)


def _are_keys(columns: Sequence[pa.Array]) -> bool:
    """Return whether rows of these columns are keys of 64 bits, and there are kernels for them."""
    return library() is not None and has_keys([column.type for column in columns])
