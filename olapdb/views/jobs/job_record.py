"""A job's record in the catalog: its plan, each chunk's outcome, and whether it was cancelled.

The commit that publishes a chunk also writes the chunk's outcome. Outcomes without a commit (the
chunk failed, or is computed and waits) are written every few seconds and when the job ends.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from olapdb.commit.origin import CommitOrigin
from olapdb.errors import Error, QueryWasCancelled
from olapdb.model.changes import Change, CloseJob, NoteChunks
from olapdb.model.job import ChunkState, JobChunk, JobEntry, JobKind, JobState
from olapdb.model.requirements import JobRuns, Requirement
from olapdb.model.schema import MaterializedView

NOTE_SECONDS = 2.0
"""Seconds between two writes of progress that no commit carries."""
POLL_SECONDS = 0.1
"""Seconds between two reads of the job's state from the catalog, to notice a cancellation."""
ERROR_LENGTH_MAX = 2_000


class JobRecord:
    """The record of one job. The first plan opens it; a job without work leaves no record.

    Only the statement's thread uses it. Noticing a cancellation in the catalog sets the origin's
    `cancelled`."""

    def __init__(
        self,
        origin: CommitOrigin,
        kind: JobKind,
        *,
        executor: str = "in_process",
        staged: bool = False,
    ) -> None:
        self.id = str(uuid.uuid4())
        self._origin, self._services = origin, origin.services
        self._kind_executor_staged = kind, executor, staged
        self._cancelled = origin.cancelled
        self._chunks: dict[int, JobChunk] = {}
        self._unwritten: dict[int, JobChunk] = {}
        self._open = False
        self._failed = False
        self._written = self._polled = 0.0

    # --- from plan to close

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Close the record when the block ends: as done, failed (also if a chunk failed) or
        cancelled."""
        try:
            yield
        except (QueryWasCancelled, GeneratorExit) as error:
            self._close_after(error, "cancelled")
            raise
        except BaseException as error:
            self._close_after(error, "failed")
            raise
        failed_chunks = sum(chunk.state == "failed" for chunk in self._chunks.values())
        if failed_chunks:
            self.close("failed", f"{failed_chunks} of {len(self._chunks)} chunks failed.")
        else:
            self.close("done")

    def plan(self, view: MaterializedView, chunks: Iterable[JobChunk]) -> None:
        """Record the planned chunks, opening the record if needed. A later plan replaces the chunks
        that are not published."""
        planned = list(chunks)
        if not self._open and not planned:
            return
        self._unwritten.clear()
        self._chunks = {chunk.chunk: chunk for chunk in planned}
        self._written = time.monotonic()
        if self._open:
            self._services.catalog.plan_job(self.id, planned)
            return
        kind, executor, staged = self._kind_executor_staged
        self._services.catalog.open_job(
            JobEntry(
                self.id,
                view.id,
                f"{view.database}.{view.name}",
                kind,
                self._services.lease_id,
                os.getpid(),
                self._origin.query_id,
                self._origin.statement,
                executor,
                staged,
                self._services.clock_ms(),
            ),
            planned,
        )
        self._open = True

    def revise(self, chunk: JobChunk) -> None:
        """Replace a planned chunk whose parts have changed since the plan."""
        self._chunks[chunk.chunk] = chunk

    def note(
        self,
        chunk: int,
        state: ChunkState,
        *,
        target_rows: int = 0,
        elapsed_ms: int = 0,
        error: str = "",
    ) -> None:
        """Record the outcome of a chunk that no commit publishes now."""
        outcome = self._with_outcome(chunk, state, target_rows, elapsed_ms, error)
        if outcome is None:
            return
        self._failed = self._failed or state == "failed"
        self._chunks[chunk] = self._unwritten[chunk] = outcome
        if self._open and time.monotonic() - self._written > NOTE_SECONDS:
            self._write()

    def published(self, chunk: int, target_rows: int, elapsed_ms: int) -> list[Change]:
        """Return the changes by which a chunk's commit records that it is published."""
        outcome = self._with_outcome(chunk, "published", target_rows, elapsed_ms, "")
        if outcome is None or not self._open:
            return []
        self._unwritten.pop(chunk, None)
        return [NoteChunks(self.id, (replace(outcome, finished_ms=0),))]

    def requirements(self) -> list[Requirement]:
        """Return the requirement that the job was not cancelled; none before the record is open."""
        return [JobRuns(self.id)] if self._open else []

    def closing_changes(self, state: ChunkState = "published") -> list[Change]:
        """Return the changes of the commit that ends the job, as done or, if a chunk failed, as
        failed. That commit gives all computed chunks this `state`."""
        if not self._open:
            return []
        ended_chunks = tuple(
            replace(chunk, state=state, finished_ms=chunk.finished_ms or self._services.clock_ms())
            for chunk in self._chunks.values()
            if chunk.state == "computed"
        )
        notes = [NoteChunks(self.id, ended_chunks)] if ended_chunks else []
        return [*notes, CloseJob(self.id, "failed" if self._failed else "done")]

    def mark_ended(self) -> None:
        """Mark the record as closed once the commit with the changes of `closing_changes` is
        applied."""
        self._open = False

    def close(self, state: JobState, error: str = "") -> None:
        """Write the outstanding progress and close the record outside of a commit, if it is
        open."""
        if self._open:
            self._write()
            self._services.catalog.close_job(self.id, state, error[:ERROR_LENGTH_MAX])
            self._open = False

    # --- cancelling

    def stop_requested(self, *, now: bool = False) -> bool:
        """Return whether the statement or, in this or another process, its job was cancelled. Reads
        the catalog at most every POLL_SECONDS, or `now`."""
        if self._cancelled.is_set():
            return True
        elapsed = time.monotonic() - self._polled
        if not self._open or (elapsed < POLL_SECONDS and not now):
            return False
        self._polled = time.monotonic()
        if self._services.catalog.job_state(self.id) not in ("running", None):
            self._cancelled.set()
        return self._cancelled.is_set()

    # --- helpers

    def _with_outcome(
        self, chunk: int, state: ChunkState, target_rows: int, elapsed_ms: int, error: str
    ) -> JobChunk | None:
        """Return the planned chunk with this outcome; None if it is not in the plan."""
        planned = self._chunks.get(chunk)
        if planned is None:
            return None
        return replace(
            planned,
            state=state,
            target_rows=target_rows,
            elapsed_ms=elapsed_ms,
            finished_ms=self._services.clock_ms(),
            error=error[:ERROR_LENGTH_MAX],
        )

    def _write(self) -> None:
        """Write the outcomes that the catalog does not have yet."""
        if self._unwritten:
            self._services.catalog.record_progress(self.id, tuple(self._unwritten.values()))
            self._unwritten.clear()
        self._written = time.monotonic()

    def _close_after(self, error: BaseException, state: JobState) -> None:
        """Close the record after `error`. Errors of the catalog are ignored: the caller must see
        `error`."""
        with suppress(Error):
            self.close(state, str(error) or type(error).__name__)
