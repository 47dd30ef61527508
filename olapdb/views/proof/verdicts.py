"""Verdicts of reconciliation: their fingerprints, whether they hold, which slices they make
stale."""

from __future__ import annotations

import hashlib
from typing import Protocol

from olapdb.ingest.view_failure import FAILED
from olapdb.model.fingerprints import check_is_current, fingerprint
from olapdb.model.part import BlockRange, union_ranges
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check, Invalidation
from olapdb.views.proof.coverage import gap_slices, is_bypass, writers

__all__ = [
    "adoption_fingerprint",
    "changed_versions",
    "check_is_current",
    "counts",
    "failures",
    "fingerprint",
    "refused_adoption",
    "stale_slices",
]


class _Counted(Protocol):
    """An outcome of a comparison: how many keys are missing, extra or differing."""

    @property
    def missing(self) -> int: ...

    @property
    def extra(self) -> int: ...

    @property
    def differing(self) -> int: ...


WHOLE_TARGET = ""
"""The partition of a refused ADOPT's verdict, which is about the whole target."""


def refused_adoption(view: MaterializedView, snapshot: Snapshot) -> Check | None:
    """Return the check of the last, refused ADOPT if its fingerprint still holds, else None."""
    for check in snapshot.checks(view.id):
        if check.mode == "ADOPT" and check.fingerprint == adoption_fingerprint(view, snapshot):
            return check
    return None


def counts(comparison: _Counted) -> str:
    """Return the counts that are not zero as text: "1 missing, 2 differing"."""
    labelled = (
        ("missing", comparison.missing),
        ("extra", comparison.extra),
        ("differing", comparison.differing),
    )
    return ", ".join(f"{count} {label}" for label, count in labelled if count)


def adoption_fingerprint(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return a hash of everything that the outcome of ADOPT depends on: definitions, data versions,
    bypass blocks and the gap. Rows that triggers add are left out: both sides gain them."""
    views = snapshot.views_into(view.target_id)
    ids = writers(view, snapshot)
    bypass_ranges: dict[str, list[BlockRange]] = {}
    for part in snapshot.parts(view.target_id):
        if part.rows and is_bypass(part, ids):
            bypass_ranges.setdefault(part.partition_id, []).append(part.block_range)
    facts = (
        "ADOPT",
        [(entry.id, entry.version, snapshot.data_version(entry.source_id, "")) for entry in views],
        changed_versions(view.target_id, snapshot),
        [(partition, union_ranges(ranges)) for partition, ranges in sorted(bypass_ranges.items())],
        [(entry.partition, entry.blocks) for entry in gap_slices(view, snapshot)],
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def changed_versions(table_id: str, snapshot: Snapshot) -> list[tuple[str, int]]:
    """Return (partition, data version) of each partition of the table that was ever changed other
    than by INSERTs and merges. Partition "" is the table as a whole. Sorted by partition."""
    partitions = {"", *(part.partition_id for part in snapshot.parts(table_id))}
    versions = (
        (partition_id, snapshot.data_version(table_id, partition_id))
        for partition_id in sorted(partitions)
    )
    return [(partition, version) for partition, version in versions if version]


def stale_slices(snapshot: Snapshot, view: MaterializedView) -> frozenset[str] | None:
    """Return the target partitions that an invalidation of any writer names, or a current check
    with differences. None means all partitions. A VIEW FAILED note names a gap, not a stale
    slice."""
    partitions: set[str] = set()
    for view_id in writers(view, snapshot):
        for invalidation in snapshot.invalidations(view_id):
            if invalidation.cause == FAILED:
                continue
            if invalidation.target_partition is None:
                return None
            partitions.add(invalidation.target_partition)
        for check in snapshot.checks(view_id):
            if check.verdict == "different" and check_is_current(check, view, snapshot):
                partitions.add(check.target_partition)
    return frozenset(partitions)


def failures(view: MaterializedView, snapshot: Snapshot) -> tuple[Invalidation, ...]:
    """Return the notes of the view's failed INSERTs that are still in its gap, oldest first."""
    notes = [entry for entry in snapshot.invalidations(view.id) if entry.cause == FAILED]
    if not notes:
        return ()
    missed_ranges = [
        part.block_range for entry in gap_slices(view, snapshot) for part in entry.parts
    ]
    blocks_of_commit: dict[int, list[int]] = {}
    for block in snapshot.blocks(view.source_id) if missed_ranges else ():
        blocks_of_commit.setdefault(block.commit, []).append(block.number)
    return tuple(
        note
        for note in notes
        if any(
            block_range.first <= number <= block_range.last
            for number in blocks_of_commit.get(note.commit, ())
            for block_range in missed_ranges
        )
    )
