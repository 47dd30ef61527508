"""Rows divided by a hash of their keys: equal keys are in one division, which a thread can group by itself.

A batch is written division after division, so that those next to each other are a slice of it:

rows of batch 1   | division 0 | division 1 | … | division 127 |
rows of batch 2   | division 0 | division 1 | … | division 127 |

The groups of a division need not be merged with those of others, and its hash table stays in a processor's cache
(radix partition: Manegold, Boncz, Kersten 2002)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import joined_column
from olapdb.compute.group_codes import Factorised, factorise
from olapdb.compute.spill.partitions import SALT, key_hashes
from olapdb.config import tuning
from olapdb.functions.kernels.hashing import mix
from olapdb.native import grouping, narrowing
from olapdb.native import partitions as compiled
from olapdb.native.library import library
from olapdb.native.memory import empty
from olapdb.native.values import as_integers, values_of
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy

BITS = 7
DIVISIONS = 1 << BITS


@dataclass(frozen=True)
class DividedColumns:
    """Columns of equal length whose rows are ordered by division: division d is the rows from `starts[d]` up to
    `starts[d + 1]`, in the order in which they came."""

    columns: list[pa.Array]
    starts: np.ndarray

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return int(self.starts[-1])

    @property
    def nbytes(self) -> int:
        """Return the bytes of the rows in memory, without those of dictionaries."""
        return sum(int(_indices(column).nbytes) for column in self.columns)

    def slices(self, first: int, last: int) -> list[pa.Array]:
        """Return the rows of the divisions from `first` up to `last`, excluded."""
        start, stop = int(self.starts[first]), int(self.starts[last])
        return [_slice(column, start, stop - start) for column in self.columns]


def divided(columns: Sequence[pa.Array], keys: Sequence[pa.Array], rows: int) -> DividedColumns:
    """Return columns divided by keys of the same length; dictionaries are divided, and hashed, as codes."""
    shift = 64 - BITS
    hashes = key_hashes([_indices(key) for key in keys])
    if library() is None:
        spread = mix(hashes ^ np.uint64(SALT)) >> np.uint64(shift)
        numbers = spread.astype(np.uint8)
        counts = np.bincount(numbers, minlength=DIVISIONS)
    else:
        numbers = compiled.partition_numbers(hashes, SALT, shift, BITS)
        counts = np.zeros(DIVISIONS, np.int64)
        narrowing.partition_counts(numbers, counts)
    starts = np.concatenate(([0], np.cumsum(counts)))
    order: list[pa.Array] = []

    def moved(column: pa.Array) -> pa.Array:
        """Return the values of a column in the order of the divisions of their rows."""
        if isinstance(column, pa.DictionaryArray):
            codes = moved(column.indices)
            return pa.DictionaryArray.from_arrays(codes, column.dictionary, safe=False)
        scattered = _scattered(column, numbers, starts)
        if scattered is not None:
            return scattered
        if not order:
            order.append(from_numpy(_order(numbers)))
        return column.take(order[0])

    return DividedColumns([moved(column) for column in columns], starts)


def joined(
    pieces: Sequence[DividedColumns], first: int, last: int
) -> tuple[list[pa.Array], np.ndarray | None]:
    """Return the rows of several pieces in the divisions from `first` up to `last`, excluded, and where the rows of
    each division end; None instead where they are not in the order of their divisions."""
    compact = _joined_by_division(pieces, first, last) if library() is not None else None
    if compact is not None:
        starts = np.sum([piece.starts[first : last + 1] for piece in pieces], axis=0)
        return compact, starts[1:] - starts[0]
    columns = zip(*(piece.slices(first, last) for piece in pieces), strict=True)
    return [joined_column(column) for column in columns], None


def _joined_by_division(
    pieces: Sequence[DividedColumns], first: int, last: int
) -> list[pa.Array] | None:
    """Return the rows of pieces, division after division; None where a column has NULLs, or is no number or time."""
    starts = np.stack([piece.starts for piece in pieces])
    joined = []
    for column in zip(*(piece.columns for piece in pieces), strict=True):
        values = [values_of(_indices(piece)) for piece in column]
        known = [as_integers(v).numbers for v in values if v is not None and v.validity is None]
        if len(known) < len(values):
            return None
        numbers = compiled.join_divisions(known, starts, first, last)
        arrow = _indices(column[0]).type
        array = pa.Array.from_buffers(arrow, len(numbers), [None, pa.py_buffer(numbers)])
        if isinstance(column[0], pa.DictionaryArray):
            array = pa.DictionaryArray.from_arrays(array, column[0].dictionary, safe=False)
        joined.append(array)
    return joined


def factorised(keys: Sequence[pa.Array], ends: np.ndarray | None) -> Factorised:
    """Group rows that `joined` returned, by codes where keys are dictionaries."""
    codes = [_indices(key) for key in keys]
    numbered = None if ends is None else grouping.number_divided(codes, _apart(ends))
    return factorise(codes, len(codes[0]), threads=1) if numbered is None else Factorised(*numbered)


def _apart(ends: np.ndarray) -> np.ndarray:
    """Return those of the ends that leave some `tuning.TABLE_ROWS` rows between them, and the last one."""
    numbers = ends // tuning.TABLE_ROWS
    return np.append(ends[:-1][numbers[1:] > numbers[:-1]], ends[-1:])


def ranges(starts: Sequence[np.ndarray], threads: int) -> list[tuple[int, int]]:
    """Return ranges of divisions for pieces that are divided at these starts: of some `tuning.DIVISION_ROWS` rows each,
    of fewer where each thread would have none else. Ranges without rows are left out."""
    ends = np.sum(starts, axis=0)
    share = max(tuning.TABLE_ROWS, -(-int(ends[-1]) // threads))
    wanted = min(tuning.DIVISION_ROWS, share)
    ranges: list[tuple[int, int]] = []
    first = 0
    for last in range(1, DIVISIONS + 1):
        rows = ends[last] - ends[first]
        is_last = ends[last] == ends[-1]
        # The middle of the division decides, so that ranges are about as long on average.
        if rows and (is_last or rows + (ends[last + 1] - ends[last]) // 2 >= wanted):
            ranges.append((first, last))
            first = last
        if is_last:
            break
    return ranges


def _slice(column: pa.Array, start: int, rows: int) -> pa.Array:
    """Return a slice of a column, of nested types as an array of its own: their offsets begin at 0."""
    rows_of_slice = column.slice(start, rows)
    return pa.concat_arrays([rows_of_slice]) if pa.types.is_nested(column.type) else rows_of_slice


def _indices(column: pa.Array) -> pa.Array:
    """Return the codes of a dictionary, or the column."""
    return column.indices if isinstance(column, pa.DictionaryArray) else column


def _order(numbers: np.ndarray) -> np.ndarray:
    """Return the positions of the rows, division after division, those of a division in their order. `numbers` has the
    division of each row."""
    if library() is not None:
        return compiled.partition_order(numbers, DIVISIONS)[0]
    return np.argsort(numbers, kind="stable")


def _scattered(column: pa.Array, numbers: np.ndarray, starts: np.ndarray) -> pa.Array | None:
    """Return the values of a column of numbers or times without NULL, division after division, written there one
    by one; None for others, and without the kernels."""
    values = values_of(column) if library() is not None else None
    if values is None or values.validity is not None or not values.rows:
        return None
    integers = as_integers(values)
    width = integers.numbers.itemsize
    places = empty(values.rows * width, np.uint8)
    narrowing.divide(integers, numbers, 0, width, starts[:-1] * width, places)
    return pa.Array.from_buffers(column.type, values.rows, [None, pa.py_buffer(places)])
