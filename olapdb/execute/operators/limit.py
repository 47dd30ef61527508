"""LIMIT, OFFSET, WITH TIES and LIMIT BY."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import filter_rows, single_batch, table_of, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import factorise
from olapdb.compute.hash_table import build_bytes
from olapdb.compute.ordering import equal_to_previous
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.execute.operators.sort import order_columns
from olapdb.functions.base import Groups
from olapdb.plan.nodes import Limit, LimitBy


def limit_batches(
    node: Limit, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the rows offset … offset + count, and with WITH TIES those equal to the last.

    It reads no further batch of the child once it has them."""
    to_skip = node.offset
    remaining = node.count
    last: pa.RecordBatch | None = None
    if remaining == 0:
        return
    for batch in child:
        context.check()
        if to_skip >= batch.num_rows:
            to_skip -= batch.num_rows
            continue
        batch = batch.slice(to_skip)
        to_skip = 0
        if remaining is None:
            yield batch
            continue
        taken = batch.slice(0, remaining)
        remaining -= taken.num_rows
        if taken.num_rows:
            yield taken
        if remaining:
            continue
        if not node.ties:
            return
        if last is None:
            last = taken.slice(taken.num_rows - 1)
        rest = batch.slice(taken.num_rows)
        ties = _leading_ties(node, last, rest, context)
        if ties:
            yield rest.slice(0, ties)
        if ties < rest.num_rows:
            return


def _leading_ties(
    node: Limit, last: pa.RecordBatch, rest: pa.RecordBatch, context: ExecutionContext
) -> int:
    """Return how many rows of `rest` follow `last` with equal sort keys."""
    if not rest.num_rows:
        return 0
    joined = single_batch(table_of([last, rest], node.schema))
    keys = [column.values for column in order_columns(node.ties, joined, context)]
    equal = equal_to_previous(keys, joined.num_rows)[1:]
    return int(np.argmin(equal)) if not equal.all() else len(equal)


def limit_by_batches(
    node: LimitBy, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the rows offset … offset + count of each key, in the order of the input.

    It holds at most offset + count rows of a key from each batch."""
    with context.memory.account("LIMIT BY") as account:
        buffer = RowBuffer(node.schema, account)
        for batch in child:
            context.check()
            ranks = _ranks(node, batch, context)
            buffer.add(filter_rows(batch, pa.array(ranks < node.offset + node.count)))
        if not buffer.rows:
            return
        rows = buffer.concatenate()
        keys = [evaluate_in_batches(key, rows, context, account) for key in node.keys]
        account.grow(build_bytes(keys, rows.num_rows))
        groups = factorise(keys, rows.num_rows, threads=context.threads).groups
        ranks = ranks_in_groups(groups)
        positions = pa.array(
            np.flatnonzero((ranks >= node.offset) & (ranks < node.offset + node.count))
        )
        for start in range(0, len(positions), context.batch_rows):
            yield take_rows(rows, positions.slice(start, context.batch_rows))


def _ranks(node: LimitBy, batch: pa.RecordBatch, context: ExecutionContext) -> np.ndarray:
    """Return each row's rank, from 0, among the rows of the batch with the same LIMIT BY keys."""
    keys = [
        evaluate_array(key, batch, context.environment, context.subqueries) for key in node.keys
    ]
    return ranks_in_groups(factorise(keys, batch.num_rows).groups)


def ranks_in_groups(groups: Groups) -> np.ndarray:
    """Return 0 for the first row of each group, 1 for its second, …; int64, shape (rows,)."""
    ranks = np.empty(len(groups.codes), np.int64)
    ranks[groups.order] = np.arange(len(ranks)) - np.repeat(groups.starts, groups.sizes)
    return ranks
