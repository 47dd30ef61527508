"""Who computes chunks: threads of this process, or whatever implements the Protocol."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from olapdb.errors import Error, QueryWasCancelled
from olapdb.runtime.cache import Cache
from olapdb.storage.store import Store
from olapdb.threads import ThreadPool
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk, compute_chunk

Stop: TypeAlias = Callable[[], bool]
"""Asked now and then, in the caller's thread: whether to give up."""

POLL_SECONDS = 0.1
"""How often `stop` is asked while chunks are computed."""


def never() -> bool:
    """For runs that nobody can cancel."""
    return False


def cancelled() -> QueryWasCancelled:
    """What a run raises once `stop` has said so."""
    return QueryWasCancelled(
        "The job was cancelled.", hint="What it published stays; run it again to go on."
    )


class Executor(Protocol):
    """Computes chunks anywhere."""

    def run(
        self, tasks: Sequence[ChunkTask], stop: Stop = never
    ) -> Iterator[StagedChunk | FailedChunk]:
        """Yields each chunk as soon as it is computed, in any order, one for each task.

        What fails by an olapdb Error becomes a FailedChunk and stops no other; closing the
        iterator early stops what has not begun.  Once `stop` says so, no chunk is begun any more,
        those under way end at their next batch, and QueryWasCancelled is raised.
        """
        ...


@dataclass(frozen=True)
class InProcessExecutor:
    """A few threads; Arrow's kernels release the interpreter lock."""

    store: Store
    cache: Cache = field(default_factory=Cache)
    threads: int = 2

    def run(
        self, tasks: Sequence[ChunkTask], stop: Stop = never
    ) -> Iterator[StagedChunk | FailedChunk]:
        waiting = list(reversed(tasks))
        threads = max(1, min(self.threads, len(tasks)))
        ended = threading.Event()
        running: set[Future[StagedChunk | FailedChunk]] = set()
        ready: deque[StagedChunk | FailedChunk] = deque()
        with ThreadPool(threads, "olapdb-chunk") as pool:
            try:
                while waiting or running:
                    if stop():
                        raise cancelled()
                    while waiting and len(running) < threads:
                        running.add(pool.submit(self._compute, waiting.pop(), ended))
                    done, running = wait(running, POLL_SECONDS, FIRST_COMPLETED)
                    ready.extend(future.result() for future in done)
                    while ready:
                        yield ready.popleft()
            finally:
                ended.set()
                self._drop((*ready, *(f.result() for f in running if not f.cancel())))

    def _compute(self, task: ChunkTask, ended: threading.Event) -> StagedChunk | FailedChunk:
        try:
            return compute_chunk(task, self.store, self.cache, ended)
        except Error as error:
            return FailedChunk(task.index, task.partition, error)

    def _drop(self, unwanted: Sequence[StagedChunk | FailedChunk]) -> None:
        """Deletes the files of chunks that nobody took: no commit can name them."""
        for one in unwanted:
            if isinstance(one, StagedChunk) and one.staged is not None:
                for path in one.staged.paths:
                    self.store.delete(path)
