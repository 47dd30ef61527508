"""Rows of numbers and times without NULL, divided among partitions and put into bytes in one pass over each column.

bytes    partition 0: its values of a, its values of b, partition 1: its values of a, …

A column has as few bytes a value as its distances from the least one need (`narrowing`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.native import narrowing as compiled
from olapdb.native.grouping import bounds
from olapdb.native.library import library
from olapdb.native.memory import empty
from olapdb.native.values import ColumnValues, as_integers, number_type, values_of
from olapdb.records import dataclass

ALIGNMENT = 8
"""The bytes to whose multiples each column of a partition is filled up, so that values of any width may follow."""
_WIDTHS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class FixedColumn:
    """A column in bytes: values of `width` bytes that are distances from `low`."""

    low: int
    width: int


@dataclass(frozen=True, slots=True)
class FixedLayout:
    """The columns of rows in bytes, and the schema that they have in memory."""

    columns: tuple[FixedColumn, ...]
    schema: pa.Schema

    def places(self, counts: np.ndarray) -> list[np.ndarray]:
        """Return for each column the byte at which the values of each partition begin, then the byte at which each
        partition ends. `counts` has the number of rows of each partition."""
        sizes = [-(-counts * column.width // ALIGNMENT) * ALIGNMENT for column in self.columns]
        ends = np.cumsum(sum(sizes))
        starts = [ends - sum(sizes[at:]) for at in range(len(sizes))]
        return [*starts, ends]


@dataclass(frozen=True, slots=True)
class DividedRows:
    """Rows of partitions in bytes: partition p is `counts[p]` rows in the bytes up to `ends[p]`."""

    places: np.ndarray
    counts: np.ndarray
    ends: np.ndarray
    layout: FixedLayout


def divided(
    batches: Sequence[pa.RecordBatch], numbers: Sequence[np.ndarray], partitions: int
) -> DividedRows | None:
    """Return batches of one schema divided among partitions, of whose rows `numbers` has the partitions, uint8.

    None where a column has NULLs, or is no number or time of at most 64 bits, and without the kernels."""
    schema = batches[0].schema
    if library() is None or not schema.names:
        return None
    fixed: list[list[ColumnValues]] = []
    for at in range(len(schema.names)):
        column_values = [values_of(batch.column(at)) for batch in batches]
        known = [as_integers(v) for v in column_values if v is not None and v.validity is None]
        if len(known) < len(batches):
            return None
        fixed.append(known)
    layout = FixedLayout(tuple(_layout_of(pieces) for pieces in fixed), schema)
    counts = np.zeros(partitions, np.int64)
    for own in numbers:
        compiled.partition_counts(own, counts)
    *starts, ends = layout.places(counts)
    places = empty(int(ends[-1]), np.uint8)
    for column, pieces, next_places in zip(layout.columns, fixed, starts, strict=True):
        for values, own in zip(pieces, numbers, strict=True):
            compiled.divide(values, own, column.low, column.width, next_places, places)
    return DividedRows(places, counts, ends, layout)


def rows_of(pieces: Sequence[tuple[np.ndarray, int, FixedLayout]]) -> pa.RecordBatch:
    """Return the rows that are in pieces of bytes, each with its number of rows and its layout."""
    schema = pieces[0][2].schema
    arrays = []
    starts = [0] * len(pieces)
    for at, field in enumerate(schema):
        distances = []
        for number, (data, rows, layout) in enumerate(pieces):
            column, start = layout.columns[at], starts[number]
            values = data[start : start + rows * column.width].view(f"u{column.width}")
            distances.append((values, column.low))
            starts[number] = start + -(-rows * column.width // ALIGNMENT) * ALIGNMENT
        dtype = number_type(field.type)
        assert dtype is not None
        values = compiled.widen(distances, np.dtype(f"i{dtype.itemsize}"))
        arrays.append(pa.Array.from_buffers(field.type, len(values), [None, pa.py_buffer(values)]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _layout_of(pieces: Sequence[ColumnValues]) -> FixedColumn:
    """Return how to write a column: its least value, and the bytes that the distances from it need."""
    ends = [bounds(values) for values in pieces if values.rows]
    if not ends:
        return FixedColumn(0, 1)
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return FixedColumn(low, next(w for w in _WIDTHS if high - low < 1 << (8 * w)))
