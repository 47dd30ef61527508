"""PASTE JOIN: rows of two sides side by side, by their position."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import make_batch
from olapdb.compute.context import ExecutionContext
from olapdb.plan.nodes import Paste


def paste_batches(
    node: Paste,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of both sides together, then the second, …, until one side ends."""
    left_batch, right_batch = next(left, None), next(right, None)
    while left_batch is not None and right_batch is not None:
        context.check()
        rows = min(left_batch.num_rows, right_batch.num_rows)
        if rows:
            columns = [*left_batch.slice(0, rows).columns, *right_batch.slice(0, rows).columns]
            yield make_batch(columns, node.schema, rows)
        left_batch = next(left, None) if rows == left_batch.num_rows else left_batch.slice(rows)
        right_batch = next(right, None) if rows == right_batch.num_rows else right_batch.slice(rows)
