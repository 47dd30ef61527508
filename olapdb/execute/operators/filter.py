"""WHERE, HAVING and QUALIFY: the rows whose condition is not zero."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import filter_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.plan.nodes import Filter


def filter_batches(
    node: Filter, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that the predicate keeps, in order, without empty batches."""

    def filtered(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the batch that meet the predicate."""
        keep = evaluate_predicate(node.predicate, batch, context.environment, context.subqueries)
        return filter_rows(batch, keep)

    for batch in context.parallel(filtered, child):
        if batch.num_rows:
            yield batch
