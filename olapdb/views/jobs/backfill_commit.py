"""The commit of backfill chunks: their rows, their coverage and the rows of all views further down.

A commit requires that each partition holds what its chunk read, and that nobody covered it
meanwhile (rule 3).  Usually a chunk is a commit of its own; a staged backfill publishes all chunks
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
class Prepared:
    """A computed chunk and what publishing it takes, as of the snapshot that it was computed at."""

    chunk: Chunk
    staged: StagedInsert
    target_rows: int
    elapsed_ms: int
    requirements: tuple[Requirement, ...]
    changes: tuple[Change, ...]
    """Beside what is staged: coverage."""
    stale: tuple[Change, ...]
    """Slices of views that join what is staged, as far as this chunk alone reaches them."""
    stale_together: tuple[Change, ...]
    """The same where other chunks come with it: what they reach together no lookup has told, and
    views that fired on this chunk did not join what the others bring."""


def prepare(
    job: ViewJob, snapshot: Snapshot, view: MaterializedView, chunk: Chunk, outcome: StagedChunk
) -> Prepared:
    """While the snapshot is pinned."""
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
    return Prepared(
        chunk,
        staged,
        outcome.target_rows,
        outcome.elapsed_ms,
        (*requirements, *alone.requirements),
        tuple(coverage),
        tuple(alone.changes),
        tuple(together.changes),
    )


def publish(job: ViewJob, prepared: Sequence[Prepared], *, last: bool) -> int:
    """One commit of all of them; its number. `last`: the job ends with it.

    Raises CommitConflict where a requirement of one of them no longer holds, QueryWasCancelled
    where the job was cancelled: then nothing was changed, and the files are the caller's still.
    """
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
