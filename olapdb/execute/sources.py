"""Nodes that read no stored table: VALUES, numbers(), system tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from olapdb.execute.batches import cut, make_batch, single_batch
from olapdb.execute.context import ExecutionContext
from olapdb.plan.nodes import Numbers, SystemScan, Values


def values_batches(node: Values, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    rows = single_batch(node.rows)
    yield from cut(make_batch(rows.columns, node.schema, rows.num_rows), context.batch_rows)


def numbers_batches(node: Numbers, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """start, start + step, …; without a count it never ends by itself."""
    made = 0
    while node.count is None or made < node.count:
        context.check()
        rows = context.batch_rows if node.count is None else min(
            context.batch_rows, node.count - made
        )  # fmt: skip
        numbers = np.arange(made, made + rows, dtype=np.uint64)
        if node.step != 1:
            numbers *= np.uint64(node.step % (1 << 64))
        numbers += np.uint64(node.start % (1 << 64))
        column = pa.array(numbers)
        if column.type != node.type.arrow:
            column = column.cast(node.type.arrow, safe=False)
        context.count_read(rows, column.nbytes)
        yield make_batch([column], node.schema, rows)
        made += rows


def system_batches(node: SystemScan, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    names = [name for _, name in node.columns]
    rows = single_batch(context.system(node.name, names))
    context.count_read(rows.num_rows, rows.nbytes)
    yield from cut(make_batch(rows.columns, node.schema, rows.num_rows), context.batch_rows)
