"""The expressions of SELECT, computed batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import rows_only
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.plan.nodes import Project


def project_batches(
    node: Project, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the values of the node's expressions for the rows of each batch, in order."""

    def projected(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the projection's expressions over the batch."""
        columns = [
            evaluate_array(expression, batch, context.environment, context.subqueries)
            for _, expression in node.expressions
        ]
        if not columns:
            return rows_only(batch.num_rows)
        return pa.RecordBatch.from_arrays(columns, schema=node.arrow_schema)

    return context.parallel(projected, child)
