"""ARRAY JOIN: a row for each element, a batch at a time.

counts  [3, 0, 2]      rows      [0 0 0 2 2]     (LEFT: [0 0 0 1 2 2])
                       elements  0 1 2 3 4       (LEFT: 0 1 2 default 3 4)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import make_batch, single_chunk
from olapdb.compute.context import ExecutionContext, MemoryAccount
from olapdb.compute.evaluate import evaluate_array
from olapdb.errors import SizesOfArraysDoNotMatch
from olapdb.functions import default_value
from olapdb.plan.nodes import ArrayJoin
from olapdb.types import DataType

BYTES_PER_ROW = 24
"""Numbers that are kept for each row, and where it has none, for each element."""


def array_join_batches(
    node: ArrayJoin, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """The rows in order, in batches of at most `context.batch_rows`, however long the arrays are.

    Raises SizesOfArraysDoNotMatch where the arrays of a row differ in length, MemoryLimitExceeded
    where those of a batch are too long.
    """
    with context.memory.account("ARRAY JOIN") as account:
        for batch in child:
            yield from _joined(node, batch, context, account)


def _joined(
    node: ArrayJoin, batch: pa.RecordBatch, context: ExecutionContext, account: MemoryAccount
) -> Iterator[pa.RecordBatch]:
    types = [f.type for f in node.schema[len(node.kept) :]]
    arrays = [
        _list(evaluate_array(e, batch, context.environment, context.subqueries), t)
        for (_, e), t in zip(node.arrays, types, strict=True)
    ]
    account.set(sum(array.nbytes for array in arrays) + batch.num_rows * BYTES_PER_ROW)
    counts = _common_counts(arrays)
    flat = [array.flatten() for array in arrays]
    if node.left and not counts.all():
        copied = sum(one.nbytes for one in flat)
        account.grow(copied + (int(counts.sum()) + len(counts)) * BYTES_PER_ROW)
        flat = [_with_default(one, t) for one, t in zip(flat, types, strict=True)]
        places = _places(counts)
        counts = np.maximum(counts, 1)
    else:
        places = None
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    kept = [single_chunk(batch.column(f.name)) for f in node.kept]
    for start in range(0, total, context.batch_rows):
        context.check()
        stop = min(start + context.batch_rows, total)
        rows = pa.array(_rows(ends, counts, start, stop))
        columns = [column.take(rows) for column in kept]
        if places is None:
            columns += [one.slice(start, stop - start) for one in flat]
        else:
            wanted = pa.array(places[start:stop])
            columns += [one.take(wanted) for one in flat]
        yield make_batch(columns, node.schema, stop - start)


def _common_counts(arrays: Sequence[pa.Array]) -> np.ndarray:
    """Elements of each row, int64."""
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
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    made: np.ndarray = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    return made


def _list(array: pa.Array, data_type: DataType) -> pa.Array:
    """An array as a list of elements of the type; a map's are (key, value)."""
    wanted = pa.list_(data_type.arrow)
    if array.type == wanted:
        return array
    if pa.types.is_map(array.type) and not len(array.keys):  # {} has a type of key all of its own
        offsets = pa.array(np.zeros(len(array) + 1, np.int32))
        return pa.ListArray.from_arrays(offsets, pa.array([], data_type.arrow))
    return array.cast(wanted)


def _with_default(flat: pa.Array, data_type: DataType) -> pa.Array:
    """One more element at the end: what a row without elements shows."""
    return pa.concat_arrays([flat, pa.array([default_value(data_type)], data_type.arrow)])


def _places(counts: np.ndarray) -> np.ndarray:
    """The place of each row's elements; rows without any have the default's, the last."""
    total = int(counts.sum())
    lacking = np.flatnonzero(counts == 0)
    before = np.cumsum(counts)[lacking]
    return np.insert(np.arange(total), before, total)


def _rows(ends: np.ndarray, counts: np.ndarray, start: int, stop: int) -> np.ndarray:
    """The row of each output row in start..stop."""
    first = int(np.searchsorted(ends, start, "right"))
    last = int(np.searchsorted(ends, stop - 1, "right"))
    taken = counts[first : last + 1].copy()
    taken[-1] -= ends[last] - stop
    taken[0] -= start - (ends[first] - counts[first])
    return np.repeat(np.arange(first, last + 1), taken)
