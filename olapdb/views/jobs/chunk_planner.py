"""The planner of backfill chunks: it cuts a gap into chunks and assigns source blocks to each.

The gap of one partition is one chunk, unless that would be too large. Then its parts are cut into
several chunks, in the order of their blocks. Aggregate states merge, so the cuts do not show in the
target.

    gap parts  1..4  6..6  9..12     covered  5..5     last block 14
    one chunk  claims 1..4, 6..14    (7..8 and 13..14 have no rows in this partition)
    two chunks 1..4 and 6..6 claim 1..4, 6..8;  9..12 claims 9..14
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from olapdb.config import Settings
from olapdb.model.job import JobChunk
from olapdb.model.part import BlockRange, Part, subtract_ranges, union_ranges
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.views.jobs.job import by_partition, chunk_threads, readable_source
from olapdb.views.proof.coverage import GapSlice, gap_slices


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The limits of one chunk's source parts: rows, and uncompressed bytes of all columns. A larger
    part is a chunk of its own: it is read in blocks, but covered as a whole or not at all."""

    rows_max: int
    bytes_max: int

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> ChunkLimits:
        """Return the limits from `backfill_chunk_rows_max` and `backfill_chunk_bytes_max`. If
        `max_memory_usage` is set, the bytes are at most one thread's share of it."""
        typed_settings = Settings.of(settings)
        bytes_max = typed_settings.integer("backfill_chunk_bytes_max")
        memory = typed_settings.integer("max_memory_usage")
        if memory:
            bytes_max = max(1, min(bytes_max, memory // chunk_threads(typed_settings)))
        return cls(typed_settings.integer("backfill_chunk_rows_max"), bytes_max)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Parts of one source partition, ordered by block. `claimed` are the blocks of the partition
    that publishing the chunk adds to the view's coverage."""

    index: int
    partition: str
    parts: tuple[Part, ...]
    claimed: tuple[BlockRange, ...]

    @property
    def rows(self) -> int:
        """Return the number of source rows."""
        return sum(part.rows for part in self.parts)

    @property
    def blocks(self) -> tuple[BlockRange, ...]:
        """Return the parts' own blocks as sorted, disjoint ranges."""
        return union_ranges(part.block_range for part in self.parts)

    def recorded(self) -> JobChunk:
        """Return the chunk as the job's record lists it before it is computed."""
        return JobChunk(
            self.index,
            self.partition,
            len(self.parts),
            self.rows,
            sum(part.bytes for part in self.parts),
        )


def plan_chunks(
    view: MaterializedView, snapshot: Snapshot, limits: ChunkLimits, partition: str | None = None
) -> tuple[Chunk, ...]:
    """Return the chunks of the view's gap, ordered by partition and block, numbered from 0.
    `partition` limits them to one source partition."""
    planned: list[Chunk] = []
    for gap_slice in gap_slices(view, snapshot):
        if partition is None or gap_slice.partition == partition:
            groups = list(part_groups(gap_slice.parts, limits))
            claims = claims_of(view, snapshot, gap_slice.partition, groups)
            for parts, claimed in zip(groups, claims, strict=True):
                planned.append(Chunk(len(planned), gap_slice.partition, parts, claimed))
    return tuple(planned)


def replan(
    view: MaterializedView, snapshot: Snapshot, pending: Iterable[Chunk], held: Iterable[Chunk] = ()
) -> tuple[Chunk, ...]:
    """Return the `pending` chunks with their parts at a later snapshot.

    Merges may have joined parts of one or several chunks, and a concurrent backfill may have
    covered some. A part goes to the lowest-numbered chunk that has one of its blocks. Chunks
    without parts are omitted. The `held` chunks are computed but not published: they keep their
    claims and are omitted too."""
    chunks_by_partition: dict[str, list[Chunk]] = {}
    for planned_chunk in sorted((*pending, *held), key=lambda chunk: chunk.index):
        chunks_by_partition.setdefault(planned_chunk.partition, []).append(planned_chunk)
    held_numbers = {chunk.index for chunk in held}
    slices = {gap_slice.partition: gap_slice for gap_slice in gap_slices(view, snapshot)}
    replanned: list[Chunk] = []
    for partition, chunks in chunks_by_partition.items():
        parts = slices[partition].parts if partition in slices else ()
        groups = {number: tuple(group) for number, group in _parts_by_chunk(chunks, parts).items()}
        numbers = sorted(groups, key=lambda number: groups[number][0].block_range)
        claims = claims_of(view, snapshot, partition, [groups[number] for number in numbers])
        replanned += [
            Chunk(number, partition, groups[number], claimed)
            for number, claimed in zip(numbers, claims, strict=True)
            if number not in held_numbers
        ]
    return tuple(sorted(replanned, key=lambda chunk: chunk.index))


def _parts_by_chunk(chunks: Sequence[Chunk], parts: Iterable[Part]) -> dict[int, list[Part]]:
    """Return the parts by the number of the chunk that owns them. The chunks' blocks are disjoint,
    so their order by first block is also that by last block."""
    owned = sorted((blocks, chunk.index) for chunk in chunks for blocks in chunk.blocks)
    firsts = [blocks.first for blocks, _ in owned]
    groups: dict[int, list[Part]] = {}
    for part in sorted(parts, key=lambda gap_part: gap_part.block_range):
        position = bisect_right(firsts, part.block_range.last)
        owners: list[int] = []
        while position and owned[position - 1][0].last >= part.block_range.first:
            position -= 1
            owners.append(owned[position][1])
        if owners:
            groups.setdefault(min(owners), []).append(part)
    return groups


def part_groups(parts: Iterable[Part], limits: ChunkLimits) -> Iterator[tuple[Part, ...]]:
    """Yield the parts in groups within the limits, in the order of their blocks. Parts whose block
    ranges overlap stay together, so the groups' blocks are disjoint."""
    group: list[Part] = []
    group_rows = group_bytes = last_block = 0
    for part in sorted(parts, key=lambda source_part: source_part.block_range):
        part_bytes = sum(part.uncompressed_bytes.values()) or part.bytes
        group_full = (
            group_rows + part.rows > limits.rows_max or group_bytes + part_bytes > limits.bytes_max
        )
        if group and group_full and part.block_range.first > last_block:
            yield tuple(group)
            group, group_rows, group_bytes = [], 0, 0
        group.append(part)
        group_rows += part.rows
        group_bytes += part_bytes
        last_block = max(last_block, part.block_range.last)
    if group:
        yield tuple(group)


# --- claims --------------------------------------------------------------------------------------


def claims_of(
    view: MaterializedView, snapshot: Snapshot, partition: str, groups: Sequence[Sequence[Part]]
) -> list[tuple[BlockRange, ...]]:
    """Return the blocks that each group of a partition's parts claims. The claims are disjoint:
    each ends where the next group begins. They exclude blocks that the view covers already."""
    source = readable_source(snapshot, view, "BACKFILL")
    last_block = snapshot.next_block(source) - 1
    all_parts = tuple(part for group in groups for part in group)
    live = snapshot.derived(
        (by_partition, source.id), lambda: by_partition(snapshot.parts(source.id))
    )
    claimed = claimed_ranges(all_parts, live.get(partition, ()), last_block)
    unseen = subtract_ranges(claimed, snapshot.coverage(view.id).ranges(partition))
    starts = [min(part.block_range.first for part in group) for group in groups]
    ends = [*(start - 1 for start in starts[1:]), last_block]
    firsts = [1, *starts[1:]]
    return (
        [_clipped(unseen, first, end) for first, end in zip(firsts, ends, strict=True)]
        if groups
        else []
    )


def slice_claims(
    snapshot: Snapshot, view: MaterializedView, chunk: GapSlice
) -> tuple[BlockRange, ...]:
    """Return the source blocks that filling the slice adds to the view's coverage."""
    return claims_of(view, snapshot, chunk.partition, [chunk.parts])[0]


def claimed_ranges(
    chunk: tuple[Part, ...], live: tuple[Part, ...], last_block: int
) -> tuple[BlockRange, ...]:
    """Return the blocks that a chunk covers in its partition: those of its parts, widened over
    blocks that have no rows there. So merges of the partition find no holes in the coverage. `live`
    are the partition's live parts.

        chunk 3..3, 7..7, another live part 5..5, last block 9  ->  1..4, 6..9
    """
    own_part_ids = {part.id for part in chunk}
    other_ranges = sorted(part.block_range for part in live if part.id not in own_part_ids)
    ranges: list[BlockRange] = []
    first = 1
    for other in [*other_ranges, None]:
        end = last_block if other is None else other.first - 1
        inside = [
            chunk_part
            for chunk_part in chunk
            if first <= chunk_part.block_range.first and chunk_part.block_range.last <= end
        ]
        if inside:
            ranges.append(BlockRange(first, end))
        first = first if other is None else other.last + 1
    return tuple(ranges)


def _clipped(ranges: Iterable[BlockRange], first: int, last: int) -> tuple[BlockRange, ...]:
    """Return the ranges clipped to the blocks from `first` to `last`."""
    return tuple(
        BlockRange(max(blocks.first, first), min(blocks.last, last))
        for blocks in ranges
        if blocks.first <= last and first <= blocks.last
    )
