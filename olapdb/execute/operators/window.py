"""Window functions: all rows are held and sorted once by partition and order.

Past the memory they are sorted on disk; then some whole partitions are held at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, make_batch, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import OrderColumn, equal_to_previous, sort_indices
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.compute.spill.budget import PIECES_OF_MEMORY
from olapdb.execute.operators.frame_aggregates import aggregate_over
from olapdb.execute.operators.frames import partitions_and_peers, with_frame
from olapdb.execute.operators.row_limits import limited
from olapdb.execute.spill.sorter import SORT_BYTES_PER_ROW, Sorter
from olapdb.functions.window_definitions import Frames, WindowFunction
from olapdb.plan.expressions import WindowCall
from olapdb.plan.nodes import SortKey, Window

FRAME_BYTES_PER_ROW = 6 * 8
"""The bounds of partitions, peers and frames."""
VALUE_BYTES = 16
"""About the bytes of a call's value."""
PIECE_BYTES = 1 << 22
"""Sort and frame partitions that were read back together up to about so many bytes."""


def window_batches(
    node: Window, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the child's rows, sorted by partition and order, with a column for each call.

    Raises MemoryLimitExceeded if the rows of one partition need too much memory."""
    keys = (*(SortKey(e) for e in node.partition_by), *node.order_by)
    with (
        context.memory.account("window functions") as account,
        context.memory.account("window functions") as sorter_account,
        Sorter(keys, node.child.schema, context, sorter_account) as sorter,
    ):
        sorter.reserved_row_bytes = FRAME_BYTES_PER_ROW + VALUE_BYTES * len(node.calls)
        for batch in limited(child, "max_rows_to_sort", context) if keys else child:
            context.check()
            sorter.add(batch)
        pieces: Iterator[pa.RecordBatch]
        if sorter.spilled:
            pieces = _whole_partitions(node, sorter.sorted(), context, account)
        elif sorter.rows:
            account, pieces = sorter_account, iter((sorter.unsorted(),))
        else:
            return
        for rows in pieces:
            held_bytes = account.held_bytes
            result = _with_calls(rows, node, context, account)
            for start in range(0, result.num_rows, context.batch_rows):
                context.check()
                yield result.slice(start, context.batch_rows)
            account.set(held_bytes)


def _whole_partitions(
    node: Window,
    batches: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    account: MemoryAccount,
) -> Iterator[pa.RecordBatch]:
    """Yield sorted rows so that each partition is in one batch, several partitions in each.

    The account counts the rows of the batch and of the partition that has begun."""
    buffer = RowBuffer(node.child.schema, account)
    row_bytes = SORT_BYTES_PER_ROW + FRAME_BYTES_PER_ROW + VALUE_BYTES * len(node.calls)
    rows_max = max(account.available_bytes // PIECES_OF_MEMORY // row_bytes, 1)
    enough_bytes, enough_rows = PIECE_BYTES, rows_max
    for batch in chain.from_iterable(cut(rows, rows_max) for rows in batches):
        buffer.add(batch)
        is_small = buffer.nbytes < enough_bytes and buffer.rows < enough_rows
        if is_small or not node.partition_by:
            continue
        rows = buffer.concatenate()
        keys = [evaluate_in_batches(e, rows, context, account) for e in node.partition_by]
        is_first = ~equal_to_previous(keys, rows.num_rows)
        last_start = int(np.flatnonzero(is_first)[-1])
        account.set(rows.nbytes)
        if last_start:
            yield rows.slice(0, last_start)
        account.set(0)
        buffer.add(rows.slice(last_start))
        enough_bytes = max(PIECE_BYTES, 2 * buffer.nbytes)
        enough_rows = max(rows_max, 2 * buffer.rows)
    if buffer.rows:
        yield buffer.concatenate()


def _with_calls(
    batch: pa.RecordBatch, node: Window, context: ExecutionContext, account: MemoryAccount
) -> pa.RecordBatch:
    """Return the rows sorted, with the columns of the node's calls."""
    rows = batch.num_rows
    partition = [
        OrderColumn(evaluate_in_batches(e, batch, context, account)) for e in node.partition_by
    ]
    order = [
        OrderColumn(
            evaluate_in_batches(k.expression, batch, context, account), k.descending, k.nulls_first
        )
        for k in node.order_by
    ]
    account.grow(rows * (SORT_BYTES_PER_ROW + FRAME_BYTES_PER_ROW))
    positions = sort_indices([*partition, *order], rows)
    account.grow(batch.nbytes)
    batch = take_rows(batch, positions)
    in_order = [OrderColumn(o.values.take(positions), o.descending, o.nulls_first) for o in order]
    frames = partitions_and_peers([p.values.take(positions) for p in partition], in_order, rows)
    columns = list(batch.columns)
    for _, call in node.calls:
        context.check()
        value = _value(call, batch, with_frame(frames, call.frame, in_order), context, account)
        account.grow(value.nbytes)
        columns.append(value)
    return make_batch(columns, node.schema, rows)


def _value(
    call: WindowCall,
    batch: pa.RecordBatch,
    frames: Frames,
    context: ExecutionContext,
    account: MemoryAccount,
) -> pa.Array:
    """Return the result of one window call for each row of the batch."""
    arguments = [evaluate_in_batches(a, batch, context, account) for a in call.arguments]
    if isinstance(call.function, WindowFunction):
        return call.function.kernel(arguments, frames)
    values = aggregate_over(call.function, arguments, frames)
    return values if values.type == call.type.arrow else values.cast(call.type.arrow)
