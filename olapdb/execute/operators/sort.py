"""ORDER BY: all rows are held and sorted once, or in runs on disk; with a limit only the top rows are
held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.ordering import OrderColumn, rows_within
from olapdb.config import tuning
from olapdb.execute.operators.row_limits import limited
from olapdb.execute.spill.sorter import Sorter
from olapdb.plan.nodes import Sort, SortKey
from olapdb.types.arrow_values import from_numpy


def sort_batches(
    node: Sort, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the rows sorted, or with `node.limit` the first ones; rows with equal keys keep their
    order.

    Rows that memory does not take are sorted on disk."""
    with (
        context.memory.account("ORDER BY") as account,
        Sorter(node.keys, node.schema, context, account, node.limit) as sorter,
    ):
        if node.limit is None:
            child = limited(child, "max_rows_to_sort", context)
        else:
            child = _top_rows(node, node.limit, child, context, sorter)
        for batch in child:
            context.check()
            sorter.add(batch)
        # Of a top the rows that remain count, as in ClickHouse.
        ordered = sorter.sorted()
        yield from ordered if node.limit is None else limited(ordered, "max_rows_to_sort", context)


def _top_rows(
    node: Sort,
    limit: int,
    child: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    sorter: Sorter,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that may be among the first `limit`, for the sorter, which is cut back to so
    many again and again.

    Once it has them, a row whose first key sorts after that of the last one is dropped."""
    bound: pa.Scalar | None = None
    first_key = node.keys[0]
    for batch in child:
        if bound is not None:
            batch = not_after(bound, first_key, batch, context)
        if batch.num_rows >= max(2 * limit, tuning.TOP_ROWS_MIN):
            # The sorter would compare all keys of all of these rows.
            last = nth_value(order_columns([first_key], batch, context)[0].values, first_key, limit)
            if last is not None and is_bound(last):
                bound, batch = last, not_after(last, first_key, batch, context)
        if not batch.num_rows:
            continue
        yield batch
        if not sorter.spilled and sorter.rows >= max(2 * limit, tuning.TOP_ROWS_MIN):
            last = sorter.cut_back()
            if last is not None and sorter.rows == limit:
                bound = order_columns(node.keys[:1], last, context)[0].values[0]


def not_after(
    bound: pa.Scalar, key: SortKey, batch: pa.RecordBatch, context: ExecutionContext
) -> pa.RecordBatch:
    """Return the rows whose `key` does not sort after `bound`, or all rows where `bound` is none
    (see `is_bound`)."""
    if not is_bound(bound):
        return batch
    positions = rows_within(order_columns([key], batch, context)[0], bound)
    return batch if len(positions) == batch.num_rows else take_rows(batch, from_numpy(positions))


def nth_value(values: pa.Array, key: SortKey, count: int) -> pa.Scalar | None:
    """Return the value of the `count`-th row in the key's order, without sorting; None where Arrow
    cannot say. There are more rows than `count`."""
    if pa.types.is_nested(values.type) or pa.types.is_float16(values.type):
        return None
    pivot = len(values) - count if key.descending else count - 1
    nulls_low = key.nulls_first != key.descending
    options = pc.PartitionNthOptions(pivot, null_placement="at_start" if nulls_low else "at_end")
    position = pc.partition_nth_indices(values, options=options)[pivot].as_py()
    return values[position]


def is_bound(value: pa.Scalar) -> bool:
    """Return whether other values can be compared with this one: it is not NULL, NaN or nested."""
    if not value.is_valid or pa.types.is_nested(value.type):
        return False
    return not (pa.types.is_floating(value.type) and pc.is_nan(value).as_py())


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
