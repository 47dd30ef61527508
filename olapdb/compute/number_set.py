"""Integers and days of a set that lie in a narrow span, to be found without hashing.

`members` asks whether the set has a value: a bit for each number of the span. `codes` asks which value of the
set it is: a number for each. The members before each word of bits, counted, say which value it is in ascending order.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from olapdb.config import tuning
from olapdb.native import members as compiled
from olapdb.native.library import library
from olapdb.native.values import ColumnValues, values_of
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy

_WORDS = 1 << 64


@dataclass(frozen=True)
class NumberSet:
    """Distinct integers or days without NULL, from `low` on: `values[i]` has the code i.

    `span` is the number of integers from the least to the greatest."""

    values: pa.Array
    low: int
    span: int

    @staticmethod
    def of(values: pa.Array) -> NumberSet | None:
        """Return the set; None for other types, for no values, and with NULL."""
        if not (pa.types.is_integer(values.type) or pa.types.is_date32(values.type)):
            return None
        if not len(values) or values.null_count:
            return None
        numbers = _numbers(values)
        low, high = int(numbers.min()), int(numbers.max())
        return NumberSet(values, low % _WORDS, high - low + 1)

    def members(self) -> Members | None:
        """Return a bit for each number of the span; None if it is too wide."""
        if self.span > 8 * tuning.MEMBER_TABLE_BYTES_MAX:
            return None
        bits = np.zeros(8 * (self.span // 64 + 1), np.uint8)
        if library() is not None:
            compiled.mark_members(_described(self.values), self.low, bits)
        else:
            marks = np.zeros(8 * len(bits), bool)
            marks[self._offsets(self.values)] = True
            bits = np.packbits(marks, bitorder="little")
        return Members(self, bits)

    def codes(self, rows: int) -> Codes | None:
        """Return a table of codes over the span; None if the span is too wide for the number of values in the set and
        for `rows`, the rows to find at a time."""
        if 4 * self.span > tuning.CODE_TABLE_BYTES_MAX:
            return None
        if self.span > tuning.CODE_TABLE_FACTOR * max(rows, len(self.values)):
            return None
        table = np.full(self.span + 1, -1, np.int32)
        table[self._offsets(self.values)] = np.arange(len(self.values), dtype=np.int32)
        return Codes(self, table)

    def _offsets(self, column: pa.Array) -> np.ndarray:
        """Return the distance of each value from the least of the set, or the width of the span for values outside of
        the span."""
        numbers = _numbers(column)
        wide = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64, copy=False)
        offsets: np.ndarray = np.minimum(
            wide.view(np.uint64) - np.uint64(self.low), np.uint64(self.span)
        )
        return offsets


@dataclass(frozen=True)
class Members:
    """A bit for each number of a set's span, in bytes, the lowest first; the last number has none."""

    numbers: NumberSet
    bits: np.ndarray

    @cached_property
    def count(self) -> int:
        """Return the number of numbers in the set."""
        return int(np.bitwise_count(self.bits).sum())

    @cached_property
    def ranks(self) -> np.ndarray:
        """Return how many numbers the set has before each 64 of the span; int32."""
        counts = np.bitwise_count(self.bits.view(np.uint64))
        ranks: np.ndarray = np.cumsum(counts, dtype=np.int32) - counts
        return ranks.astype(np.int32, copy=False)

    def rank(self, column: pa.Array) -> np.ndarray:
        """Return for each value of a column of the set's type how many numbers of the set are less; -1 where the set
        lacks it, and for NULL. int64."""
        numbers = self.numbers
        if library() is not None and len(column):
            return compiled.rank_members(
                _described(column), numbers.low, numbers.span, self.bits, self.ranks
            )
        at = numbers._offsets(column)
        words = self.bits.view(np.uint64)[at >> np.uint64(6)]
        bit = np.uint64(1) << (at & np.uint64(63))
        before = np.bitwise_count(words & (bit - np.uint64(1))).astype(np.int64)
        codes = np.where(words & bit, self.ranks[at >> np.uint64(6)] + before, -1)
        return _without_null(codes, column, absent=-1)

    @property
    def share(self) -> float:
        """Return the share, 0 to 1, of the numbers of the span that are in the set."""
        return self.count / self.numbers.span

    def find(self, column: pa.Array) -> pa.BooleanArray:
        """Return whether the set has each value of a column of the set's type; false for NULL."""
        rows, numbers = len(column), self.numbers
        if library() is not None and rows:
            words = compiled.find_members(_described(column), numbers.low, numbers.span, self.bits)
            return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(words)])
        at = numbers._offsets(column)
        is_contained = (
            self.bits[at >> np.uint64(3)] >> (at & np.uint64(7)).astype(np.uint8)
        ) & 1 == 1
        return from_numpy(_without_null(is_contained, column, absent=False))

    def keep(self, column: pa.Array, kept: np.ndarray) -> None:
        """Keep in `kept`, a bit for each row in words of 64 bits, the rows whose value the set has. Needs the library."""
        numbers = self.numbers
        compiled.keep_members(_described(column), numbers.low, numbers.span, self.bits, kept)


@dataclass(frozen=True)
class Codes:
    """A code for each number of a set's span, -1 for those that it lacks; the last number is beyond."""

    numbers: NumberSet
    table: np.ndarray

    @property
    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self.table.nbytes

    def find(self, column: pa.Array) -> np.ndarray:
        """Return the code of each value of a column of the set's type, -1 where it has none; int64."""
        numbers = self.numbers
        if library() is not None and len(column):
            return compiled.find_numbers(_described(column), numbers.low, numbers.span, self.table)
        codes = self.table[numbers._offsets(column)].astype(np.int64)
        return _without_null(codes, column, absent=-1)


def _described(column: pa.Array) -> ColumnValues:
    """Return an integer or day column as kernels take it."""
    values = values_of(column)
    assert values is not None
    return values


def _numbers(column: pa.Array) -> np.ndarray:
    """Return integers or days; those of NULL are undefined."""
    return _described(column).numbers


def _without_null(values: np.ndarray, column: pa.Array, *, absent: int) -> np.ndarray:
    """Return `values` with `absent` for the rows that are NULL."""
    if not column.null_count:
        return values
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, values, absent)
