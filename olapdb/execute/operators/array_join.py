"""ARRAY JOIN: a row for each element of the arrays, a batch at a time.

counts  [3, 0, 2]      rows      [0 0 0 2 2]     (LEFT: [0 0 0 1 2 2])
                       elements  0 1 2 3 4       (LEFT: 0 1 2 default 3 4)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import make_batch, single_chunk
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import counting_bytes, evaluate_array
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.row_sizes import longest_row, row_sizes, stretches
from olapdb.errors import MemoryLimitExceeded, SizesOfArraysDoNotMatch
from olapdb.execute.operators.row_pieces import RowPieces
from olapdb.functions import default_value
from olapdb.plan.nodes import ArrayJoin
from olapdb.types import DataType
from olapdb.types.arrow_values import from_numpy, to_numpy

BYTES_PER_ROW = 24
"""Row numbers for each row; LEFT needs as many bytes for each element too."""


def array_join_batches(
    node: ArrayJoin, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield a row for each element, in order, in batches of at most `context.batch_rows` rows and about
    `context.batch_bytes` bytes.

    Raises SizesOfArraysDoNotMatch if the arrays of a row differ in length, MemoryLimitExceeded
    where the arrays of one row are too long, or those of a batch that may not be cut.
    """
    with context.memory.account("ARRAY JOIN") as account:
        if not context.cuts_wide_rows:
            for batch in child:
                arrays = _arrays(node, batch, context, account)
                yield from _join_rows(node, batch, arrays, context)
            return
        pieces = RowPieces(context.batch_bytes)
        for piece in pieces.cut(child):
            yield from _join_piece(node, piece, pieces, context, account)


def _join_piece(
    node: ArrayJoin,
    piece: pa.RecordBatch,
    pieces: RowPieces,
    context: ExecutionContext,
    account: MemoryAccount,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece with a row for each element, each half of them in turn where memory does not take all of
    their arrays. Tell `pieces` how many bytes the arrays, and the values that they were made of, have."""
    with counting_bytes() as computed:
        try:
            arrays = _arrays(node, piece, context, account)
        except MemoryLimitExceeded:
            if piece.num_rows == 1:
                raise
            arrays = None
        pieces.learn(piece.num_rows, max(account.held_bytes, computed.nbytes or 0))
    if arrays is not None:
        yield from _join_rows(node, piece, arrays, context)
        return
    middle = piece.num_rows // 2
    for half in (piece.slice(0, middle), piece.slice(middle)):
        yield from _join_piece(node, half, pieces, context, account)


def _arrays(
    node: ArrayJoin, batch: pa.RecordBatch, context: ExecutionContext, account: MemoryAccount
) -> list[pa.Array]:
    """Return the node's arrays in the rows of the batch, as lists. The account counts them, and what LEFT takes beside
    them."""
    account.set(0)
    types = [f.type for f in node.schema[len(node.kept) :]]
    arrays = [
        _list(evaluate_array(e, batch, context.environment, context.subqueries), t)
        for (_, e), t in zip(node.arrays, types, strict=True)
    ]
    nbytes = sum(array.nbytes for array in arrays)
    rows = batch.num_rows
    counts = _counts(arrays[0])
    if node.left and not counts.all():  # the elements are copied to add the default
        nbytes *= 2
        rows += int(counts.sum()) + len(counts)
    account.set(nbytes + rows * BYTES_PER_ROW)
    return arrays


def _join_rows(
    node: ArrayJoin, batch: pa.RecordBatch, arrays: Sequence[pa.Array], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the batch with a row for each element of its arrays, in pieces.

    LEFT ARRAY JOIN keeps a row without elements once, with default values.
    """
    types = [f.type for f in node.schema[len(node.kept) :]]
    counts = _common_counts(arrays)
    elements = [array.flatten() for array in arrays]
    if node.left and not counts.all():
        elements = [_with_default(c, t) for c, t in zip(elements, types, strict=True)]
        positions = _element_positions(counts)
        counts = np.maximum(counts, 1)
    else:
        positions = None
    ends = np.cumsum(counts)
    kept_columns = [single_chunk(batch.column(f.name)) for f in node.kept]
    for start, stop in _pieces(kept_columns, elements, counts, positions, context):
        context.check()
        rows = from_numpy(_row_numbers(ends, counts, start, stop))
        columns = [column.take(rows) for column in kept_columns]
        if positions is None:
            columns += [column.slice(start, stop - start) for column in elements]
        else:
            chosen = from_numpy(positions[start:stop])
            columns += [column.take(chosen) for column in elements]
        yield make_batch(columns, node.schema, stop - start)


def _pieces(
    kept: Sequence[pa.Array],
    elements: Sequence[pa.Array],
    counts: np.ndarray,
    positions: np.ndarray | None,
    context: ExecutionContext,
) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of the rows of the answer to make at once. `kept` are the columns of the input that are
    repeated, `counts` the number of rows made of each of its rows, `positions` those of the elements of the answer
    (None: in their order)."""
    total, length = int(counts.sum()), len(elements[0])
    largest = longest_row(kept, len(counts)) + longest_row(elements, length)
    if largest * min(context.batch_rows, total) <= context.batch_bytes:
        for start in range(0, total, context.batch_rows):
            yield start, min(start + context.batch_rows, total)
        return
    element_sizes = row_sizes(elements, length)
    own = element_sizes if positions is None else element_sizes[positions]
    sizes = np.repeat(row_sizes(kept, len(counts)), counts) + own
    yield from stretches(sizes, context.batch_rows, context.batch_bytes)


def _common_counts(arrays: Sequence[pa.Array]) -> np.ndarray:
    """Return the number of elements of each row, int64; raise where the arrays differ.

    Raises SizesOfArraysDoNotMatch."""
    counts = _counts(arrays[0])
    for array in arrays[1:]:
        others = _counts(array)
        if not np.array_equal(counts, others):
            row = int(np.flatnonzero(counts != others)[0])
            raise SizesOfArraysDoNotMatch(
                f"The arrays of one row of ARRAY JOIN have {counts[row]} and {others[row]} elements.",
                hint="Join arrays of equal length, or use ARRAY JOIN twice for all pairs.",
            )
    return counts


def _counts(array: pa.Array) -> np.ndarray:
    """Return the number of elements of each list, 0 for NULL; int64."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    counts: np.ndarray = to_numpy(lengths).astype(np.int64)
    return counts


def _list(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return an array or a map as a list of elements of the type; a map's are (key, value)."""
    list_type = pa.list_(data_type.arrow)
    if array.type == list_type:
        return array
    if pa.types.is_map(array.type) and not len(array.keys):  # {} has another type of key
        offsets = from_numpy(np.zeros(len(array) + 1, np.int32))
        return pa.ListArray.from_arrays(offsets, pa.nulls(0, data_type.arrow))
    return array.cast(list_type)


def _with_default(elements: pa.Array, data_type: DataType) -> pa.Array:
    """Return the elements with the type's default at the end, for rows without elements."""
    return pa.concat_arrays([elements, pa.array([default_value(data_type)], data_type.arrow)])


def _element_positions(counts: np.ndarray) -> np.ndarray:
    """Return the position of each output row's element, for LEFT.

    A row without elements gets the last position, that of the default."""
    total = int(counts.sum())
    empty_rows = np.flatnonzero(counts == 0)
    before = np.cumsum(counts)[empty_rows]
    return np.insert(np.arange(total), before, total)


def _row_numbers(ends: np.ndarray, counts: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return the input row of each output row in start…stop; input row r ends at `ends[r]`."""
    first = int(np.searchsorted(ends, start, "right"))
    last = int(np.searchsorted(ends, stop - 1, "right"))
    repeats = counts[first : last + 1].copy()
    repeats[-1] -= ends[last] - stop
    repeats[0] -= start - (ends[first] - counts[first])
    return np.repeat(np.arange(first, last + 1), repeats)
