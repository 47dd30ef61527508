"""The expressions of SELECT, computed batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa

from olapdb.compute.batches import rows_only
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.stages import Stage
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Project


def project_batches(
    node: Project,
    child: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    coded: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Return the values of the node's expressions for the rows of each batch, in order.

    Columns of the child that are in `coded` may stay dictionaries."""

    def projected(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values of the projection's expressions for the rows of a batch."""
        columns = [
            batch.column(expression.name)
            if isinstance(expression, ColumnRef) and expression.name in coded
            else evaluate_array(expression, batch, context.environment, context.subqueries)
            for _, expression in node.expressions
        ]
        if not columns:
            return rows_only(batch.num_rows)
        if coded:
            return pa.RecordBatch.from_arrays(columns, names=node.arrow_schema.names)
        return pa.RecordBatch.from_arrays(columns, schema=node.arrow_schema)

    return Stage(context, lambda batch: (projected(batch),), child)
