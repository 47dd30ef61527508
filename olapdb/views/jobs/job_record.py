"""A job's record in the catalog: its plan, what became of each chunk, and whether it was cancelled.

A chunk's outcome is written with the chunk's own commit.  What has no commit (a chunk that is
computed and waits, one that failed) is noted every few seconds, and when the job ends.
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
from olapdb.model.changes import Change, CloseJob, JobRuns, NoteChunks, Requirement
from olapdb.model.job import ChunkState, JobChunk, JobKind, JobState, ViewJob
from olapdb.model.schema import MaterializedView

NOTE_SECONDS = 2.0
"""How often progress is written that no commit carries."""
POLL_SECONDS = 0.1
"""How often the catalog is asked whether the job was cancelled."""
ERROR_LENGTH_MAX = 2_000


class JobRecord:
    """One job. It begins with the first plan; a job that has nothing to do leaves no record.

    Used by the thread of the statement. A job that was cancelled in the catalog sets the origin's
    `cancelled`.
    """

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
        self._facts = kind, executor, staged
        self._cancelled = origin.cancelled
        self._chunks: dict[int, JobChunk] = {}
        self._unwritten: dict[int, JobChunk] = {}
        self._open = False
        self._failed = False
        self._written = self._polled = 0.0

    # --- the story of a job

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Ends the job with the block: done, or failed, or cancelled, as it goes."""
        try:
            yield
        except (QueryWasCancelled, GeneratorExit) as error:
            self._close_after(error, "cancelled")
            raise
        except BaseException as error:
            self._close_after(error, "failed")
            raise
        failed = sum(one.state == "failed" for one in self._chunks.values())
        if failed:
            self.close("failed", f"{failed} of {len(self._chunks)} chunks failed.")
        else:
            self.close("done")

    def plan(self, view: MaterializedView, chunks: Iterable[JobChunk]) -> None:
        """What it is going to do; a second plan takes the place of what is not yet done."""
        planned = list(chunks)
        if not self._open and not planned:
            return
        self._unwritten.clear()
        self._chunks = {one.chunk: one for one in planned}
        self._written = time.monotonic()
        if self._open:
            self._services.catalog.plan_job(self.id, planned)
            return
        kind, executor, staged = self._facts
        self._services.catalog.open_job(
            ViewJob(
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
        """The chunk is made of other parts by now."""
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
        """What became of a chunk that no commit publishes (now)."""
        noted = self._noted(chunk, state, target_rows, elapsed_ms, error)
        if noted is None:
            return
        self._failed = self._failed or state == "failed"
        self._chunks[chunk] = self._unwritten[chunk] = noted
        if self._open and time.monotonic() - self._written > NOTE_SECONDS:
            self._write()

    def published(self, chunk: int, target_rows: int, elapsed_ms: int) -> list[Change]:
        """The change that the commit of a chunk carries."""
        noted = self._noted(chunk, "published", target_rows, elapsed_ms, "")
        if noted is None or not self._open:
            return []
        self._unwritten.pop(chunk, None)
        return [NoteChunks(self.id, (replace(noted, finished_ms=0),))]

    def requirements(self) -> list[Requirement]:
        """That nobody has cancelled it."""
        return [JobRuns(self.id)] if self._open else []

    def closing(self, state: ChunkState = "published") -> list[Change]:
        """The changes of the commit that ends the job: all chunks that are computed are, by it,
        in this state."""
        if not self._open:
            return []
        ended = tuple(
            replace(one, state=state, finished_ms=one.finished_ms or self._services.clock_ms())
            for one in self._chunks.values()
            if one.state == "computed"
        )
        notes = [NoteChunks(self.id, ended)] if ended else []
        return [*notes, CloseJob(self.id, "failed" if self._failed else "done")]

    def ended(self) -> None:
        """The commit that carried `closing` is made."""
        self._open = False

    def close(self, state: JobState, error: str = "") -> None:
        if self._open:
            self._write()
            self._services.catalog.close_job(self.id, state, error[:ERROR_LENGTH_MAX])
            self._open = False

    # --- cancelling

    def stop_requested(self, *, now: bool = False) -> bool:
        """Whether somebody has cancelled the statement, or (asked a few times a second, or `now`)
        the job, here or in another process."""
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

    def _noted(
        self, chunk: int, state: ChunkState, target_rows: int, elapsed_ms: int, error: str
    ) -> JobChunk | None:
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
        if self._unwritten:
            self._services.catalog.record_progress(self.id, tuple(self._unwritten.values()))
            self._unwritten.clear()
        self._written = time.monotonic()

    def _close_after(self, error: BaseException, state: JobState) -> None:
        """What stopped the job is what the caller has to see, even where the catalog fails too."""
        with suppress(Error):
            self.close(state, str(error) or type(error).__name__)
