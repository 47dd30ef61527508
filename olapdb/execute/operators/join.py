"""Hash joins: the right side is held and hashed, the left side streams past it in its order.

The right side's keys become codes (`hash_table.Lookup`), with the rows of each code.  The keys of a
left batch are looked up, and its pairs are built with numpy, about a batch of pairs at a time.  A row
without a partner is paired with one extra row of the other side, which has default values or NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.compute.batches import cut, single_batch, table_of
from olapdb.compute.context import ExecutionContext
from olapdb.compute.hash_table import (
    BUILD_BYTES_PER_COLUMN,
    BUILD_BYTES_PER_ROW,
    Lookup,
    build_bytes,
)
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.compute.spill.budget import SpillBudget
from olapdb.compute.spill.partitions import LEVELS_MAX
from olapdb.compute.stages import Deferred, Stage, all_batches, begun
from olapdb.config import tuning
from olapdb.errors import NotSupportedError
from olapdb.execute.join_filters import JoinFilter, Start
from olapdb.execute.operators.asof_join import asof_join_batches
from olapdb.execute.operators.join_outputs import EVERYTHING, Wanted, restored
from olapdb.execute.operators.join_pairs import Joiner, Matches, missing_value, sides
from olapdb.execute.operators.row_limits import is_held_in_memory, limited
from olapdb.execute.spill.joiner import IN_MEMORY, first_of_keys, join_by_pieces, join_partitions
from olapdb.lazy import LazyModule
from olapdb.plan.nodes import Join

if TYPE_CHECKING:
    from olapdb.execute.spill import asof_joiner
else:
    asof_joiner = LazyModule("olapdb.execute.spill.asof_joiner")


def join_batches(
    node: Join,
    start: Start,
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    wanted: Wanted,
) -> Iterator[pa.RecordBatch]:
    """Return pairs in the left side's order; then, for RIGHT and FULL, right rows without a partner.

    `start(plan)` runs the left side, or a plan that drops rows of a side that have no partner; its rows may
    lack columns that neither the join nor `wanted` has. So may the pairs. Where the right side needs too much memory, both sides are joined from disk: the pairs come in no
    order."""
    return Deferred(lambda _: _started(node, start, right, context, wanted))


@contextmanager
def _started(
    node: Join,
    start: Start,
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    wanted: Wanted,
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Hold the right side, with a filter of the left one where that may pay; give the pairs."""
    _refuse_unsupported(node)
    if is_held_in_memory(context):
        right = limited(right, "max_rows_in_join", context)
    if not context.join_filters:
        with _joined(node, start(node.left), right, context, wanted=wanted) as pairs:
            yield pairs
        return
    join_filter = JoinFilter(node, context)
    with context.memory.account("JOIN") as account:
        left, right = join_filter.sides(start, right, account)
        with _joined(node, left, right, context, wanted=wanted, join_filter=join_filter) as pairs:
            yield pairs


@contextmanager
def _joined(
    node: Join,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    level: int = 0,
    *,
    wanted: Wanted = EVERYTHING,
    join_filter: JoinFilter | None = None,
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Give the pairs, with the columns that are wanted. `level` is how often both sides have been partitioned
    before. The filter gets the right side's keys if memory takes them all, before any left row is read."""
    with context.memory.account("JOIN") as account, ExitStack() as stack:
        buffer = RowBuffer(node.right.schema, account)
        budget = SpillBudget("join", context, account)
        key_types = [key.type for key in node.right_keys]
        right = _in_pieces(all_batches(right, context), budget, len(key_types))
        for batch in right:
            context.check()
            if level < IN_MEMORY and buffer.would_exceed(budget, batch, key_types):
                rest = chain(buffer.drain(), (batch,), right)
                account.set(0)
                whole = (restored(batch, node.left.schema) for batch in left)
                yield _join_on_disk(node, whole, rest, context, level)
                return
            buffer.add(batch)
        if node.strictness == "ASOF":
            rows = buffer.drain()
            account.set(0)
            yield asof_join_batches(node, left, iter(rows), context)
            return
        joiner = _build(node, buffer, context, account, wanted)
        gathers = False
        if join_filter is not None:
            join_filter.built(joiner.lookup)
            left = iter(begun(left, stack))
            gathers = join_filter.leaves_few
        yield _pairs(joiner, node, left, context, gathers=gathers)


def _pairs(
    joiner: Joiner,
    node: Join,
    left: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    *,
    gathers: bool,
) -> Iterator[pa.RecordBatch]:
    """Return the pairs of the left rows, then those of the right rows without a partner that the join keeps. `gathers`
    is for tasks of which few rows remain: left rows of several tasks are then joined to one chunk and looked up at
    once."""

    # A thread holds all pairs of a chunk of a stage; others come a batch at a time.
    in_stage = joiner.has_few_pairs and not gathers

    def chunks(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield left rows, as many at a time as are looked up together."""
        for chunk in _chunks(rows, node, joiner.left_chunk_rows, context):
            rows_max = joiner.left_rows_max(chunk) if in_stage else context.batch_rows
            yield from cut(chunk, min(context.batch_rows, rows_max))

    if in_stage:
        return Stage(context, joiner.pairs, left, gather=chunks)
    return _streamed(joiner, chunks(left), context)


def _streamed(
    joiner: Joiner, chunks: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of left rows that may have very many, a batch at a time."""
    matches: Iterator[Matches]
    if joiner.stateful:
        matches = (joiner.probe(chunk) for chunk in chunks)
    else:
        matches = context.parallel(joiner.probe, chunks)
    for chunk_matches in matches:
        yield from joiner.pair_batches(chunk_matches)
    yield from joiner.unmatched_right()


def _join_on_disk(
    node: Join,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    level: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs partition by partition. Where keys cannot divide the right side further, join
    it piece by piece."""

    def join(
        part: Join,
        left: Iterator[pa.RecordBatch],
        right: Iterator[pa.RecordBatch],
        level: int,
        context: ExecutionContext,
    ) -> Iterator[pa.RecordBatch]:
        """Return the pairs of two partitions, joined when the first is asked for."""
        return Deferred(lambda _: _joined(part, left, right, context, level))

    if node.right_keys and level < LEVELS_MAX:
        yield from join_partitions(node, left, right, context, join, level)
    elif node.strictness == "ASOF":

        def in_memory(
            left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
        ) -> Iterator[pa.RecordBatch]:
            """Return the pairs of some rows of both sides."""
            return join(node, left, right, IN_MEMORY, context)

        yield from asof_joiner.asof_join_sorted(node, left, right, context, in_memory)
    elif _looks_at_first_rows(node):
        right = first_of_keys(right, node.right_keys, context)
        yield from join(node, left, right, IN_MEMORY, context)
    else:
        yield from join_by_pieces(node, left, _pieces(node, right, context), context, join)


def _looks_at_first_rows(node: Join) -> bool:
    """Return whether the join looks at the first right row of each key only."""
    takes_one = node.strictness in ("ANY", "SEMI", "ANTI") and node.kind in ("INNER", "LEFT")
    return takes_one and bool(node.right_keys) and node.residual is None


def _pieces(
    node: Join, right: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[Sequence[pa.RecordBatch]]:
    """Yield right batches, as many at a time as memory takes; at least one."""
    with context.memory.account("JOIN") as account:
        budget = SpillBudget("join", context, account)
        key_types = [key.type for key in node.right_keys]
        buffer = RowBuffer(node.right.schema, account)
        for batch in _in_pieces(right, budget, len(key_types)):
            if buffer.would_exceed(budget, batch, key_types):
                piece = buffer.drain()
                account.set(0)  # the join of the piece counts it
                yield piece
            buffer.add(batch)
        piece = buffer.drain()
        account.set(0)
        yield piece


def _in_pieces(
    batches: Iterator[pa.RecordBatch], budget: SpillBudget, key_count: int
) -> Iterator[pa.RecordBatch]:
    """Yield batches in pieces whose rows, hashed by `key_count` keys, take a small part of the memory."""
    row_bytes = BUILD_BYTES_PER_ROW + key_count * BUILD_BYTES_PER_COLUMN
    for batch in batches:
        yield from budget.pieces(batch, row_bytes)


def _refuse_unsupported(node: Join) -> None:
    """Raise NotSupportedError for SEMI and ANTI that are not LEFT or INNER."""
    if node.strictness in ("SEMI", "ANTI") and node.kind not in ("LEFT", "INNER"):
        raise NotSupportedError(
            f"{node.kind} {node.strictness} JOIN is not supported.",
            hint=f"Swap the sides and use LEFT {node.strictness} JOIN.",
        )


def _build(
    node: Join, buffer: RowBuffer, context: ExecutionContext, account: MemoryAccount, wanted: Wanted
) -> Joiner:
    """Return the joiner over the buffer's rows, which are the right side, with their keys hashed.

    The account counts the memory of building, then that of the result."""
    rows = buffer.rows
    extra_row: list[pa.Array] = []
    if node.kind in ("LEFT", "FULL"):
        fields = zip(sides(node)[1], node.right.schema, strict=True)
        extra_row = [missing_value(field).cast(own.type.arrow) for field, own in fields]
    right = buffer.concatenate(extra_row)
    own_rows = right.slice(0, rows)
    keys = [evaluate_in_batches(key, own_rows, context, account) for key in node.right_keys]
    needed = build_bytes(keys, rows)
    account.grow(needed)
    lookup = Lookup(keys, rows, keeps_rows=True, threads=context.threads)
    account.grow(lookup.nbytes - needed)
    joiner = Joiner(node, wanted.of_right(node, right), rows, lookup, context, wanted)
    account.grow(joiner.nbytes)
    return joiner


def _chunks(
    left: Iterator[pa.RecordBatch], node: Join, rows_min: int, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield left batches, concatenated until each has `rows_min` rows or about `context.batch_bytes` bytes; the last may
    have fewer.

    In queries, and no view, tiny batches are concatenated anyway: those that filters leave of large ones."""
    if context.join_filters:
        rows_min = max(rows_min, tuning.JOINED_CHUNK_ROWS_MIN)
    batches: list[pa.RecordBatch] = []
    rows = nbytes = 0
    for batch in left:
        context.check()
        if not batch.num_rows:
            continue
        if not batches and batch.num_rows >= rows_min:
            yield batch
            continue
        batches.append(restored(batch, node.left.schema))
        rows, nbytes = rows + batch.num_rows, nbytes + batches[-1].nbytes
        if rows >= rows_min or nbytes >= context.batch_bytes:
            yield single_batch(table_of(batches, node.left.schema))
            batches, rows, nbytes = [], 0, 0
    if batches:
        yield single_batch(table_of(batches, node.left.schema))
