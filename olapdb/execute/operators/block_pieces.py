"""The pieces of a block, each of which becomes one batch of a view's plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from olapdb.compute.context import BATCH_ROWS
from olapdb.config import tuning


def block_pieces(block: pa.Table, batch_rows: int) -> Iterator[pa.Table]:
    """Yield the rows of a block in the pieces that become batches. The block alone says where it is cut, not the
    number of threads, so that sums of floats are the same on each machine.

    Consecutive chunks are joined where they are small, and where copying them costs less than a batch does."""
    rows_max = batch_rows
    row_bytes = max(block.nbytes // max(block.num_rows, 1), 1)
    if batch_rows == BATCH_ROWS:  # else max_block_size asks for smaller ones
        rows_max = max(
            batch_rows, min(tuning.BLOCK_BATCH_ROWS, tuning.LARGE_TASK_BYTES // row_bytes)
        )
    if max((column.num_chunks for column in block.columns), default=1) <= 1:
        chunks: Iterable[pa.Table] = (block,)
    else:
        batches = block.to_batches()
        are_small = block.num_rows < len(batches) * tuning.JOINED_PIECE_ROWS_MIN
        joined_rows = rows_max * 3 // 2 if rows_max > batch_rows else rows_max * are_small
        chunks = _joined_chunks(batches, joined_rows, always=are_small)
    for chunk in chunks:
        piece_rows = rows_max
        if rows_max > batch_rows:  # pieces of about as many rows, so that the last one is not small
            piece_rows = math.ceil(chunk.num_rows / max(round(chunk.num_rows / rows_max), 1))
        for start in range(0, chunk.num_rows, max(piece_rows, 1)):
            yield chunk.slice(start, piece_rows)


def _joined_chunks(
    batches: Sequence[pa.RecordBatch], rows_max: int, *, always: bool
) -> Iterator[pa.Table]:
    """Yield the batches as tables, consecutive ones as one table of at most `rows_max` rows. Unless `always`, those
    that have large dictionaries of their own are not joined."""
    waiting: list[pa.RecordBatch] = []
    rows = values = 0
    for batch in batches:
        codes = [c for c in batch.columns if isinstance(c, pa.DictionaryArray)]
        more_values = sum(len(column.dictionary) for column in codes)
        rows, values = rows + batch.num_rows, values + more_values
        is_cheap = always or values * tuning.ROWS_PER_JOINED_VALUE_MIN <= rows
        if waiting and (rows > rows_max or not is_cheap):
            yield pa.Table.from_batches(waiting)
            waiting, rows, values = [], batch.num_rows, more_values
        waiting.append(batch)
    if waiting:
        yield pa.Table.from_batches(waiting)
