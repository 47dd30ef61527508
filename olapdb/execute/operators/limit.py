"""LIMIT, OFFSET, WITH TIES and LIMIT BY."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import filter_rows, single_batch, table_of, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import factorise
from olapdb.compute.hash_table import build_bytes
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import equal_to_previous
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.compute.spill.budget import SpillBudget
from olapdb.execute.operators.sort import order_columns
from olapdb.functions.base import Groups
from olapdb.lazy import LazyModule
from olapdb.plan.nodes import Limit, LimitBy
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.execute.spill import limit_by
else:
    limit_by = LazyModule("olapdb.execute.spill.limit_by")


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
    """Yield the rows that OFFSET and LIMIT keep of each key, in the order of the input.

    It holds, or writes to disk, at most offset + count rows of a key from each batch, but all rows
    where one of the two is counted from the end."""
    key_types = [key.type for key in node.keys]

    def limited(buffer: RowBuffer, account: MemoryAccount) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a buffer that OFFSET and LIMIT keep of each key, in the order of the buffer."""
        return _limited(node, buffer, context, account)

    with context.memory.account("LIMIT BY") as account:
        budget = SpillBudget("distinct", context, account)

        def is_too_large(buffer: RowBuffer, batch: pa.RecordBatch) -> bool:
            """Return whether memory would not take one more batch in the buffer."""
            return buffer.would_exceed(budget, batch, key_types)

        buffer = RowBuffer(node.schema, account)
        batches = _first_ranks(node, chain.from_iterable(map(budget.pieces, child)), context)
        for batch in batches:
            if is_too_large(buffer, batch):
                rows = chain(buffer.drain(), (batch,), batches)
                account.set(0)
                yield from limit_by.limit_by_on_disk(node, rows, context, limited, is_too_large)
                return
            buffer.add(batch)
        yield from limited(buffer, account)


def _first_ranks(
    node: LimitBy, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield of each batch the rows that may be among the first offset + count of their key, or among
    the last where both are counted from the end; all rows where one of them is."""
    from_start, from_end = min(node.offset, node.count) >= 0, max(node.offset, node.count) <= 0
    for batch in child:
        context.check()
        if not (from_start or from_end):
            yield batch
            continue
        groups = _groups(node, batch, context)
        ranks = ranks_in_groups(groups)
        if from_end:
            ranks = groups.sizes[groups.codes] - 1 - ranks
        yield filter_rows(batch, from_numpy(ranks < abs(node.offset + node.count)))


def _limited(
    node: LimitBy, buffer: RowBuffer, context: ExecutionContext, account: MemoryAccount
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the buffer that the LIMIT BY keeps."""
    if not buffer.rows:
        return
    rows = buffer.concatenate()
    keys = [evaluate_in_batches(key, rows, context, account) for key in node.keys]
    account.grow(build_bytes(keys, rows.num_rows))
    groups = factorise(keys, rows.num_rows, threads=context.threads).groups
    ranks = ranks_in_groups(groups)
    if min(node.offset, node.count) >= 0:  # no bound by row is needed
        end = min(node.offset + node.count, len(ranks))
        positions = from_numpy(np.flatnonzero((ranks >= node.offset) & (ranks < end)))
    else:
        account.grow(2 * ranks.nbytes)
        first, ends = (bound[groups.codes] for bound in _ranks_kept(node, groups.sizes))
        positions = from_numpy(np.flatnonzero((ranks >= first) & (ranks < ends)))
    for start in range(0, len(positions), context.batch_rows):
        yield take_rows(rows, positions.slice(start, context.batch_rows))


def _ranks_kept(node: LimitBy, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rank that is kept and the end of the kept ranks, for each key; `sizes` has the numbers of rows
    of the keys. A negative OFFSET drops the last rows, a negative LIMIT keeps the last of those that are left."""
    first = np.minimum(max(node.offset, 0), sizes)
    end = sizes + min(node.offset, 0)
    if node.count < 0:
        return np.maximum(first, end + node.count), end
    return first, np.minimum(end, first + node.count)


def _groups(node: LimitBy, batch: pa.RecordBatch, context: ExecutionContext) -> Groups:
    """Return the rows of the batch by their LIMIT BY keys."""
    keys = [
        evaluate_array(key, batch, context.environment, context.subqueries) for key in node.keys
    ]
    return factorise(keys, batch.num_rows).groups


def ranks_in_groups(groups: Groups) -> np.ndarray:
    """Return 0 for the first row of each group, 1 for its second, …; int64, shape (rows,)."""
    ranks = np.empty(len(groups.codes), np.int64)
    ranks[groups.order] = np.arange(len(ranks)) - np.repeat(groups.starts, groups.sizes)
    return ranks
