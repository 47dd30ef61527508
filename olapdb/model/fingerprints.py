"""What a verdict of reconciliation is about: it lapses when any of it moves on (rule 9)."""

from __future__ import annotations

import hashlib

from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check


def fingerprint(
    view: MaterializedView, snapshot: Snapshot, target_partition: str,
    raised: frozenset[str] = frozenset(),
) -> str:  # fmt: skip
    """What a verdict about the partition depends on; equal as long as none of it moved.

    New source blocks matter only through what they add to the partition (or to the gap, which no
    verdict is about), so the partition's newest block stands for them.  `raised`: as it will be
    once these partitions of the target have their next data version.
    """
    facts: list[object] = []
    for one in snapshot.views_into(view.target_id):
        partitions = {part.partition_id for part in snapshot.parts(one.source_id)}
        versions = [(p, snapshot.data_version(one.source_id, p)) for p in sorted(partitions)]
        whole = snapshot.data_version(one.source_id, "")
        facts.append((one.id, one.version, whole, [v for v in versions if v[1]]))
        for table_id in one.dimension_ids:
            facts.append((table_id, *newest(snapshot, table_id, None)))
    last, versions_there = newest(snapshot, view.target_id, target_partition)
    if target_partition in raised:
        versions_there = tuple(version + 1 for version in versions_there)
    facts.append((target_partition, last, versions_there))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def newest(
    snapshot: Snapshot, table_id: str, partition: str | None
) -> tuple[int, tuple[int, ...]]:
    """Return the newest block and the data versions: merges change neither."""
    parts = [
        p for p in snapshot.parts(table_id)
        if p.rows and (partition is None or p.partition_id == partition)
    ]  # fmt: skip
    last = max((p.block_range.last for p in parts), default=0)
    partitions = sorted({p.partition_id for p in parts} | ({partition} if partition else set()))
    return last, tuple(snapshot.data_version(table_id, p) for p in partitions)


def check_is_current(check: Check, view: MaterializedView, snapshot: Snapshot) -> bool:
    """Whether the verdict still speaks about what is there."""
    return check.fingerprint == fingerprint(view, snapshot, check.target_partition)
