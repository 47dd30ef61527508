"""One pass of a backfill: rounds that compute its chunks and publish them, until none is left.

A chunk whose partition changed meanwhile is computed again in the next round, the others are kept.
Small chunks share commits: a durable commit costs more than computing one of a few thousand partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from olapdb.config import Settings
from olapdb.errors import CommitConflict, CommitUnknown, Error
from olapdb.ingest.read_parts import Pin, discard
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.views.jobs.backfill_commit import PreparedChunk, prepare, publish
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk
from olapdb.views.jobs.chunk_planner import Chunk, replan
from olapdb.views.jobs.job import ATTEMPTS_MAX, ChunkEvent, ViewJob, find_view, view_name
from olapdb.views.proof.failed_repairs import ROW_ERRORS

SMALL_CHUNK_ROWS = 1 << 20
"""A chunk of at most so many source rows may share its commit with others. Computing it takes some ten milliseconds, a
durable commit about as long."""
SHARED_FROM = 8
"""The fewest small chunks of a round that share commits. Of fewer each has its own, which costs little. 1,000,000 rows of
nine months took nine commits, and most of the time was theirs."""
SHARED_CHUNKS_MAX = 64
SHARED_SECONDS = 0.25
"""Chunks wait for a shared commit until so many are computed, or the first has waited so long."""


@dataclass(frozen=True, slots=True)
class BackfillRow:
    """The outcome of one chunk. `error` is "" unless it failed.

    already covered: a concurrent backfill covered its blocks. joined: a merge put its parts into
    another chunk's. gone: its blocks no longer exist; later chunks compute the rows that replaced
    them. not published: it was computed, but another chunk of a staged backfill failed."""

    chunk: int
    partition: str
    parts: int
    rows: int
    target_rows: int
    status: Literal["published", "failed", "already covered", "joined", "gone", "not published"]
    commit: int | None
    elapsed_ms: int
    error: str = ""


@dataclass
class BackfillPass:
    """One pass of a backfill. `pending` chunks are still to be computed. `held` chunks, of a staged
    backfill only, are computed and wait for their commit. Both are keyed by chunk number."""

    job: ViewJob
    view: MaterializedView
    total: int
    pending: dict[int, Chunk]
    held: dict[int, PreparedChunk] = field(default_factory=dict)
    sharing: set[int] = field(default_factory=set)
    """The numbers of the round's chunks that may share commits."""
    ready: list[PreparedChunk] = field(default_factory=list)
    ready_since: float = 0.0
    """Computed small chunks that wait for their shared commit, and since when. They are pending too."""
    failed: dict[int, BackfillRow] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    last_row_error: Error | None = None
    row_failures: int = 0
    """`last_row_error` is the last error that the rows of a chunk raised, `row_failures` the number
    of such chunks."""

    @property
    def staging(self) -> bool:
        """Return whether one commit publishes all chunks (`backfill_staging`)."""
        return Settings.of(self.job.settings).boolean("backfill_staging")

    def rows(self, snapshot: Snapshot) -> Iterator[BackfillRow]:
        """Run rounds until no chunk is pending or held, yielding their rows. After a conflict, a
        chunk is computed again from a newer snapshot.

        Not `retry_commit`: a round keeps the chunks without a conflict, and yields rows."""
        try:
            for attempt in range(ATTEMPTS_MAX):
                is_last = attempt == ATTEMPTS_MAX - 1
                with Pin(self.job.services, snapshot.number):
                    yield from self._compute_round(snapshot, again=attempt > 0, last=is_last)
                if self.staging and not self.pending:
                    yield from self._publish_held(last=is_last)
                if not self.pending and not self.held:
                    return
                snapshot = self.job.services.catalog.snapshot()
        finally:
            self._discard(*self.held.values(), *self.ready)

    # --- one round

    def _compute_round(
        self, snapshot: Snapshot, *, again: bool, last: bool
    ) -> Iterator[BackfillRow]:
        """Compute the pending chunks once; yield a row for each that was published or failed.

        `again` first plans the pending chunks at the newer snapshot, and yields a row for each that
        is no longer needed. A conflict leaves a chunk pending; in the `last` round it fails.
        """
        view = self.view = find_view(snapshot, self.view.id)
        held_chunks = [chunk.chunk for chunk in self.held.values()]
        if again:
            remaining = {
                chunk.index: chunk
                for chunk in replan(view, snapshot, self.pending.values(), held_chunks)
            }
            yield from self._superseded_rows(view, snapshot, remaining)
            self.pending = remaining
            for chunk in remaining.values():
                self.job.record.revise(chunk.recorded())
        chunks = dict(self.pending)
        self.sharing = _sharing(chunks)
        alone = chunks.keys() - self.sharing
        for together in (alone, self.sharing):  # so that none waits for the end of a large one
            tasks = [self._task(snapshot, chunks[index]) for index in sorted(together)]
            for outcome in self.job.executor.run(tasks, self.job.record.stop_requested):
                yield from self._accept_outcome(
                    snapshot, view, chunks[outcome.index], outcome, last=last
                )
        yield from self._publish_ready(last=last)

    def _task(self, snapshot: Snapshot, chunk: Chunk) -> ChunkTask:
        """Return the task that computes the chunk."""
        task = self.job.task(
            snapshot, self.view, chunk.partition, chunk.parts, chunk.index, "backfill"
        )
        return replace(task, blocks=chunk.claimed)

    def _superseded_rows(
        self, view: MaterializedView, snapshot: Snapshot, remaining: Mapping[int, Chunk]
    ) -> Iterator[BackfillRow]:
        """Yield rows of the pending chunks that are not in `remaining`: a concurrent backfill
        covered their blocks, a merge joined their parts with another chunk's, or their blocks were
        removed."""
        coverage = snapshot.coverage(view.id)
        for index, chunk in self.pending.items():
            if index in remaining:
                continue
            covered = all(coverage.covers(chunk.partition, block) for block in chunk.blocks)
            joined = not covered and any(
                other.partition == chunk.partition and _overlap(other, chunk)
                for other in remaining.values()
            )
            status: Literal["joined", "gone", "already covered"] = (
                "already covered" if covered else "joined" if joined else "gone"
            )
            if status == "gone":
                self.replaced.add(chunk.partition)
            self.job.record.note(index, status)
            yield BackfillRow(index, chunk.partition, 0, 0, 0, status, None, 0)

    def _accept_outcome(
        self,
        snapshot: Snapshot,
        view: MaterializedView,
        chunk: Chunk,
        outcome: StagedChunk | FailedChunk,
        *,
        last: bool,
    ) -> Iterator[BackfillRow]:
        """Publish a computed chunk, with those that wait for a shared commit, or let it wait. Yield the
        rows of published and failed chunks, which are no longer pending. A staged backfill holds it."""
        if isinstance(outcome, FailedChunk):
            report_chunk(self.job, view, self.total, chunk, "failed")
            if isinstance(outcome.error, ROW_ERRORS):
                self.last_row_error, self.row_failures = outcome.error, self.row_failures + 1
            self.pending.pop(chunk.index)
            yield self._fail(chunk, str(outcome.error), 0)
            return
        report_chunk(self.job, view, self.total, chunk, "computed", outcome)
        try:
            prepared = prepare(self.job, snapshot, view, chunk, outcome)
        except BaseException:
            discard(self.job.services, outcome.staged.paths if outcome.staged else ())
            raise
        if self.staging:
            self.held[chunk.index] = prepared
            self.pending.pop(chunk.index)
            self.job.record.note(
                chunk.index,
                "computed",
                target_rows=outcome.target_rows,
                elapsed_ms=outcome.elapsed_ms,
            )
        elif chunk.index not in self.sharing or not prepared.may_share:
            yield from self._publish_ready(last=last)
            yield from self._publish_alone(prepared, last=last)
        else:
            self.ready_since = self.ready_since if self.ready else time.monotonic()
            self.ready.append(prepared)
            waited = time.monotonic() - self.ready_since
            if len(self.ready) >= SHARED_CHUNKS_MAX or waited > SHARED_SECONDS:
                yield from self._publish_ready(last=last)

    def _publish_ready(self, *, last: bool) -> Iterator[BackfillRow]:
        """Publish the waiting chunks in one commit. If that conflicts, publish each by itself, so that
        only those are computed again whose own partition changed."""
        together, self.ready = self.ready, []
        if len(together) > 1:
            try:
                commit = self._commit(together)
            except CommitConflict:
                self.ready = together
            else:
                yield from self._published(together, commit)
                return
        else:
            self.ready = together
        while self.ready:
            yield from self._publish_alone(self.ready.pop(0), last=last)

    def _publish_alone(self, prepared: PreparedChunk, *, last: bool) -> Iterator[BackfillRow]:
        """Publish one chunk by itself. After a conflict it stays pending; in the `last` round it fails."""
        try:
            commit = self._commit([prepared])
        except CommitConflict as conflict:
            self._discard(prepared)
            self.job.refuse_cancelled()
            report_chunk(self.job, self.view, self.total, prepared.chunk, "conflict", prepared)
            if last:
                self.pending.pop(prepared.chunk.index)
                yield self._fail(prepared.chunk, _exhausted_message(conflict), prepared.elapsed_ms)
            return
        yield from self._published([prepared], commit)

    def _commit(self, together: Sequence[PreparedChunk]) -> int:
        """Publish the chunks in one commit and return its number. It ends the job if no other chunk is
        pending. Delete the staged files on an error after which nothing can have been published, but
        keep them on CommitConflict."""
        indices = {prepared.chunk.index for prepared in together}
        ends_job = self.pending.keys() == indices and not self.failed
        try:
            return publish(self.job, together, last=ends_job)
        except (CommitConflict, CommitUnknown):
            raise
        except Error:  # not BaseException: an interrupted commit may have succeeded
            self._discard(*together)
            raise

    def _published(self, together: Sequence[PreparedChunk], commit: int) -> Iterator[BackfillRow]:
        """Report the chunks of a commit and yield their rows."""
        failpoint("backfill.chunk_published")
        for prepared in together:
            self.pending.pop(prepared.chunk.index)
        for prepared in together:
            report_chunk(
                self.job, self.view, self.total, prepared.chunk, "published", prepared, commit
            )
            yield _published_row(prepared, commit)

    def _fail(self, chunk: Chunk, error: str, elapsed_ms: int) -> BackfillRow:
        """Record the chunk as failed and return its row."""
        self.job.record.note(chunk.index, "failed", elapsed_ms=elapsed_ms, error=error)
        row = BackfillRow(
            chunk.index,
            chunk.partition,
            len(chunk.parts),
            chunk.rows,
            0,
            "failed",
            None,
            elapsed_ms,
            error,
        )
        self.failed[chunk.index] = row
        return row

    # --- the commit of a staged backfill

    def _publish_held(self, *, last: bool) -> Iterator[BackfillRow]:
        """Publish the held chunks of a staged backfill in one commit; none of them if a chunk has
        failed. Yield their rows."""
        held_chunks = list(self.held.values())
        if self.failed:
            self._discard(*held_chunks)
            self.held.clear()
            yield from (_unpublished_row(prepared) for prepared in held_chunks)
            return
        if not held_chunks:
            return
        # An interrupted commit may have succeeded, so `rows` must not delete these files.
        held_by_index, self.held = self.held, {}
        try:
            commit = publish(self.job, held_chunks, last=True)
        except CommitConflict as conflict:
            self.held = held_by_index
            self.job.refuse_cancelled()
            if last:
                yield from (
                    self._fail(prepared.chunk, _exhausted_message(conflict), 0)
                    for prepared in held_chunks
                )
                self._discard(*held_chunks)
                self.held.clear()
            self._compute_again(held_chunks)
            return
        except CommitUnknown:
            raise
        except Error:
            self._discard(*held_chunks)
            raise
        failpoint("backfill.chunk_published")
        for prepared in held_chunks:
            report_chunk(
                self.job, self.view, self.total, prepared.chunk, "published", prepared, commit
            )
            yield _published_row(prepared, commit)

    def _compute_again(self, held_chunks: Sequence[PreparedChunk]) -> None:
        """Make those chunks pending whose requirements no longer hold; the others stay held."""
        for prepared in held_chunks:
            if prepared.chunk.index in self.held and self.job.services.catalog.violated(
                prepared.requirements
            ):
                self._discard(self.held.pop(prepared.chunk.index))
                self.pending[prepared.chunk.index] = prepared.chunk

    def _discard(self, *prepared: PreparedChunk) -> None:
        """Delete the staged files of these chunks."""
        for chunk in prepared:
            discard(self.job.services, chunk.staged.paths)


def _sharing(chunks: Mapping[int, Chunk]) -> set[int]:
    """Return the numbers of the chunks that may share a commit: those of at most SMALL_CHUNK_ROWS
    rows, if there are at least SHARED_FROM of them, else none."""
    small = {index for index, chunk in chunks.items() if chunk.rows <= SMALL_CHUNK_ROWS}
    return small if len(small) >= SHARED_FROM else set()


def _overlap(chunk: Chunk, other: Chunk) -> bool:
    """Return whether the chunks share any source block."""
    return any(
        blocks.overlaps(other_blocks) for blocks in chunk.blocks for other_blocks in other.blocks
    )


def _exhausted_message(conflict: CommitConflict) -> str:
    """Return the error text of a chunk that conflicted in the last round."""
    return f"{conflict.message} Its source changed {ATTEMPTS_MAX} times meanwhile."


def _published_row(prepared: PreparedChunk, commit: int) -> BackfillRow:
    """Return the row of a published chunk."""
    chunk = prepared.chunk
    return BackfillRow(
        chunk.index,
        chunk.partition,
        len(chunk.parts),
        chunk.rows,
        prepared.target_rows,
        "published",
        commit,
        prepared.elapsed_ms,
    )


def _unpublished_row(prepared: PreparedChunk) -> BackfillRow:
    """Return the row of a computed chunk that stays unpublished because another chunk failed."""
    chunk = prepared.chunk
    return BackfillRow(
        chunk.index,
        chunk.partition,
        len(chunk.parts),
        chunk.rows,
        0,
        "not published",
        None,
        prepared.elapsed_ms,
    )


def report_chunk(
    job: ViewJob,
    view: MaterializedView,
    total: int,
    chunk: Chunk,
    phase: str,
    outcome: StagedChunk | PreparedChunk | None = None,
    commit: int | None = None,
) -> None:
    """Report the phase of a chunk to the job's `progress`."""
    job.progress(
        ChunkEvent(
            phase,  # type: ignore[arg-type]
            "BACKFILL",
            view_name(view),
            chunk.index,
            total,
            chunk.partition,
            len(chunk.parts),
            chunk.rows,
            outcome.target_rows if outcome else 0,
            commit,
            outcome.elapsed_ms if outcome else 0,
        )
    )
