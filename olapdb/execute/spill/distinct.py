"""Distinct rows past memory: keys that were seen and rows that wait for their turn are written to disk,
partitioned by the key, and each partition goes on by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, single_chunk, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.group_codes import factorise
from olapdb.compute.row_buffer import TEXT_BYTES_MAX
from olapdb.compute.seen_rows import SeenRows
from olapdb.compute.spill.budget import SpillBudget
from olapdb.compute.spill.files import joined
from olapdb.compute.spill.partitions import LEVELS_MAX, PARTITIONS, PartitionedRows
from olapdb.compute.stages import chain_of
from olapdb.config import tuning
from olapdb.execute.operators.compact_columns import decoded
from olapdb.native import group_totals
from olapdb.native.library import library
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy

COPIES = 4
"""What finding new rows of a partition needs of its bytes: themselves, joined, their keys, and the result."""
BYTES_PER_ROW = 40
"""Codes and hashes of the keys of a row."""
FEW_REPEATS = 0.8
"""Where so many rows of a batch have keys of their own, dropping the others costs more than to write them."""

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

    repeats = _Repeats(key_columns)
    with ExitStack() as stack:
        # batches lose their repeats in threads, so that one thread looks up few rows
        dropped = chain_of(batches, stack).then(lambda rows: [*map(repeats.dropped, rows)])
        few = chain.from_iterable(dropped.run(context))
        items = ((False, piece) for batch in few for piece in cut(batch, context.batch_rows))
        yield from _distinct(items, key_columns, context, level, repeats)


class _Repeats:
    """The repeats of keys within a batch, which are dropped until rows are on disk and a batch has few of
    them."""

    def __init__(self, key_columns: Sequence[int]) -> None:
        self._key_columns = key_columns
        self._are_few = False
        self.may_stay = False
        """Whether `dropped` may leave the repeats of a batch in it: rows that go to disk are compared there."""

    def dropped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the first row of each key of the batch, in order. Thread-safe."""
        if self.may_stay and self._are_few:
            return decoded(batch)
        keys = [batch.column(at) for at in self._key_columns]
        codes = [key.indices if isinstance(key, pa.DictionaryArray) else key for key in keys]
        first = _first_rows(codes, batch.num_rows)
        self._are_few = len(first) >= FEW_REPEATS * batch.num_rows
        return decoded(
            batch if len(first) == batch.num_rows else take_rows(batch, from_numpy(first))
        )


def _first_rows(keys: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Return the first row of each distinct key, ascending."""
    if library() is not None and keys and rows >= tuning.TOTALLED_ROWS_MIN:
        first = group_totals.first_rows(keys, min(tuning.TOTALLED_RADIX_MAX, rows))
        if first is not None:
            return first
    return factorise(keys, rows).first


def _distinct(
    items: Iterator[Item],
    key_columns: Sequence[int],
    context: ExecutionContext,
    level: int,
    repeats: _Repeats | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each key that was not yielded before. `repeats` dropped those of each batch,
    if given."""
    with context.memory.account("DISTINCT") as account:
        seen = SeenRows(account, context.threads)
        budget = SpillBudget("distinct", context, account)
        items = ((is_seen, piece) for is_seen, batch in items for piece in budget.pieces(batch))
        for is_seen, batch in items:
            context.check()
            keys = list(batch.columns) if is_seen else [batch.column(at) for at in key_columns]
            if level < LEVELS_MAX and seen.nbytes and _is_too_large(seen, keys, budget):
                if repeats is not None:
                    repeats.may_stay = True
                rest = chain(((is_seen, batch),), items)
                yield from _distinct_on_disk(seen, rest, key_columns, context, level)
                return
            new_rows = seen.add(keys, batch.num_rows, are_distinct=repeats is not None)
            if len(new_rows) and not is_seen:
                yield take_rows(batch, from_numpy(new_rows))


def _is_too_large(seen: SeenRows, keys: Sequence[pa.Array], budget: SpillBudget) -> bool:
    """Return whether finding new rows of one more batch would need more than the memory of the operator."""
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
            keys = list(batch.columns) if is_seen else [batch.column(at) for at in key_columns]
            (seen_keys if is_seen else waiting).add(batch, keys)
        yield from _Partitions(seen_keys, waiting, key_columns, context, level).rows()


@dataclass(frozen=True)
class _Partitions:
    """Keys whose rows were yielded, and rows that wait, on disk."""

    seen: PartitionedRows
    waiting: PartitionedRows
    key_columns: Sequence[int]
    context: ExecutionContext
    level: int

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with new keys; of several small partitions at a time."""
        context = self.context
        at_a_time = 2 * context.threads + 1
        numbers = [number for number in range(PARTITIONS) if self.waiting.rows(number)]
        needed = {number: self._needed_bytes(number) for number in numbers}
        with context.memory.account("DISTINCT") as account:
            room = min(account.available_bytes // at_a_time, TEXT_BYTES_MAX)
            small = [number for number in numbers if needed[number] <= room]
            account.set(at_a_time * max((needed[number] for number in small), default=0))
            for batch in context.parallel(self._new_rows, small):
                yield from cut(batch, context.batch_rows)
        for number in numbers:
            if needed[number] > room:
                items = chain(
                    ((True, batch) for batch in self.seen.read(number, context.batch_rows)),
                    ((False, batch) for batch in self.waiting.read(number, context.batch_rows)),
                )
                yield from _distinct(items, self.key_columns, context, self.level + 1)

    def _needed_bytes(self, number: int) -> int:
        """Return the bytes that finding the new rows of a partition takes."""
        nbytes = self.seen.nbytes(number) + self.waiting.nbytes(number)
        rows = self.seen.rows(number) + self.waiting.rows(number)
        return COPIES * nbytes + BYTES_PER_ROW * rows

    def _new_rows(self, number: int) -> pa.RecordBatch:
        """Return the first row of each new key of a partition."""
        seen = list(self.seen.read(number, self.seen.rows(number)))
        batches = list(self.waiting.read(number, self.waiting.rows(number)))
        waiting = joined(batches, sum(batch.num_rows for batch in batches))
        seen_rows = sum(batch.num_rows for batch in seen)
        keys = [
            single_chunk(pa.chunked_array([*(b.column(at) for b in seen), waiting.column(column)]))
            for at, column in enumerate(self.key_columns)
        ]
        first = factorise(keys, seen_rows + waiting.num_rows).first
        return take_rows(waiting, from_numpy(first[first >= seen_rows] - seen_rows))


def _keys_batch(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return key columns as a batch."""
    return pa.RecordBatch.from_arrays(list(columns), names=[str(at) for at in range(len(columns))])
