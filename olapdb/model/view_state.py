"""The ledger of a materialized view: coverage, invalidations, retained slices, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from olapdb.model.part import BlockRange, Blocks, covers, overlaps_any, union_ranges
from olapdb.records import dataclass

Cause: TypeAlias = Literal[
    "DELETE",
    "UPDATE",
    "DROP PARTITION",
    "REPLACE PARTITION",
    "TTL",
    "DIMENSION CHANGE",
    "MODIFY QUERY",
    "UPSTREAM REPLAY",
    "UPSTREAM REBUILD",
    "TRUNCATE",
    "TARGET CHANGED",
    "VIEW FAILED",
    "DETACH PARTITION",
    "MOVE PARTITION",
    "ATTACH PARTITION",
    "DROP DETACHED PARTITION",
    "QUARANTINE PART",
    "ALTER",
    "FUNCTION CHANGED",
]
"""VIEW FAILED is not the cause of a stale slice but of a gap, see `olapdb.ingest.view_failure`."""

Verdict: TypeAlias = Literal["equal", "different", "unverifiable", "retained"]


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """Source blocks that a view has seen. `partition` None: every partition of them (triggers);
    otherwise one (chunks)."""

    view_id: str
    partition: str | None
    blocks: Blocks


@dataclass(frozen=True)
class Coverage:
    """The source blocks that a view has seen, at one snapshot.

    A source slice (partition p, blocks r) is covered if r lies in the union of the ranges of all
    partitions and p's own.
    """

    view_id: str
    everywhere: tuple[BlockRange, ...] = ()
    by_partition: Mapping[str, tuple[BlockRange, ...]] = field(default_factory=dict)

    def ranges(self, partition: str) -> tuple[BlockRange, ...]:
        """Return all covered ranges of the partition, joined."""
        if partition not in self.by_partition:
            return self.everywhere
        return union_ranges((*self.everywhere, *self.by_partition.get(partition, ())))

    def covers(self, partition: str, blocks: BlockRange) -> bool:
        """Return whether all these blocks of the partition are covered."""
        return covers(self.ranges(partition), blocks)

    def touches(self, partition: str, blocks: BlockRange) -> bool:
        """Return whether any of these blocks of the partition is covered."""
        return overlaps_any(self.everywhere, blocks) or overlaps_any(
            self.by_partition.get(partition, ()), blocks
        )


@dataclass(frozen=True, slots=True)
class Invalidation:
    """A slice of a view's target that a change of its inputs made stale.

    `target_partition` None: all of them. `keys` are example keys as text, at most ten. `id` and
    `commit` are assigned by the commit.
    """

    view_id: str
    target_partition: str | None
    cause: Cause
    statement: str
    query_id: str
    rows: int
    since_ms: int
    keys: tuple[str, ...] = ()
    id: int = 0
    commit: int = 0


KeyValue: TypeAlias = "int | str | None"
"""The value of a sorting key's item: dates are days, timestamps ticks of the column's unit.  Bytes
of a text that are not UTF-8 are lone surrogates, `ESCAPED`."""
ESCAPED = "surrogateescape"


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """Sorting keys between `low` and `high`, item by item, both included.

    An item of None is unbounded (its type has no order that could be stored); `nulls` is whether
    the item may also be NULL.
    """

    low: tuple[KeyValue, ...]
    high: tuple[KeyValue, ...]
    nulls: tuple[bool, ...]

    def joined(self, other: KeyBounds) -> KeyBounds | None:
        """Return the narrowest bounds around both, item by item. None if the keys have different
        lengths."""
        if len(self.low) != len(other.low):
            return None
        ends = [
            _enclosing_bounds(*four)
            for four in zip(self.low, self.high, other.low, other.high, strict=True)
        ]
        return KeyBounds(
            tuple(low for low, _ in ends),
            tuple(high for _, high in ends),
            tuple(a or b for a, b in zip(self.nulls, other.nulls, strict=True)),
        )


def _enclosing_bounds(
    low: KeyValue, high: KeyValue, other_low: KeyValue, other_high: KeyValue
) -> tuple[KeyValue, KeyValue]:
    """Return the bounds that contain two pairs of bounds of one key item. A pair with a None (only
    NULLs, or a type without bounds) is ignored."""
    if low is None or high is None:  # only NULLs, or a type without bounds
        return other_low, other_high
    if other_low is None or other_high is None:
        return low, high
    # Of one key item, so of one type.
    return min(low, other_low, key=_text_order), max(high, other_high, key=_text_order)


def _text_order(value: int | str) -> Any:
    """Return a sort key: the UTF-8 bytes of a text, a number unchanged."""
    return value.encode("utf-8", ESCAPED) if isinstance(value, str) else value


FrozenVerdict: TypeAlias = Literal["proven", "covered", "stale", "different"]
"""The verdict about a slice when its rows were removed, from best to worst."""


@dataclass(frozen=True, slots=True)
class RetainedSlice:
    """The part of one target partition that rows removed by retention had contributed to: the keys
    in `bounds` (None: any key) stay unchanged. `partition` None: any partition."""

    partition: str | None
    rows: int
    bounds: KeyBounds | None
    verdict: FrozenVerdict = "covered"


@dataclass(frozen=True, slots=True)
class Retained:
    """Rows of one partition that retention removed, and the slices of a view that are frozen since
    (rule 4).

    `side` "source": rows of the view's source; "target": rows of its own target, whose `slices`
    must not come back by a recomputation.  The ledger has one row for each view, side and
    partition, which later commits extend.
    """

    view_id: str
    side: Literal["source", "target"]
    partition: str
    rows: int
    bytes: int
    parts: int
    blocks: BlockRange
    slices: tuple[RetainedSlice, ...]
    cause: Cause
    statement: str
    query_id: str
    since_ms: int
    commit: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """A verdict of reconciliation about one target partition, at one snapshot.

    It lapses when the definition, a dimension or the partition changes, of which `fingerprint` is a
    hash, and while an invalidation names the partition: see `olapdb.model.fingerprints`.
    """

    view_id: str
    target_partition: str
    snapshot: int
    fingerprint: str
    verdict: Verdict
    keys_compared: int
    missing: int
    extra: int
    differing: int
    largest_difference: float
    examples: tuple[str, ...]
    checked_ms: int
    mode: str = "FULL"


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """A table's position in a stream that feeds it: `position` is that of the first row not in the
    table yet. `commit`, `time_ms` and `token` are those of the INSERT that reached it."""

    stream: str
    position: int
    commit: int
    time_ms: int
    token: str


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """A block of a table and the statement that inserted it. Old blocks form a span
    `first`..`number` of kind "older" without a statement, with the newest `commit` and the oldest
    `created_ms`."""

    table_id: str
    number: int
    commit: int
    rows: int
    query_id: str
    kind: str
    created_ms: int
    first: int = 0

    @property
    def range(self) -> BlockRange:
        """The blocks of the entry as a range."""
        return BlockRange(self.first or self.number, self.number)
