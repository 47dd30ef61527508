"""Calls of the kernels that write integers in fewer bytes. Each needs the library to be loaded.

The other forms are in `compute/spill/narrowing.py` and `compute/spill/fixed_rows.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from olapdb.native.library import kernels
from olapdb.native.memory import address_of, empty
from olapdb.native.values import ColumnValues, values_of_numbers

_WORD_BITS = 64

Piece = tuple[np.ndarray, int]
"""Distances, and what they are distances from."""


def narrow(values: ColumnValues, low: int, dtype: np.dtype) -> np.ndarray:
    """Return the distances of integers from `low`, of an unsigned type that has them."""
    distances = empty(values.rows, dtype)
    low %= 1 << _WORD_BITS
    kernels().olapdb_narrow(
        values.type, values.numbers, values.rows, low, dtype.itemsize, distances
    )
    return distances


def widen(pieces: Sequence[Piece], dtype: np.dtype) -> np.ndarray:
    """Return the integers of a type of which pieces have the distances."""
    values = empty(sum(len(distances) for distances, _ in pieces), dtype)
    table = np.array(
        [(address_of(d), len(d), _signed(low), d.itemsize) for d, low in pieces], np.int64
    )
    kernels().olapdb_widen(values_of_numbers(values[:0]).type, table, len(pieces), values)
    return values


def partition_counts(numbers: np.ndarray, counts: np.ndarray) -> None:
    """Add the rows of each partition to its count, int64; `numbers` are the partitions of rows, uint8."""
    kernels().olapdb_partition_counts(numbers, len(numbers), counts)


def divide(
    values: ColumnValues,
    numbers: np.ndarray,
    low: int,
    width: int,
    ends: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write the distances of integers from `low`, `width` bytes each, behind those of their partitions.

    `ends` has the bytes of `places` at which the next one of each partition goes, and is updated."""
    low %= 1 << _WORD_BITS
    kernels().olapdb_divide_values(
        values.type, values.numbers, numbers, values.rows, low, width, ends, places
    )


def _signed(low: int) -> int:
    """Return the signed integer with the bits of a 64-bit word."""
    word = low % (1 << _WORD_BITS)
    return word - (1 << _WORD_BITS) if word >> (_WORD_BITS - 1) else word
