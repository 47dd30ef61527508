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
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None:
        context.check()
        rows = min(one.num_rows, other.num_rows)
        if rows:
            columns = [*one.slice(0, rows).columns, *other.slice(0, rows).columns]
            yield make_batch(columns, node.schema, rows)
        one = next(left, None) if rows == one.num_rows else one.slice(rows)
        other = next(right, None) if rows == other.num_rows else other.slice(rows)
