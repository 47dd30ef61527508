"""ASOF JOIN of right rows that memory does not take and no hash divides: both sides are sorted on disk by key and value,
and each piece of the right side is joined with the left rows that it may serve.

    right, sorted   1 2 2 5 | 7 9 …      the next piece begins with 7
    left, sorted    2 3 6   | 7 8 …      6 looks back to 5; 7 and 8 get the last row before their piece too

An inequality that looks forward (l.t <= r.t) sorts in descending order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import filter_rows, make_batch, single_batch, table_of
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.hash_table import estimate_build_bytes
from olapdb.compute.ordering import OrderColumn, equal_to_previous, sort_indices
from olapdb.compute.spill.files import Extent, SpillFile
from olapdb.errors import InternalError
from olapdb.execute.spill.sorter import Sorter
from olapdb.plan.expressions import Call, ColumnRef, Expression
from olapdb.plan.nodes import Field, Join, Schema, SortKey
from olapdb.types import FLOAT64, INT64, UINT64, DataType, Decimal, Float, Integer, Nullable, plain
from olapdb.types.arrow_values import from_numpy, to_numpy

Batches = Iterator[pa.RecordBatch]
JoinRows = Callable[[Batches, Batches], Batches]
"""(left rows, right rows) -> pairs: the join in memory."""

PIECE_SHARE = 3
"""A piece of the right side may need this part of the memory, by an estimate."""
COPIES = 3
BYTES_PER_ROW = 64
"""What the join of a piece takes: its rows, joined and in the pairs; codes, values and positions of each."""


def asof_join_sorted(
    node: Join, left: Batches, right: Batches, context: ExecutionContext, join: JoinRows
) -> Batches:
    """Yield the pairs of an ASOF JOIN in the order of keys and values. `join` joins a piece of the right side in memory.

    Raises MemoryLimitExceeded if the memory does not take the smallest piece."""
    condition = node.residual
    if not isinstance(condition, Call):
        raise InternalError("An ASOF JOIN has no inequality.")
    descending = condition.name in ("less", "lessOrEquals")
    left_value, right_value = condition.arguments
    shared = _shared_type(left_value.type, right_value.type)
    types = [*(key.type for key in node.right_keys), shared]
    left_side = _Side(
        node.left.schema, (*node.left_keys, left_value), types, context, descending=descending
    )
    right_side = _Side(
        node.right.schema, (*node.right_keys, right_value), types, context, descending=descending
    )
    with (
        context.temporary().file("Join") as left_file,
        context.temporary().file("Join") as right_file,
    ):
        left_extents = left_side.sort(left, left_file, keeps_null=True)
        right_extents = right_side.sort(right, right_file, keeps_null=False)
        rows = _Cursor(left_side, map(left_file.read, left_extents))
        pieces = right_side.pieces(map(right_file.read, right_extents))
        carry: list[pa.RecordBatch] = []
        for piece, following in pieces:
            context.check()
            serving = [right_side.own_columns(batch) for batch in (*carry, piece)]
            yield from join(rows.before(following), iter(serving))
            carry = [right_side.first_of_last_equals(piece)]


class _Side:
    """The rows of a side with the columns by which they are sorted: the keys, and the value of the inequality."""

    def __init__(
        self,
        schema: Schema,
        keys: Sequence[Expression],
        types: Sequence[DataType],
        context: ExecutionContext,
        *,
        descending: bool,
    ) -> None:
        """Sort rows of the schema by these expressions, as values of the types."""
        self._keys, self._own, self._context = keys, schema, context
        self._types = [data_type.arrow for data_type in types]
        fields = [Field(f"-key {at}", data_type) for at, data_type in enumerate(types)]
        self.schema = (*schema, *fields)
        self._descending = descending

    def sort(self, rows: Batches, file: SpillFile, *, keeps_null: bool) -> list[Extent]:
        """Write the rows to a file in order; without those that have no partner, as a key or the value is NULL, or the value
        is NaN, unless `keeps_null`."""
        context = self._context
        keys = [
            SortKey(ColumnRef(field.type, field.name), self._descending)
            for field in self.schema[len(self._own) :]
        ]
        with (
            context.memory.account("JOIN") as account,
            Sorter(keys, self.schema, context, account) as sorter,
        ):
            for batch in rows:
                context.check()
                sorter.add(self._with_keys(batch, keeps_null=keeps_null))
            return [file.append(batch) for batch in sorter.sorted() if batch.num_rows]

    def _with_keys(self, batch: pa.RecordBatch, *, keeps_null: bool) -> pa.RecordBatch:
        """Return a batch with the columns of the keys."""
        context = self._context
        values = [
            evaluate_array(key, batch, context.environment, context.subqueries)
            for key in self._keys
        ]
        typed = zip(values, self._types, strict=True)
        values = [value if value.type == arrow else value.cast(arrow) for value, arrow in typed]
        names = [field.name for field in self.schema]
        batch = pa.RecordBatch.from_arrays([*batch.columns, *values], names=names)
        if keeps_null:
            return batch
        valid = np.ones(batch.num_rows, bool)
        for value in values:
            valid &= to_numpy(value.is_valid())
        if pa.types.is_floating(values[-1].type):  # a key that is NaN equals another one
            valid &= ~np.isnan(to_numpy(values[-1].fill_null(0)))
        return batch if valid.all() else filter_rows(batch, from_numpy(valid))

    def own_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows without the columns of the keys."""
        return make_batch(batch.columns[: len(self._own)], self._own, batch.num_rows)

    def keys_of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of the keys, of rows of either side."""
        keys: list[pa.Array] = batch.columns[-len(self._types) :]
        return keys

    def first_of_last_equals(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the first of the last rows of equal keys and value, a copy."""
        begins = np.flatnonzero(~equal_to_previous(self.keys_of(batch), batch.num_rows))
        return batch.take(from_numpy(begins[-1:]))

    def rows_before(self, batch: pa.RecordBatch, row: pa.RecordBatch) -> int:
        """Return how many rows of a sorted batch come before a row, not those equal to it."""
        pairs = zip(self.keys_of(row), self.keys_of(batch), strict=True)
        columns = [OrderColumn(pa.concat_arrays(pair), self._descending) for pair in pairs]
        order = to_numpy(sort_indices(columns, batch.num_rows + 1))
        return int(np.flatnonzero(order == 0)[0])

    def pieces(self, rows: Batches) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
        """Yield the sorted rows, as many at a time as the join may have in memory, each with the first row of the next
        piece, None for the last. Equal rows are in one piece. Without rows there is one piece."""
        types = self._types[:-1]
        waiting: list[pa.RecordBatch] = []
        with self._context.memory.account("JOIN") as account:
            for batch in rows:
                waiting.append(batch)
                count = sum(piece.num_rows for piece in waiting)
                nbytes = sum(piece.nbytes for piece in waiting)
                needed = COPIES * nbytes + estimate_build_bytes(types, count, nbytes)
                account.set(nbytes)
                if needed + BYTES_PER_ROW * count < account.available_bytes // PIECE_SHARE:
                    continue
                joined = single_batch(table_of(waiting, self.schema))
                begins = np.flatnonzero(~equal_to_previous(self.keys_of(joined), joined.num_rows))
                end = int(begins[-1])
                rest = joined.slice(end).take(from_numpy(np.arange(joined.num_rows - end)))
                waiting = [rest]
                if end:
                    account.set(rest.nbytes)  # the join of the piece counts it
                    yield joined.slice(0, end), rest.slice(0, 1)
            account.set(0)
            yield single_batch(table_of(waiting, self.schema)), None


def _shared_type(left: DataType, right: DataType) -> DataType:
    """Return a type in which the values of both sides of the inequality keep their order."""
    if left.arrow == right.arrow:
        return right
    kinds = plain(left), plain(right)
    if not all(isinstance(kind, Integer | Float) for kind in kinds):
        return right
    if any(isinstance(kind, Float) for kind in kinds):
        shared: DataType = FLOAT64
    elif all(pa.types.is_unsigned_integer(kind.arrow) for kind in kinds):
        shared = UINT64
    elif any(kind == UINT64 for kind in kinds):
        shared = Decimal(20, 0)
    else:
        shared = INT64
    return Nullable(shared)


class _Cursor:
    """Sorted left rows, read up to a row of the right side."""

    def __init__(self, side: _Side, batches: Batches) -> None:
        self._side, self._batches = side, batches
        self._rest: pa.RecordBatch | None = None

    def before(self, row: pa.RecordBatch | None) -> Batches:
        """Yield the next rows that come before a row, all if it is None."""
        while True:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            self._rest = None
            if batch is None:
                return
            count = batch.num_rows if row is None else self._side.rows_before(batch, row)
            if count < batch.num_rows:
                self._rest = batch.slice(count)
            if count:
                yield self._side.own_columns(batch.slice(0, count))
            if self._rest is not None:
                return
