"""ORDER BY: all rows are held and sorted once; with a limit only the top rows are held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import filter_rows, take_rows
from olapdb.compute.context import ExecutionContext, MemoryAccount
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.ordering import OrderColumn, sort_indices
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.config import tuning
from olapdb.plan.nodes import Sort, SortKey

SORT_BYTES_PER_ROW = 16
"""Row numbers, and the memory of sorting them."""


def sort_batches(
    node: Sort, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the rows sorted, or with `node.limit` the first ones; rows with equal keys keep their
    order."""
    if node.limit is not None:
        yield from _top_batches(node, node.limit, child, context)
        return
    with context.memory.account("ORDER BY") as account:
        buffer = RowBuffer(node.schema, account)
        for batch in child:
            context.check()
            buffer.add(batch)
        yield from _sorted(buffer, node, context, account)


def _top_batches(
    node: Sort, limit: int, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the first `limit` rows in order.

    Once the buffer has them, a row whose first key sorts after that of the last one is dropped."""
    bound: pa.Scalar | None = None
    with context.memory.account("ORDER BY") as account:
        buffer = RowBuffer(node.schema, account)
        for batch in child:
            context.check()
            if bound is not None:
                batch = _not_after(bound, node, batch, context)
            if not batch.num_rows:
                continue
            buffer.add(batch)
            if buffer.rows >= max(2 * limit, tuning.TOP_ROWS_MIN):
                top = []
                for batch in _sorted(buffer, node, context, account):
                    account.grow(batch.nbytes)
                    top.append(batch)
                account.set(0)
                for batch in top:
                    buffer.add(batch)
                if limit and buffer.rows == limit:
                    last = top[-1].slice(top[-1].num_rows - 1)
                    bound = order_columns(node.keys[:1], last, context)[0].values[0]
        yield from _sorted(buffer, node, context, account)


def _not_after(
    bound: pa.Scalar, node: Sort, batch: pa.RecordBatch, context: ExecutionContext
) -> pa.RecordBatch:
    """Return the rows whose first key does not sort after `bound`, or all rows where `bound` is NULL,
    NaN or nested."""
    key = node.keys[0]
    arrow = bound.type
    floating = pa.types.is_floating(arrow)
    if not bound.is_valid or pa.types.is_nested(arrow) or (floating and pc.is_nan(bound).as_py()):
        return batch
    values = order_columns([key], batch, context)[0].values
    keep = (pc.greater_equal if key.descending else pc.less_equal)(values, bound)
    if key.nulls_first:
        keep = pc.fill_null(keep, True)
        if floating:
            keep = pc.or_(keep, pc.fill_null(pc.is_nan(values), False))
    return filter_rows(batch, keep)


def _sorted(
    buffer: RowBuffer, node: Sort, context: ExecutionContext, account: MemoryAccount
) -> Iterator[pa.RecordBatch]:
    """Empty the buffer, and yield its rows sorted, up to the limit, a batch at a time."""
    rows = buffer.rows
    if not rows:
        return
    batch = buffer.concatenate()
    keys = [
        OrderColumn(
            evaluate_in_batches(key.expression, batch, context, account),
            key.descending,
            key.nulls_first,
        )
        for key in node.keys
    ]
    account.grow(rows * SORT_BYTES_PER_ROW)
    order = sort_indices(keys, rows)
    del keys
    account.set(batch.nbytes + order.nbytes)
    if node.limit is not None:
        order = order.slice(0, node.limit)
    for start in range(0, len(order), context.batch_rows):
        context.check()
        yield take_rows(batch, order.slice(start, context.batch_rows))


def order_columns(
    keys: Sequence[SortKey], batch: pa.RecordBatch, context: ExecutionContext
) -> list[OrderColumn]:
    """Return the sort keys' values for each row of the batch."""
    return [
        OrderColumn(
            evaluate_array(key.expression, batch, context.environment, context.subqueries),
            key.descending,
            key.nulls_first,
        )
        for key in keys
    ]
