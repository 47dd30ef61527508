"""The commit of backfill chunks: their rows, their coverage and the rows of all downstream views.

A commit requires that each partition holds what its chunk read, and that no concurrent commit has
covered it (rule 3). A large chunk has its own commit, small ones share commits. A staged backfill
publishes all chunks in one. A shared commit has the requirements of each of its chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb.commit.draft import CommitDraft
from olapdb.commit.draft import publish as publish_draft
from olapdb.ingest.dimension_requirements import dimension_requirements
from olapdb.ingest.staged_insert import StagedInsert, join_staged
from olapdb.ingest.view_failure import with_statements
from olapdb.lineage.dimension_change import changed_tables
from olapdb.lineage.effects import TableWrite, effects_of
from olapdb.model.changes import AddBlock, AddCoverage, Change
from olapdb.model.requirements import DimensionViewsAre, NotCovered, PartsWithinRanges, Requirement
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import CoverageRow
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.views.jobs.chunk import StagedChunk
from olapdb.views.jobs.chunk_planner import Chunk
from olapdb.views.jobs.job import ViewJob


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A computed chunk with the requirements and changes of its commit, as of the snapshot from
    which it was computed."""

    chunk: Chunk
    staged: StagedInsert
    target_rows: int
    elapsed_ms: int
    requirements: tuple[Requirement, ...]
    changes: tuple[Change, ...]
    """Changes besides the staged ones: coverage."""
    stale: tuple[Change, ...]
    """Invalidations when the chunk has its own commit: the slices, of views that join the staged
    rows, that this chunk reaches."""
    stale_together: tuple[Change, ...]
    """Invalidations when several chunks share one commit. The lookup ran per chunk, and views that
    fired on this chunk did not join rows of the others, so whole targets are invalidated."""

    @property
    def may_share(self) -> bool:
        """Return whether the chunk may share its commit with others at no cost to views: no view
        reads a table that the chunk writes as a dimension. The commit requires that this stays so.
        """
        return not any(
            requirement.views
            for requirement in self.requirements
            if isinstance(requirement, DimensionViewsAre)
        )


def prepare(
    job: ViewJob, snapshot: Snapshot, view: MaterializedView, chunk: Chunk, outcome: StagedChunk
) -> PreparedChunk:
    """Return the computed chunk with the requirements and changes of its commit. The caller pins
    the snapshot."""
    staged = outcome.staged
    assert staged is not None
    requirements = job.read_requirements(snapshot, view, (chunk.partition,))
    requirements += [NotCovered(view.id, chunk.partition, chunk.claimed), *staged.requirements]
    requirements.append(PartsWithinRanges(view.source_id, chunk.partition, chunk.claimed))
    requirements += [requirement for requirement, _ in dimension_requirements(view, snapshot)]
    written_ids = {
        change.block.table_id for change in staged.changes if isinstance(change, AddBlock)
    }
    fired_view_ids = {
        change.row.view_id for change in staged.changes if isinstance(change, AddCoverage)
    }
    changed_ids = changed_tables(snapshot, staged.changes)
    unsettled_view = {view.id} if changed_ids.intersection(view.dimension_ids) else set[str]()
    write = TableWrite(
        frozenset(written_ids),
        outcome.target_rows,
        unsettled=frozenset(unsettled_view | staged.unsettled),
    )
    effects_alone = effects_of(job.origin, snapshot, write, staged.changes)
    write = replace(
        write, compares_rows=False, unsettled=frozenset(unsettled_view | fired_view_ids)
    )
    effects_together = effects_of(job.origin, snapshot, write, ())
    coverage = [
        AddCoverage(CoverageRow(view.id, chunk.partition, blocks)) for blocks in chunk.claimed
    ]
    return PreparedChunk(
        chunk,
        staged,
        outcome.target_rows,
        outcome.elapsed_ms,
        (*requirements, *effects_alone.requirements),
        tuple(coverage),
        tuple(effects_alone.changes),
        tuple(effects_together.changes),
    )


def publish(job: ViewJob, prepared: Sequence[PreparedChunk], *, last: bool) -> int:
    """Publish the chunks in one commit and return its number. `last` says that the commit also ends
    the job.

    Raises CommitConflict if a requirement of any chunk no longer holds, or if the job was
    cancelled. Then nothing was changed, and the caller still owns the staged files."""
    staged = join_staged([prepared_chunk.staged for prepared_chunk in prepared])
    changes = with_statements(staged.changes, job.origin)
    is_alone = len(prepared) == 1
    changes += dict.fromkeys(
        change
        for prepared_chunk in prepared
        for change in (
            *prepared_chunk.changes,
            *(prepared_chunk.stale if is_alone else prepared_chunk.stale_together),
        )
    )
    for prepared_chunk in prepared:
        changes += job.record.published(
            prepared_chunk.chunk.index, prepared_chunk.target_rows, prepared_chunk.elapsed_ms
        )
    if last:
        changes += job.closing_changes()
    draft = CommitDraft(
        (requirement for prepared_chunk in prepared for requirement in prepared_chunk.requirements),
        changes,
    )
    finishing = job.finishing if last else None
    if finishing is not None:
        draft.merge(finishing.draft_once(job.services.catalog.snapshot()))
    failpoint("backfill.before_commit")
    committed = publish_draft(draft, job.origin)
    if last:
        job.record.mark_ended()
    if finishing is not None:
        finishing.done = True
    return committed.number
