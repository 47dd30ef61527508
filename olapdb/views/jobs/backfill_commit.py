"""The commit of backfill chunks: their rows, their coverage and the rows of all downstream views.

A commit requires that each partition holds what its chunk read, and that no concurrent commit has
covered it (rule 3). Usually each chunk has its own commit. A staged backfill publishes all chunks
in one, with the requirements of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from olapdb.commit.draft import CommitDraft
from olapdb.commit.draft import publish as publish_draft
from olapdb.ingest.block_stager import dimension_requirements
from olapdb.ingest.staged_insert import StagedInsert, join_staged
from olapdb.ingest.view_failure import with_statement
from olapdb.lineage.dimension_change import changed_tables
from olapdb.lineage.effects import TableWrite, effects_of
from olapdb.model.changes import (
    AddBlock,
    AddCoverage,
    Change,
    NotCovered,
    PartsWithinRanges,
    Requirement,
)
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import CoverageRow
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
    written = {c.block.table_id for c in staged.changes if isinstance(c, AddBlock)}
    fired = {c.row.view_id for c in staged.changes if isinstance(c, AddCoverage)}
    brings = changed_tables(snapshot, staged.changes)
    own = {view.id} if brings.intersection(view.dimension_ids) else set[str]()
    write = TableWrite(
        frozenset(written), outcome.target_rows, unsettled=frozenset(own | staged.unsettled)
    )
    alone = effects_of(job.origin, snapshot, write, staged.changes)
    write = replace(write, compared=False, unsettled=frozenset(own | fired))
    together = effects_of(job.origin, snapshot, write, ())
    coverage = [AddCoverage(CoverageRow(view.id, chunk.partition, one)) for one in chunk.claimed]
    return PreparedChunk(
        chunk,
        staged,
        outcome.target_rows,
        outcome.elapsed_ms,
        (*requirements, *alone.requirements),
        tuple(coverage),
        tuple(alone.changes),
        tuple(together.changes),
    )


def publish(job: ViewJob, prepared: Sequence[PreparedChunk], *, last: bool) -> int:
    """Publish the chunks in one commit and return its number. `last` says that the commit also ends
    the job.

    Raises CommitConflict if a requirement of any chunk no longer holds, or if the job was
    cancelled. Then nothing was changed, and the caller still owns the staged files."""
    joined = join_staged([one.staged for one in prepared])
    changes = with_statement(joined.changes, job.origin)
    alone = len(prepared) == 1
    changes += dict.fromkeys(
        change
        for one in prepared
        for change in (*one.changes, *(one.stale if alone else one.stale_together))
    )
    for one in prepared:
        changes += job.record.published(one.chunk.index, one.target_rows, one.elapsed_ms)
    if last:
        changes += job.closing()
    draft = CommitDraft((r for one in prepared for r in one.requirements), changes)
    failpoint("backfill.before_commit")
    committed = publish_draft(draft, job.origin)
    if last:
        job.record.ended()
    return committed.number
