"""Joins past memory: both sides are written to disk, partitioned by their keys, and each pair of
partitions is joined (grace hash join).

A right partition that memory does not take is partitioned again.  Rows that no hash divides, because
their keys are equal or there are none, are joined some right rows at a time, with all left rows; what
became of a left row is then known after the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import filter_rows, make_batch, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import factorise
from olapdb.compute.hash_table import estimate_build_bytes
from olapdb.compute.spill.files import Extent, SpillFile
from olapdb.compute.spill.partitions import LEVELS_MAX, PARTITIONS, PartitionedRows
from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Field, Join, Schema, Values
from olapdb.records import dataclass
from olapdb.types import UINT8, UINT64
from olapdb.types.arrow_values import from_numpy, to_numpy

IN_MEMORY = LEVELS_MAX + 1
"""The level of a join whose right side is small enough by its making."""
ROW_BYTES = 2
MINIMUM_BYTES = 1 << 16
"""What a join keeps of each right row, whether it has a partner, and of a partition of few rows."""
ROW, PARTNER = "-row", "-partner"

Batches = Iterator[pa.RecordBatch]
JoinSides = Callable[[Join, Batches, Batches, int, ExecutionContext], Batches]
"""(node, left rows, right rows, level, context) -> pairs: the join of a pair of partitions."""

FIRST_PAIRS_BYTES = 8 << 20
"""A thread makes about so many bytes of a partition's pairs; more are made when they are asked for."""


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

        def pairs(number: int, context: ExecutionContext) -> Batches:
            """Return the pairs of the left and right rows of partition `number`."""
            ours = left_rows.read(number, context.batch_rows)
            theirs = right_rows.read(number, context.batch_rows)
            return join(node, ours, theirs, next_level, context)

        # Rows that one level leaves in one partition have one key by all signs: further levels would write them again.
        next_level = level + 1 if right_rows.divides else LEVELS_MAX
        numbers = [
            number
            for number in range(PARTITIONS)
            if left_rows.rows(number)
            or (node.kind in ("RIGHT", "FULL") and right_rows.rows(number))
        ]
        needed = {number: _needed_bytes(node, right_rows, number) for number in numbers}
        at_a_time = 2 * context.threads + 1
        batch_bytes = context.batch_rows * (_row_bytes(left_rows) + _row_bytes(right_rows))
        with context.memory.account("JOIN") as account:
            share = account.available_bytes // at_a_time
            waiting_bytes = min(FIRST_PAIRS_BYTES, share // 2)
            share -= waiting_bytes
            small = [number for number in numbers if needed[number] <= share]
            may_share = context.threads > 1 and node.strictness != "ASOF"
            if small and may_share and batch_bytes <= waiting_bytes:
                share = max(needed[number] for number in small)
                account.set(at_a_time * (share + waiting_bytes))
                yield from _small_joins(small, pairs, share, waiting_bytes - batch_bytes, context)
                numbers = [number for number in numbers if needed[number] > share]
        for number in numbers:
            yield from pairs(number, context)


def _small_joins(
    numbers: Sequence[int],
    pairs: Callable[[int, ExecutionContext], Batches],
    limit_bytes: int,
    waiting_bytes: int,
    context: ExecutionContext,
) -> Batches:
    """Yield the pairs of partitions, several joined at a time, each within `limit_bytes` of memory. A thread
    goes on to the next batch of pairs while those that wait have no more than `waiting_bytes`."""

    def begun(number: int) -> tuple[list[pa.RecordBatch], Batches]:
        """Return the first batches of pairs of a partition, more than `waiting_bytes` of them if there are as many, and an
        iterator of the others."""
        rest, first, nbytes = iter(pairs(number, context.within_task(limit_bytes))), [], 0
        for batch in rest:
            first.append(batch)
            nbytes += batch.nbytes
            if nbytes > waiting_bytes:
                break
        return first, rest

    for first, rest in context.parallel(begun, numbers):
        yield from first
        yield from rest


def _row_bytes(rows: PartitionedRows) -> int:
    """Return the bytes of a row in memory on average, rounded up; 0 without rows."""
    numbers = range(PARTITIONS)
    count = sum(rows.rows(number) for number in numbers)
    return -(-sum(rows.nbytes(number) for number in numbers) // count) if count else 0


def _needed_bytes(node: Join, right_rows: PartitionedRows, number: int) -> int:
    """Return the most bytes that joining a right partition takes: the rows twice, their hashing, and some bytes that
    the join keeps for each row."""
    rows, nbytes = right_rows.rows(number), right_rows.nbytes(number)
    key_types = [key.type.arrow for key in node.right_keys]
    kept = ROW_BYTES * (rows + 1)
    return 2 * nbytes + estimate_build_bytes(key_types, rows, nbytes) + kept + MINIMUM_BYTES


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

    def values(batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """Return the keys of a batch's rows, cast to the Arrow types of the right keys, so that equal keys have equal
        hashes."""
        values_of_keys = [
            evaluate_array(key, batch, context.environment, context.subqueries) for key in keys
        ]
        return [
            value if value.type == right.type.arrow else value.cast(right.type.arrow)
            for value, right in zip(values_of_keys, typed_as, strict=True)
        ]

    partitions.add_all(batches, values, context)
    return partitions


# --- rows that no hash divides


def first_of_keys(right: Batches, keys: Sequence[Expression], context: ExecutionContext) -> Batches:
    """Yield the first row of each key of the right side, in order: all that ANY, SEMI and ANTI joins without further
    conditions look at. These rows are in memory, so there must be few keys."""
    known: list[pa.RecordBatch] = []
    for batch in right:
        context.check()
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([*known, batch]).combine_chunks().to_batches()[0]
        values = [
            evaluate_array(key, rows, context.environment, context.subqueries) for key in keys
        ]
        first = factorise(values, rows.num_rows).first
        known = [take_rows(rows, from_numpy(np.sort(first)))]
    yield from known


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
            for batch in join(numbered.numbered, rows, right, IN_MEMORY, context):
                is_pair = _mark(numbered, batch, is_matched)
                if not numbered.is_semi and len(is_pair):
                    yield from _without_columns(node, numbered, batch, is_pair)
        yield from _left_alone(node, extents, file, is_matched, join, context)


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
    node: Join,
    extents: Sequence[Extent],
    file: SpillFile,
    is_matched: np.ndarray,
    join: JoinSides,
    context: ExecutionContext,
) -> Batches:
    """Yield the left rows that the join keeps for themselves: of SEMI those with a partner, of ANTI,
    LEFT and FULL those without."""
    if node.kind not in ("LEFT", "FULL") and node.strictness not in ("SEMI", "ANTI"):
        return

    def kept() -> Batches:
        """Yield the left rows that have a partner (SEMI), or that have none (ANTI, LEFT and FULL)."""
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
    yield from join(node, kept(), iter(()), IN_MEMORY, context)


def _with_column(batch: pa.RecordBatch, schema: Schema, values: np.ndarray) -> pa.RecordBatch:
    """Return the batch with one more column, the last of the schema."""
    column = pa.array(values, schema[-1].type.arrow)
    return make_batch([*batch.columns, column], schema, batch.num_rows)
