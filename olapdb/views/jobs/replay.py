"""REPLAY: recompute slices of a target from the source and swap them in, in one commit.

An attempt works on one snapshot (`replay_attempt`); if the source or the target changed meanwhile,
the next attempt begins again on a newer one.
"""

from __future__ import annotations

from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.config import Settings
from olapdb.errors import BadArguments, BypassRows, CommitConflict
from olapdb.lineage.retention import FrozenKeys
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.views.jobs.executor import Executor
from olapdb.views.jobs.job import (
    ATTEMPTS_MAX,
    ChunkEvent,
    Progress,
    ViewJob,
    find_view,
    readable_source,
    view_name,
)
from olapdb.views.jobs.replay_attempt import ReplayAttempt, ReplayRow
from olapdb.views.jobs.replay_condition import KeyCondition, matching_partitions
from olapdb.views.jobs.replay_manifest import ReplayManifest
from olapdb.views.proof.coverage import bypass
from olapdb.views.proof.verdicts import stale_slices


@dataclass(frozen=True, slots=True)
class ReplaySelection:
    """The slices that a replay recomputes: one `partition` of the target, the `stale` slices, or
    the partitions that a `condition` on the target's key selects. The default is all of them."""

    partition: str | None = None
    stale: bool = False
    condition: KeyCondition | None = None


def replay(
    origin: CommitOrigin,
    view_id: str,
    selection: ReplaySelection | None = None,
    *,
    discard_bypass: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> tuple[ReplayRow, ...]:
    """Recompute the selected slices of the target; without a selection the whole target. Return a
    row for each partition.

    All views that write the target are replayed together, except views whose source keeps no rows:
    their rows stay. Source rows in a view's gap stay in the gap. Rows that no view made are kept
    unless `discard_bypass`: an explicit `partition` with such rows raises BypassRows, the other
    forms report them in their row.

    Frozen keys of slices whose source rows left by retention are kept. An explicit `partition` with
    only frozen keys raises RetainedRows. The setting `discard_retained` recomputes frozen keys from
    the remaining source rows. Raises CommitConflict if the source changed too often meanwhile, and
    QueryWasCancelled."""
    job = ViewJob.of(origin, "REPLAY", executor, progress)
    with job.recorded():
        return _until_swapped(job, view_id, selection or ReplaySelection(), discard_bypass)


def _until_swapped(
    job: ViewJob, view_id: str, selection: ReplaySelection, discard_bypass: bool
) -> tuple[ReplayRow, ...]:
    """Attempt the replay on newer snapshots until one attempt commits the swap."""
    partition = selection.partition

    def attempt(snapshot: Snapshot) -> tuple[ReplayRow, ...]:
        """Replay the chosen slices at this snapshot in one commit; return no row without slices."""
        view = find_view(snapshot, view_id)
        readable_source(snapshot, view, "REPLAY")
        slices = _selected_partitions(job, snapshot, view, selection)
        if slices is not None and not slices:
            return ()
        if partition is not None and not discard_bypass:
            _refuse_bypass(snapshot, view, partition)
        try:
            return ReplayAttempt(
                job,
                snapshot,
                view,
                slices,
                discard_bypass,
                partition is not None,
                _frozen_keys(job, snapshot, view),
                ReplayManifest(job.services, view.target_id),
            ).run()
        except CommitConflict:
            job.refuse_cancelled()
            job.progress(ChunkEvent("conflict", "REPLAY", view_name(view)))
            raise

    policy = RetryPolicy(
        "REPLAY",
        f"The source or target of the view changed {ATTEMPTS_MAX} times while it was replayed.",
        "Nothing was changed; run it again, after SYSTEM STOP MERGES if need be.",
        ATTEMPTS_MAX,
        pinned=True,
    )
    return retry_commit(job.services, attempt, policy)


def _frozen_keys(job: ViewJob, snapshot: Snapshot, view: MaterializedView) -> FrozenKeys:
    """Return the target's frozen keys; none with the setting `discard_retained`."""
    if Settings.of(job.settings).boolean("discard_retained"):
        return FrozenKeys()
    return FrozenKeys.of(snapshot, view.target_id)


def _selected_partitions(
    job: ViewJob, snapshot: Snapshot, view: MaterializedView, selection: ReplaySelection
) -> frozenset[str] | None:
    """Return the partitions to replay. None means all, with those that only the recomputation
    reveals. Raises BadArguments."""
    partition, condition = selection.partition, selection.condition
    if sum((partition is not None, selection.stale, condition is not None)) > 1:
        raise BadArguments("REPLAY VIEW takes one of PARTITION, WHERE, FROM and STALE.")
    if condition is not None:
        target = snapshot.by_id(view.target_id)
        assert isinstance(target, Table)
        return matching_partitions(
            condition, target, snapshot, job.services, job.settings, job.environment()
        )
    if partition is not None:
        return frozenset((partition,))
    return stale_slices(snapshot, view) if selection.stale else None


def _refuse_bypass(snapshot: Snapshot, view: MaterializedView, partition: str) -> None:
    """Raise BypassRows if the partition holds rows that no view made."""
    bypass_rows = bypass(view, snapshot)
    if bypass_rows.get(partition):
        listed = ", ".join(
            f"{partition_id or 'all'}: {row_count}"
            for partition_id, row_count in bypass_rows.items()
        )
        raise BypassRows(
            f"Partition {partition} of the target of {view_name(view)} holds rows that no view"
            f" made (rows by partition: {listed}).",
            hint=f"SYSTEM REPLAY VIEW {view_name(view)} PARTITION ID '{partition}' DISCARD BYPASS"
            " removes them; SYSTEM REPLAY VIEW … STALE replays the rest and leaves them.",
        )
