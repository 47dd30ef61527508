"""Fingerprints of what a verdict of reconciliation depends on: it lapses when they change (rule
9)."""

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
    """Return a hash of what a verdict about the partition depends on, invalidations apart.

    New source blocks matter only by the rows that they add to the partition (or to the gap, about
    which no verdict speaks), so the partition's newest block represents them. Source rows that
    leave or change matter by the invalidations of their commit, which name the partitions that they
    reached: see `check_is_current`. `raised`: compute it as after a commit that raises the data
    version of these target partitions.
    """
    # Computed once for all partitions of the target: there may be thousands.
    writers = snapshot.derived(
        ("fingerprint of writers", view.target_id), lambda: _writers(view, snapshot)
    )
    newest = snapshot.derived(
        ("newest blocks", view.target_id), lambda: _newest_blocks(snapshot, view.target_id)
    )
    last = newest.get(target_partition, 0)
    partitions = [target_partition] if target_partition or last else []
    versions = tuple(snapshot.data_version(view.target_id, partition) for partition in partitions)
    if target_partition in raised:
        versions = tuple(version + 1 for version in versions)
    facts = [*writers, (target_partition, last, versions)]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _writers(view: MaterializedView, snapshot: Snapshot) -> list[object]:
    """Return the facts to hash: definitions and dimensions (data versions, newest blocks) of all
    views that write the view's target."""
    facts: list[object] = []
    for writer in snapshot.views_into(view.target_id):
        facts.append((writer.id, writer.version))
        for table_id in writer.dimension_ids:
            newest = _newest_blocks(snapshot, table_id)
            versions_there = tuple(snapshot.data_version(table_id, p) for p in sorted(newest))
            facts.append((table_id, max(newest.values(), default=0), versions_there))
    return facts


def _newest_blocks(snapshot: Snapshot, table_id: str) -> dict[str, int]:
    """Return the newest block of each partition that has rows; merges do not change it."""
    newest: dict[str, int] = {}
    for part in snapshot.parts(table_id):
        if part.rows:
            block = newest.get(part.partition_id, 0)
            newest[part.partition_id] = max(block, part.block_range.last)
    return newest


def newest(snapshot: Snapshot, table_id: str, partition: str | None) -> tuple[int, tuple[int, ...]]:
    """Return the newest block and the data versions, ordered by partition id, of a partition (None:
    of all). Merges change neither."""
    blocks = _newest_blocks(snapshot, table_id)
    if partition is not None:
        blocks = {p: block for p, block in blocks.items() if p == partition}
    partitions = sorted(blocks.keys() | ({partition} if partition else set()))
    return max(blocks.values(), default=0), tuple(
        snapshot.data_version(table_id, p) for p in partitions
    )


def check_is_current(check: Check, view: MaterializedView, snapshot: Snapshot) -> bool:
    """Return whether nothing that the verdict depends on has changed since.

    An UPDATE or DELETE of source rows invalidates the partitions that these rows reached, so the
    verdicts about the others hold. The REPLAY that clears an invalidation raises the partition's
    data version; a comparison that clears it replaces the verdict.
    """
    if is_stale(snapshot, view.target_id, check):
        return False
    return check.fingerprint == fingerprint(view, snapshot, check.target_partition)


def is_stale(snapshot: Snapshot, table_id: str, check: Check) -> bool:
    """Return whether an invalidation of a view that writes the table names the check's partition,
    or the whole table. A VIEW FAILED note names a gap, not a stale slice.

    A view that cannot be compared with its source has no part in the comparison of the others: it
    has no verdict about the partition, and its staleness says nothing about the check."""
    stale = snapshot.derived(
        ("stale partitions", table_id), lambda: _stale_partitions(snapshot, table_id)
    )
    return any(
        (check.target_partition in partitions or None in partitions)
        and (writer_id == check.view_id or check.target_partition in compared)
        for writer_id, (partitions, compared) in stale.items()
    )


def _stale_partitions(
    snapshot: Snapshot, table_id: str
) -> dict[str, tuple[frozenset[str | None], frozenset[str]]]:
    """Return, by the id of each stale view that writes the table, its stale partitions (None among
    them: all) and the partitions about which it has a verdict."""
    stale = {}
    for writer in snapshot.views_into(table_id):
        notes = snapshot.invalidations(writer.id)
        partitions = frozenset(n.target_partition for n in notes if n.cause != "VIEW FAILED")
        if partitions:
            checks = snapshot.checks(writer.id)
            compared = frozenset(c.target_partition for c in checks if c.verdict != "unverifiable")
            stale[writer.id] = (partitions, compared)
    return stale
