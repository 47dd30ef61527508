"""Rows that an operator collects before it works on them, counted against the memory limit."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.compute.batches import make_batch
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.hash_table import Lookup, build_bytes, estimate_build_bytes
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.spill.budget import SpillBudget
from olapdb.errors import NotSupportedError
from olapdb.plan.expressions import ColumnRef, Expression
from olapdb.plan.nodes import Field, Schema
from olapdb.types import DataType

TEXT_BYTES_MAX = (1 << 31) - 1
"""The most text of a column in one Arrow array: its offsets are 32 bits wide."""

COUNTED_BYTES_MIN = 1 << 18
"""Values of so many bytes that are computed for one batch are counted."""


class RowBuffer:
    """Batches of one schema, counted on an operator's account."""

    def __init__(self, schema: Schema, account: MemoryAccount) -> None:
        self._schema = schema
        self._account = account
        self._columns: list[list[pa.Array]] = [[] for _ in schema]
        self._text_bytes = [0 for _ in schema]
        self._batch_rows: list[int] = []
        self.rows = 0
        self.nbytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch. Raises MemoryLimitExceeded if it would exceed the limit."""
        self._account.grow(batch.nbytes)
        for position, column in enumerate(batch.columns):
            self._columns[position].append(column)
            if _is_text(column.type):
                self._text_bytes[position] += column.nbytes
        self.rows += batch.num_rows
        self.nbytes += batch.nbytes
        self._batch_rows.append(batch.num_rows)

    def has_room(self, batch: pa.RecordBatch) -> bool:
        """Return whether one array could hold the text of each column with this batch's."""
        return all(
            held_bytes + column.nbytes <= TEXT_BYTES_MAX
            for held_bytes, column in zip(self._text_bytes, batch.columns, strict=True)
            if held_bytes
        )

    def would_exceed(
        self, budget: SpillBudget, batch: pa.RecordBatch, keys: Sequence[DataType]
    ) -> bool:
        """Return whether the operator must spill before it adds the batch, and then hashes the rows
        by keys of these types. Never for the first batch."""
        if not self.rows or not budget.enabled:
            return False
        rows, nbytes = self.rows + batch.num_rows, self.nbytes + batch.nbytes
        needed = 2 * nbytes + estimate_build_bytes([key.arrow for key in keys], rows, nbytes)
        return budget.is_exceeded(nbytes, needed) or not self.has_room(batch)

    def drain(self) -> list[pa.RecordBatch]:
        """Return the batches and empty the buffer; the account still counts them."""
        batches = []
        for at, rows in enumerate(self._batch_rows):
            columns = [chunks[at] for chunks in self._columns]
            batches.append(make_batch(columns, self._schema, rows))
        self._reset()
        return batches

    def concatenate(self, last: Sequence[pa.Array] = ()) -> pa.RecordBatch:
        """Return all rows as one batch and empty the buffer; the account still counts them.

        `last` has an array of one row for each column, to append, or is empty. Each column's chunks
        are released as soon as it is joined, so that the peak is the rows plus one column."""
        rows = self.rows
        sizes = [sum(chunk.nbytes for chunk in chunks) for chunks in self._columns]
        largest_bytes = max(sizes, default=0)
        self._account.grow(largest_bytes)
        columns = []
        for position, field in enumerate(self._schema):
            chunks, self._columns[position] = self._columns[position], []
            if last:
                chunks.append(last[position])
            columns.append(_concatenated(chunks, field.name, field.type.arrow))
            chunks.clear()
        self._account.grow(-largest_bytes)
        self._reset()
        return make_batch(columns, self._schema, rows + (1 if last else 0))

    def _reset(self) -> None:
        """Forget all rows and their counts."""
        self._columns = [[] for _ in self._schema]
        self._text_bytes = [0 for _ in self._schema]
        self._batch_rows = []
        self.rows = self.nbytes = 0

    def build_lookup(self, *, matches_null: bool = False, threads: int = 0) -> Lookup:
        """Return a lookup of all rows and empty the buffer; the account counts the lookup only.

        `matches_null` says whether NULL equals NULL in it.
        """
        rows = self.concatenate()
        self._account.grow(build_bytes(rows.columns, rows.num_rows))
        lookup = Lookup(rows.columns, rows.num_rows, matches_null=matches_null, threads=threads)
        self._account.set(lookup.nbytes)
        return lookup


def evaluate_in_batches(
    expression: Expression, batch: pa.RecordBatch, context: ExecutionContext, account: MemoryAccount
) -> pa.Array:
    """Return the expression's value for each row of a large batch, computed a batch at a time.

    The account counts the values, unless the expression is a column of the batch or they are few bytes."""
    if isinstance(expression, ColumnRef) or batch.num_rows <= context.batch_rows:
        values = evaluate_array(expression, batch, context.environment, context.subqueries)
        if not isinstance(expression, ColumnRef) and values.nbytes > COUNTED_BYTES_MIN:
            account.grow(values.nbytes)
        return values
    computed = RowBuffer((Field("value", expression.type),), account)
    for start in range(0, batch.num_rows, context.batch_rows):
        context.check()
        values = evaluate_array(
            expression,
            batch.slice(start, context.batch_rows),
            context.environment,
            context.subqueries,
        )
        computed.add(pa.RecordBatch.from_arrays([values], names=["value"]))
    return computed.concatenate().column(0)


def _concatenated(chunks: Sequence[pa.Array], name: str, arrow: pa.DataType) -> pa.Array:
    """Return the chunks as one array; raise NotSupportedError for more than 2 GiB of text."""
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return pa.nulls(0, arrow)
    if _is_text(arrow) and sum(chunk.nbytes for chunk in chunks) > TEXT_BYTES_MAX:
        raise NotSupportedError(
            f"The text of column {name} is more than 2 GiB, which an ORDER BY, a JOIN or a set"
            " cannot hold at once.",
            hint="Let it hold fewer rows, or shorter texts (a hash, a prefix).",
        )
    return pa.concat_arrays(list(chunks))


def _is_text(arrow: pa.DataType) -> bool:
    """Return whether the type is a string or binary with 32-bit offsets."""
    return bool(pa.types.is_string(arrow) or pa.types.is_binary(arrow))
