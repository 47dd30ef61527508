"""Which source blocks parts of a target name, in the form of a coverage; arithmetic on names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from olapdb.model.part import BlockRange, Contribution, Part, subtract_ranges, union_ranges
from olapdb.model.view_state import Coverage


def contributed_blocks(view_id: str, parts: Iterable[Part]) -> Coverage:
    """The source blocks that these parts name for the view."""
    everywhere: list[BlockRange] = []
    by_partition: dict[str, list[BlockRange]] = {}
    for part in parts:
        for one in part.contributions:
            if one.view_id != view_id:
                continue
            into = (
                everywhere
                if one.source_partition is None
                else by_partition.setdefault(one.source_partition, [])
            )
            into.extend(named_ranges(one))
    return Coverage(
        view_id, union_ranges(everywhere), {p: union_ranges(r) for p, r in by_partition.items()}
    )


def brings_rows(part: Part) -> bool:
    """Whether rows were brought to the part: those of one that has none now cancelled each other
    out, sums of zero."""
    return part.rows > 0 or any(one.rows for one in part.contributions)


class SharedBlocks:
    """Which blocks of a table have rows in several of its partitions.

    Where a target drops keys that come to nothing, what one partition's rows made and another one's
    of the same block took away again left no name at all."""

    def __init__(self, parts: Iterable[Part]) -> None:
        by_partition: dict[str, list[BlockRange]] = {}
        for part in parts:
            if part.rows:
                by_partition.setdefault(part.partition_id, []).append(part.block_range)
        self._ranges = {one: union_ranges(some) for one, some in by_partition.items()}

    def holds(self, part: Part) -> bool:
        """Whether another partition has rows of the part's blocks."""
        return any(
            one != part.partition_id and meets(ranges, part.block_range)
            for one, ranges in self._ranges.items()
        )


def named_ranges(contribution: Contribution) -> list[BlockRange]:
    return [blocks for blocks in contribution.blocks if isinstance(blocks, BlockRange)]


def meets(ranges: Sequence[BlockRange], one: BlockRange) -> bool:
    """Whether one of the joined, sorted ranges overlaps `one`."""
    at = bisect_left(ranges, one.first, key=lambda r: r.last)
    return at < len(ranges) and ranges[at].first <= one.last


def without_names(
    contribution: Contribution, partition: str, gone: Sequence[BlockRange], others: Iterable[str]
) -> list[Contribution]:
    """The contribution without these blocks of one source partition; what names the blocks of all
    partitions goes on to name those of the `others`.

        (all: 1..9) without partition a: 3..4      ->  (all: 1..2, 5..9) (b: 3..4)
    """
    if contribution.source_partition not in (None, partition):
        return [contribution]
    named = named_ranges(contribution)
    left = subtract_ranges(named, gone)
    if left == union_ranges(named):
        return [contribution]
    found = [replace(contribution, blocks=left)] if left else []
    if contribution.source_partition is None:
        lost = subtract_ranges(named, left)
        found += [
            replace(contribution, source_partition=other, blocks=lost, rows=0) for other in others
        ]
    return found
