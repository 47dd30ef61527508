"""Which source blocks the parts of a target contain, as a coverage; and arithmetic on
contributions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from olapdb.model.part import (
    BlockRange,
    Contribution,
    Part,
    covers,
    overlaps_any,
    subtract_ranges,
    union_ranges,
)
from olapdb.model.view_state import Coverage


def contributed_blocks(
    view_id: str, parts: Iterable[Part], source_id: str | None = None
) -> Coverage:
    """Return the source blocks from which the parts were made by the view.

    With `source_id` only blocks of that source count: a view whose source was rebuilt reads another
    one than before, and blocks of one table say nothing about another's."""
    everywhere: list[BlockRange] = []
    by_partition: dict[str, list[BlockRange]] = {}
    # Parts of one swap share contributions; each counts once.
    different = {id(entry): entry for part in parts for entry in part.contributions}
    for contribution in different.values():
        if contribution.view_id != view_id:
            continue
        if source_id is not None and contribution.source_id != source_id:
            continue
        ranges = (
            everywhere
            if contribution.source_partition is None
            else by_partition.setdefault(contribution.source_partition, [])
        )
        ranges.extend(named_ranges(contribution))
    return Coverage(
        view_id, union_ranges(everywhere), {p: union_ranges(r) for p, r in by_partition.items()}
    )


def wrote_rows(part: Part) -> bool:
    """Return whether the part has rows or had some when it was written: sums of zero may have
    cancelled them all."""
    return part.rows > 0 or any(contribution.rows for contribution in part.contributions)


class SharedBlocks:
    """The blocks of a table that have rows in several of its partitions.

    Where a target drops keys whose sum is zero, rows of one partition may cancel those of another
    one of the same block, and neither part records the block.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        by_partition: dict[str, list[BlockRange]] = {}
        for part in parts:
            if part.rows:
                by_partition.setdefault(part.partition_id, []).append(part.block_range)
        self._ranges = {
            partition: union_ranges(ranges) for partition, ranges in by_partition.items()
        }
        self._shared = _in_several(self._ranges.values())

    def holds(self, part: Part) -> bool:
        """Return whether any other partition has rows of the part's blocks."""
        if covers(self._ranges.get(part.partition_id, ()), part.block_range):
            return overlaps_any(self._shared, part.block_range)
        return any(
            partition != part.partition_id and overlaps_any(ranges, part.block_range)
            for partition, ranges in self._ranges.items()
        )


def _in_several(lists: Iterable[Sequence[BlockRange]]) -> tuple[BlockRange, ...]:
    """Return the blocks that are in two or more of the lists, each of disjoint ranges."""
    shared: list[BlockRange] = []
    last = 0  # of the blocks that a list met so far has
    for blocks in sorted(blocks for ranges in lists for blocks in ranges):
        if blocks.first <= last:
            shared.append(BlockRange(blocks.first, min(blocks.last, last)))
        last = max(last, blocks.last)
    return union_ranges(shared)


def named_ranges(contribution: Contribution) -> list[BlockRange]:
    """Return the block ranges of a contribution, without new blocks that have no number yet."""
    return [blocks for blocks in contribution.blocks if isinstance(blocks, BlockRange)]


class BlocksRemoved:
    """Source blocks, by source partition, that the parts of a target no longer name.

    A contribution without a partition names its blocks for all partitions. Where one partition
    loses such a block, the others of the source that have rows (`partitions`) name it one by one:

        (all: 1..9) without partition a: 3..4      ->  (all: 1..2, 5..9) (b: 3..4)
    """

    def __init__(
        self, removed: Mapping[str, Sequence[BlockRange]], partitions: Iterable[str]
    ) -> None:
        self._removed = removed
        self._partitions = sorted(partitions)
        self._removed_anywhere = union_ranges(r for ranges in removed.values() for r in ranges)
        # The parts of one INSERT name the same blocks: a thousand of them have one answer.
        self._others: dict[
            tuple[BlockRange, ...], list[tuple[str | None, tuple[BlockRange, ...]]]
        ] = {}

    def without(self, contribution: Contribution) -> list[Contribution]:
        """Return what remains of the contribution: first itself with the blocks that no partition
        loses, then one contribution for each partition that keeps some of the others. Only the
        first keeps the row count; it is left out, and its count lost, if it has no blocks."""
        named, partition = named_ranges(contribution), contribution.source_partition
        removed = self._removed_anywhere if partition is None else self._removed.get(partition, ())
        remaining = subtract_ranges(named, removed)
        if remaining == union_ranges(named):
            return [contribution]
        contributions = [replace(contribution, blocks=remaining)] if remaining else []
        if partition is None:
            contributions += [
                replace(contribution, source_partition=other, blocks=blocks, rows=0)
                for other, blocks in self._named_for_others(subtract_ranges(named, remaining))
            ]
        return contributions

    def count_added(self, view_id: str, parts: Iterable[Part]) -> int:
        """Return how many contributions of the view `without` adds to those of the parts."""
        return sum(
            len(self._named_for_others(taken))
            for part in parts
            for contribution in part.contributions
            if contribution.view_id == view_id and contribution.source_partition is None
            if (taken := self._taken(contribution))
        )

    def _taken(self, contribution: Contribution) -> tuple[BlockRange, ...]:
        """Return the blocks of the contribution that some partition loses."""
        named = named_ranges(contribution)
        return subtract_ranges(named, subtract_ranges(named, self._removed_anywhere))

    def _named_for_others(
        self, blocks: tuple[BlockRange, ...]
    ) -> list[tuple[str | None, tuple[BlockRange, ...]]]:
        """Return each partition that keeps some of these blocks, and the blocks that it keeps."""
        if blocks not in self._others:
            kept = (
                (p, subtract_ranges(blocks, self._removed.get(p, ()))) for p in self._partitions
            )
            self._others[blocks] = [(partition, ranges) for partition, ranges in kept if ranges]
        return self._others[blocks]
