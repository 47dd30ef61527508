"""ORDER BY: all rows held and sorted once, or the top rows only where a limit is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from olapdb.execute.batches import cut, single_batch, table_of, take_rows
from olapdb.execute.context import ExecutionContext
from olapdb.execute.evaluate import evaluate_array
from olapdb.execute.ordering import OrderColumn, sort_indices
from olapdb.plan.nodes import Sort, SortKey

TOP_ROWS_SLACK = 4
"""The top rows are cut back when this many times the limit are held, or as many batches."""


def sort_batches(
    node: Sort, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Stable: rows with equal keys stay in the order in which they came."""
    held: list[pa.RecordBatch] = []
    rows = 0
    rows_max = None
    if node.limit is not None:
        rows_max = TOP_ROWS_SLACK * max(node.limit, context.batch_rows)
    with context.memory.hold("ORDER BY") as account:
        for batch in child:
            context.check()
            held.append(batch)
            rows += batch.num_rows
            account.grow(batch.nbytes)
            if rows_max is not None and rows > rows_max:
                held = [_sorted(held, node, context)]
                rows = held[0].num_rows
                account.set(held[0].nbytes)
        if rows:
            yield from cut(_sorted(held, node, context), context.batch_rows)


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
