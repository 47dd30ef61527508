"""Hash joins: the right side is held and hashed, the left side streams past it in its order.

The right side's keys become codes (`lookup.Lookup`), with the rows of each; those of a left batch
are looked up, and its pairs spread out with numpy, about a batch of them at a time.  Rows without a
partner are paired with one extra row of the other side, which holds its default values or NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import single_batch, table_of
from olapdb.compute.context import ExecutionContext, MemoryAccount
from olapdb.compute.hash_table import Lookup, build_bytes
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.errors import NotSupportedError
from olapdb.execute.operators.join_pairs import Found, Joiner, missing, sides
from olapdb.plan.nodes import Join


def join_batches(
    node: Join,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Pairs in the left side's order; then, for RIGHT and FULL, right rows without a partner.

    Raises MemoryLimitExceeded where the right side, or what is built of it, would be too much."""
    _refuse(node)
    with context.memory.account("JOIN") as account:
        held = RowBuffer(node.right.schema, account)
        for batch in right:
            context.check()
            held.add(batch)
        joiner = _build(node, held, context, account)
        chunks = _chunks(left, node, joiner.left_rows_wanted, context)
        found: Iterator[Found]
        if joiner.stateful:
            found = (joiner.find(chunk) for chunk in chunks)
        else:
            found = context.parallel(joiner.find, chunks)
        for one in found:
            yield from joiner.made(one)
        yield from joiner.unmatched_right()


def _refuse(node: Join) -> None:
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
    node: Join, held: RowBuffer, context: ExecutionContext, account: MemoryAccount
) -> Joiner:
    """What is held, joined and hashed; on the account is what that needs, then what is kept."""
    rows = held.rows
    nobody: list[pa.Array] = []
    if node.kind in ("LEFT", "FULL"):
        fields = zip(sides(node)[1], node.right.schema, strict=True)
        nobody = [missing(field).cast(own.type.arrow) for field, own in fields]
    right = held.concatenate(nobody)
    rows_alone = right.slice(0, rows)
    keys = [evaluate_in_batches(key, rows_alone, context, account) for key in node.right_keys]
    needed = build_bytes(keys, rows)
    account.grow(needed)
    lookup = Lookup(keys, rows, keeps_rows=True, threads=context.threads)
    account.grow(lookup.nbytes - needed)
    joiner = Joiner(node, right, rows, lookup, context)
    account.grow(joiner.nbytes)
    return joiner


def _chunks(
    left: Iterator[pa.RecordBatch], node: Join, wanted: int, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Left batches, joined until they have so many rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in left:
        context.check()
        if not batch.num_rows:
            continue
        held.append(batch)
        rows += batch.num_rows
        if rows >= wanted:
            yield held[0] if len(held) == 1 else single_batch(table_of(held, node.left.schema))
            held, rows = [], 0
    if held:
        yield single_batch(table_of(held, node.left.schema))
