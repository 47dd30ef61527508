"""How a gap is cut into chunks, and which source blocks each of them claims.

A partition's gap is one chunk, unless that would be too large: then its parts are cut into several,
in the order of their blocks.  States merge, so the target does not show the cuts.

    gap parts  1..4  6..6  9..12     covered  5..5     last block 14
    one chunk  claims 1..4, 6..14    (7..8 and 13..14 have no rows in this partition)
    two chunks 1..4 and 6..6 claim 1..4, 6..8;  9..12 claims 9..14
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from olapdb.config import Settings
from olapdb.model.job import JobChunk
from olapdb.model.part import BlockRange, Part, subtract_ranges, union_ranges
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.views.jobs.job import chunk_threads, readable_source
from olapdb.views.proof.coverage import GapSlice, gap


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Of one chunk's source parts: rows, and uncompressed bytes of all columns. A part that is
    larger is a chunk of its own: it is read in blocks, and covered as a whole or not at all."""

    rows_max: int
    bytes_max: int

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> ChunkLimits:
        """`backfill_chunk_rows_max`, `backfill_chunk_bytes_max`; the second is no more than a
        thread's share of `max_memory_usage`, where that is set."""
        known = Settings.of(settings)
        bytes_max = known.integer("backfill_chunk_bytes_max")
        memory = known.integer("max_memory_usage")
        if memory:
            bytes_max = max(1, min(bytes_max, memory // chunk_threads(known)))
        return cls(known.integer("backfill_chunk_rows_max"), bytes_max)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Parts of one partition of the source, by their blocks, and all that the view has seen of the
    partition through them once they are published (`claimed`)."""

    index: int
    partition: str
    parts: tuple[Part, ...]
    claimed: tuple[BlockRange, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def blocks(self) -> tuple[BlockRange, ...]:
        return union_ranges(part.block_range for part in self.parts)

    def recorded(self) -> JobChunk:
        """As its job's record shows it before it is computed."""
        return JobChunk(
            self.index, self.partition, len(self.parts), self.rows, sum(p.bytes for p in self.parts)
        )


def plan_chunks(
    view: MaterializedView, snapshot: Snapshot, limits: ChunkLimits, partition: str | None = None
) -> tuple[Chunk, ...]:
    """The chunks of the view's gap, by partition and block, numbered from 0."""
    planned: list[Chunk] = []
    for one in gap(view, snapshot):
        if partition is None or one.partition == partition:
            groups = list(cut(one.parts, limits))
            claims = claims_of(view, snapshot, one.partition, groups)
            for parts, claimed in zip(groups, claims, strict=True):
                planned.append(Chunk(len(planned), one.partition, parts, claimed))
    return tuple(planned)


def replan(
    view: MaterializedView, snapshot: Snapshot, pending: Iterable[Chunk], held: Iterable[Chunk] = ()
) -> tuple[Chunk, ...]:
    """The `pending` chunks as they are at a later snapshot: merges may have joined their parts,
    with each other's too, others may have covered them. A part goes to the first of the chunks
    whose blocks it has; a chunk that none is left for is not among those returned. `held` are
    computed and not yet published: what they claim stays theirs."""
    waiting: dict[str, list[Chunk]] = {}
    for one in sorted((*pending, *held), key=lambda chunk: chunk.index):
        waiting.setdefault(one.partition, []).append(one)
    kept = {one.index for one in held}
    slices = {one.partition: one for one in gap(view, snapshot)}
    found: list[Chunk] = []
    for partition, chunks in waiting.items():
        parts = slices[partition].parts if partition in slices else ()
        groups = {i: tuple(some) for i, some in _assigned(chunks, parts).items()}
        numbers = sorted(groups, key=lambda i: groups[i][0].block_range)
        claims = claims_of(view, snapshot, partition, [groups[i] for i in numbers])
        found += [
            Chunk(i, partition, groups[i], claimed)
            for i, claimed in zip(numbers, claims, strict=True)
            if i not in kept
        ]
    return tuple(sorted(found, key=lambda chunk: chunk.index))


def _assigned(chunks: Sequence[Chunk], parts: Iterable[Part]) -> dict[int, list[Part]]:
    """The chunks' blocks are disjoint, so sorted by their first they are by their last too."""
    owned = sorted((blocks, chunk.index) for chunk in chunks for blocks in chunk.blocks)
    firsts = [blocks.first for blocks, _ in owned]
    groups: dict[int, list[Part]] = {}
    for part in sorted(parts, key=lambda p: p.block_range):
        place = bisect_right(firsts, part.block_range.last)
        owners: list[int] = []
        while place and owned[place - 1][0].last >= part.block_range.first:
            place -= 1
            owners.append(owned[place][1])
        if owners:
            groups.setdefault(min(owners), []).append(part)
    return groups


def cut(parts: Iterable[Part], limits: ChunkLimits) -> Iterator[tuple[Part, ...]]:
    """The parts in groups within the limits, in the order of their blocks; parts whose block
    ranges overlap stay together, so that groups can be told apart by blocks."""
    group: list[Part] = []
    rows = held_bytes = last = 0
    for part in sorted(parts, key=lambda p: p.block_range):
        size = sum(part.uncompressed_bytes.values()) or part.bytes
        full = rows + part.rows > limits.rows_max or held_bytes + size > limits.bytes_max
        if group and full and part.block_range.first > last:
            yield tuple(group)
            group, rows, held_bytes = [], 0, 0
        group.append(part)
        rows += part.rows
        held_bytes += size
        last = max(last, part.block_range.last)
    if group:
        yield tuple(group)


# --- claims --------------------------------------------------------------------------------------


def claims_of(
    view: MaterializedView, snapshot: Snapshot, partition: str, groups: Sequence[Sequence[Part]]
) -> list[tuple[BlockRange, ...]]:
    """What each group of a partition's parts claims, disjoint: up to where the next one begins, and
    nothing that the view has seen already."""
    source = readable_source(snapshot, view, "BACKFILL")
    last_block = snapshot.next_block(source) - 1
    everything = tuple(part for group in groups for part in group)
    claimed = claimed_ranges(everything, snapshot.parts(source.id), partition, last_block)
    unseen = subtract_ranges(claimed, snapshot.coverage(view.id).ranges(partition))
    starts = [min(part.block_range.first for part in group) for group in groups]
    ends = [*(start - 1 for start in starts[1:]), last_block]
    firsts = [1, *starts[1:]]
    return (
        [_within(unseen, first, end) for first, end in zip(firsts, ends, strict=True)]
        if groups
        else []
    )


def claimed_by(
    snapshot: Snapshot, view: MaterializedView, chunk: GapSlice
) -> tuple[BlockRange, ...]:
    """The source blocks that the view has seen of the partition once the slice is filled."""
    return claims_of(view, snapshot, chunk.partition, [chunk.parts])[0]


def claimed_ranges(
    chunk: tuple[Part, ...], live: tuple[Part, ...], partition: str, last_block: int
) -> tuple[BlockRange, ...]:
    """The blocks that a chunk covers in its partition: its parts' own, widened over blocks that
    have no rows there, so that merges of the partition find no holes.

        chunk 3..3, 7..7, another live part 5..5, last block 9  ->  1..4, 6..9
    """
    mine = {part.id for part in chunk}
    others = sorted(
        part.block_range for part in live if part.partition_id == partition and part.id not in mine
    )
    ranges: list[BlockRange] = []
    first = 1
    for other in [*others, None]:
        end = last_block if other is None else other.first - 1
        inside = [p for p in chunk if first <= p.block_range.first and p.block_range.last <= end]
        if inside:
            ranges.append(BlockRange(first, end))
        first = first if other is None else other.last + 1
    return tuple(ranges)


def _within(ranges: Iterable[BlockRange], first: int, last: int) -> tuple[BlockRange, ...]:
    return tuple(
        BlockRange(max(one.first, first), min(one.last, last))
        for one in ranges
        if one.first <= last and first <= one.last
    )
