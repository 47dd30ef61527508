"""Parts, blocks, and contributions: from which source blocks a target part was made.

A block number belongs to a table and is assigned inside the commit.  A part is staged before that,
so it names the future number: `NewBlock(table, 0)` is the first new block of that table in this
commit.  The catalog replaces every such name when it applies the commit:

    staged     Part(blocks=NewBlock("t", 0), …)     Contribution(blocks=(NewBlock("s", 0),), …)
    committed  Part(blocks=BlockRange(7, 7), …)     Contribution(blocks=(BlockRange(12, 12),), …)
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import TypeAlias

from olapdb.errors import InternalError
from olapdb.records import dataclass


def new_part_id() -> str:
    """Return 32 hexadecimal digits, unique; ids of later milliseconds are greater.

    So the catalog's indexes of parts grow at their end and are purged at their beginning: a commit
    touches one page of each instead of one for each part.
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


@dataclass(frozen=True, slots=True, order=True)
class BlockRange:
    """Blocks first..last, both included."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise InternalError(f"Not a block range: {self.first}..{self.last}.")

    def contains(self, other: BlockRange) -> bool:
        """Return whether `other` lies within this range."""
        return self.first <= other.first and other.last <= self.last

    def overlaps(self, other: BlockRange) -> bool:
        """Return whether the ranges share a block."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class NewBlock:
    """The number that this commit will assign to the `index`-th new block of `table_id`."""

    table_id: str
    index: int


Blocks: TypeAlias = BlockRange | NewBlock


def union_ranges(ranges: Iterable[BlockRange]) -> tuple[BlockRange, ...]:
    """Return the union, sorted and disjoint, adjacent ranges joined: {1..2, 3..4, 7..7} -> {1..4,
    7..7}."""
    joined: list[BlockRange] = []
    for blocks in sorted(ranges):
        if joined and blocks.first <= joined[-1].last + 1:
            joined[-1] = BlockRange(joined[-1].first, max(joined[-1].last, blocks.last))
        else:
            joined.append(blocks)
    return tuple(joined)


def subtract_ranges(
    ranges: Iterable[BlockRange], without: Iterable[BlockRange]
) -> tuple[BlockRange, ...]:
    """Return the blocks of `ranges` that are not in `without`, joined: {1..9} - {3..4, 7..7} ->
    {1..2, 5..6, 8..9}."""
    remaining: list[BlockRange] = []
    holes = union_ranges(without)
    at = 0  # of the first hole that does not end before the range: both are sorted
    for blocks in union_ranges(ranges):
        first = blocks.first
        while at < len(holes) and holes[at].last < first:
            at += 1
        next_hole = at
        while next_hole < len(holes) and holes[next_hole].first <= blocks.last:
            hole = holes[next_hole]
            if hole.first > first:
                remaining.append(BlockRange(first, hole.first - 1))
            first = hole.last + 1
            next_hole += 1
        if first <= blocks.last:
            remaining.append(BlockRange(first, blocks.last))
    return tuple(remaining)


def detached_table(table_id: str) -> str:
    """Return the pseudo table id under which the catalog keeps a table's detached parts. They
    belong to no table, but their files stay referenced."""
    return f"{table_id}{_DETACHED}"


def is_detached(table_id: str) -> bool:
    """Return whether the id is one that `detached_table` gives."""
    return table_id.endswith(_DETACHED)


_DETACHED = "/detached"


def covers(ranges: Sequence[BlockRange], inner: BlockRange) -> bool:
    """Return whether one of the joined, sorted ranges contains `inner`."""
    at = bisect_left(ranges, inner.first, key=lambda r: r.last)
    return at < len(ranges) and ranges[at].contains(inner)


def overlaps_any(ranges: Sequence[BlockRange], blocks: BlockRange) -> bool:
    """Return whether one of the joined, sorted ranges overlaps `blocks`."""
    at = bisect_left(ranges, blocks.first, key=lambda r: r.last)
    return at < len(ranges) and ranges[at].first <= blocks.last


@dataclass(frozen=True, slots=True)
class Contribution:
    """Source blocks whose result a target part holds, for one view.

    `source_partition` None: whole blocks (a trigger); otherwise just that partition's rows of them
    (a backfill chunk).  `rows` counts the target rows that the contribution produced before merges.
    """

    view_id: str
    view_version: int
    source_id: str
    source_partition: str | None
    blocks: tuple[Blocks, ...]
    rows: int


ColumnBounds: TypeAlias = tuple[object, object, int]
"""(minimum, maximum, nulls) as JSON-able values; minimum None if there is no value. Dates are days,
timestamps ticks of the column's unit; decimals and bytes have no bounds."""


@dataclass(frozen=True, slots=True)
class Part:
    """An immutable sorted piece of one partition of one table.

    `path` is relative to the warehouse; "" for a part whose rows lie in the catalog (`inline`) and
    for a placeholder part (`rows` 0), which only records the contributions of blocks without
    result. `bounds` is by column name at the time of writing.  `contributions` is empty for rows
    that no view made; in the target of a view such rows are *bypass*.  `detached_reason` is
    "broken" for a detached part that was put into quarantine. `codec` is the codec that TTL …
    RECOMPRESS gave the columns without one of their own, such as "ZSTD(9)"; "" for the default.
    """

    id: str
    table_id: str
    partition_id: str
    partition_value: tuple[object, ...]
    rows: int
    bytes: int
    blocks: Blocks
    level: int = 0
    path: str = ""
    inline: bool = False
    schema_version: int = 1
    checksum: str = ""
    bounds: Mapping[str, ColumnBounds] = field(default_factory=dict)
    uncompressed_bytes: Mapping[str, int] = field(default_factory=dict)
    compressed_bytes: Mapping[str, int] = field(default_factory=dict)
    granules: int = 0
    contributions: tuple[Contribution, ...] = ()
    created_ms: int = 0
    created_commit: int = 0
    detached_reason: str = ""
    codec: str = ""

    @property
    def block_range(self) -> BlockRange:
        """The committed block range. Raises InternalError while the part is only staged."""
        if isinstance(self.blocks, NewBlock):
            raise InternalError(f"Part {self.id} is staged: its block number is not assigned yet.")
        return self.blocks

    def written_by(self, view_ids: AbstractSet[str]) -> bool:
        """Return whether one of these views made the rows. Pass the views that write the table now:
        rows of a dropped view are bypass for the others."""
        return any(contribution.view_id in view_ids for contribution in self.contributions)

    @property
    def name(self) -> str:
        """ClickHouse's name: partition_first_last_level."""
        blocks = self.block_range
        return f"{self.partition_id}_{blocks.first}_{blocks.last}_{self.level}"
