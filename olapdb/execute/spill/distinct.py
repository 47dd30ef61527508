"""Distinct rows past memory: keys that were seen and rows that wait for their turn are written to disk,
partitioned by the key, and each partition goes on by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from olapdb.compute.batches import cut, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.group_codes import factorise
from olapdb.compute.seen_rows import SeenRows
from olapdb.compute.spill.budget import SpillBudget
from olapdb.compute.spill.partitions import LEVELS_MAX, PARTITIONS, PartitionedRows
from olapdb.execute.operators.compact_columns import decoded
from olapdb.types.arrow_values import from_numpy

Item = tuple[bool, pa.RecordBatch]
"""Whether the batch is keys whose rows were yielded before; else it is rows."""


def distinct_rows(
    batches: Iterable[pa.RecordBatch],
    key_columns: Sequence[int],
    context: ExecutionContext,
    level: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each distinct value of the key columns, as soon as it comes; past the
    memory when all rows have come, and in no order. Texts may come as dictionaries without repeats.

    `level` is how often the rows have been partitioned by these columns before."""

    def without_repeats(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the first row of each key of the batch, in order."""
        keys = [batch.column(at) for at in key_columns]
        codes = [key.indices if isinstance(key, pa.DictionaryArray) else key for key in keys]
        first = factorise(codes, batch.num_rows).first
        return decoded(
            batch if len(first) == batch.num_rows else take_rows(batch, from_numpy(first))
        )

    # batches lose their repeats in threads, so that one thread looks up few rows
    items = ((False, batch) for batch in context.parallel(without_repeats, batches))
    yield from _distinct(items, key_columns, context, level, are_distinct=True)


def _distinct(
    items: Iterator[Item],
    key_columns: Sequence[int],
    context: ExecutionContext,
    level: int,
    *,
    are_distinct: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each key that was not yielded before. `are_distinct`: no batch has a key
    twice."""
    with context.memory.account("DISTINCT") as account:
        seen = SeenRows(account, context.threads)
        budget = SpillBudget("distinct", context, account)
        for is_seen, batch in items:
            context.check()
            keys = list(batch.columns) if is_seen else [batch.column(at) for at in key_columns]
            if level < LEVELS_MAX and seen.nbytes and _is_too_large(seen, keys, budget):
                rest = chain(((is_seen, batch),), items)
                yield from _distinct_on_disk(seen, rest, key_columns, context, level)
                return
            new_rows = seen.add(keys, batch.num_rows, are_distinct=are_distinct)
            if len(new_rows) and not is_seen:
                yield take_rows(batch, from_numpy(new_rows))


def _is_too_large(seen: SeenRows, keys: Sequence[pa.Array], budget: SpillBudget) -> bool:
    """Return whether one more batch needs more than the memory."""
    more_bytes = sum(key.nbytes for key in keys)
    return budget.is_exceeded(seen.nbytes + more_bytes, seen.needed_bytes(keys))


def _distinct_on_disk(
    seen: SeenRows,
    items: Iterator[Item],
    key_columns: Sequence[int],
    context: ExecutionContext,
    level: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with new keys, partition by partition. Empties `seen`."""
    with context.temporary().file("Distinct") as file:
        seen_keys, waiting = PartitionedRows(file, level), PartitionedRows(file, level)
        for columns in seen.drain():
            for batch in cut(_keys_batch(columns), context.batch_rows):
                seen_keys.add(batch, batch.columns)
        for is_seen, batch in items:
            context.check()
            if is_seen:
                seen_keys.add(batch, batch.columns)
                continue
            keys = [batch.column(at) for at in key_columns]
            first = from_numpy(factorise(keys, batch.num_rows).first)
            waiting.add(take_rows(batch, first), [key.take(first) for key in keys])
        for number in range(PARTITIONS):
            if waiting.rows(number):
                parts = chain(
                    ((True, batch) for batch in seen_keys.read(number, context.batch_rows)),
                    ((False, batch) for batch in waiting.read(number, context.batch_rows)),
                )
                yield from _distinct(parts, key_columns, context, level + 1)


def _keys_batch(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return key columns as a batch."""
    return pa.RecordBatch.from_arrays(list(columns), names=[str(at) for at in range(len(columns))])
