"""RECONCILE: compares a view's target with a recomputation from the source, at one snapshot.

What should be there comes from the source rows that the view has seen (its gap is reported, not
held against it), through the view's own block function; what is there from the target's parts, as
a full merge would leave them.  The answer never comes from the ledger or from another view.

A verdict is stored with a fingerprint of what it is about, and lapses with it (rule 9).
"""

from __future__ import annotations

import random

from olapdb.commit.draft import CommitDraft, publish_if_current
from olapdb.commit.origin import CommitOrigin
from olapdb.errors import BadArguments, ViewNotProvable
from olapdb.ingest.read_parts import Pin
from olapdb.model.changes import Change, ClearInvalidations, RecordCheck, ViewIs
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check
from olapdb.views.definition.judgement import keep_reason, reason_of
from olapdb.views.jobs.executor import Executor
from olapdb.views.jobs.job import Progress, ViewJob, find_view, readable_source, view_name
from olapdb.views.jobs.retained_rows import stale_frozen_changes
from olapdb.views.proof.coverage import bypass, gap, stores_rows
from olapdb.views.proof.failed_repairs import OF_ROWS, note_failed
from olapdb.views.proof.recompute import NOTHING_THERE, Recomputation, ReconcileRow
from olapdb.views.proof.shared_targets import incomparable, peers
from olapdb.views.proof.verdicts import check_is_current, fingerprint, stale_slices


def reconcile(
    origin: CommitOrigin,
    view_id: str,
    *,
    partition: str | None = None,
    sample: int | None = None,
    oldest: int | None = None,
    stale: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    record: bool = True,
) -> tuple[ReconcileRow, ...]:
    """Recompute and compare target partitions: one, the stale ones, `sample` of them at random,
    the `oldest` ones (never proven, or whose proof has lapsed or is oldest: for a schedule), or
    all.

    A view that cannot be proven gives one row of verdict "unverifiable" whose cause is the reason.
    An equal verdict also clears older invalidations of its slice: the recomputation disproved
    them.  `record` False stores nothing.  Raises QueryWasCancelled.
    """
    job = ViewJob.of(origin, "RECONCILE", executor, progress)
    with job.recorded():
        return _compared(job, view_id, partition, sample, oldest, stale, record)


def _compared(
    job: ViewJob,
    view_id: str,
    partition: str | None,
    sample: int | None,
    oldest: int | None,
    stale: bool,
    record: bool,
) -> tuple[ReconcileRow, ...]:
    services = job.services
    _judge_anew(job.origin, view_id)
    snapshot = services.catalog.snapshot()
    with Pin(services, snapshot.number):
        view = find_view(snapshot, view_id)
        reason = incomparable(view, snapshot)
        if reason:
            return (_unverifiable(view, snapshot, reason),)
        chosen = _chosen(job, view, snapshot, partition, sample, oldest, stale)
        if chosen is not None and not chosen:
            return ()
        recomputation = Recomputation(job, snapshot, view, chosen)
        try:
            made = recomputation.expected()
        except OF_ROWS as error:
            if record and chosen is None:
                note_failed(job, view.id, "RECONCILE", error)
            raise
        rows = recomputation.compare(made)
        if record:
            _record(job, snapshot, view, rows, complete=chosen is None)
    return rows


def _judge_anew(origin: CommitOrigin, view_id: str) -> None:
    """Store the reason why a writer of the view's target is unproven, where none is stored yet: the
    comparison leaves such writers out."""
    snapshot = origin.services.catalog.snapshot()
    view = find_view(snapshot, view_id)
    for one in snapshot.views_into(view.target_id):
        keep_reason(origin, one, reason_of(one, snapshot))


def require_stored(view: MaterializedView, snapshot: Snapshot, operation: str) -> None:
    """Raise ViewNotProvable where the source, or the target, stores no rows: the ledger knows none."""
    readable_source(snapshot, view, operation)
    if not stores_rows(snapshot, view.target_id):
        raise ViewNotProvable(
            f"{operation} VIEW {view_name(view)}: its target keeps no rows, so nothing is known of"
            " them.",
            hint="Write into a MergeTree table to have it checked.",
        )


def _unverifiable(view: MaterializedView, snapshot: Snapshot, reason: str) -> ReconcileRow:
    gap_rows = (
        sum(s.rows for s in gap(view, snapshot)) if stores_rows(snapshot, view.source_id) else 0
    )
    return ReconcileRow(
        NOTHING_THERE,
        snapshot.number,
        0,
        0,
        0,
        0,
        0.0,
        (),
        sum(bypass(view, snapshot).values()),
        gap_rows,
        (reason,),
        "unverifiable",
    )


def _chosen(
    job: ViewJob,
    view: MaterializedView,
    snapshot: Snapshot,
    partition: str | None,
    sample: int | None,
    oldest: int | None,
    stale: bool,
) -> frozenset[str] | None:
    """Return the partitions of the target to compare; None for all."""
    if sum((partition is not None, sample is not None, oldest is not None, stale)) > 1:
        raise BadArguments("RECONCILE VIEW takes one of PARTITION, SAMPLE, OLDEST and STALE.")
    if partition is not None:
        return frozenset((partition,))
    if stale:
        return stale_slices(snapshot, view)
    wanted = sample if sample is not None else oldest
    if wanted is None:
        return None
    if wanted < 1:
        word = "OLDEST" if sample is None else "SAMPLE"
        raise BadArguments(f"{word} is the number of partitions to compare, at least 1.")
    if sample is None:
        return frozenset(_by_proof(view, snapshot)[:wanted])
    there = sorted({p.partition_id for p in snapshot.parts(view.target_id) if p.rows})
    drawn = random.Random(job.query_id or snapshot.number)
    return frozenset(drawn.sample(there, min(wanted, len(there))))


def _by_proof(view: MaterializedView, snapshot: Snapshot) -> list[str]:
    """Return the target's partitions, those first of which least is known: never compared, then those whose
    verdict has lapsed, then those proven longest ago."""
    checks = {check.target_partition: check for check in snapshot.checks(view.id)}

    def age(partition: str) -> tuple[int, int]:
        check = checks.get(partition)
        if check is None:
            return 0, 0
        return 1 + check_is_current(check, view, snapshot), check.checked_ms

    there = sorted({p.partition_id for p in snapshot.parts(view.target_id) if p.rows})
    return sorted(there, key=age)


def _record(
    job: ViewJob,
    snapshot: Snapshot,
    view: MaterializedView,
    rows: tuple[ReconcileRow, ...],
    complete: bool,
) -> None:
    writers = peers(view, snapshot)
    draft = CommitDraft([job.origin.lease])
    draft.require(*(ViewIs(one.id, one.version) for one in writers), *job.record.requirements())
    draft.change(*verdict_changes(job, snapshot, view, rows, complete), *job.closing("compared"))
    if publish_if_current(draft, job.origin) is not None:
        job.record.ended()
        return
    # The job was cancelled; or the definition changed since the snapshot: the verdict is true, but
    # lapsed already.
    job.refuse_cancelled()


def verdict_changes(
    job: ViewJob,
    snapshot: Snapshot,
    view: MaterializedView,
    rows: tuple[ReconcileRow, ...],
    complete: bool,
    raised: frozenset[str] = frozenset(),
) -> list[Change]:
    """Return the changes that record the verdicts for the view and its peers; equal slices are stale no
    more.
    `complete` tells that the rows are about all of the target; `raised` are the target's partitions
    whose data version the same commit raises."""
    writers = peers(view, snapshot)
    changes: list[Change] = []
    for row in rows:
        print_of = fingerprint(view, snapshot, row.partition, raised)
        for one in writers:
            changes.append(RecordCheck(_check(job, one, row, print_of)))
            if row.verdict in ("equal", "retained"):
                changes.append(ClearInvalidations(one.id, row.partition, snapshot.number))
    right = [row.partition for row in rows if row.verdict in ("equal", "retained")]
    changes += stale_frozen_changes(writers, right, snapshot)
    if complete and len(right) == len(rows):
        changes += [ClearInvalidations(one.id, None, snapshot.number) for one in writers]
    return changes


def _check(job: ViewJob, view: MaterializedView, row: ReconcileRow, print_of: str) -> Check:
    return Check(
        view_id=view.id,
        target_partition=row.partition,
        snapshot=row.snapshot,
        fingerprint=print_of,
        verdict=row.verdict,
        keys_compared=row.keys_compared,
        missing=row.missing,
        extra=row.extra,
        differing=row.differing,
        largest_difference=row.largest_difference,
        examples=row.examples,
        checked_ms=job.services.clock_ms(),
        mode="FULL",
    )
