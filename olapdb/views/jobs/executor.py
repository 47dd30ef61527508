"""The executors that compute chunks: the Protocol, and one that uses threads of this process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import field
from typing import Protocol, TypeAlias

from olapdb.config import tuning
from olapdb.errors import Error, QueryWasCancelled
from olapdb.records import dataclass
from olapdb.runtime.cache import Cache
from olapdb.storage.store import Store
from olapdb.threads import ThreadPool
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk, compute_chunk

Stop: TypeAlias = Callable[[], bool]
"""A callback that returns True to stop a run; called regularly in the caller's thread."""

POLL_SECONDS = 0.1
"""Seconds between two calls of `stop` while chunks are computed."""
WAITING_FACTOR = 2
"""So many chunks for each thread are handed to the pool at a time, so that no thread waits for the caller, which publishes
what it gets."""
ROWS_OF_A_THREAD_MIN = 8_192
"""Chunks of fewer rows on average are computed by one thread: Python holds the interpreter lock for most of
their time, so that several threads wait for each other (2,000 chunks of 10 rows: 6 s, 8 s with two). If none is large, the
caller's thread is that one."""


def never_stop() -> bool:
    """Return False: the `stop` of a run that cannot be cancelled."""
    return False


def cancelled_error() -> QueryWasCancelled:
    """Return the error that a run raises once `stop` returns True."""
    return QueryWasCancelled(
        "The job was cancelled.", hint="What it published stays; run it again to go on."
    )


class _Asking(threading.Event):
    """An event that is set once `stop` returns True."""

    def __init__(self, stop: Stop) -> None:
        super().__init__()
        self._stop = stop

    def is_set(self) -> bool:
        """Return whether the run has to stop."""
        return super().is_set() or self._stop()


class Executor(Protocol):
    """An engine that computes chunks, here or on other machines."""

    def run(
        self, tasks: Sequence[ChunkTask], stop: Stop = never_stop
    ) -> Iterator[StagedChunk | FailedChunk]:
        """Yield each chunk once it is computed: one outcome per task, in any order.

        A chunk that raises an olapdb Error becomes a FailedChunk; the other chunks go on. Closing
        the iterator early cancels the chunks that have not begun. Once `stop` returns True, no
        chunk begins any more, running chunks end at their next batch, and QueryWasCancelled is
        raised."""
        ...


def delete_chunks(store: Store, unwanted: Iterable[StagedChunk | FailedChunk]) -> None:
    """Delete the files of chunks that the caller did not take: no commit can name them."""
    for chunk in unwanted:
        if isinstance(chunk, StagedChunk) and chunk.staged is not None:
            for path in chunk.staged.paths:
                store.delete(path)


@dataclass(frozen=True)
class InProcessExecutor:
    """An executor with a few threads; Arrow's kernels release the interpreter lock."""

    store: Store
    cache: Cache = field(default_factory=Cache)
    threads: int = 2

    def run(
        self, tasks: Sequence[ChunkTask], stop: Stop = never_stop
    ) -> Iterator[StagedChunk | FailedChunk]:
        """Yield each chunk as `Executor.run` does. Delete the files of computed chunks that were
        not yielded."""
        rows = [task.rows for task in tasks]
        threads = max(1, min(self.threads, len(tasks)))
        if sum(rows) < len(tasks) * ROWS_OF_A_THREAD_MIN:
            threads = 1
        if threads == 1 and max(rows, default=0) <= tuning.CHUNK_IN_CALLER_ROWS_MAX:
            for task in tasks:
                yield self._compute_here(task, stop)
            return
        # A chunk that outlasts the others has all threads for its queries.
        remaining_tasks = [
            (task, threads if task_rows * threads <= sum(rows) else 1)
            for task, task_rows in zip(reversed(tasks), reversed(rows), strict=True)
        ]
        ended = threading.Event()
        running: set[Future[StagedChunk | FailedChunk]] = set()
        outcomes: deque[StagedChunk | FailedChunk] = deque()
        with ThreadPool(threads, "olapdb-chunk") as pool:
            try:
                while remaining_tasks or running:
                    if stop():
                        raise cancelled_error()
                    while remaining_tasks and len(running) < WAITING_FACTOR * threads:
                        running.add(pool.submit(self._compute, *remaining_tasks.pop(), ended))
                    done, running = wait(running, POLL_SECONDS, FIRST_COMPLETED)
                    outcomes.extend(future.result() for future in done)
                    while outcomes:
                        yield outcomes.popleft()
            finally:
                ended.set()
                delete_chunks(
                    self.store,
                    (*outcomes, *(chunk.result() for chunk in running if not chunk.cancel())),
                )

    def _compute_here(self, task: ChunkTask, stop: Stop) -> StagedChunk | FailedChunk:
        """Return the outcome of one small chunk, computed in the caller's thread. It asks `stop` at each batch.

        Once `stop` returns True, it deletes the staged files and raises QueryWasCancelled."""
        ended = _Asking(stop)
        outcome = self._compute(task, 1, ended)
        if ended.is_set():
            delete_chunks(self.store, (outcome,))
            raise cancelled_error()
        return outcome

    def _compute(
        self, task: ChunkTask, at_a_time: int, ended: threading.Event
    ) -> StagedChunk | FailedChunk:
        """Return the computed chunk, one of `at_a_time`, or its error as a FailedChunk."""
        try:
            return compute_chunk(task, self.store, self.cache, ended, at_a_time)
        except Error as error:
            return FailedChunk(task.index, task.partition, error)
