"""What a verdict of reconciliation is about: it lapses when any of it moves on (rule 9)."""

from __future__ import annotations

import hashlib

from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check


def fingerprint(
    view: MaterializedView,
    snapshot: Snapshot,
    target_partition: str,
    raised: frozenset[str] = frozenset(),
) -> str:
    """What a verdict about the partition depends on; equal as long as none of it moved.

    New source blocks matter only through what they add to the partition (or to the gap, which no
    verdict is about), so the partition's newest block stands for them.  `raised`: as it will be
    once these partitions of the target have their next data version.
    """
    # What all partitions of the target share is found once: there may be thousands of them.
    writers = snapshot.derived(
        ("fingerprint of writers", view.target_id), lambda: _writers(view, snapshot)
    )
    newest = snapshot.derived(
        ("newest blocks", view.target_id), lambda: _newest_blocks(snapshot, view.target_id)
    )
    last = newest.get(target_partition, 0)
    there = [target_partition] if target_partition or last else []
    versions = tuple(snapshot.data_version(view.target_id, one) for one in there)
    if target_partition in raised:
        versions = tuple(version + 1 for version in versions)
    facts = [*writers, (target_partition, last, versions)]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _writers(view: MaterializedView, snapshot: Snapshot) -> list[object]:
    """Definitions and inputs of the views that write the target."""
    facts: list[object] = []
    for one in snapshot.views_into(view.target_id):
        partitions = {part.partition_id for part in snapshot.parts(one.source_id)}
        versions = [(p, snapshot.data_version(one.source_id, p)) for p in sorted(partitions)]
        whole = snapshot.data_version(one.source_id, "")
        facts.append((one.id, one.version, whole, [v for v in versions if v[1]]))
        for table_id in one.dimension_ids:
            newest = _newest_blocks(snapshot, table_id)
            versions_there = tuple(snapshot.data_version(table_id, p) for p in sorted(newest))
            facts.append((table_id, max(newest.values(), default=0), versions_there))
    return facts


def _newest_blocks(snapshot: Snapshot, table_id: str) -> dict[str, int]:
    """The newest block of each partition that has rows: merges do not change it."""
    newest: dict[str, int] = {}
    for part in snapshot.parts(table_id):
        if part.rows:
            known = newest.get(part.partition_id, 0)
            newest[part.partition_id] = max(known, part.block_range.last)
    return newest


def newest(snapshot: Snapshot, table_id: str, partition: str | None) -> tuple[int, tuple[int, ...]]:
    """Return the newest block and the data versions: merges change neither."""
    blocks = _newest_blocks(snapshot, table_id)
    if partition is not None:
        blocks = {p: block for p, block in blocks.items() if p == partition}
    partitions = sorted(blocks.keys() | ({partition} if partition else set()))
    return max(blocks.values(), default=0), tuple(
        snapshot.data_version(table_id, p) for p in partitions
    )


def check_is_current(check: Check, view: MaterializedView, snapshot: Snapshot) -> bool:
    """Whether the verdict still speaks about what is there."""
    return check.fingerprint == fingerprint(view, snapshot, check.target_partition)
