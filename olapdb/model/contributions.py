"""Which source blocks the parts of a target contain, as a coverage; and arithmetic on
contributions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from olapdb.model.part import BlockRange, Contribution, Part, subtract_ranges, union_ranges
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

    def holds(self, part: Part) -> bool:
        """Return whether any other partition has rows of the part's blocks."""
        return any(
            partition != part.partition_id and overlaps_any(ranges, part.block_range)
            for partition, ranges in self._ranges.items()
        )


def named_ranges(contribution: Contribution) -> list[BlockRange]:
    """Return the block ranges of a contribution, without new blocks that have no number yet."""
    return [blocks for blocks in contribution.blocks if isinstance(blocks, BlockRange)]


def overlaps_any(ranges: Sequence[BlockRange], blocks: BlockRange) -> bool:
    """Return whether one of the joined, sorted ranges overlaps `blocks`."""
    at = bisect_left(ranges, blocks.first, key=lambda r: r.last)
    return at < len(ranges) and ranges[at].first <= blocks.last


def without_blocks(
    contribution: Contribution,
    partition: str,
    removed_blocks: Sequence[BlockRange],
    others: Iterable[str],
) -> list[Contribution]:
    """Return the contribution without some blocks of one source partition. A contribution for all
    partitions keeps these blocks for the `others`.

        (all: 1..9) without partition a: 3..4      ->  (all: 1..2, 5..9) (b: 3..4)
    """
    if contribution.source_partition not in (None, partition):
        return [contribution]
    named = named_ranges(contribution)
    remaining = subtract_ranges(named, removed_blocks)
    if remaining == union_ranges(named):
        return [contribution]
    contributions = [replace(contribution, blocks=remaining)] if remaining else []
    if contribution.source_partition is None:
        removed = subtract_ranges(named, remaining)
        contributions += [
            replace(contribution, source_partition=other, blocks=removed, rows=0)
            for other in others
        ]
    return contributions
