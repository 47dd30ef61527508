"""What the ledger holds of a materialized view: coverage, invalidations, verdicts, jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from olapdb.model.part import BlockRange, Blocks, covers, union_ranges

Cause: TypeAlias = Literal[
    "DELETE", "UPDATE", "DROP PARTITION", "REPLACE PARTITION", "TTL", "DIMENSION CHANGE",
    "MODIFY QUERY", "UPSTREAM REPLAY", "TRUNCATE", "TARGET CHANGED", "VIEW FAILED",
]  # fmt: skip
"""VIEW FAILED is no stale slice but the reason of a gap, see `olapdb.ingest.failures`."""

Verdict: TypeAlias = Literal["equal", "different", "unverifiable"]


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """`partition` None: every partition of those source blocks (triggers); else one (chunks)."""

    view_id: str
    partition: str | None
    blocks: Blocks


@dataclass(frozen=True)
class Coverage:
    """The source blocks that a view has seen, at one snapshot.

    A source slice (partition p, blocks r) is covered when r lies in the ranges of all partitions,
    or in those together with p's own.
    """

    view_id: str
    everywhere: tuple[BlockRange, ...] = ()
    by_partition: Mapping[str, tuple[BlockRange, ...]] = field(default_factory=dict)

    def ranges(self, partition: str) -> tuple[BlockRange, ...]:
        return union_ranges((*self.everywhere, *self.by_partition.get(partition, ())))

    def covers(self, partition: str, blocks: BlockRange) -> bool:
        return covers(self.ranges(partition), blocks)

    def touches(self, partition: str, blocks: BlockRange) -> bool:
        return any(one.overlaps(blocks) for one in self.ranges(partition))


@dataclass(frozen=True, slots=True)
class Invalidation:
    """A slice of a view's target that a change of its inputs made stale.

    `target_partition` None: all of them. `keys` are example keys as text, at most ten.
    `id` and `commit` are assigned when committed.
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


@dataclass(frozen=True, slots=True)
class Check:
    """A verdict of reconciliation about one target partition, at one snapshot.

    It lapses when the source's data versions or blocks, or the target's parts, move on:
    `fingerprint` is made of those, see `olapdb.views.reconcile`.
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
class BlockInfo:
    """A block of a table and the statement that brought it."""

    table_id: str
    number: int
    commit: int
    rows: int
    query_id: str
    kind: str
    created_ms: int
