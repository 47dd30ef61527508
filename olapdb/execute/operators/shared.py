"""Shared subplans: the first that reads one runs it and keeps its rows, the others read these.

Rows beyond `tuning.SHARED_BYTES_MAX`, or a quarter of what the query may still hold, are not kept:
then each of the others runs the subplan again, as it does where the first one has not ended."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import make_batch
from olapdb.compute.context import ExecutionContext, SharedRows
from olapdb.compute.stages import all_batches
from olapdb.config import tuning
from olapdb.execute.operators.subqueries import RunNode
from olapdb.plan.nodes import Shared

_WHAT = "the rows of a shared subplan"
_SHARE_OF_MEMORY = 4


def shared_batches(
    node: Shared, context: ExecutionContext, run_child: RunNode
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a shared subplan under the names of this place."""
    rows = context.shared.get(node.number)
    if rows is not None and rows.is_complete:
        context.note(node, "Shared: rows that were kept")
        batches: Iterator[pa.RecordBatch] = iter(rows.batches)
    elif rows is not None:
        context.note(node, "Shared: run again")
        batches = run_child(node.child, context)
    else:
        batches = _kept(node, context, run_child(node.child, context))
    for batch in batches:
        context.check()
        yield make_batch(batch.columns, node.fields, batch.num_rows)


def _kept(
    node: Shared, context: ExecutionContext, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield batches and keep them until the query ends, unless they are too large."""
    rows = context.shared[node.number] = SharedRows()
    bytes_max = min(tuning.SHARED_BYTES_MAX, context.memory.available_bytes // _SHARE_OF_MEMORY)
    held, keeps = 0, True
    try:
        for batch in all_batches(batches, context):
            if keeps and held + batch.nbytes > bytes_max:
                keeps = False
                rows.batches.clear()
                context.memory.add(-held, _WHAT)
                held = 0
            if keeps:
                context.memory.add(batch.nbytes, _WHAT)
                held += batch.nbytes
                rows.batches.append(batch)
            yield batch
        rows.is_complete = keeps
        context.note(node, "Shared: rows kept" if keeps else "Shared: too many bytes to keep")
    finally:
        if not rows.is_complete:
            context.memory.add(-held, _WHAT)
            rows.batches.clear()
