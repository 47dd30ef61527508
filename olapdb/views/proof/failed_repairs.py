"""Repairs that failed because the view raises on its rows. They are stored, so that the status of
the view does not recommend them again.

The failed attempt and its error are a check of their own (mode BACKFILL, REPLAY, RECONCILE). It
lapses as soon as another outcome is possible: a new definition, changed source rows or dimensions,
other stale slices or other gap blocks. Errors of the machine (memory, disk) and cancellations are
not stored: running the statement again may succeed.
"""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

from olapdb.commit.draft import CommitDraft, publish_if_current
from olapdb.errors import DataError, Error, NotSupportedError, ProgrammingError
from olapdb.model.changes import RecordCheck
from olapdb.model.fingerprints import newest
from olapdb.model.requirements import ViewIs
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check
from olapdb.views.jobs.job import ViewJob
from olapdb.views.proof.coverage import gap_slices
from olapdb.views.proof.shared_targets import recomputable_writers
from olapdb.views.proof.verdicts import (
    adoption_fingerprint,
    changed_versions,
    check_is_current,
    stale_slices,
)

Attempt: TypeAlias = Literal["BACKFILL", "REPLAY", "RECONCILE"]
ATTEMPTS: tuple[Attempt, ...] = ("BACKFILL", "REPLAY", "RECONCILE")
ROW_ERRORS = (DataError, ProgrammingError, NotSupportedError)
"""Errors that the same definition raises again on the same rows."""
REASON_LENGTH_MAX = 1_000


def record_failed_attempt(job: ViewJob, view_id: str, attempt: Attempt, error: Error) -> None:
    """Store that `attempt` failed, if the view's rows caused `error`. Store nothing if a concurrent
    commit drops or alters the view."""
    snapshot = job.services.catalog.snapshot()
    view = snapshot.by_id(view_id)
    if not isinstance(error, ROW_ERRORS) or not isinstance(view, MaterializedView):
        return
    check = Check(
        view_id=view.id,
        target_partition=attempt,
        snapshot=snapshot.number,
        fingerprint=attempt_fingerprint(view, snapshot, attempt),
        verdict="unverifiable",
        keys_compared=0,
        missing=0,
        extra=0,
        differing=0,
        largest_difference=0.0,
        examples=(str(error)[:REASON_LENGTH_MAX],),
        checked_ms=job.services.clock_ms(),
        mode=attempt,
    )
    draft = CommitDraft([job.origin.lease, ViewIs(view.id, view.version)], [RecordCheck(check)])
    publish_if_current(draft, job.origin.of_kind(attempt))  # a conflict: dropped or altered


def failed_attempt_error(view: MaterializedView, snapshot: Snapshot, attempt: Attempt) -> str:
    """Return the stored error of a failed attempt, or "" if another attempt may succeed."""
    for check in snapshot.checks(view.id):
        if check.mode == attempt and check.fingerprint == attempt_fingerprint(
            view, snapshot, attempt
        ):
            return check.examples[0]
    return ""


def is_check_current(check: Check, view: MaterializedView, snapshot: Snapshot) -> bool:
    """Return whether a check of any mode is still current."""
    if check.mode == "ADOPT":
        return check.fingerprint == adoption_fingerprint(view, snapshot)
    if check.mode in ATTEMPTS:
        return check.fingerprint == attempt_fingerprint(view, snapshot, check.mode)
    return check_is_current(check, view, snapshot)


def attempt_fingerprint(view: MaterializedView, snapshot: Snapshot, attempt: str) -> str:
    """Return a hash of everything that the outcome depends on, without rows that triggers saw."""
    facts: list[object] = [attempt]
    for entry in recomputable_writers(view, snapshot):
        source = snapshot.by_id(entry.source_id)
        facts += [entry.id, entry.version, source.version if isinstance(source, Table) else 0]
        facts.append(changed_versions(entry.source_id, snapshot))
        for table_id in entry.dimension_ids:
            table = snapshot.by_id(table_id)
            facts += [table_id, table.version if isinstance(table, Table) else 0]
            facts.append(newest(snapshot, table_id, None))
    if attempt == "BACKFILL":  # its chunks fire downstream views
        facts.append([(entry.partition, entry.blocks) for entry in gap_slices(view, snapshot)])
        facts.append(sorted(_downstream_views(view.target_id, snapshot)))
    if attempt == "REPLAY":
        stale = stale_slices(snapshot, view)
        facts.append(None if stale is None else sorted(stale))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _downstream_views(table_id: str, snapshot: Snapshot) -> set[tuple[str, int]]:
    """Return (id, version) of all attached views that rows of the table reach through any chain."""
    versions: set[tuple[str, int]] = set()
    table_ids = [table_id]
    while table_ids:
        for view in snapshot.views_on(table_ids.pop()):
            if view.attached and (view.id, view.version) not in versions:
                versions.add((view.id, view.version))
                table_ids.append(view.target_id)
    return versions
