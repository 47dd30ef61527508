"""UNION ALL: one input after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from olapdb.compute.batches import broadcast, make_batch
from olapdb.compute.context import ExecutionContext
from olapdb.plan.nodes import Union


def union_batches(
    node: Union, children: Sequence[Iterator[pa.RecordBatch]], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the children's rows, one child after the other, with the union's column names."""
    for child in children:
        for batch in child:
            context.check()
            columns = [
                broadcast(column, batch.num_rows, field.type)
                for column, field in zip(batch.columns, node.fields, strict=True)
            ]
            yield make_batch(columns, node.fields, batch.num_rows)
