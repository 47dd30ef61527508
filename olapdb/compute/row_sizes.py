"""The bytes of each row, so that rows that are repeated are made some at a time.

A batch of few bytes can become one of many: a join and an ARRAY JOIN repeat long texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels.columns import offsets_of

_CODE_BYTES = 4

_UNEVEN_FACTOR = 4
"""Rows whose longest is not much longer than the average are counted by the average, which takes no pass over them."""


def row_sizes(columns: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Return about how many bytes each of `rows` rows of the columns takes; int64, shape (rows,).

    It is exact for texts and numbers. Elements of an array count with their average, other nested values with the
    average of the column."""
    sizes = np.zeros(rows, np.int64)
    for column in columns:
        arrow = column.type
        if isinstance(column, pa.DictionaryArray):
            sizes += _CODE_BYTES
        elif pa.types.is_string(arrow) or pa.types.is_binary(arrow):
            sizes += np.diff(offsets_of(column))
        elif pa.types.is_list(arrow):
            counts = np.diff(offsets_of(column))
            sizes += counts * (column.nbytes // max(int(counts.sum()), 1))
        else:
            sizes += column.nbytes // max(rows, 1)
    return sizes


def longest_row(columns: Sequence[pa.Array], rows: int) -> int:
    """Return about how many bytes the longest of `rows` rows takes at most: the longest value of each column.

    It holds no array for columns whose values all take the same number of bytes."""
    longest = 0
    for column in columns:
        if isinstance(column, pa.DictionaryArray):
            longest += _CODE_BYTES
        elif _has_one_size(column):
            longest += int(column.nbytes) // max(rows, 1)
        else:
            longest += int(row_sizes([column], rows).max(initial=0))
    return longest


def stretches(sizes: np.ndarray, rows_max: int, bytes_max: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of consecutive rows, in order, of at most `rows_max` rows and `bytes_max` bytes, one row at
    least; `sizes` has the bytes of each row."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + bytes_max, side="right"))
        stop = min(max(stop, start + 1), start + rows_max)
        yield start, min(stop, len(ends))
        start = stop


def uneven_row_sizes(batch: pa.RecordBatch, rows_max: int, bytes_max: int) -> np.ndarray | None:
    """Return the sizes of a batch's rows if the average would mislead: `rows_max` copies of the longest row would take
    more than `bytes_max`, and it is several times as long as the average. Else None."""
    rows = batch.num_rows
    if not rows or all(map(_has_one_size, batch.columns)):
        return None
    sizes = row_sizes(batch.columns, rows)
    longest = int(sizes.max())
    is_uneven = longest > _UNEVEN_FACTOR * (batch.nbytes // rows)
    return sizes if is_uneven and longest * rows_max > bytes_max else None


def _has_one_size(column: pa.Array) -> bool:
    """Return whether all values of a column take the same number of bytes."""
    return isinstance(column, pa.DictionaryArray) or bool(pa.types.is_primitive(column.type))
