"""SYSTEM REBUILD VIEW: build a new version of a view beside the old one, prove it, swap it in.

    start       one commit: a new target and a new view (the candidate), attached; older blocks are
                its gap, INSERTs fire both versions from here on
    backfill    the gap, chunk by chunk, each its own commit
    replay      the slices that became stale meanwhile
    reconcile   compare the new target with a recomputation; a difference stops the rebuild
    swap        one commit: the versions exchange names, see `olapdb.views.versions.exchange`

The view is unchanged until the swap, whatever happens. The state of a rebuild is the candidate and
its coverage, so a killed rebuild goes on when it is run again. The commit of the swap requires a
complete candidate: no gap, nothing stale, no bypass rows.
"""

from __future__ import annotations

from olapdb import errors
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.model.requirements import DataVersionIs, NoGap, NothingStale, Requirement, ViewIs
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.views.definition.drop_attach import drop_view
from olapdb.views.jobs.backfill import backfill, refuse_incomplete
from olapdb.views.jobs.job import find_view, view_name
from olapdb.views.jobs.replay import ReplaySelection, replay
from olapdb.views.proof.coverage import gap_slices
from olapdb.views.proof.reconcile import reconcile
from olapdb.views.proof.verdicts import stale_slices
from olapdb.views.versions.exchange import NameExchange
from olapdb.views.versions.followers import Follower
from olapdb.views.versions.rebuild_checks import refuse_lost_rows
from olapdb.views.versions.start import RebuildRequest, RebuildRow, row_of
from olapdb.views.versions.versions import candidate_of

ROUNDS_MAX = 8
"""Rounds of completing and comparing the candidate while its source changes."""

SWAPS_MAX = 20
"""Attempts at the swap while concurrent commits change names."""


@dataclass(frozen=True)
class Rebuild:
    """The run of one SYSTEM REBUILD VIEW statement."""

    asked: RebuildRequest

    def run(self) -> tuple[RebuildRow, ...]:
        """Start or continue the rebuild and swap; return a row for each step.

        Does nothing if the view already has the requested definition. Raises what CREATE raises for
        the query; ViewNotProvable, HaveDependentObjects, BypassRows or RetainedRows if a rebuild is
        not possible; BackfillIncomplete, ViewDiffers or others if it stops. The view is then
        unchanged, and the candidate stays for another run."""
        first_row, candidate_id = self.asked.begin()
        if not candidate_id:
            return (first_row,)
        try:
            return (first_row, *self._finish(candidate_id))
        except errors.CommitUnknown:
            raise
        except errors.Error as error:
            raise self._stopped(error, candidate_id) from error

    # --- complete, prove, swap

    def _finish(self, candidate_id: str) -> list[RebuildRow]:
        """Complete, prove and swap the candidate; return the rows of these steps. Raise
        CommitConflict if the source changed in every round."""
        rows: list[RebuildRow] = []
        for _ in range(ROUNDS_MAX):
            rows += self._fill(candidate_id)
            failpoint("rebuild.backfilled")
            rows += self._replay(candidate_id)
            before = self.asked.services.catalog.snapshot()
            proven = self._prove(before, candidate_id)
            if proven is None:  # the source changed: next round
                continue
            rows += proven
            failpoint("rebuild.reconciled")
            swapped = self._swap_while_proven(before, candidate_id)
            if swapped is not None:
                return [*rows, *swapped]
        raise errors.CommitConflict(
            f"The source of the view changed {ROUNDS_MAX} times while it was rebuilt.",
            hint="Nothing was swapped.",
        )

    def _fill(self, candidate_id: str) -> list[RebuildRow]:
        """Backfill until there is no gap; partitions may be attached to the source meanwhile.
        Return a row for each chunk."""
        request = self.asked
        rows: list[RebuildRow] = []
        for _ in range(ROUNDS_MAX):
            snapshot, view = self._candidate(candidate_id)
            if not gap_slices(view, snapshot):
                break
            chunk_rows = tuple(
                backfill(
                    request.origin,
                    candidate_id,
                    executor=request.executor,
                    progress=request.progress,
                )
            )
            refuse_incomplete(view, chunk_rows, request.origin.query_id)
            rows += [
                row_of("backfill", snapshot, view, row.status, row.commit, row.partition, row.rows)
                for row in chunk_rows
            ]
        return rows

    def _replay(self, candidate_id: str) -> list[RebuildRow]:
        """Replay the stale slices; return a row for each."""
        request = self.asked
        snapshot, view = self._candidate(candidate_id)
        if stale_slices(snapshot, view) == frozenset():
            return []
        return [
            row_of("replay", snapshot, view, row.status, row.commit, row.partition, row.rows_after)
            for row in replay(
                request.origin,
                candidate_id,
                ReplaySelection(stale=True),
                executor=request.executor,
                progress=request.progress,
            )
        ]

    def _prove(self, before: Snapshot, candidate_id: str) -> list[RebuildRow] | None:
        """Compare the candidate with a recomputation; return a row for each partition if all are
        "equal" or "retained".

        Otherwise return None if source or target changed since the snapshot `before`, or the
        candidate has stale slices; else raise ViewDiffers.
        """
        request = self.asked
        compared = reconcile(
            request.origin, candidate_id, executor=request.executor, progress=request.progress
        )
        now, view = self._candidate(candidate_id)
        different = [row for row in compared if row.verdict not in ("equal", "retained")]
        if not different:
            return [
                row_of("reconcile", now, view, row.verdict, None, row.partition, row.keys_compared)
                for row in compared
            ]
        if any(now.invalidations(candidate_id)) or _data_versions(now, view) != _data_versions(
            before, view
        ):
            return None
        first = different[0]
        raise errors.ViewDiffers(
            f"Partition {first.partition} of the new target is {first.verdict}:"
            f" {first.missing} keys missing, {first.extra} extra, {first.differing} differing"
            f" ({', '.join(first.examples[:3]) or '; '.join(first.causes) or 'no example'})."
        )

    def _swap_while_proven(self, before: Snapshot, candidate_id: str) -> list[RebuildRow] | None:
        """Swap, retrying if a concurrent commit changed only names or other views. Return None if
        the comparison no longer holds, or if every attempt conflicted."""

        def attempt(snapshot: Snapshot) -> list[RebuildRow] | None:
            """Swap view and candidate, unless the proof no longer holds; then return None."""
            if not self._still_proven(before, candidate_id):
                return None
            return self._swap(before, candidate_id)

        try:
            policy = RetryPolicy("REBUILD VIEW", attempts_max=SWAPS_MAX)
            return retry_commit(self.asked.services, attempt, policy)
        except errors.CommitConflict:
            return None

    def _still_proven(self, before: Snapshot, candidate_id: str) -> bool:
        """Return whether the definition and data that were compared are unchanged since `before`,
        and the candidate has no gap and nothing stale."""
        now, view = self._candidate(candidate_id)
        compared_view = before.by_id(candidate_id)
        changed_versions = set(_data_versions(before, view)) - set(_data_versions(now, view))
        redefined = compared_view is None or compared_view.version != view.version
        return not (
            changed_versions
            or redefined
            or gap_slices(view, now)
            or any(now.invalidations(candidate_id))
        )

    def _swap(self, before: Snapshot, candidate_id: str) -> list[RebuildRow]:
        """Exchange the names in one commit; return its row, and one for each materialized view,
        kept versions apart, that reads the target. The commit requires the definition and the data
        versions of `before`, a snapshot from before the comparison."""
        snapshot, candidate = self._candidate(candidate_id)
        # Not the statement's view: a ROLLBACK may have given its name to another version.
        view = find_view(snapshot, candidate.stands_beside)
        if not self.asked.discards_retained:
            refuse_lost_rows(snapshot, view, candidate)
        exchange = NameExchange(snapshot, view, candidate)
        exchange.refuse()
        compared_view = before.by_id(candidate_id)
        assert isinstance(compared_view, MaterializedView)
        requirements: list[Requirement] = [
            self.asked.origin.lease,
            ViewIs(candidate_id, compared_view.version),
            NoGap(candidate_id),
            NothingStale(candidate_id),
        ]
        requirements += [
            DataVersionIs(*data_version) for data_version in _data_versions(before, candidate)
        ]
        draft = exchange.draft(requirements, self.asked.origin.of_kind("REBUILD VIEW"))
        failpoint("rebuild.before_swap")
        commit = self.asked.publish(draft)
        failpoint("rebuild.swapped")
        now = self.asked.services.catalog.snapshot()
        current = now.by_id(candidate_id)
        shown_view = current if isinstance(current, MaterializedView) else candidate
        return [
            row_of("swap", now, shown_view, "swapped", commit),
            *(
                _follower_row(now, follower, commit)
                for follower in exchange.followers
                if follower.after.standing != "previous"  # no view reads a kept version by its name
            ),
        ]

    # --- helpers

    def _candidate(self, candidate_id: str) -> tuple[Snapshot, MaterializedView]:
        """Return the newest snapshot and the candidate in it. Raise UnknownTable if the rebuild was
        cancelled, or another statement finished it."""
        snapshot = self.asked.services.catalog.snapshot()
        candidate = snapshot.by_id(candidate_id)
        if not isinstance(candidate, MaterializedView) or candidate.standing != "candidate":
            raise self._cancelled()
        return snapshot, candidate

    def _cancelled(self) -> errors.UnknownTable:
        """Return the error for a candidate that no longer exists."""
        return errors.UnknownTable(
            "The version that was being built is there no more: the rebuild was cancelled, or"
            " finished by another statement."
        )

    def _stopped(self, error: errors.Error, candidate_id: str) -> errors.Error:
        """Return the same error, extended by the state of the view and how to go on. If the
        candidate no longer exists, return the error for that."""
        snapshot = self.asked.services.catalog.snapshot()
        candidate = snapshot.by_id(candidate_id)
        if not isinstance(candidate, MaterializedView) or candidate.standing != "candidate":
            return self._cancelled()
        view = snapshot.by_id(candidate.stands_beside)
        if not isinstance(view, MaterializedView):
            return error
        name = view_name(view)
        stopped = type(error)(
            f"{error.message} The rebuild of {name} stopped; {name} is as before.",
            hint=f"{error.hint} SYSTEM REBUILD VIEW {name} goes on, SYSTEM CANCEL REBUILD VIEW"
            f" {name} gives it up.".strip(),
        )
        if isinstance(error, errors.CommitConflict) and isinstance(stopped, errors.CommitConflict):
            stopped.requirement = error.requirement
        if isinstance(error, errors.BackfillIncomplete) and isinstance(
            stopped, errors.BackfillIncomplete
        ):
            stopped.rows = error.rows
        return stopped


def _follower_row(snapshot: Snapshot, follower: Follower, commit: int) -> RebuildRow:
    """Return the row of a view that reads the exchanged target."""
    status = "reads the new version, and is stale" if follower.moves else "reads the same table"
    if follower.stays:
        status = f"stays with the previous version: {follower.stays}"
    return row_of("downstream", snapshot, follower.after, status, commit)


def cancel_rebuild(origin: CommitOrigin, view_id: str) -> None:
    """Drop the candidate of an unfinished REBUILD, with its target. Raise BadArguments if there is
    none."""
    snapshot = origin.services.catalog.snapshot()
    view = find_view(snapshot, view_id)
    candidate = view if view.standing == "candidate" else candidate_of(snapshot, view)
    if candidate is None:
        raise errors.BadArguments(
            f"No rebuild of {view_name(view)} is under way.",
            hint="SYSTEM ROLLBACK VIEW undoes one that is finished.",
        )
    drop_view(origin, candidate.id)


def _data_versions(snapshot: Snapshot, view: MaterializedView) -> tuple[tuple[str, str, int], ...]:
    """Return (table id, partition, data version) of source and target: one for each partition, and
    one for the whole table (partition "")."""
    return tuple(
        (table_id, partition, snapshot.data_version(table_id, partition))
        for table_id in (view.source_id, view.target_id)
        for partition in sorted({"", *(part.partition_id for part in snapshot.parts(table_id))})
    )
