"""Verdicts of reconciliation: what each is about, whether it still holds, which slices are stale."""

from __future__ import annotations

from olapdb.ingest.failures import FAILED
from olapdb.model.fingerprints import check_is_current, fingerprint
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Invalidation
from olapdb.views.coverage import gap, writers

__all__ = ["check_is_current", "failures", "fingerprint", "stale_slices"]


def stale_slices(snapshot: Snapshot, view: MaterializedView) -> frozenset[str] | None:
    """Partitions of the target that some writer's invalidation or failed check names; None: all."""
    found: set[str] = set()
    for view_id in writers(view, snapshot):
        for one in snapshot.invalidations(view_id):
            if one.cause == FAILED:
                continue
            if one.target_partition is None:
                return None
            found.add(one.target_partition)
        for check in snapshot.checks(view_id):
            if check.verdict == "different" and check_is_current(check, view, snapshot):
                found.add(check.target_partition)
    return frozenset(found)


def failures(view: MaterializedView, snapshot: Snapshot) -> tuple[Invalidation, ...]:
    """The INSERTs whose blocks are the view's gap because it failed on them, oldest first."""
    notes = [one for one in snapshot.invalidations(view.id) if one.cause == FAILED]
    if not notes:
        return ()
    missed = [part.block_range for one in gap(view, snapshot) for part in one.parts]
    of_commit: dict[int, list[int]] = {}
    for block in snapshot.blocks(view.source_id) if missed else ():
        of_commit.setdefault(block.commit, []).append(block.number)
    return tuple(
        note for note in notes
        if any(r.first <= n <= r.last for n in of_commit.get(note.commit, ()) for r in missed)
    )  # fmt: skip
