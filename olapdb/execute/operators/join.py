"""Hash joins: the right side is held and hashed, the left side streams past it in its order.

The right side's keys become codes (`hash_table.Lookup`), with the rows of each code.  The keys of a
left batch are looked up, and its pairs are built with numpy, about a batch of pairs at a time.  A row
without a partner is paired with one extra row of the other side, which has default values or NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import single_batch, table_of
from olapdb.compute.context import ExecutionContext, MemoryAccount
from olapdb.compute.hash_table import Lookup, build_bytes
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.errors import NotSupportedError
from olapdb.execute.operators.join_pairs import Joiner, Matches, missing_value, sides
from olapdb.plan.nodes import Join


def join_batches(
    node: Join,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield pairs in the left side's order; then, for RIGHT and FULL, right rows without a partner.

    Raises MemoryLimitExceeded if the right side, or its hash table, needs too much memory."""
    _refuse_unsupported(node)
    with context.memory.account("JOIN") as account:
        buffer = RowBuffer(node.right.schema, account)
        for batch in right:
            context.check()
            buffer.add(batch)
        joiner = _build(node, buffer, context, account)
        chunks = _chunks(left, node, joiner.left_chunk_rows, context)
        matches: Iterator[Matches]
        if joiner.stateful:
            matches = (joiner.probe(chunk) for chunk in chunks)
        else:
            matches = context.parallel(joiner.probe, chunks)
        for chunk_matches in matches:
            yield from joiner.pair_batches(chunk_matches)
        yield from joiner.unmatched_right()


def _refuse_unsupported(node: Join) -> None:
    """Raise NotSupportedError for ASOF, and for SEMI and ANTI that are not LEFT or INNER."""
    if node.strictness == "ASOF":
        raise NotSupportedError(
            "ASOF JOIN is not supported yet.",
            hint="Join on the key with an inequality, and take argMax of the right side.",
        )
    if node.strictness in ("SEMI", "ANTI") and node.kind not in ("LEFT", "INNER"):
        raise NotSupportedError(
            f"{node.kind} {node.strictness} JOIN is not supported.",
            hint=f"Swap the sides and use LEFT {node.strictness} JOIN.",
        )


def _build(
    node: Join, buffer: RowBuffer, context: ExecutionContext, account: MemoryAccount
) -> Joiner:
    """Hash the held right side. The account counts the memory of building, then of the result."""
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
    joiner = Joiner(node, right, rows, lookup, context)
    account.grow(joiner.nbytes)
    return joiner


def _chunks(
    left: Iterator[pa.RecordBatch], node: Join, rows_min: int, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield left batches, concatenated until each has `rows_min` rows; the last may have fewer."""
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in left:
        context.check()
        if not batch.num_rows:
            continue
        batches.append(batch)
        rows += batch.num_rows
        if rows >= rows_min:
            yield batch if len(batches) == 1 else single_batch(table_of(batches, node.left.schema))
            batches, rows = [], 0
    if batches:
        yield single_batch(table_of(batches, node.left.schema))
