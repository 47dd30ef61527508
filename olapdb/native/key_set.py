"""A set of rows of numbers that grows batch by batch, each row a key of 64 bits. Needs the library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.native import grouping
from olapdb.native.library import kernels
from olapdb.native.memory import empty, zeros
from olapdb.native.values import validity_of

_CAPACITY_MIN = 4096
_FLAGS = 2
"""The places behind the slots, for the key 0 and for NULL."""
SLOT_BYTES = 8
SLOTS_PER_KEY_MAX = 4
"""At most half of the slots are taken, and their number doubles."""


class KeySet:
    """The distinct rows so far. NULL equals NULL, floats are equal by their bits."""

    def __init__(self) -> None:
        self._capacity = _CAPACITY_MIN
        self._slots = np.zeros(self._capacity + _FLAGS, np.uint64)
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Return the size of the slots."""
        return int(self._slots.nbytes)

    def add(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Add rows; return the positions of the first occurrences of new rows, ascending.

        The columns have the types for which `has_keys` is true."""
        keys, null_column = grouping.exact_keys(columns)
        validity = (None, 0) if null_column is None else validity_of(null_column)
        new_rows = empty(rows, np.int64)
        progress = np.array([0, self._count, 0], np.int64)
        while True:
            kernels().olapdb_insert_keys(
                keys, *validity, rows, self._slots, self._capacity, progress, new_rows
            )
            self._count = int(progress[1])
            if progress[0] == rows:
                return new_rows[: progress[2]]
            self._grow(2 * self._capacity)

    def _grow(self, capacity: int) -> None:
        """Replace the slots by `capacity` ones that hold the same keys."""
        larger = zeros(capacity + _FLAGS, np.uint64)
        kernels().olapdb_grow_keys(self._slots, self._capacity, larger, capacity)
        self._slots, self._capacity = larger, capacity


def has_keys(types: Sequence[pa.DataType]) -> bool:
    """Return whether rows of these types, NULLs among them, are keys of 64 bits: one number, or several
    that together have fewer bits."""
    return grouping.key_digits(types) is not None
