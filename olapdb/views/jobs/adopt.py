"""ADOPT: make rows that a user inserted into a target the view's own, once they are proven right.

Users fill a view's past by hand: they create the view for new rows, and INSERT SELECT the older
ones. The ledger calls the first covered, the second a gap, and the rows by hand bypass (rule 7).

    source parts   1..4 (gap)   5..9 (seen)      target parts   1..1 (bypass)   2..6 (view)
    recomputed     from 1..9                     compared with  1..1 and 2..6, as merged
    equal          the gap 1..4 is covered, part 1..1 is the view's, the target is proven
    different      BypassRows names partition and keys, nothing is changed

All rows of the target are compared, at one snapshot, with a recomputation from all source rows, the
gap included. The commit requires that the definitions, the source partitions, the gap and the
bypass parts are still those that were compared. Rows that triggers add meanwhile do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from olapdb.bind.syntax import walk
from olapdb.commit.draft import CommitDraft, publish_if_current
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.commit.staging import Staging
from olapdb.errors import BypassRows, Error, RetainedRows, ViewNotProvable
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.dimension_requirements import dimension_requirements
from olapdb.ingest.read_parts import read_rows
from olapdb.lineage.retention import FrozenKeys
from olapdb.model.changes import (
    AddCoverage,
    AddPart,
    Change,
    RaiseDataVersion,
    RecordCheck,
    RemoveParts,
)
from olapdb.model.part import Contribution, Part
from olapdb.model.requirements import (
    DataVersionIs,
    NotCovered,
    PartsLive,
    Requirement,
    SchemaIs,
    ViewIs,
)
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check, CoverageRow, Verdict
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.sql import nodes
from olapdb.sql.parser import parse_query
from olapdb.views.jobs.chunk_planner import slice_claims
from olapdb.views.jobs.executor import Executor
from olapdb.views.jobs.job import ATTEMPTS_MAX, Progress, ViewJob, find_view, view_name
from olapdb.views.proof.coverage import GapSlice, covered_parts, gap_slices, is_bypass, stores_rows
from olapdb.views.proof.failed_repairs import ROW_ERRORS
from olapdb.views.proof.recompute import ComputedRows, Recomputation, ReconcileRow
from olapdb.views.proof.reconcile import verdict_changes
from olapdb.views.proof.shared_targets import incomparable_reason
from olapdb.views.proof.verdicts import WHOLE_TARGET, adoption_fingerprint, counts


@dataclass(frozen=True, slots=True)
class AdoptRow:
    """A partition of the target whose bypass rows are now the view's: `parts` parts with `rows`
    rows. `source_rows` counts the rows of the view's whole gap, which is now covered."""

    partition: str
    parts: int
    rows: int
    keys_compared: int
    source_rows: int
    commit: int


def adopt(
    origin: CommitOrigin,
    view_id: str,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> tuple[AdoptRow, ...]:
    """Adopt the bypass rows of the view's target. Return a row for each partition that held some;
    none if there are none to adopt. The view is proven afterwards.

    Raises BypassRows if the target differs from a recomputation, and records that for
    `system.views.mend`. Raises ViewNotProvable for a view that cannot be compared with its source.
    Raises RetainedRows for bypass rows beside frozen keys. Raises CommitConflict if the compared
    data kept changing. Then the target is unchanged."""
    job = ViewJob.of(origin, "ADOPT", executor, progress)
    with job.recorded():
        return _until_adopted(job, view_id)


def _until_adopted(job: ViewJob, view_id: str) -> tuple[AdoptRow, ...]:
    """Attempt the adoption on newer snapshots until one attempt commits."""

    def attempt(snapshot: Snapshot) -> tuple[AdoptRow, ...]:
        """Adopt the view's rows at this snapshot; return no row if none was written by hand."""
        view = find_view(snapshot, view_id)
        _refuse_unverifiable(view, snapshot)
        adoption = _Adoption(job, snapshot, view)
        return adoption.run() if adoption.bypass_parts else ()

    policy = RetryPolicy(
        "ADOPT",
        f"The rows by hand, or the source's, changed {ATTEMPTS_MAX} times while they were compared.",
        "Nothing was changed; run it again, after SYSTEM STOP MERGES if need be.",
        ATTEMPTS_MAX,
        pinned=True,
        on_conflict=lambda conflict: job.refuse_cancelled(),
    )
    return retry_commit(job.services, attempt, policy)


def _refuse_unverifiable(view: MaterializedView, snapshot: Snapshot) -> None:
    """Raise ViewNotProvable if the target cannot be compared with the view's source."""
    reason = incomparable_reason(view, snapshot)
    if reason:
        raise ViewNotProvable(
            f"ADOPT VIEW {view_name(view)}: what is in its target cannot be proven. {reason}",
            hint=f"SYSTEM REPLAY VIEW {view_name(view)} DISCARD BYPASS removes the rows by hand."
            if stores_rows(snapshot, view.source_id)
            else "Rows by hand stay beside the view's; DELETE them from the target by their keys.",
        )


@dataclass(frozen=True)
class _Adoption:
    """One attempt at an adoption, as of a snapshot."""

    job: ViewJob
    snapshot: Snapshot
    view: MaterializedView

    @property
    def bypass_parts(self) -> tuple[Part, ...]:
        """Return the bypass parts, by partition and block."""
        writers = frozenset(view.id for view in self.snapshot.views_into(self.view.target_id))
        parts = self.snapshot.parts(self.view.target_id)
        return tuple(part for part in parts if part.rows and is_bypass(part, writers))

    def run(self) -> tuple[AdoptRow, ...]:
        """Compare the target with a recomputation, and commit the adoption if it is equal. Return a
        row for each partition with bypass rows."""
        recomputation = Recomputation(
            self.job, self.snapshot, self.view, gap_of=frozenset((self.view.id,))
        )
        try:
            expected_rows = recomputation.expected()
        except ROW_ERRORS as error:
            self._refuse_failing(error)
        compared = recomputation.compare(expected_rows)
        self._refuse_different(compared)
        self._refuse_frozen()
        gap, target = gap_slices(self.view, self.snapshot), recomputation.target
        # A concurrent replay must not mistake the adopted rows for rows that it recomputed.
        bypass_partitions = frozenset(part.partition_id for part in self.bypass_parts)
        with Staging(self.job.origin) as staging:
            contributions = self._gap_slices_by_target(recomputation, expected_rows, gap)
            staged = list(self._stage_bypass_parts(recomputation, contributions, staging))
            changes: list[Change] = [
                RemoveParts(
                    target.id, tuple(sorted(bypass_part.id for bypass_part in self.bypass_parts))
                ),
                *staged,
                *self._coverage_changes(gap),
                *(RaiseDataVersion(target.id, partition) for partition in bypass_partitions),
                *verdict_changes(
                    self.job,
                    self.snapshot,
                    self.view,
                    compared,
                    complete=True,
                    raised=bypass_partitions,
                ),
                *self.job.closing_changes("compared"),
            ]
            failpoint("adopt.before_commit")
            committed = staging.publish(CommitDraft(self._requirements(gap), changes))
        self.job.record.mark_ended()
        failpoint("adopt.committed")
        return tuple(self._rows(compared, gap, committed.number))

    def _refuse_frozen(self) -> None:
        """Raise RetainedRows if a partition with bypass rows has frozen keys: nothing can be
        compared with bypass rows there."""
        frozen = FrozenKeys.of(self.snapshot, self.view.target_id)
        for part in self.bypass_parts:
            if frozen.holds(part.partition_id):
                raise RetainedRows(
                    f"ADOPT VIEW {view_name(self.view)}: source rows of partition"
                    f" {part.partition_id} have left by retention, so rows by hand there cannot be"
                    " proven.",
                    hint=f"SYSTEM REPLAY VIEW {view_name(self.view)} PARTITION ID"
                    f" '{part.partition_id}' DISCARD BYPASS removes them.",
                )

    # --- the adopted rows

    def _gap_slices_by_target(
        self,
        recomputation: Recomputation,
        computed: Sequence[ComputedRows],
        gap: Sequence[GapSlice],
    ) -> dict[str, list[GapSlice]]:
        """Return the slices of the gap by target partition with bypass rows. A slice is listed for
        each such partition that its rows reach. If they reach none, because a filter removes them,
        it is listed for the first."""
        slices = {gap_slice.partition: gap_slice for gap_slice in gap}
        layout = layout_of(recomputation.target, recomputation.context())
        bypass_partitions = dict.fromkeys(part.partition_id for part in self.bypass_parts)
        slices_by_target: dict[str, list[GapSlice]] = {
            partition: [] for partition in bypass_partitions
        }
        for chunk in computed:
            if not chunk.in_gap:
                continue
            reached = (
                {partition_id for partition_id, _, _ in layout.split(chunk.rows)}
                if chunk.rows.num_rows
                else set()
            )
            for partition in (
                sorted(reached & slices_by_target.keys()) or list(bypass_partitions)[:1]
            ):
                slices_by_target[partition].append(slices[chunk.partition])
        return slices_by_target

    def _stage_bypass_parts(
        self,
        recomputation: Recomputation,
        sources: Mapping[str, Sequence[GapSlice]],
        staging: Staging,
    ) -> Iterator[AddPart]:
        """Stage the bypass rows unchanged, with their blocks, as parts of the view. Of several
        parts in a partition, the first records the source blocks, so that no block is booked
        twice."""
        context, target = recomputation.context(), recomputation.target
        booked_partitions: set[str] = set()
        for part in self.bypass_parts:
            source_slices = (
                () if part.partition_id in booked_partitions else sources[part.partition_id]
            )
            booked_partitions.add(part.partition_id)
            rows = read_rows(context, target, part)
            derived = layout_of(target, context).derived(rows)
            yield staging.stage_replacement(
                target,
                part,
                rows,
                derived,
                contributions=self._part_contributions(part, source_slices),
            )

    def _part_contributions(
        self, part: Part, slices: Sequence[GapSlice]
    ) -> tuple[Contribution, ...]:
        """Return the contributions of a part; its rows are counted once, with the first slice."""
        view = self.view
        if not slices:
            return (Contribution(view.id, view.version, view.source_id, None, (), part.rows),)
        return tuple(
            Contribution(
                view.id,
                view.version,
                view.source_id,
                gap_slice.partition,
                slice_claims(self.snapshot, view, gap_slice),
                0 if index else part.rows,
            )
            for index, gap_slice in enumerate(slices)
        )

    def _coverage_changes(self, gap: Sequence[GapSlice]) -> Iterator[Change]:
        """Yield the changes that add the gap to the view's coverage."""
        for gap_slice in gap:
            for claimed in slice_claims(self.snapshot, self.view, gap_slice):
                yield AddCoverage(CoverageRow(self.view.id, gap_slice.partition, claimed))

    def _requirements(self, gap: Sequence[GapSlice]) -> list[Requirement]:
        """Return the requirements of the commit: all compared data is unchanged."""
        requirements: dict[Requirement, None] = {}
        for view in self.snapshot.views_into(self.view.target_id):
            partitions_read = {part.partition_id for part in covered_parts(view, self.snapshot)}
            if view.id == self.view.id:
                partitions_read.update(gap_slice.partition for gap_slice in gap)
            for requirement in self.job.read_requirements(
                self.snapshot, view, sorted(partitions_read)
            ):
                requirements[requirement] = None
            for requirement, _ in dimension_requirements(view, self.snapshot):
                requirements[requirement] = None
        for gap_slice in gap:
            requirements[NotCovered(self.view.id, gap_slice.partition, gap_slice.blocks)] = None
            # A merge may have joined these parts with later ones, whose blocks are not claimed.
            ids = tuple(sorted(part.id for part in gap_slice.parts))
            requirements[PartsLive(self.view.source_id, ids)] = None
        target = self.snapshot.by_id(self.view.target_id)
        assert target is not None
        requirements[SchemaIs(target.id, target.version)] = None
        for partition in sorted(
            {target_part.partition_id for target_part in self.snapshot.parts(target.id)}
        ):
            version = self.snapshot.data_version(target.id, partition)
            requirements[DataVersionIs(target.id, partition, version)] = None
        requirements[
            PartsLive(target.id, tuple(sorted(target_part.id for target_part in self.bypass_parts)))
        ] = None
        return list(requirements)

    def _rows(
        self, compared: Sequence[ReconcileRow], gap: Sequence[GapSlice], commit: int
    ) -> Iterator[AdoptRow]:
        """Yield a row for each compared partition that held bypass rows.

        Every row counts the source rows of the whole gap. `commit` is the number of the commit."""
        source_rows = sum(gap_slice.rows for gap_slice in gap)
        for row in compared:
            adopted_parts = [
                part for part in self.bypass_parts if part.partition_id == row.partition
            ]
            if adopted_parts:
                rows = sum(part.rows for part in adopted_parts)
                yield AdoptRow(
                    row.partition, len(adopted_parts), rows, row.keys_compared, source_rows, commit
                )

    # --- refusals

    def _refuse_different(self, rows: Sequence[ReconcileRow]) -> None:
        """Raise BypassRows if a partition differs from the recomputation, and record the
        difference."""
        differing = [row for row in rows if row.verdict not in ("equal", "retained")]
        if not differing:
            return
        self._record_different(differing)
        first, name = differing[0], view_name(self.view)
        others = len(differing) - 1
        more = f" So do {others} other partitions." if others else ""
        if others == 1:
            more = " So does another partition."
        raise BypassRows(
            f"ADOPT VIEW {name}: partition {first.partition} of its target differs from what the"
            f" view makes of all rows of its source: {counts(first)} of {first.keys_compared} keys"
            f" ({'; '.join(first.examples)}).{more} Nothing was changed.",
            hint=self._advice(differing, name),
        )

    def _refuse_failing(self, error: Error) -> NoReturn:
        """Raise BypassRows because the view failed on source rows, and record that."""
        name = view_name(self.view)
        self._record(self._refusal_check("unverifiable", (str(error),)))
        raise BypassRows(
            f"ADOPT VIEW {name}: its rows by hand cannot be compared, since the view fails on rows"
            f" of its source: {error}",
            hint=f"Mend the rows or the definition (ALTER TABLE {name} MODIFY QUERY …), and adopt"
            f" then; or SYSTEM REPLAY VIEW {name} DISCARD BYPASS removes the rows by hand.",
        ) from error

    def _record_different(self, differing: Sequence[ReconcileRow]) -> None:
        """Record the differing partitions as one check of the whole target."""
        self._record(
            replace(
                self._refusal_check("different", differing[0].examples),
                keys_compared=sum(row.keys_compared for row in differing),
                missing=sum(row.missing for row in differing),
                extra=sum(row.extra for row in differing),
                differing=sum(row.differing for row in differing),
                largest_difference=max(row.largest_difference for row in differing),
            )
        )

    def _refusal_check(self, verdict: Verdict, examples: tuple[str, ...]) -> Check:
        """Return a check of the whole target that says why the adoption was refused."""
        return Check(
            view_id=self.view.id,
            target_partition=WHOLE_TARGET,
            snapshot=self.snapshot.number,
            fingerprint=adoption_fingerprint(self.view, self.snapshot),
            verdict=verdict,
            keys_compared=0,
            missing=0,
            extra=0,
            differing=0,
            largest_difference=0.0,
            examples=examples,
            checked_ms=self.job.services.clock_ms(),
            mode="ADOPT",
        )

    def _record(self, check: Check) -> None:
        """Record that these bypass rows cannot be adopted. `system.views.mend` then stops
        suggesting ADOPT until the view or the compared data change. For a view without a gap it
        never suggests ADOPT, so nothing is recorded."""
        if not gap_slices(self.view, self.snapshot):
            return
        requirements = (
            self.job.origin.lease,
            ViewIs(self.view.id, self.view.version),
            *self.job.record.requirements(),
        )
        # The commit conflicts if the view was dropped or altered, or the job was cancelled.
        publish_if_current(CommitDraft(requirements, [RecordCheck(check)]), self.job.origin)

    def _advice(self, differing: Sequence[ReconcileRow], name: str) -> str:
        """Return the hint for this kind of difference: rows that the definition never makes, rows
        that are duplicate or wrong, or rows that are missing."""
        has_extra = any(row.extra for row in differing)
        if has_extra and _has_filter(self.view):
            return (
                f"The definition of {name} has a WHERE, and never makes the rows that it leaves"
                " out: these stay bypass. To have them adopted, drop the view, create it TO the"
                " same target without that condition, and adopt with the new one."
            )
        if has_extra or any(row.differing for row in differing):
            has_gap = bool(gap_slices(self.view, self.snapshot))
            backfill_advice = f"; SYSTEM BACKFILL VIEW {name} fills the gap" if has_gap else ""
            return (
                "Rows that the view had made already may be there a second time, or others than"
                f" its definition gives. SYSTEM REPLAY VIEW {name} DISCARD BYPASS removes the rows"
                f" by hand{backfill_advice}."
            )
        missing = ", ".join(
            gap_slice.partition for gap_slice in gap_slices(self.view, self.snapshot)[:10]
        )
        return (
            f"Not all of the gap was filled by hand. SYSTEM BACKFILL VIEW {name} PARTITION … fills"
            f" those partitions of the source that were left out (the gap has {missing}); adopt"
            " afterwards."
        )


def _has_filter(view: MaterializedView) -> bool:
    """Return whether the definition has a WHERE or PREWHERE, at any depth."""
    return any(
        isinstance(node, nodes.Select) and (node.where or node.prewhere) is not None
        for node in walk(parse_query(view.query))
    )
