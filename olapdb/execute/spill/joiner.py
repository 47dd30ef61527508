"""Joins past memory: both sides are written to disk, partitioned by their keys, and each pair of
partitions is joined (grace hash join).

A right partition that memory does not take is partitioned again.  Rows that no hash divides, because
their keys are equal or there are none, are joined some right rows at a time, with all left rows; what
became of a left row is then known after the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import filter_rows, make_batch
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.spill.files import Extent, SpillFile
from olapdb.compute.spill.partitions import LEVELS_MAX, PARTITIONS, PartitionedRows
from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Field, Join, Schema, Values
from olapdb.types import UINT8, UINT64
from olapdb.types.arrow_values import from_numpy, to_numpy

IN_MEMORY = LEVELS_MAX + 1
"""The level of a join whose right side is small enough by its making."""
ROW, PARTNER = "-row", "-partner"

Batches = Iterator[pa.RecordBatch]
JoinSides = Callable[[Join, Batches, Batches, int], Batches]
"""(node, left rows, right rows, level) -> pairs: the join of a pair of partitions."""


def join_partitions(
    node: Join,
    left: Batches,
    right: Batches,
    context: ExecutionContext,
    join: JoinSides,
    level: int,
) -> Batches:
    """Yield the pairs of a join whose right side is too large, partition by partition: in no order.

    `join` joins each pair of partitions."""
    with context.temporary().file("Join") as file:
        right_rows = _partitioned(node.right_keys, node.right_keys, right, file, context, level)
        left_rows = _partitioned(node.left_keys, node.right_keys, left, file, context, level)
        for number in range(PARTITIONS):
            has_left, has_right = left_rows.rows(number) > 0, right_rows.rows(number) > 0
            if not (has_left or (node.kind in ("RIGHT", "FULL") and has_right)):
                continue
            yield from join(
                node,
                left_rows.read(number, context.batch_rows),
                right_rows.read(number, context.batch_rows),
                level + 1,
            )


def _partitioned(
    keys: Sequence[Expression],
    typed_as: Sequence[Expression],
    batches: Batches,
    file: SpillFile,
    context: ExecutionContext,
    level: int,
) -> PartitionedRows:
    """Write the batches to partitions by their keys, hashed as values of the right keys' types."""
    partitions = PartitionedRows(file, level)
    for batch in batches:
        context.check()
        values = [
            evaluate_array(key, batch, context.environment, context.subqueries) for key in keys
        ]
        typed = [
            value if value.type == right.type.arrow else value.cast(right.type.arrow)
            for value, right in zip(values, typed_as, strict=True)
        ]
        partitions.add(batch, typed)
    return partitions


# --- rows that no hash divides


@dataclass(frozen=True)
class _NumberedJoin:
    """A join whose left rows have a number, from 1, and whose right rows a mark: in a pair, 0 says
    that the row has no such side."""

    node: Join
    numbered: Join
    row_at: int
    partner_at: int

    @staticmethod
    def of(node: Join) -> _NumberedJoin:
        """Return the join with these columns."""
        left, right = _values(node.left.schema, ROW), _values(node.right.schema, PARTNER)
        is_semi = node.strictness in ("SEMI", "ANTI")
        strictness = "SEMI" if node.strictness == "ANTI" else node.strictness
        split = len(node.left.schema)
        fields = (*node.fields[:split], left.fields[-1])
        if not is_semi:
            fields += (*node.fields[split:], right.fields[-1])
        numbered = replace(node, left=left, right=right, strictness=strictness, fields=fields)
        return _NumberedJoin(node, numbered, split, len(fields) - 1)

    @property
    def is_semi(self) -> bool:
        """Return whether the join answers with left rows only."""
        return self.node.strictness in ("SEMI", "ANTI")


def _values(schema: Schema, name: str) -> Values:
    """Return a node of the schema with one more column, a number or a mark."""
    fields = (*schema, Field(name, UINT64 if name == ROW else UINT8))
    return Values(fields, pa.table({}))


def join_by_pieces(
    node: Join,
    left: Batches,
    pieces: Iterator[Sequence[pa.RecordBatch]],
    context: ExecutionContext,
    join: JoinSides,
) -> Batches:
    """Yield the pairs of a join whose right side is too large and cannot be partitioned: those of
    one piece of the right side after those of another."""
    numbered = _NumberedJoin.of(node)
    with context.temporary().file("Join") as file, context.memory.account("JOIN") as account:
        extents = [file.append(batch) for batch in left]
        is_matched = np.zeros(sum(extent.rows for extent in extents) + 1, bool)
        account.set(is_matched.nbytes)
        for piece in pieces:
            context.check()
            marked = numbered.numbered.right.schema
            right = (_with_column(b, marked, np.ones(b.num_rows, np.uint8)) for b in piece)
            rows = _left_rows(numbered, extents, file, is_matched)
            for batch in join(numbered.numbered, rows, right, IN_MEMORY):
                is_pair = _mark(numbered, batch, is_matched)
                if not numbered.is_semi and len(is_pair):
                    yield from _without_columns(node, numbered, batch, is_pair)
        yield from _left_alone(node, extents, file, is_matched, join)


def _left_rows(
    numbered: _NumberedJoin, extents: Sequence[Extent], file: SpillFile, is_matched: np.ndarray
) -> Batches:
    """Yield the left rows with their numbers; without those that have a partner where one is
    enough."""
    node = numbered.node
    one_is_enough = numbered.is_semi or (node.strictness == "ANY" and node.kind in ("LEFT", "FULL"))
    first = 1
    for extent in extents:
        start, first = first, first + extent.rows
        numbers = np.arange(start, first, dtype=np.uint64)
        batch = _with_column(file.read(extent), numbered.numbered.left.schema, numbers)
        if one_is_enough:
            batch = filter_rows(batch, from_numpy(~is_matched[start:first]))
        yield batch


def _mark(numbered: _NumberedJoin, batch: pa.RecordBatch, is_matched: np.ndarray) -> np.ndarray:
    """Mark the left rows that have a partner in the batch; return a mask of the rows that are final:
    pairs, and right rows without a partner."""
    rows = to_numpy(batch.column(numbered.row_at).fill_null(0))
    if numbered.is_semi:
        is_matched[rows] = True
        return np.ones(len(rows), bool)
    has_right: np.ndarray = to_numpy(batch.column(numbered.partner_at).fill_null(0)) > 0
    is_matched[rows[has_right]] = True
    return has_right


def _without_columns(
    node: Join, numbered: _NumberedJoin, batch: pa.RecordBatch, keep: np.ndarray
) -> Batches:
    """Yield the rows to keep, with the columns of the node's own schema."""
    rows = filter_rows(batch, from_numpy(keep))
    if rows.num_rows:
        dropped = (numbered.row_at, numbered.partner_at)
        columns = [column for at, column in enumerate(rows.columns) if at not in dropped]
        yield make_batch(columns, node.fields, rows.num_rows)


def _left_alone(
    node: Join, extents: Sequence[Extent], file: SpillFile, is_matched: np.ndarray, join: JoinSides
) -> Batches:
    """Yield the left rows that the join keeps for themselves: of SEMI those with a partner, of ANTI,
    LEFT and FULL those without."""
    if node.kind not in ("LEFT", "FULL") and node.strictness not in ("SEMI", "ANTI"):
        return

    def kept() -> Batches:
        """Yield the left rows with, or without, a partner."""
        first = 1
        for extent in extents:
            has_partner = is_matched[first : first + extent.rows]
            keep = has_partner if node.strictness == "SEMI" else ~has_partner
            yield filter_rows(file.read(extent), from_numpy(keep))
            first += extent.rows

    if node.strictness in ("SEMI", "ANTI"):
        for batch in kept():
            if batch.num_rows:
                yield make_batch(batch.columns, node.fields, batch.num_rows)
        return
    yield from join(node, kept(), iter(()), IN_MEMORY)


def _with_column(batch: pa.RecordBatch, schema: Schema, values: np.ndarray) -> pa.RecordBatch:
    """Return the batch with one more column, the last of the schema."""
    column = pa.array(values, schema[-1].type.arrow)
    return make_batch([*batch.columns, column], schema, batch.num_rows)
