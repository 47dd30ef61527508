"""Rows that an operator holds until all have come: counted as they come, then joined into one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.compute.batches import make_batch
from olapdb.compute.context import ExecutionContext, MemoryAccount
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.hash_table import Lookup, build_bytes
from olapdb.errors import NotSupportedError
from olapdb.plan.expressions import ColumnRef, Expression
from olapdb.plan.nodes import Field, Schema

TEXT_BYTES_MAX = (1 << 31) - 1
"""Of a column in one Arrow array: its offsets are 32 bits wide."""


class RowBuffer:
    """Batches of a schema, on an operator's account."""

    def __init__(self, schema: Schema, account: MemoryAccount) -> None:
        self._schema = schema
        self._account = account
        self._columns: list[list[pa.Array]] = [[] for _ in schema]
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Raises MemoryLimitExceeded where it would be too much."""
        self._account.grow(batch.nbytes)
        for held, column in zip(self._columns, batch.columns, strict=True):
            held.append(column)
        self.rows += batch.num_rows

    def joined(self, last: Sequence[pa.Array] = ()) -> pa.RecordBatch:
        """All of them as one batch, `last` (arrays of one row, or none at all) behind them; nothing
        is held any more, but the account stays as it is.

        Column by column, and the batches of a column are let go when it is joined: so that, beyond
        what is held, no more than the largest column is needed."""
        rows, self.rows = self.rows, 0
        sizes = [sum(chunk.nbytes for chunk in chunks) for chunks in self._columns]
        needed = max(sizes, default=0)
        self._account.grow(needed)
        made = []
        for at, field in enumerate(self._schema):
            chunks, self._columns[at] = self._columns[at], []
            if last:
                chunks.append(last[at])
            made.append(_joined(chunks, field.name, field.type.arrow))
            chunks.clear()
        self._account.grow(-needed)
        return make_batch(made, self._schema, rows + (1 if last else 0))

    def looked_up(self, *, matches_null: bool = False, threads: int = 0) -> Lookup:
        """A lookup of all of them, which is then all that the account counts."""
        rows = self.joined()
        self._account.grow(build_bytes(rows.columns, rows.num_rows))
        made = Lookup(rows.columns, rows.num_rows, matches_null=matches_null, threads=threads)
        self._account.set(made.nbytes)
        return made


def evaluate_held(
    expression: Expression, batch: pa.RecordBatch, context: ExecutionContext, account: MemoryAccount
) -> pa.Array:
    """Its value for each of many rows, computed a batch at a time and counted, where it is not a
    column of theirs."""
    if isinstance(expression, ColumnRef) or batch.num_rows <= context.batch_rows:
        return evaluate_array(expression, batch, context.environment, context.subqueries)
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
    return computed.joined().column(0)


def _joined(chunks: Sequence[pa.Array], name: str, arrow: pa.DataType) -> pa.Array:
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return pa.array([], arrow)
    if _is_text(arrow) and sum(chunk.nbytes for chunk in chunks) > TEXT_BYTES_MAX:
        raise NotSupportedError(
            f"The text of column {name} is more than 2 GiB, which an ORDER BY, a JOIN or a set"
            " cannot hold at once.",
            hint="Let it hold fewer rows, or shorter texts (a hash, a prefix).",
        )
    return pa.concat_arrays(list(chunks))


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_binary(arrow))
