"""SYSTEM REBUILD VIEW: a new version of a view beside the old one, swapped in when it is proven.

    start       one commit: a new target and a new view (the candidate), attached; older blocks are
                its gap, INSERTs fire both versions from here on
    backfill    the gap, chunk by chunk, each its own commit
    replay      what became stale meanwhile
    reconcile   all of the new target with a recomputation; what differs stops the rebuild
    swap        one commit: the names change places, see `olapdb.views.versions.versions`

Until the swap the view is as it was, whatever happens.  The state of a rebuild is the candidate and
its coverage, so it may be killed anywhere and run again: it goes on.  The swap requires that the
candidate is whole in its very commit: no gap, nothing stale, no rows by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from olapdb import errors
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.model.changes import DataVersionIs, NoGap, NothingStale, Requirement, ViewIs
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.failpoints import failpoint
from olapdb.views.definition.drop_attach import drop_view
from olapdb.views.jobs.backfill import backfill, refuse_incomplete
from olapdb.views.jobs.job import find_view, view_name
from olapdb.views.jobs.replay import replay
from olapdb.views.proof.coverage import gap
from olapdb.views.proof.reconcile import reconcile
from olapdb.views.proof.verdicts import stale_slices
from olapdb.views.versions.rebuild_checks import refuse_lost_rows
from olapdb.views.versions.start import RebuildRequest, RebuildRow, row_of
from olapdb.views.versions.versions import NameExchange, candidate_of

ROUNDS_MAX = 8
"""How often the candidate is made whole and compared anew, because its source changed meanwhile."""

SWAPS_MAX = 20
"""How often the names change places anew, because others changed names meanwhile."""


@dataclass(frozen=True)
class Rebuild:
    """One SYSTEM REBUILD VIEW statement."""

    asked: RebuildRequest

    def run(self) -> tuple[RebuildRow, ...]:
        """Builds, or goes on building, and swaps; a row for each step.

        Given the definition that the view has already, it does nothing.  Raises what CREATE raises
        for the query; ViewNotProvable, HaveDependentObjects, BypassRows, RetainedRows where a
        rebuild cannot be; BackfillIncomplete, ViewDiffers, … where it stops: the view is
        then as before, and the candidate stays for another run.
        """
        begun, candidate_id = self.asked.begin()
        if not candidate_id:
            return (begun,)
        try:
            return (begun, *self._finish(candidate_id))
        except errors.CommitUnknown:
            raise
        except errors.Error as error:
            raise self._stopped(error, candidate_id) from error

    # --- make it whole, prove it, swap

    def _finish(self, candidate_id: str) -> list[RebuildRow]:
        rows: list[RebuildRow] = []
        for _ in range(ROUNDS_MAX):
            rows += self._fill(candidate_id)
            failpoint("rebuild.backfilled")
            rows += self._replay(candidate_id)
            before = self.asked.services.catalog.snapshot()
            proven = self._prove(before, candidate_id)
            if proven is None:  # its source changed: once more
                continue
            rows += proven
            failpoint("rebuild.reconciled")
            swapped = self._swap_while_proven(before, candidate_id)
            if swapped is not None:
                return [*rows, swapped]
        raise errors.CommitConflict(
            f"The source of the view changed {ROUNDS_MAX} times while it was rebuilt.",
            hint="Nothing was swapped.",
        )

    def _fill(self, candidate_id: str) -> list[RebuildRow]:
        """Until there is no gap: partitions may be attached to the source meanwhile."""
        asked = self.asked
        rows: list[RebuildRow] = []
        for _ in range(ROUNDS_MAX):
            snapshot, view = self._candidate(candidate_id)
            if not gap(view, snapshot):
                break
            done = tuple(
                backfill(
                    asked.origin, candidate_id, executor=asked.executor, progress=asked.progress
                )
            )
            refuse_incomplete(view, done, asked.origin.query_id)
            rows += [
                row_of("backfill", snapshot, view, one.status, one.commit, one.partition, one.rows)
                for one in done
            ]
        return rows

    def _replay(self, candidate_id: str) -> list[RebuildRow]:
        asked = self.asked
        snapshot, view = self._candidate(candidate_id)
        if stale_slices(snapshot, view) == frozenset():
            return []
        return [
            row_of("replay", snapshot, view, one.status, one.commit, one.partition, one.rows_after)
            for one in replay(
                asked.origin,
                candidate_id,
                stale=True,
                executor=asked.executor,
                progress=asked.progress,
            )
        ]

    def _prove(self, before: Snapshot, candidate_id: str) -> list[RebuildRow] | None:
        """A row for each partition, all equal; None where the source changed since the replay."""
        asked = self.asked
        compared = reconcile(
            asked.origin, candidate_id, executor=asked.executor, progress=asked.progress
        )
        now, view = self._candidate(candidate_id)
        different = [one for one in compared if one.verdict not in ("equal", "retained")]
        if not different:
            return [
                row_of("reconcile", now, view, one.verdict, None, one.partition, one.keys_compared)
                for one in compared
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

    def _swap_while_proven(self, before: Snapshot, candidate_id: str) -> RebuildRow | None:
        """Tries again where only names or other views came between; None where the comparison
        does not hold any more."""

        def attempt(snapshot: Snapshot) -> RebuildRow | None:
            if not self._still_proven(before, candidate_id):
                return None
            return self._swap(before, candidate_id)

        try:
            policy = RetryPolicy("REBUILD VIEW", attempts_max=SWAPS_MAX)
            return retry_commit(self.asked.services, attempt, policy)
        except errors.CommitConflict:
            return None

    def _still_proven(self, before: Snapshot, candidate_id: str) -> bool:
        now, view = self._candidate(candidate_id)
        compared = before.by_id(candidate_id)
        moved = set(_data_versions(before, view)) - set(_data_versions(now, view))
        redefined = compared is None or compared.version != view.version
        return not (moved or redefined or gap(view, now) or any(now.invalidations(candidate_id)))

    def _swap(self, before: Snapshot, candidate_id: str) -> RebuildRow:
        """`before` was taken before the comparison: what it read is what is required."""
        snapshot, candidate = self._candidate(candidate_id)
        # Not the view that was named: a ROLLBACK may have given its name to another version.
        view = find_view(snapshot, candidate.stands_beside)
        if not self.asked.discards_retained:
            refuse_lost_rows(snapshot, view, candidate)
        exchange = NameExchange(snapshot, view, candidate)
        exchange.refuse()
        compared = before.by_id(candidate_id)
        assert isinstance(compared, MaterializedView)
        own: list[Requirement] = [
            self.asked.origin.lease,
            ViewIs(candidate_id, compared.version),
            NoGap(candidate_id),
            NothingStale(candidate_id),
        ]
        own += [DataVersionIs(*one) for one in _data_versions(before, candidate)]
        draft = exchange.draft(own)
        failpoint("rebuild.before_swap")
        done = self.asked.publish(draft)
        failpoint("rebuild.swapped")
        now = self.asked.services.catalog.snapshot()
        found = now.by_id(candidate_id)
        shown = found if isinstance(found, MaterializedView) else candidate
        return row_of("swap", now, shown, "swapped", done)

    # --- helpers

    def _candidate(self, candidate_id: str) -> tuple[Snapshot, MaterializedView]:
        """The newest snapshot and the candidate there; raises where it was cancelled, or another
        run of the statement was faster."""
        snapshot = self.asked.services.catalog.snapshot()
        found = snapshot.by_id(candidate_id)
        if not isinstance(found, MaterializedView) or found.standing != "candidate":
            raise self._cancelled()
        return snapshot, found

    def _cancelled(self) -> errors.UnknownTable:
        return errors.UnknownTable(
            "The version that was being built is there no more: the rebuild was cancelled, or"
            " finished by another statement."
        )

    def _stopped(self, error: errors.Error, candidate_id: str) -> errors.Error:
        """The same error, saying what is now and how to go on; that the candidate is gone, where it
        failed for that."""
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


def cancel_rebuild(origin: CommitOrigin, view_id: str) -> None:
    """Drops the version that a REBUILD was making, with its target. BadArguments without one."""
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
    """Of the source's and the target's partitions, and of both as a whole."""
    return tuple(
        (table_id, partition, snapshot.data_version(table_id, partition))
        for table_id in (view.source_id, view.target_id)
        for partition in sorted({"", *(p.partition_id for p in snapshot.parts(table_id))})
    )
