"""ORDER BY: all rows held and sorted once, or the top rows only where a limit is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.execute.batches import cut, filter_rows, single_batch, table_of, take_rows
from olapdb.execute.context import ExecutionContext
from olapdb.execute.evaluate import evaluate_array
from olapdb.execute.ordering import OrderColumn, sort_indices
from olapdb.plan.nodes import Sort, SortKey

TOP_ROWS_MIN = 16_384
"""The top rows are cut back when twice the limit are held, but not for fewer than this."""


def sort_batches(
    node: Sort, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Stable: rows with equal keys stay in the order in which they came."""
    if node.limit is not None:
        yield from _top_batches(node, node.limit, child, context)
        return
    held: list[pa.RecordBatch] = []
    with context.memory.hold("ORDER BY") as account:
        for batch in child:
            context.check()
            held.append(batch)
            account.grow(batch.nbytes)
        if held:
            yield from cut(_sorted(held, node, context), context.batch_rows)


def _top_batches(
    node: Sort, limit: int, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows. Once so many are held, a row whose first key is behind the last of
    them is dropped as it comes."""
    held: list[pa.RecordBatch] = []
    rows = 0
    bound: pa.Scalar | None = None
    with context.memory.hold("ORDER BY") as account:
        for batch in child:
            context.check()
            if bound is not None:
                batch = _not_behind(bound, node, batch, context)
            if not batch.num_rows:
                continue
            held.append(batch)
            rows += batch.num_rows
            account.grow(batch.nbytes)
            if rows >= max(2 * limit, TOP_ROWS_MIN):
                held = [_sorted(held, node, context)]
                rows = held[0].num_rows
                account.set(held[0].nbytes)
                if rows and rows == limit:
                    last = held[0].slice(rows - 1)
                    bound = order_columns(node.keys[:1], last, context)[0].values[0]
        if rows:
            yield from cut(_sorted(held, node, context), context.batch_rows)


def _not_behind(
    bound: pa.Scalar, node: Sort, batch: pa.RecordBatch, context: ExecutionContext
) -> pa.RecordBatch:
    """The rows whose first key is not behind `bound`; all of them where that is no plain value."""
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
    held: Sequence[pa.RecordBatch], node: Sort, context: ExecutionContext
) -> pa.RecordBatch:
    batch = single_batch(table_of(held, node.schema))
    order = sort_indices(order_columns(node.keys, batch, context), batch.num_rows)
    if node.limit is not None:
        order = order.slice(0, node.limit)
    return take_rows(batch, order)


def order_columns(
    keys: Sequence[SortKey], batch: pa.RecordBatch, context: ExecutionContext
) -> list[OrderColumn]:
    """The sort keys' values for each row of the batch."""
    return [
        OrderColumn(
            evaluate_array(key.expression, batch, context.environment, context.subqueries),
            key.descending,
            key.nulls_first,
        )
        for key in keys
    ]
