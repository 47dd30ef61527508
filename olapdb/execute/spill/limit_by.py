"""LIMIT BY past memory: rows are partitioned by their key on disk, and what is left of them is sorted
back into the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import make_batch
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.row_buffer import RowBuffer
from olapdb.compute.spill.files import SpillFile
from olapdb.compute.spill.partitions import LEVELS_MAX, PARTITIONS, PartitionedRows
from olapdb.execute.spill.sorter import Sorter
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Field, LimitBy, Schema, SortKey
from olapdb.types import UINT64
from olapdb.types.arrow_values import from_numpy

NUMBER = "-number"

Batches = Iterator[pa.RecordBatch]


def limit_by_on_disk(
    node: LimitBy,
    rows: Batches,
    context: ExecutionContext,
    limited: Callable[[RowBuffer, MemoryAccount], Batches],
    is_too_large: Callable[[RowBuffer, pa.RecordBatch], bool],
) -> Batches:
    """Yield the rows that the LIMIT BY keeps, in the order in which they came.

    `limited` returns those of a buffer, whose rows have a number behind the node's columns;
    `is_too_large(buffer, batch)` says that memory does not take one more batch."""
    numbered = (*node.schema, Field(NUMBER, UINT64))
    by_number = (SortKey(ColumnRef(UINT64, NUMBER)),)
    with (
        context.temporary().file("Distinct") as file,
        context.memory.account("LIMIT BY") as account,
        Sorter(by_number, numbered, context, account) as sorter,
    ):
        partitioner = _Partitioner(node, numbered, context, file, limited, is_too_large)
        for batch in partitioner.kept_rows(numbered_batches(rows, numbered), 0):
            sorter.add(batch)
        for batch in sorter.sorted():
            yield make_batch(batch.columns[:-1], node.schema, batch.num_rows)


def numbered_batches(rows: Batches, schema: Schema) -> Batches:
    """Yield the batches with a column of row numbers, from 0, behind their own."""
    first = 0
    for batch in rows:
        numbers = from_numpy(np.arange(first, first + batch.num_rows, dtype=np.uint64))
        first += batch.num_rows
        yield make_batch([*batch.columns, numbers], schema, batch.num_rows)


class _Partitioner:
    """Partitions the rows of a LIMIT BY until memory takes each partition."""

    def __init__(
        self,
        node: LimitBy,
        numbered: Schema,
        context: ExecutionContext,
        file: SpillFile,
        limited: Callable[[RowBuffer, MemoryAccount], Batches],
        is_too_large: Callable[[RowBuffer, pa.RecordBatch], bool],
    ) -> None:
        self._node = node
        self._numbered = numbered
        self._context = context
        self._file = file
        self._limited = limited
        self._is_too_large = is_too_large

    def kept_rows(self, rows: Batches, level: int) -> Batches:
        """Yield the rows that the LIMIT BY keeps, partition by partition."""
        context = self._context
        partitions = PartitionedRows(self._file, level)
        for batch in rows:
            context.check()
            keys = [
                evaluate_array(key, batch, context.environment, context.subqueries)
                for key in self._node.keys
            ]
            partitions.add(batch, keys)
        for number in range(PARTITIONS):
            if partitions.rows(number):
                yield from self._kept_of(partitions, number)

    def _kept_of(self, partitions: PartitionedRows, number: int) -> Batches:
        """Yield the rows that the LIMIT BY keeps of a partition."""
        with self._context.memory.account("LIMIT BY") as account:
            buffer = RowBuffer(self._numbered, account)
            rows = partitions.read(number, self._context.batch_rows)
            for batch in rows:
                level = partitions.level + 1
                if level < LEVELS_MAX and self._is_too_large(buffer, batch):
                    buffer.drain()
                    account.set(0)
                    again = partitions.read(number, self._context.batch_rows)
                    yield from self.kept_rows(again, level)
                    return
                buffer.add(batch)
            yield from self._limited(buffer, account)
