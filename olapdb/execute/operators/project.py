"""The expressions of SELECT, computed batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.compute.batches import rows_only
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import counting_bytes, evaluate_array
from olapdb.compute.stages import Stage
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Project

if TYPE_CHECKING:
    from olapdb.execute.operators import row_pieces
else:
    row_pieces = LazyModule("olapdb.execute.operators.row_pieces")


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

    if not node.is_wide or not context.cuts_wide_rows:
        return Stage(context, lambda batch: (projected(batch),), child)
    pieces = row_pieces.RowPieces(context.batch_bytes)

    def projected_piece(piece: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the values for the rows of a piece; tell how many bytes they and the values inside of them have."""
        with counting_bytes() as computed:
            values = projected(piece)
            pieces.learn(piece.num_rows, max(values.nbytes, computed.nbytes or 0))
        yield values

    return _one_by_one(Stage(context, projected_piece, child, gather=pieces.cut))


def _one_by_one(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches. Unlike those of a Stage they are taken one after the other, so that no thread makes all that
    follow from the rows of a task before others take them."""
    yield from batches
