"""Batches: building, cutting and filtering them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import NotSupportedError
from olapdb.functions.base import Column
from olapdb.functions.kernels.columns import as_array, true_positions
from olapdb.native.library import library
from olapdb.native.selection import kept_values
from olapdb.plan.nodes import Schema
from olapdb.types import DataType
from olapdb.types.arrow_values import from_numpy

_NO_COLUMNS = pa.struct([])

_FILTERED_SHARE = 0.85
"""Where more of the rows are kept, Arrow's filter copies them in runs: at 0.9 in 0.7 of the time that
positions take, at 0.98 in 0.2 to 0.5 (131,072 rows, kept at random)."""


_KEPT_SHARE = 0.2
"""Where fewer of the rows are kept, their positions are found once for all columns."""


def broadcast(column: Column, rows: int, data_type: DataType) -> pa.Array:
    """Return the column as an array of `rows` values of the type's Arrow type; a constant repeats."""
    if isinstance(column, pa.Scalar):
        if not column.is_valid:
            return pa.nulls(rows, data_type.arrow)
        column = as_array(column, rows)
    column = single_chunk(column)
    if column.type != data_type.arrow:
        # Names of list and struct fields may differ.
        column = column.cast(data_type.arrow)
    return column


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a node's schema."""
    return pa.schema([pa.field(field.name, field.type.arrow) for field in schema])


def make_batch(columns: Sequence[pa.Array], schema: Schema, rows: int) -> pa.RecordBatch:
    """Return a batch of the schema; `rows` is its length if the schema has no column."""
    if not schema:
        return rows_only(rows)
    return pa.RecordBatch.from_arrays(list(columns), schema=arrow_schema(schema))


def rows_only(rows: int) -> pa.RecordBatch:
    """Return a batch of `rows` rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(_NO_COLUMNS, rows, [None]))


def table_of(batches: Sequence[pa.RecordBatch], schema: Schema) -> pa.Table:
    """Return the batches as one table with one chunk a column."""
    table = pa.Table.from_batches(batches, schema=arrow_schema(schema))
    return table.combine_chunks() if schema and table.num_rows else table


def single_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the table as one batch; its chunks are joined."""
    if not table.num_columns:
        return rows_only(table.num_rows)
    return pa.RecordBatch.from_arrays(
        [single_chunk(column) for column in table.columns], schema=table.schema
    )


def single_chunk(column: pa.ChunkedArray | pa.Array, pool: pa.MemoryPool | None = None) -> pa.Array:
    """Return the column as one array, without a copy if it is one already; a copy is in memory of
    `pool` (None: Arrow's default).

    Raises NotSupportedError if its text or its list elements exceed 2 GiB, which is the most
    that one Arrow array of 32-bit offsets holds.
    """
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.nulls(0, column.type)
    try:
        return column.combine_chunks(memory_pool=pool)
    except pa.ArrowInvalid as error:  # the chunks have one type, so only the offsets can be wrong
        raise NotSupportedError(
            "A column's text does not fit one Arrow array of 2 GiB.",
            hint="Let the statement hold fewer rows at once, or shorter texts (a hash, a prefix).",
        ) from error


def joined_column(pieces: Sequence[pa.Array]) -> pa.Array:
    """Return the pieces of a column as one array; they have one dictionary if they are codes."""
    first = pieces[0]
    if isinstance(first, pa.DictionaryArray):
        codes = pa.concat_arrays([piece.indices for piece in pieces])
        return pa.DictionaryArray.from_arrays(codes, first.dictionary, safe=False)
    return single_chunk(pa.chunked_array(list(pieces)))


def cut(batch: pa.RecordBatch, rows_max: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch in pieces of at most `rows_max` rows; nothing for an empty batch."""
    if 0 < batch.num_rows <= rows_max:
        yield batch
        return
    for start in range(0, batch.num_rows, rows_max):
        yield batch.slice(start, rows_max)


def take_rows(batch: pa.RecordBatch, positions: pa.Array) -> pa.RecordBatch:
    """Return the rows at the positions, in the order of the positions."""
    if not batch.num_columns:
        return rows_only(len(positions))
    return pc.take(batch, positions, boundscheck=False)


def take_known(column: pa.Array, positions: pa.Array) -> pa.Array:
    """Return the values at positions that are known to be in the column: a wrong one reads beyond its memory.

    Arrow takes half the time when it does not look for positions beyond the end."""
    return pc.take(column, positions, boundscheck=False)


def filter_rows(batch: pa.RecordBatch, keep: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows where `keep` is true; NULL counts as false."""
    rows = keep.true_count
    if rows == batch.num_rows:
        return batch
    if rows == 0:
        return batch.slice(0, 0)
    if not batch.num_columns:
        return rows_only(rows)
    columns: list[pa.Array | None] = [None] * batch.num_columns
    if library() is not None and not keep.null_count and rows >= batch.num_rows * _KEPT_SHARE:
        columns = [kept_values(column, keep, rows) for column in batch.columns]
    others = [at for at, column in enumerate(columns) if column is None]
    if others:
        filtered = _filtered(batch.select(others), keep, rows)
        for at, column in zip(others, filtered.columns, strict=True):
            columns[at] = column
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _filtered(batch: pa.RecordBatch, keep: pa.BooleanArray, rows: int) -> pa.RecordBatch:
    """Return the `rows` rows where `keep` is true, by Arrow."""
    if rows >= batch.num_rows * _FILTERED_SHARE:
        return batch.filter(keep)
    return batch.take(from_numpy(true_positions(keep)))


def overwritten(
    values: pa.ChunkedArray, offsets: np.ndarray, new: pa.Array | pa.ChunkedArray
) -> pa.Array:
    """Return `values` with `new[i]`, converted to their type, at position `offsets[i]`."""
    positions = np.arange(len(values))
    positions[offsets] = len(values) + np.arange(len(offsets))
    replacement = single_chunk(new).cast(values.type)
    return pa.concat_arrays([single_chunk(values), replacement]).take(from_numpy(positions))
