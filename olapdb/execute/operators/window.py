"""Window functions: all rows are held and sorted once by partition and order."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import make_batch, take_rows
from olapdb.compute.context import ExecutionContext, MemoryAccount
from olapdb.compute.ordering import OrderColumn, sort_indices
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.execute.operators.frame_aggregates import aggregate_over
from olapdb.execute.operators.frames import partitions_and_peers, with_frame
from olapdb.execute.operators.sort import SORT_BYTES_PER_ROW
from olapdb.functions.windows import Frames, WindowFunction
from olapdb.plan.expressions import WindowCall
from olapdb.plan.nodes import Window

FRAME_BYTES_PER_ROW = 6 * 8
"""The bounds of partitions, peers and frames."""


def window_batches(
    node: Window, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the child's rows, sorted by partition and order, with a column for each call.

    Raises MemoryLimitExceeded if the rows, or sorting them, need too much memory."""
    with context.memory.account("window functions") as account:
        buffer = RowBuffer(node.child.schema, account)
        for batch in child:
            context.check()
            buffer.add(batch)
        if not buffer.rows:
            return
        result = _with_calls(buffer.concatenate(), node, context, account)
        for start in range(0, result.num_rows, context.batch_rows):
            context.check()
            yield result.slice(start, context.batch_rows)


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
