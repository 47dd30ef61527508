"""The groups of a GROUP BY from its partials; past the memory, partition by partition on disk.

Partials are merged as they come where that makes them fewer.  What memory does not take is written,
partitioned by the hash of the keys, and each partition is merged by itself at the end: again by a
`GroupMerger`, at the next level, if it is too large.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.spill.budget import PIECES_OF_MEMORY, SpillBudget
from olapdb.compute.spill.files import READ_BYTES, SpillFile
from olapdb.compute.spill.partitions import LEVELS_MAX, PARTITIONS, PartitionedRows
from olapdb.config import tuning
from olapdb.execute.operators.divided_groups import merged_divisions
from olapdb.execute.operators.partials import Partial, merge_partials, merging_bytes
from olapdb.functions.kernels.columns import has_lists
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import AggregateCall

if TYPE_CHECKING:
    from olapdb.execute.spill import large_groups
else:
    large_groups = LazyModule("olapdb.execute.spill.large_groups")


_LIST_STATE_BYTES = 100
"""About the bytes that sorting or hashing takes for a row whose value becomes an element of a state."""


class GroupMerger:
    """The partials of a GROUP BY, in the order of their batches. Use it in a `with` block."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        keys: int,
        context: ExecutionContext,
        account: MemoryAccount,
        level: int = 0,
        results: Sequence[tuple[AggregateCall, int]] = (),
        *,
        repeats: bool = False,
    ) -> None:
        """`results` are the calls of the answer, each with the position of its states in `calls`: then a group whose
        states memory does not take may come finished, see `large_groups`. Empty: states are needed. With `repeats` such a
        group may come several times, each with some of its states: the caller merges groups again."""
        self._calls = calls
        self._results = results
        self._repeats = repeats
        self._keys = keys
        self._context = context
        self._account = account
        self._level = level
        self._budget = SpillBudget("group_by", context, account)
        divides = keys > 0 or (
            bool(results) and any(call.aggregate.division != "none" for call in calls)
        )
        self._may_spill = self._budget.enabled and divides and level < LEVELS_MAX
        self._partials: list[Partial] = []
        self._groups = 0
        self._items = 0
        """The groups, and the elements of states that are lists."""
        self._nbytes = 0
        self._spilled_items = self._spilled_bytes = 0
        self._merge_at = tuning.MERGE_ROWS_MIN
        self._merging_pays = True
        self._is_merged = True
        """Whether no two rows of the partials have one key. A partial that is read back from disk may have such."""
        self._file: SpillFile | None = None
        self._partitions: PartitionedRows | None = None

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch, as many at a time as become a partial of a small part of the memory."""
        if not self._may_spill:
            return iter((batch,))
        return self._budget.pieces(batch, self._state_row_bytes)

    @cached_property
    def _state_row_bytes(self) -> int:
        """The bytes that making the states of a batch takes for each row: those that are lists have elements for it,
        which are sorted or hashed."""
        return _LIST_STATE_BYTES * sum(
            has_lists(call.aggregate.state_type.arrow) for call in self._calls
        )

    @property
    def spilled(self) -> bool:
        """Return whether partials are on disk."""
        return self._partitions is not None

    def add(self, partial: Partial) -> None:
        """Add a partial. If memory does not take it, first merge the partials that are there, or write them to disk.
        Raises MemoryLimitExceeded if this may not spill, or if one group alone needs too much."""
        if not partial.groups:
            return
        if self._partials and self._is_too_large(partial):
            self._make_room()
        self._partials.append(partial)
        self._is_merged = self._level == 0 and len(self._partials) == 1
        self._groups += partial.groups
        self._items += partial.items
        self._nbytes += partial.nbytes
        self._account.set(self._nbytes)
        if self._groups > self._merge_at:
            self._merge()

    def groups(self, *, with_sets: bool = False) -> Iterator[Partial]:
        """Yield all groups, those of a partition at a time; nothing without partials. `with_sets`: states may be sets
        of codes (see `coded_sets`)."""
        if self._partitions is None and self._cannot_merge():
            self._spill()
        if self._partitions is None:
            self._merge()
            for partial in self._partials:
                yield partial.with_values() if with_sets else partial.decoded(self._calls)
            return
        self._spill()
        self._account.set(0)
        yield from self._groups_on_disk(self._partitions)

    @property
    def partials(self) -> Sequence[Partial]:
        """Return the partials in memory, as they came or merged."""
        return self._partials

    @property
    def rows(self) -> int:
        """Return the number of groups in the partials in memory."""
        return self._groups

    @property
    def nbytes(self) -> int:
        """Return the bytes of the partials in memory."""
        return self._nbytes

    def clear(self) -> None:
        """Forget the partials in memory."""
        self._partials, self._groups, self._items, self._nbytes = [], 0, 0, 0
        self._account.set(0)

    def close(self) -> None:
        """Free the temporary file. Idempotent."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> GroupMerger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- in memory

    def _is_too_large(self, more: Partial) -> bool:
        """Return whether the operator must make room before it takes this partial."""
        nbytes = self._nbytes + more.nbytes
        needed = merging_bytes(nbytes, self._items + more.items)
        may_help = self._may_spill or (self._merging_pays and not self._is_merged)
        return may_help and self._budget.is_exceeded(nbytes, needed)

    def _cannot_merge(self) -> bool:
        """Return whether memory does not take merging the partials that are there, and the disk may take them."""
        needed = merging_bytes(self._nbytes, self._items)
        return self._may_spill and not self._is_merged and needed > self._account.available_bytes

    def _make_room(self) -> None:
        """Merge the partials in memory, if that is known to make them fewer; write them to disk
        otherwise, or if they are still too many, and the disk may take them."""
        if self._merging_pays and not self._is_merged:
            needed = merging_bytes(self._nbytes, self._items)
            if needed <= self._account.available_bytes:
                before = self._groups
                self._merge()
                self._merging_pays = 2 * self._groups <= before
                if self._merging_pays and not self._budget.is_exceeded(
                    2 * self._nbytes, 2 * merging_bytes(self._nbytes, self._items)
                ):
                    return
        if self._may_spill:
            self._spill()

    def _merge(self) -> None:
        """Replace the partials by one; the next merge is at twice its groups."""
        if not self._is_merged:
            self._account.set(merging_bytes(self._nbytes, self._items))
            self._partials = self._merged()
            self._groups = sum(partial.groups for partial in self._partials)
            self._items = sum(partial.items for partial in self._partials)
            self._nbytes = sum(partial.nbytes for partial in self._partials)
            self._account.set(self._nbytes)
            self._is_merged = True
        self._merge_at = self._next_merge_at()

    def _merged(self) -> list[Partial]:
        """Return the groups of all partials: one partial, or, of many groups in a query, several without common
        keys."""
        context = self._context
        if self._keys and context.joins_batches and self._groups >= tuning.DIVIDED_GROUPS_MIN:
            divided = merged_divisions(self._partials, self._calls, context)
            if divided is not None:
                return divided
        return [merge_partials(self._partials, self._calls, context.threads)]

    def _next_merge_at(self) -> int:
        """Return the groups at which to merge again, if memory does not run out before."""
        if self.spilled and not self._merging_pays:
            return sys.maxsize
        return max(tuning.MERGE_ROWS_MIN, 2 * self._groups)

    # --- on disk

    def _spill(self) -> None:
        """Write the partials in memory to their partitions."""
        if self._file is None:
            self._file = self._context.temporary().file("Aggregation")
        if self._partitions is None:
            self._partitions = PartitionedRows(self._file, self._level)
        while self._partials:
            self._context.check()
            partial = self._partials.pop(0).decoded(self._calls)
            self._spilled_items += partial.items
            self._spilled_bytes += partial.nbytes
            self._partitions.add(partial.as_batch(), partial.keys)
        self._groups = self._items = self._nbytes = 0
        self._merge_at = self._next_merge_at()
        self._account.set(0)

    def _groups_on_disk(self, partitions: PartitionedRows) -> Iterator[Partial]:
        """Yield the groups of each partition; several small ones are merged at a time."""
        numbers = [number for number in range(PARTITIONS) if partitions.rows(number)]
        at_a_time = 2 * self._context.threads + 1
        small: list[int] = []
        large: list[int] = []
        for number in numbers:
            needed = self._needed(partitions, number)
            fits = at_a_time * needed <= self._account.available_bytes
            (small if fits else large).append(number)

        def merge(number: int) -> Partial:
            """Return the merged groups of partition `number`, which is small."""
            return merge_partials(list(self._read(partitions, number)), self._calls, 1)

        if small:
            sizes = (self._needed(partitions, n) for n in small)
            self._account.set(at_a_time * max(sizes))
            yield from self._context.parallel(merge, small)
            self._account.set(0)
        is_one_group = not self._keys or (self._level > 0 and not partitions.divides)
        if is_one_group and self._results:
            for number in large:
                yield from self._finished(partitions, number)
            return
        if is_one_group and self._repeats:
            for number in large:
                yield from self._read(partitions, number)
            return
        for number in large:
            yield from self._large_partition(partitions, number)

    def _needed(self, partitions: PartitionedRows, number: int) -> int:
        """Return the bytes that merging a partition needs: it has its part of the items, by its bytes."""
        nbytes = partitions.nbytes(number)
        items = self._spilled_items * nbytes // max(self._spilled_bytes, 1)
        return merging_bytes(nbytes, max(items, partitions.rows(number)))

    def _finished(self, partitions: PartitionedRows, number: int) -> Iterator[Partial]:
        """Yield the groups of a partition finished: by all signs they are one group, which cannot be divided by keys."""
        return large_groups.large_groups(
            lambda: self._read(partitions, number),
            self._calls,
            self._results,
            self._context,
            self._account,
        )

    def _large_partition(self, partitions: PartitionedRows, number: int) -> Iterator[Partial]:
        """Yield the groups of a partition that may need more than the memory."""
        with GroupMerger(
            self._calls,
            self._keys,
            self._context,
            self._account,
            self._level + 1,
            self._results,
            repeats=self._repeats,
        ) as merger:
            for partial in self._read(partitions, number):
                self._context.check()
                merger.add(partial)
            yield from merger.groups()
        self._account.set(0)

    def _read(self, partitions: PartitionedRows, number: int) -> Iterator[Partial]:
        """Yield the partials of a partition, in the order in which they were made.

        Several are joined to one, so that a key may be in it more than once."""
        bytes_max = min(self._account.available_bytes // PIECES_OF_MEMORY, READ_BYTES)
        for batch in partitions.read(number, self._context.batch_rows, bytes_max):
            yield Partial.of_batch(batch, self._keys)
