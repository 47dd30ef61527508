"""Nodes that read no stored table: VALUES, numbers(), system tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, make_batch, single_batch
from olapdb.compute.context import ExecutionContext
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.arrow_buffers import progression
from olapdb.plan.nodes import Numbers, SystemScan, Values


def values_batches(node: Values, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield the node's constant rows, which count as read, but for no limit: the row of system.one is one."""
    rows = single_batch(node.rows)
    context.statistics.add_read(rows.num_rows, max(rows.nbytes, rows.num_rows))
    yield from cut(make_batch(rows.columns, node.schema, rows.num_rows), context.batch_rows)


def numbers_batches(node: Numbers, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield start, start + step, …; without a count it does not end."""
    done = 0
    while node.count is None or done < node.count:
        context.check()
        rows = (
            context.batch_rows if node.count is None else min(context.batch_rows, node.count - done)
        )
        numbers = progression(node.start + done * node.step, node.step, rows, np.uint64)
        column = columns.from_values(numbers, pa.uint64())
        if column.type != node.type.arrow:
            column = column.cast(node.type.arrow, safe=False)
        context.count_read(rows, column.nbytes)
        yield pa.RecordBatch.from_arrays([column], schema=node.arrow_schema)
        done += rows


def loop_batches(
    run: Callable[[], Iterator[pa.RecordBatch]], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that `run` gives, again and again; end when it gives none."""
    has_rows = True
    while has_rows:
        has_rows = False
        for batch in run():
            context.check()
            has_rows = has_rows or batch.num_rows > 0
            yield batch


def system_batches(node: SystemScan, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a system table, read through the context's provider."""
    names = [name for _, name in node.columns]
    rows = single_batch(context.system(node.name, names, dict(node.only)))
    context.count_read(rows.num_rows, rows.nbytes)
    yield from cut(make_batch(rows.columns, node.schema, rows.num_rows), context.batch_rows)
