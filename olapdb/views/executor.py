"""Who computes chunks: threads of this process, or whatever implements the Protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol

from olapdb.errors import Error
from olapdb.storage.store import Store
from olapdb.transaction.cache import Cache
from olapdb.views.chunk import ChunkTask, FailedChunk, StagedChunk, compute_chunk


class Executor(Protocol):
    """Computes chunks anywhere."""

    def run(self, tasks: Sequence[ChunkTask]) -> Iterator[StagedChunk | FailedChunk]:
        """Yields each chunk as soon as it is computed, in any order, one for each task.

        What fails by an olapdb Error becomes a FailedChunk and stops no other; closing the
        iterator early stops what has not begun.
        """
        ...


@dataclass(frozen=True)
class InProcessExecutor:
    """A few threads; Arrow's kernels release the interpreter lock."""

    store: Store
    cache: Cache = field(default_factory=Cache)
    threads: int = 2

    def run(self, tasks: Sequence[ChunkTask]) -> Iterator[StagedChunk | FailedChunk]:
        if len(tasks) == 1 or self.threads <= 1:
            for task in tasks:
                yield self._compute(task)
            return
        waiting = list(reversed(tasks))
        with ThreadPoolExecutor(self.threads, thread_name_prefix="olapdb-chunk") as pool:
            running: set[Future[StagedChunk | FailedChunk]] = set()
            try:
                while waiting or running:
                    while waiting and len(running) < self.threads:
                        running.add(pool.submit(self._compute, waiting.pop()))
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                for future in running:
                    future.cancel()

    def _compute(self, task: ChunkTask) -> StagedChunk | FailedChunk:
        try:
            return compute_chunk(task, self.store, self.cache)
        except Error as error:
            return FailedChunk(task.index, task.partition, error)
