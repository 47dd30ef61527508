"""One attempt at a replay, at one snapshot: recompute slices of a target and swap them in.

The fence (rule 6) is the target's last block F at the snapshot. Rows of a slice from blocks up to F
are the results of source blocks that the snapshot shows as covered; the attempt recomputes them. It
keeps rows from later blocks, which triggers and backfills committed meanwhile. If a merge joined
rows of both sides, the attempt conflicts; other merges do not matter.

    target parts   1..4 (view)  5..5 (bypass)  6..6 (view)  | F = 6 |  7..7 (view)
    the swap       removes 1..4 and 6..6, adds the recomputed part as block 8, keeps 5..5 and 7..7

The recomputed rows are a new block of the target. Downstream views have seen the rows that it
replaces, so the commit adds the block to their coverage and marks their slices stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal

from olapdb.commit.draft import CommitDraft
from olapdb.commit.staging import Staging
from olapdb.config import Settings
from olapdb.engine.layout import UNPARTITIONED
from olapdb.errors import BadArguments, CommitConflict
from olapdb.ingest.block_parts import PLACEHOLDER_PARTITION
from olapdb.ingest.dimension_requirements import dimension_requirements
from olapdb.ingest.read_parts import Pin, deleting_on_failure, discard
from olapdb.ingest.staged_insert import StagedInsert, join_staged
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.effects import TableWrite, effects_of
from olapdb.lineage.retention import FrozenKeys
from olapdb.model.changes import AddPart, Change, ClearInvalidations, RaiseDataVersion, RemoveParts
from olapdb.model.part import BlockRange, Part
from olapdb.model.requirements import DataVersionIs, PartsOfPartitionAre, Requirement, SchemaIs
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk
from olapdb.views.jobs.downstream_invalidation import downstream_effects
from olapdb.views.jobs.job import ChunkEvent, ViewJob, by_partition, readable_source, view_name
from olapdb.views.jobs.placeholder_parts import placeholder_changes
from olapdb.views.jobs.replay_manifest import ReplayManifest
from olapdb.views.jobs.retained_rows import (
    refuse_retained,
    release_changes,
    stage_frozen_rows,
    stale_frozen_changes,
)
from olapdb.views.jobs.source_pruning import parts_reaching_slices
from olapdb.views.proof.coverage import is_bypass, writers
from olapdb.views.proof.failed_repairs import record_failed_attempt
from olapdb.views.proof.shared_targets import recomputable_writers
from olapdb.views.proof.verdicts import stale_slices


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """A replayed partition of the target, with its rows of views before and after. `source_rows`
    are those of the whole replay. `bypass_rows` were kept or discarded, as `status` says.
    `retained_rows`, a part of `rows_after`, are frozen rows that were kept unchanged."""

    partition: str
    source_rows: int
    rows_before: int
    rows_after: int
    bypass_rows: int
    status: Literal["replayed", "bypass kept", "bypass discarded", "retained"]
    commit: int
    retained_rows: int = 0


@dataclass(frozen=True)
class ReplayAttempt:
    """One attempt at a replay, as of a snapshot. `slices` None means the whole target; `explicit`
    says that the statement names a partition."""

    job: ViewJob
    snapshot: Snapshot
    view: MaterializedView
    slices: frozenset[str] | None
    discard_bypass: bool
    explicit: bool
    frozen: FrozenKeys
    swap: ReplayManifest

    def run(self) -> tuple[ReplayRow, ...]:
        """Recompute the slices and commit the swap; return a row for each partition."""
        views = list(recomputable_writers(self.view, self.snapshot))
        with deleting_on_failure(self.swap.forget), Staging(self.job.origin) as staging:
            self.swap.begin()
            staged, source_rows = self._recompute(views)
            if staged is not None:
                staging.adopt(staged.paths)
            failpoint("replay.before_commit")
            return self._swap(views, staged, source_rows, staging)

    # --- recompute

    @cached_property
    def _read_parts(self) -> dict[str, tuple[Part, ...]]:
        """Return the covered source parts that can reach the slices, by the id of their view."""
        return {
            view.id: parts_reaching_slices(view, self.snapshot, self.slices, self.job.services)
            for view in recomputable_writers(self.view, self.snapshot)
        }

    def _recorded_blocks(self, view: MaterializedView, partition: str) -> tuple[BlockRange, ...]:
        """Return the blocks of a source partition that a recomputed slice records: all that the
        view covers. Blocks that were not read contribute nothing."""
        return self.snapshot.coverage(view.id).ranges(partition)

    def _recompute(self, views: list[MaterializedView]) -> tuple[StagedInsert | None, int]:
        """Compute the chunks of all views; return their joined result (None if no chunk made a
        part) and the number of source rows. If a chunk fails, discard all results and raise its
        error."""
        tasks: list[ChunkTask] = []
        for view in views:
            readable_source(self.snapshot, view, "REPLAY")
            for partition, parts in by_partition(self._read_parts[view.id]).items():
                task = self.job.task(
                    self.snapshot, view, partition, parts, len(tasks), "replay", self.slices
                )
                blocks = self._recorded_blocks(view, partition)
                task = replace(task, blocks=blocks, frozen=self.frozen, swap=self.swap.id)
                tasks.append(task)
        self.job.plan(self.view, tasks)
        for task in tasks:
            self._report_progress("planned", task.index, len(tasks), task.partition, task.rows, 0)
        staged_by_index: dict[int, StagedInsert] = {}
        source_rows = 0
        first_failure: FailedChunk | None = None
        for outcome in self.job.run(tasks):
            if isinstance(outcome, FailedChunk):
                first_failure = first_failure or outcome
                continue
            assert outcome.staged is not None
            staged_by_index[outcome.index] = outcome.staged
            source_rows += outcome.source_rows
            self._report_progress(
                "computed",
                outcome.index,
                len(tasks),
                outcome.partition,
                outcome.source_rows,
                outcome.target_rows,
            )
        if first_failure is not None:
            for staged in staged_by_index.values():
                discard(self.job.services, staged.paths)
            if self.slices is None or self.slices == stale_slices(self.snapshot, self.view):
                record_failed_attempt(self.job, self.view.id, "REPLAY", first_failure.error)
            raise first_failure.error
        non_empty = [
            staged_by_index[index]
            for index in sorted(staged_by_index)
            if staged_by_index[index].changes
        ]
        return (join_staged(non_empty) if non_empty else None), source_rows

    def _report_progress(
        self, phase: str, index: int, total: int, partition: str, rows: int, target_rows: int
    ) -> None:
        """Report the phase of a chunk to the job's `progress`."""
        self.job.progress(
            ChunkEvent(
                phase,  # type: ignore[arg-type]
                "REPLAY",
                view_name(self.view),
                index,
                total,
                partition,
                0,
                rows,
                target_rows,
                None,
                self.job.elapsed_ms,
            )
        )

    # --- swap

    def _swap(
        self,
        views: list[MaterializedView],
        staged: StagedInsert | None,
        source_rows: int,
        staging: Staging,
    ) -> tuple[ReplayRow, ...]:
        """Commit the swap: remove the replaced parts, add the recomputed and the frozen rows, and
        mark downstream slices stale. Return a row for each partition, sorted.

        `staged` None adds no recomputed rows. Bypass rows stay unless they are discarded, as do
        parts of other views and of wholly frozen partitions. Raises CommitConflict, and
        RetainedRows if the statement names a partition that is frozen as a whole.
        """
        target = self.snapshot.by_id(self.view.target_id)
        assert isinstance(target, Table)
        fence = self.snapshot.next_block(target) - 1
        now = self.job.services.catalog.snapshot()
        added = () if staged is None else staged.parts_of(target.id)
        replaced_parts = self._replaced(now, target, fence, {p.part.partition_id for p in added})
        writer_ids = writers(self.view, self.snapshot)
        unreplayed_writers = writer_ids - {view.id for view in views}
        replayed_parts = {
            partition: [part for part in parts if not part.written_by(unreplayed_writers)]
            for partition, parts in replaced_parts.items()
        }
        removed = [
            part
            for parts in replayed_parts.values()
            for part in parts
            if not self._is_kept(part, writer_ids)
        ]
        draft = CommitDraft(self._requirements(views, target, replaced_parts, fence), [])
        if removed:
            draft.change(RemoveParts(target.id, tuple(sorted(part.id for part in removed))))
        new_changes: list[Change] = []
        if staged is not None:
            draft.require(*staged.requirements)
            new_changes += staged.changes
        with Pin(self.job.services, now.number):
            frozen_changes, frozen_before = stage_frozen_rows(
                target,
                self.frozen,
                [part for part in removed if not is_bypass(part, writer_ids)],
                new_changes,
                self._context(now),
                staging,
                self.swap.id,
            )
        new_changes += frozen_changes
        self._refuse_unknown(replayed_parts, added)
        self._refuse_retained(replayed_parts, added, frozen_before, writer_ids)
        new_changes += placeholder_changes(
            views, self.snapshot, target, removed, now.parts(target.id), new_changes
        )
        draft.change(*new_changes, *self._slice_changes(views, target, sorted(replaced_parts)))
        self._add_effects(draft, now, target, removed, new_changes)
        draft.change(*self.job.closing_changes())
        self.swap.complete(new_changes, removed)
        committed = staging.publish(draft)
        self.job.record.mark_ended()
        failpoint("replay.committed")
        recomputed, frozen = _added_rows(added), _added_rows(frozen_changes)
        return tuple(
            self._row(
                partition,
                parts,
                recomputed[partition],
                frozen[partition],
                writer_ids,
                source_rows,
                committed.number,
            )
            for partition, parts in sorted(replayed_parts.items())
        )

    def _add_effects(
        self,
        draft: CommitDraft,
        now: Snapshot,
        target: Table,
        removed: Sequence[Part],
        new_changes: Sequence[Change],
    ) -> None:
        """Add to the draft of the swap what it means to the views that read the target."""
        with Pin(self.job.services, now.number):
            downstream_draft, source_change = downstream_effects(
                now, target, removed, new_changes, self._context(now)
            )
            draft.merge(downstream_draft)
        write = TableWrite(frozenset((target.id,)), sum(part.rows for part in removed))
        draft.merge(effects_of(self.job.origin, now, write, draft.changes, [source_change]))

    def _slice_changes(
        self, views: list[MaterializedView], target: Table, partitions: Sequence[str]
    ) -> list[Change]:
        """Return the swap's changes of slices: raised data versions of the replaced partitions,
        retained slices, and cleared invalidations."""
        changes: list[Change] = [RaiseDataVersion(target.id, name) for name in partitions]
        if Settings.of(self.job.settings).boolean("discard_retained"):
            changes += release_changes(views, self.slices, self.snapshot)
        else:
            changes += stale_frozen_changes(views, self.slices, self.snapshot)
        changes += self._cleared(views, partitions)
        return changes

    def _refuse_unknown(self, old: Mapping[str, list[Part]], added: Iterable[AddPart]) -> None:
        """Raise BadArguments if the statement names one partition that does not exist: the target
        has no rows of it and never had, it is not stale, and the source makes no rows of it."""
        if not self.explicit or self.slices is None:
            return
        target = self.view.target_id
        table = self.snapshot.by_id(target)
        if isinstance(table, Table) and not table.partition_key and self.slices == {UNPARTITIONED}:
            return
        known = {part.partition_id for part in self.snapshot.parts(target) if part.rows}
        added_partitions = {change.part.partition_id for change in added}
        stale = stale_slices(self.snapshot, self.view)
        for partition in self.slices:
            if (
                old[partition]
                or partition in known | added_partitions
                or self.snapshot.data_version(target, partition)
            ):
                continue
            if stale is None or partition in stale:
                continue
            ids = sorted(known)
            listed = ", ".join(ids[:20]) + (", …" if len(ids) > 20 else "")
            raise BadArguments(
                f"The target of {view_name(self.view)} has no partition {partition}, and the source"
                " has no rows of it.",
                hint=f"REPLAY takes a partition of the target. It has {listed or 'none yet'}.",
            )

    # --- frozen rows

    def _is_kept(self, part: Part, writer_ids: frozenset[str]) -> bool:
        """Return whether the part stays in the target: bypass rows that are not discarded, and rows
        of partitions that are frozen as a whole."""
        if not part.rows:
            return False
        if is_bypass(part, writer_ids):
            return not self.discard_bypass
        return self.frozen.holds_all(part.partition_id)

    def _refuse_retained(
        self,
        old: Mapping[str, list[Part]],
        added: Iterable[AddPart],
        frozen_before: Mapping[str, int],
        writer_ids: frozenset[str],
    ) -> None:
        """Raise RetainedRows if the statement names one partition and all of it is frozen."""
        if not self.explicit or self.slices is None:
            return
        for partition in self.slices:
            if not self.frozen.holds(partition):
                continue
            view_rows = sum(part.rows for part in old[partition] if not is_bypass(part, writer_ids))
            new_rows = sum(
                change.part.rows for change in added if change.part.partition_id == partition
            )
            if not new_rows and (
                self.frozen.holds_all(partition) or view_rows == frozen_before.get(partition, 0)
            ):
                refuse_retained(self.view, partition)

    def _context(self, snapshot: Snapshot) -> TriggerContext:
        """Return the context in which views run at the snapshot."""
        return TriggerContext(
            snapshot,
            self.job.services.store,
            self.job.services.cache,
            self.job.settings,
            self.job.environment(),
        )

    def _replaced(
        self, now: Snapshot, target: Table, fence: int, added_partitions: set[str]
    ) -> dict[str, list[Part]]:
        """Return the live parts up to the fence by chosen partition; partitions in
        `added_partitions` are always included. Raise CommitConflict if a part crosses the fence."""
        parts_by_partition: dict[str, list[Part]] = {
            partition: [] for partition in added_partitions.union(self.slices or ())
        }
        for part in now.parts(target.id):
            chosen = self.slices is None or part.partition_id in self.slices
            if not chosen or part.partition_id == PLACEHOLDER_PARTITION:
                continue
            if part.block_range.first > fence:
                continue
            if part.block_range.last > fence:
                raise CommitConflict(
                    f"A merge of {target.database}.{target.name} crossed the replay's fence."
                )
            parts_by_partition.setdefault(part.partition_id, []).append(part)
        return parts_by_partition

    def _requirements(
        self,
        views: Iterable[MaterializedView],
        target: Table,
        old: Mapping[str, list[Part]],
        fence: int,
    ) -> list[Requirement]:
        """Return the requirements of the swap: the source data that the replay read and the
        target parts that it replaces are unchanged."""
        requirements: dict[Requirement, None] = {SchemaIs(target.id, target.version): None}
        for view in views:
            partitions = by_partition(self._read_parts[view.id])
            for read_requirement in self.job.read_requirements(self.snapshot, view, partitions):
                requirements[read_requirement] = None
            for requirement, _ in dimension_requirements(view, self.snapshot):
                requirements[requirement] = None
        placeholder_version = self.snapshot.data_version(target.id, PLACEHOLDER_PARTITION)
        requirements[DataVersionIs(target.id, PLACEHOLDER_PARTITION, placeholder_version)] = None
        for partition, parts in old.items():
            ids = tuple(sorted(part.id for part in parts))
            requirements[PartsOfPartitionAre(target.id, partition, ids, fence)] = None
            version = self.snapshot.data_version(target.id, partition)
            requirements[DataVersionIs(target.id, partition, version)] = None
        return list(requirements)

    def _cleared(
        self, views: Iterable[MaterializedView], partitions: Iterable[str]
    ) -> list[Change]:
        """Return changes that clear invalidations of the replayed slices up to the snapshot."""
        up_to = self.snapshot.number
        if self.slices is None:
            return [ClearInvalidations(view.id, None, up_to) for view in views]
        return [
            ClearInvalidations(writer.id, partition, up_to)
            for writer in views
            for partition in partitions
        ]

    def _row(
        self,
        partition: str,
        old: list[Part],
        recomputed: int,
        frozen: int,
        writer_ids: frozenset[str],
        source_rows: int,
        commit: int,
    ) -> ReplayRow:
        """Return the row of a partition, from its `old` parts and the numbers of rows that were
        recomputed and that are `frozen`."""
        bypass_rows = sum(part.rows for part in old if is_bypass(part, writer_ids))
        if self.frozen.holds_all(partition):
            frozen = sum(part.rows for part in old) - bypass_rows
        before = sum(part.rows for part in old) - bypass_rows
        status: Literal["replayed", "bypass kept", "bypass discarded", "retained"] = "replayed"
        if bypass_rows:
            status = "bypass discarded" if self.discard_bypass else "bypass kept"
        elif frozen and not recomputed:
            status = "retained"
        return ReplayRow(
            partition, source_rows, before, recomputed + frozen, bypass_rows, status, commit, frozen
        )


def _added_rows(changes: Iterable[Change]) -> Counter[str]:
    """Return how many rows the changes add to each partition."""
    rows: Counter[str] = Counter()
    for change in changes:
        if isinstance(change, AddPart):
            rows[change.part.partition_id] += change.part.rows
    return rows
