"""RECONCILE: comparison of a view's target with a recomputation from the source, at one snapshot.

The expected rows come from the source rows that the view has seen, through the view's own block
function. The view's gap is reported, but is not a difference. The actual rows come from the
target's parts, combined as by a full merge. The ledger and other views never supply the answer.

A verdict is stored with a fingerprint of its inputs and lapses when they change (rule 9).
"""

from __future__ import annotations

import random

from olapdb.commit.draft import CommitDraft, publish_if_current
from olapdb.commit.origin import CommitOrigin
from olapdb.errors import BadArguments, ViewNotProvable
from olapdb.ingest.read_parts import Pin
from olapdb.model.changes import Change, ClearInvalidations, RecordCheck
from olapdb.model.requirements import ViewIs
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check
from olapdb.records import dataclass
from olapdb.views.definition.judgement import store_unproven_reason, unproven_reason_now
from olapdb.views.jobs.executor import Executor
from olapdb.views.jobs.job import Progress, ViewJob, find_view, readable_source, view_name
from olapdb.views.jobs.retained_rows import stale_frozen_changes
from olapdb.views.proof.coverage import bypass, gap_slices, stores_rows
from olapdb.views.proof.failed_repairs import ROW_ERRORS, record_failed_attempt
from olapdb.views.proof.recompute import EMPTY_TARGET, Recomputation, ReconcileRow
from olapdb.views.proof.shared_targets import incomparable_reason, peers
from olapdb.views.proof.verdicts import check_is_current, fingerprint, stale_slices


@dataclass(frozen=True, slots=True)
class PartitionChoice:
    """The target partitions to compare, chosen by at most one field; by none of them: all.

    `partition` names one, `stale` takes the stale ones, `sample` is a number of random ones,
    `oldest` a number of those with the least proof (never proven, then lapsed, then the oldest
    proofs)."""

    partition: str | None = None
    sample: int | None = None
    oldest: int | None = None
    stale: bool = False

    def __post_init__(self) -> None:
        """Raise BadArguments if several fields are set, or if a number of partitions is below 1."""
        options = (self.partition, self.sample, self.oldest, self.stale or None)
        if sum(option is not None for option in options) > 1:
            raise BadArguments("RECONCILE VIEW takes one of PARTITION, SAMPLE, OLDEST and STALE.")
        if self.count is not None and self.count < 1:
            word = "OLDEST" if self.sample is None else "SAMPLE"
            raise BadArguments(f"{word} is the number of partitions to compare, at least 1.")

    @property
    def count(self) -> int | None:
        """Return the number of partitions of SAMPLE or OLDEST, None without either."""
        return self.sample if self.sample is not None else self.oldest


ALL_PARTITIONS = PartitionChoice()


def reconcile(
    origin: CommitOrigin,
    view_id: str,
    choice: PartitionChoice = ALL_PARTITIONS,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    record: bool = True,
) -> tuple[ReconcileRow, ...]:
    """Recompute and compare the chosen target partitions. Return one verdict for each.

    A view that cannot be compared gives one row of verdict "unverifiable" whose cause is the
    reason. An equal verdict also clears older invalidations of its slice: the recomputation
    disproved them. `record` False stores nothing. Raises BadArguments and QueryWasCancelled.
    """
    job = ViewJob.of(origin, "RECONCILE", executor, progress)
    with job.recorded():
        return _compare_and_record(job, view_id, choice, record)


def _compare_and_record(
    job: ViewJob, view_id: str, choice: PartitionChoice, record: bool
) -> tuple[ReconcileRow, ...]:
    """Compare the selected partitions at a pinned snapshot, and store the verdicts if `record` is
    set. An error of the view's rows in a comparison of all is stored as a failed attempt."""
    services = job.services
    _store_unprovable_reasons(job.origin, view_id)
    snapshot = services.catalog.snapshot()
    with Pin(services, snapshot.number):
        view = find_view(snapshot, view_id)
        reason = incomparable_reason(view, snapshot)
        if reason:
            return (_unverifiable(view, snapshot, reason),)
        partitions = _selected_partitions(job, view, snapshot, choice)
        if partitions is not None and not partitions:
            return ()
        recomputation = Recomputation(job, snapshot, view, partitions)
        try:
            computed_rows = recomputation.expected()
        except ROW_ERRORS as error:
            if record and partitions is None:
                record_failed_attempt(job, view.id, "RECONCILE", error)
            raise
        rows = recomputation.compare(computed_rows)
        if choice.partition is not None:
            _refuse_unknown(view, snapshot, rows[0])
        if record:
            _record(job, snapshot, view, rows, complete=partitions is None)
    return rows


def _refuse_unknown(view: MaterializedView, snapshot: Snapshot, row: ReconcileRow) -> None:
    """Raise BadArguments if a named partition is one of which neither the target nor the source has
    rows, as REPLAY does: a misspelt name would count as equal."""
    target, partition = view.target_id, row.partition
    parts = snapshot.parts(target)
    is_known = row.keys_compared or any(part.partition_id == partition for part in parts)
    stale = stale_slices(snapshot, view)
    if is_known or snapshot.data_version(target, partition) or stale is None or partition in stale:
        return
    ids = sorted({part.partition_id for part in parts if part.rows})
    listed = ", ".join(ids[:20]) + (", …" if len(ids) > 20 else "")
    raise BadArguments(
        f"The target of {view_name(view)} has no partition {partition}, and the source has no rows"
        " of it.",
        hint=f"RECONCILE takes a partition of the target. It has {listed or 'none yet'}.",
    )


def _store_unprovable_reasons(origin: CommitOrigin, view_id: str) -> None:
    """Store, for each writer of the view's target, a newly known reason why it is unproven. The
    comparison leaves such writers out."""
    snapshot = origin.services.catalog.snapshot()
    view = find_view(snapshot, view_id)
    for writer in snapshot.views_into(view.target_id):
        store_unproven_reason(origin, writer, unproven_reason_now(writer, snapshot))


def require_stored(view: MaterializedView, snapshot: Snapshot, operation: str) -> None:
    """Raise ViewNotProvable if the view's source or target stores no rows that could be checked."""
    readable_source(snapshot, view, operation)
    if not stores_rows(snapshot, view.target_id):
        raise ViewNotProvable(
            f"{operation} VIEW {view_name(view)}: its target keeps no rows, so nothing is known of"
            " them.",
            hint="Write into a MergeTree table to have it checked.",
        )


def _unverifiable(view: MaterializedView, snapshot: Snapshot, reason: str) -> ReconcileRow:
    """Return the row of a view that cannot be compared: the reason, its bypass and gap rows."""
    gap_rows = (
        sum(gap.rows for gap in gap_slices(view, snapshot))
        if stores_rows(snapshot, view.source_id)
        else 0
    )
    return ReconcileRow(
        EMPTY_TARGET,
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


def _selected_partitions(
    job: ViewJob, view: MaterializedView, snapshot: Snapshot, choice: PartitionChoice
) -> frozenset[str] | None:
    """Return the target partitions to compare, None for all."""
    if choice.partition is not None:
        return frozenset((choice.partition,))
    if choice.stale:
        return stale_slices(snapshot, view)
    count = choice.count
    if count is None:
        return None
    if choice.sample is None:
        return frozenset(_partitions_by_proof_age(view, snapshot)[:count])
    live_partitions = sorted(
        {part.partition_id for part in snapshot.parts(view.target_id) if part.rows}
    )
    generator = random.Random(job.query_id or snapshot.number)
    return frozenset(generator.sample(live_partitions, min(count, len(live_partitions))))


def _partitions_by_proof_age(view: MaterializedView, snapshot: Snapshot) -> list[str]:
    """Return the target's partitions, those with the least proof first: never compared, then those
    with a lapsed verdict, then the rest by the age of their verdict."""
    checks = {check.target_partition: check for check in snapshot.checks(view.id)}

    def age(partition: str) -> tuple[int, int]:
        """Return a sort key: never checked first, then outdated checks, then the oldest check."""
        check = checks.get(partition)
        if check is None:
            return 0, 0
        return 1 + check_is_current(check, view, snapshot), check.checked_ms

    partitions = sorted({part.partition_id for part in snapshot.parts(view.target_id) if part.rows})
    return sorted(partitions, key=age)


def _record(
    job: ViewJob,
    snapshot: Snapshot,
    view: MaterializedView,
    rows: tuple[ReconcileRow, ...],
    complete: bool,
) -> None:
    """Commit the verdicts together with the end of the job. Store nothing if the definition
    changed; raise QueryWasCancelled if the job was cancelled."""
    writers = peers(view, snapshot)
    draft = CommitDraft([job.origin.lease])
    draft.require(*(ViewIs(peer.id, peer.version) for peer in writers), *job.record.requirements())
    draft.change(
        *verdict_changes(job, snapshot, view, rows, complete), *job.closing_changes("compared")
    )
    if publish_if_current(draft, job.origin) is not None:
        job.record.mark_ended()
        return
    # A conflict: the job was cancelled, or the definition changed after the snapshot. Then the
    # verdict has lapsed already.
    job.refuse_cancelled()


def verdict_changes(
    job: ViewJob,
    snapshot: Snapshot,
    view: MaterializedView,
    rows: tuple[ReconcileRow, ...],
    complete: bool,
    raised: frozenset[str] = frozenset(),
) -> list[Change]:
    """Return the changes that record the verdicts for the view and its peers, and clear the
    invalidations of equal slices. Slices frozen by retention keep their staleness.

    `complete`: the rows are about the whole target. `raised`: the target partitions whose data
    version the same commit raises.
    """
    writers = peers(view, snapshot)
    changes: list[Change] = []
    for row in rows:
        slice_fingerprint = fingerprint(view, snapshot, row.partition, raised)
        for writer in writers:
            changes.append(RecordCheck(_check(job, writer, row, slice_fingerprint)))
            if row.verdict in ("equal", "retained"):
                changes.append(ClearInvalidations(writer.id, row.partition, snapshot.number))
    settled_partitions = [row.partition for row in rows if row.verdict in ("equal", "retained")]
    changes += stale_frozen_changes(writers, settled_partitions, snapshot)
    if complete and len(settled_partitions) == len(rows):
        changes += [ClearInvalidations(writer.id, None, snapshot.number) for writer in writers]
    return changes


def _check(
    job: ViewJob, view: MaterializedView, row: ReconcileRow, slice_fingerprint: str
) -> Check:
    """Return the record of a full comparison, under the fingerprint `slice_fingerprint`."""
    return Check(
        view_id=view.id,
        target_partition=row.partition,
        snapshot=row.snapshot,
        fingerprint=slice_fingerprint,
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
