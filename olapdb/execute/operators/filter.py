"""WHERE, HAVING and QUALIFY: the rows whose condition is not zero."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import filter_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.compute.stages import Stage
from olapdb.plan.nodes import Filter


def filter_batches(
    node: Filter, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Return the rows that the predicate keeps, in order, without empty batches."""

    def filtered(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the batch that meet the predicate, if there are any."""
        keep = evaluate_predicate(node.predicate, batch, context.environment, context.subqueries)
        if keep.true_count:
            yield filter_rows(batch, keep)

    return Stage(context, filtered, child)
