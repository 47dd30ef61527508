"""Stable sorting by integers, dates and times in a compiled kernel, which needs the library.

The other form is Arrow's, in `compute/ordering.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.native.grouping import bounds
from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import ColumnValues, values_of
from olapdb.records import dataclass

_WORD_BITS = 64
_COUNTED_BITS = 16
_ENTRY_WORDS = 2


@dataclass(frozen=True)
class SortColumn:
    """A column to sort by, its direction, and whether NULL comes before all values."""

    values: pa.Array
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class _Digits:
    """A column as digits of `bits` bits, which sort as its values do."""

    values: ColumnValues
    column: SortColumn
    low: int
    high: int

    @property
    def has_null(self) -> bool:
        """Whether the column has a validity bitmap, so that NULL needs a digit of its own."""
        return self.values.validity is not None

    @property
    def bits(self) -> int:
        """Return the number of bits that the column's digits take in a key; the digit of NULL is included."""
        return (self.high - self.low + self.has_null).bit_length()

    def add_to(self, keys: np.ndarray, shift: int) -> None:
        """Add the column's digits, shifted left by `shift` bits, to the keys in place. Greater digits sort later."""
        null_is_first = self.has_null and self.column.nulls_first
        kernels().olapdb_pack_order(
            *self.values.column,
            len(keys),
            (self.high if self.column.descending else self.low) % (1 << _WORD_BITS),
            self.column.descending,
            int(null_is_first),
            0 if null_is_first else self.high - self.low + 1,
            shift,
            keys,
        )


def sort_order(columns: Sequence[SortColumn], rows: int) -> np.ndarray | None:
    """Return the positions of the rows in sorted order, stable; uint64, shape (rows,).

    Returns None unless all columns are integers, dates or times whose range has at most 64 bits, and
    for a single column of a small range, which Arrow counts in less time."""
    digits = _digits_of(columns)
    if digits is None or (len(digits) == 1 and digits[0].bits <= _COUNTED_BITS):
        return None
    return _order(digits, rows)


def order_of_integers(keys: Sequence[pa.Array]) -> np.ndarray | None:
    """Return the positions of the rows sorted by the keys, the first one first, stable; uint64. None for a key whose
    range has more than 64 bits. Keys are integers of one length."""
    digits = _digits_of([SortColumn(key, False, False) for key in keys])
    return None if digits is None else _order(digits, len(keys[0]))


def _digits_of(columns: Sequence[SortColumn]) -> list[_Digits] | None:
    """Return the digits of the columns; None if one is not of integers, dates or times, or if its range has more than
    64 bits."""
    digits = []
    for column in columns:
        values = values_of(column.values)
        if values is None or not values.is_integer:
            return None
        digits.append(_Digits(values, column, *bounds(values)))
        if digits[-1].bits > _WORD_BITS:
            return None
    return digits


def _order(digits: Sequence[_Digits], rows: int) -> np.ndarray:
    """Return the positions of the rows sorted by the digits, stable; uint64."""
    row_bits = max(rows - 1, 0).bit_length()
    bits = sum(column_digits.bits for column_digits in digits)
    if bits + row_bits <= _WORD_BITS:
        return _packed_order(digits, rows, row_bits)
    if bits <= _WORD_BITS:
        ordered = _order_by_prefixes(digits, rows, row_bits)
        if ordered is not None:
            return ordered
    order = empty(rows, np.uint64)
    order[:] = np.arange(rows, dtype=np.uint64)
    entries, others = (empty(_ENTRY_WORDS * rows, np.uint64) for _ in range(2))
    keys = empty(rows, np.uint64)
    for word in _words(digits):
        bits = _pack(word, keys)
        kernels().olapdb_sort_order(keys, rows, bits, order, entries, others)
    return order


def _packed_order(digits: Sequence[_Digits], rows: int, row_bits: int) -> np.ndarray:
    """Return the positions in sorted order of rows whose key and number fit one word."""
    keys, others = (empty(rows, np.uint64) for _ in range(2))
    bits = _pack(list(reversed(digits)), keys)
    kernels().olapdb_sort_packed(keys, rows, bits, row_bits, others)
    return keys


def _order_by_prefixes(digits: Sequence[_Digits], rows: int, row_bits: int) -> np.ndarray | None:
    """Return the positions in sorted order of rows whose key fits one word, but not with the row's number. None where
    many rows have the same upper bits."""
    keys, words, others = (empty(rows, np.uint64) for _ in range(3))
    bits = _pack(list(reversed(digits)), keys)
    decides = kernels().olapdb_sort_prefixes(keys, rows, bits, row_bits, words, others)
    return words if decides else None


def _pack(word: Sequence[_Digits], keys: np.ndarray) -> int:
    """Write the keys of the rows from the digits of columns that share a word, the first column's in the lowest bits;
    return the number of bits used."""
    keys[:] = 0
    shift = 0
    for column_digits in word:
        if column_digits.bits:
            column_digits.add_to(keys, shift)
        shift += column_digits.bits
    return shift


def _words(digits: Sequence[_Digits]) -> list[list[_Digits]]:
    """Return lists of columns, each of whose digits fit one word of 64 bits together: from the last, least significant,
    column to the first."""
    words: list[list[_Digits]] = [[]]
    for column_digits in reversed(digits):
        if sum(other.bits for other in words[-1]) + column_digits.bits > _WORD_BITS:
            words.append([])
        words[-1].append(column_digits)
    return words
