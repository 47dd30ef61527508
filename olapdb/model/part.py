"""Parts, blocks and what target parts were made from.

A block number belongs to a table and is assigned inside the commit.  Whoever stages a part before
that names the number to come: `NewBlock(table, 0)` is the first new block of that table in this
commit.  The catalog replaces every such name when it applies the commit:

    staged     Part(blocks=NewBlock("t", 0), …)     Contribution(blocks=(NewBlock("s", 0),), …)
    committed  Part(blocks=BlockRange(7, 7), …)     Contribution(blocks=(BlockRange(12, 12),), …)
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from olapdb.errors import InternalError


def new_part_id() -> str:
    """Return 32 hexadecimal digits, unique, those of later milliseconds greater.

    So the catalog's indexes of parts grow at their end and are forgotten at their beginning: a
    commit touches a page of each, not as many as it has parts."""
    return f"{time.time_ns() // 1_000_000:012x}{uuid.uuid4().hex[12:]}"


@dataclass(frozen=True, slots=True, order=True)
class BlockRange:
    """Blocks first..last, both included."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise InternalError(f"Not a block range: {self.first}..{self.last}.")

    def contains(self, other: BlockRange) -> bool:
        return self.first <= other.first and other.last <= self.last

    def overlaps(self, other: BlockRange) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class NewBlock:
    """The number that this commit will give to the `index`-th new block of `table_id`."""

    table_id: str
    index: int


Blocks: TypeAlias = BlockRange | NewBlock


def union_ranges(ranges: Iterable[BlockRange]) -> tuple[BlockRange, ...]:
    """Sorted, disjoint, adjacent ones joined: {1..2, 3..4, 7..7} -> {1..4, 7..7}."""
    joined: list[BlockRange] = []
    for one in sorted(ranges):
        if joined and one.first <= joined[-1].last + 1:
            joined[-1] = BlockRange(joined[-1].first, max(joined[-1].last, one.last))
        else:
            joined.append(one)
    return tuple(joined)


def subtract_ranges(
    ranges: Iterable[BlockRange], without: Iterable[BlockRange]
) -> tuple[BlockRange, ...]:
    """What of the ranges lies in none of `without`, joined: {1..9} - {3..4, 7..7} -> {1..2, 5..6,
    8..9}."""
    left: list[BlockRange] = []
    removed = union_ranges(without)
    for one in union_ranges(ranges):
        first = one.first
        for gone in removed:
            if gone.last < first or gone.first > one.last:
                continue
            if gone.first > first:
                left.append(BlockRange(first, gone.first - 1))
            first = gone.last + 1
        if first <= one.last:
            left.append(BlockRange(first, one.last))
    return tuple(left)


def detached_table(table_id: str) -> str:
    """The id under which the catalog keeps the parts that were detached from a table: they are
    parts of no table, but their files are referred to."""
    return f"{table_id}{_DETACHED}"


def is_detached(table_id: str) -> bool:
    """Return whether the id is one that `detached_table` gives."""
    return table_id.endswith(_DETACHED)


_DETACHED = "/detached"


def covers(ranges: Iterable[BlockRange], wanted: BlockRange) -> bool:
    """Whether one of the (joined) ranges contains `wanted`."""
    return any(one.contains(wanted) for one in ranges)


@dataclass(frozen=True, slots=True)
class Contribution:
    """Source blocks that a target part holds the result of, for one view.

    `source_partition` None: the whole block (a trigger); else just that partition's rows of it (a
    backfill chunk).  `rows` counts the target rows that the contribution produced before merges.
    """

    view_id: str
    view_version: int
    source_id: str
    source_partition: str | None
    blocks: tuple[Blocks, ...]
    rows: int


ColumnBounds: TypeAlias = tuple[object, object, int]
"""(minimum, maximum, nulls) as JSON-able values; minimum None where there is no value. Dates are
days, timestamps ticks of the column's unit, decimals and bytes are left out."""


@dataclass(frozen=True, slots=True)
class Part:
    """An immutable sorted piece of one partition of one table.

    `path` is relative to the warehouse; "" for a part whose rows lie in the catalog (`inline`) and
    for a void part (`rows` 0: a block that contributed nothing, kept for its contributions).
    `bounds` is by column name at the time of writing.  `contributions` is empty for rows that no
    view made; in the target of a view such rows are *bypass*.  `detached_reason` is "broken" for a
    detached part that was put into quarantine.
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

    @property
    def block_range(self) -> BlockRange:
        """The committed block range; an InternalError while it is only staged."""
        if isinstance(self.blocks, NewBlock):
            raise InternalError(f"Part {self.id} is staged: its block number is not assigned yet.")
        return self.blocks

    def made_by(self, view_ids: AbstractSet[str]) -> bool:
        """Whether one of these views made the rows. Of those that write the table now; what a
        dropped view made is bypass to the others."""
        return any(one.view_id in view_ids for one in self.contributions)

    @property
    def name(self) -> str:
        """ClickHouse's name: partition_first_last_level."""
        blocks = self.block_range
        return f"{self.partition_id}_{blocks.first}_{blocks.last}_{self.level}"
