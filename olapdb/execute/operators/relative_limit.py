"""LIMIT and OFFSET that count rows from the end, or as a share of all rows.

OFFSET is applied first, then LIMIT to the rows that it left. A share needs the number of all rows, so
they are kept, on disk where memory does not take them. From the end, only the last rows are kept.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import make_batch, single_batch, table_of
from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import equal_to_previous
from olapdb.execute.operators.limit import limit_batches
from olapdb.execute.operators.sort import order_columns
from olapdb.execute.spill.limit_by import NUMBER, numbered_batches
from olapdb.execute.spill.sorter import Sorter
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Field, Limit, RelativeLimit, SortKey
from olapdb.types import UINT64

Batches = Iterator[pa.RecordBatch]


def relative_limit_batches(
    node: RelativeLimit, child: Batches, context: ExecutionContext
) -> Batches:
    """Yield the rows that OFFSET and then LIMIT keep, in the order of the input."""
    if isinstance(node.count, float) or isinstance(node.offset, float):
        return _share(node, child, context)
    return _from_the_end(node, node.count, node.offset, child, context)


def _from_the_end(
    node: RelativeLimit,
    count: int | None,
    offset: int | float,
    child: Batches,
    context: ExecutionContext,
) -> Batches:
    """Yield the rows of a LIMIT and OFFSET of integers, negative ones from the end."""
    with context.memory.account("LIMIT") as account:
        if offset < 0:
            child = _all_but_last(child, -int(offset), context, account)
        else:
            child = limit_batches(Limit(node.child, None, int(offset)), child, context)
        if count is None:
            yield from child
        elif count < 0:
            yield from _Last(node, -count, context, account).of(child)
        else:
            yield from limit_batches(Limit(node.child, count, 0, node.ties), child, context)


def _all_but_last(
    child: Batches, count: int, context: ExecutionContext, account: MemoryAccount
) -> Batches:
    """Yield all rows but the last `count`. Each row comes as soon as `count` rows have followed it."""
    held: deque[pa.RecordBatch] = deque()
    rows = 0
    for batch in child:
        context.check()
        held.append(batch)
        rows += batch.num_rows
        account.grow(batch.nbytes)
        while rows > count:
            first = held.popleft()
            ready = first.slice(0, rows - count)
            rows -= ready.num_rows
            account.grow(-first.nbytes)
            if ready.num_rows < first.num_rows:
                held.appendleft(first.slice(ready.num_rows))
                account.grow(held[0].nbytes)
            yield ready


class _Last:
    """The last rows of a stream; with ties also the rows before them that are equal to the first."""

    def __init__(
        self, node: RelativeLimit, count: int, context: ExecutionContext, account: MemoryAccount
    ) -> None:
        self._node, self._count = node, count
        self._context, self._account = context, account
        self._held: deque[pa.RecordBatch] = deque()
        self._rows = 0

    def of(self, child: Batches) -> Batches:
        """Yield the last `_count` rows of the child; with WITH TIES also the rows just before them that are equal to
        the first of them in the sort keys."""
        for batch in child:
            self._context.check()
            if batch.num_rows:
                self._held.append(batch)
                self._rows += batch.num_rows
                self._account.grow(batch.nbytes)
                self._drop_early_batches()
        first = max(self._rows - self._count, 0)
        ties = self._ties_before(first) if first else 0
        skipped = first - ties
        for batch in self._held:
            if skipped < batch.num_rows:
                yield batch.slice(skipped)
            skipped = max(skipped - batch.num_rows, 0)

    def _drop_early_batches(self) -> None:
        """Drop batches of which no row can be among the last, nor equal to the first of these."""
        while self._rows - self._held[0].num_rows >= self._count:
            early = self._held[0]
            first = self._rows - self._count
            if self._node.ties and self._equal(early.slice(early.num_rows - 1), self._row(first)):
                return
            self._held.popleft()
            self._rows -= early.num_rows
            self._account.grow(-early.nbytes)

    def _row(self, at: int) -> pa.RecordBatch:
        """Return a held row, counted from the first one, as a batch."""
        for batch in self._held:
            if at < batch.num_rows:
                return batch.slice(at, 1)
            at -= batch.num_rows
        return self._held[-1].slice(0, 0)

    def _equal(self, row: pa.RecordBatch, other_row: pa.RecordBatch) -> bool:
        """Return whether two rows, batches of one row, have equal sort keys; False for no row."""
        return bool(other_row.num_rows) and bool(self._equal_to_previous([row, other_row])[1])

    def _ties_before(self, first: int) -> int:
        """Return how many held rows before row `first` are equal to it, without a gap."""
        if not self._node.ties or first >= self._rows:
            return 0
        equal = self._equal_to_previous(list(self._held))[1 : first + 1]
        return first if equal.all() else int(np.argmin(equal[::-1]))

    def _equal_to_previous(self, batches: list[pa.RecordBatch]) -> np.ndarray:
        """Return for each row whether its sort keys equal those of the row before it."""
        rows = single_batch(table_of(batches, self._node.schema))
        keys = [c.values for c in order_columns(self._node.ties, rows, self._context)]
        return equal_to_previous(keys, rows.num_rows)


def _share(node: RelativeLimit, child: Batches, context: ExecutionContext) -> Batches:
    """Yield the rows of a LIMIT or OFFSET that is a share, between 0 and 1, of all rows; the number of rows is rounded
    up. Holds all rows."""
    schema = (*node.schema, Field(NUMBER, UINT64))
    by_number = (SortKey(ColumnRef(UINT64, NUMBER)),)
    total = 0
    with (
        context.memory.account("LIMIT") as account,
        Sorter(by_number, schema, context, account) as sorter,
    ):
        for batch in numbered_batches(child, schema):
            context.check()
            total += batch.num_rows
            sorter.add(batch)
        rows = (
            make_batch(batch.columns[:-1], node.schema, batch.num_rows) for batch in sorter.sorted()
        )
        count = None if node.count is None else _rows_of(node.count, total)
        limit = Limit(node.child, count, _rows_of(node.offset, total), node.ties)
        yield from limit_batches(limit, rows, context)


def _rows_of(limit: int | float, total: int) -> int:
    """Return a number of rows: an integer as it is, a float as that share of `total`, rounded up."""
    return math.ceil(limit * total) if isinstance(limit, float) else limit
