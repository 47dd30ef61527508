"""Chunks of views computed by Spark tasks: backfill, replay and reconciliation on a cluster."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from pyspark import InheritableThread

from olapdb.config import Settings
from olapdb.errors import Error, FolderNotShared, QueryWasCancelled
from olapdb.records import dataclass
from olapdb.spark.folder import StoreAddress, marked_folder, verify_staged
from olapdb.spark.items import run_items, task_attempts
from olapdb.spark.session import spark_session
from olapdb.spark.tasks import run_chunk
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk
from olapdb.views.jobs.executor import (
    POLL_SECONDS,
    Stop,
    cancelled_error,
    delete_chunks,
    never_stop,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from olapdb.runtime.services import Services, SettingValue
    from olapdb.storage.store import Store

JOBS_MAX = 16
"""Concurrent jobs; each needs a thread of the driver."""

WAVE_ROWS = 4_000_000
TASK_ROWS = 500_000
"""Source rows up to which small chunks share a job and a task: a job costs about 0.15 s, a task
0.03 s, and reading a million rows about a second."""

Computed: TypeAlias = StagedChunk | FailedChunk
_Wave: TypeAlias = tuple[ChunkTask, ...]


@dataclass(frozen=True)
class SparkExecutor:
    """An executor that computes chunks in Spark tasks.

    Each chunk of a backfill is its own job, a few at a time, so that it can be published as soon as
    it is done.  Small chunks of a replay or a reconciliation, which are published together, share
    jobs. A failing chunk does not stop the others.  Tasks read and write the warehouse's folder
    themselves, under the driver's lease, and return only metadata.  Each task checks that its
    folder is the driver's, and the driver checks each staged file (see `olapdb.spark.folder`).
    `jobs` is how many run at once (0: one for each core, at most 16).
    """

    session: SparkSession
    services: Services
    jobs: int = 0

    def run(self, tasks: Sequence[ChunkTask], stop: Stop = never_stop) -> Iterator[Computed]:
        """Yield each chunk as soon as its job is done, one for each task, in any order. Closing the
        iterator early cancels running jobs. Raises NotSupportedError for a warehouse in memory."""
        with marked_folder(self.services) as address:
            yield from _Run(self.session, self.services.store, address, self.jobs).run(tasks, stop)


@dataclass(frozen=True)
class _Run:
    """The jobs of one run; tasks open the driver's folder by `address`."""

    session: SparkSession
    store: Store
    address: StoreAddress
    jobs: int

    def run(self, tasks: Sequence[ChunkTask], stop: Stop) -> Iterator[Computed]:
        """Compute the tasks in waves, each a Spark job, several at a time. Yield results as waves
        end, in no order. Raises the first failure; `stop()` cancels. In the end, deletes what was
        staged but not yielded."""
        waiting: SimpleQueue[tuple[_Wave, Future[list[Computed]]]] = SimpleQueue()
        running: set[Future[list[Computed]]] = set()
        ready: deque[Computed] = deque()
        cores = self.session.sparkContext.defaultParallelism
        for wave in waves(tasks, 4 * cores):
            future: Future[list[Computed]] = Future()
            running.add(future)
            waiting.put((wave, future))
        stopped = threading.Event()
        threads = [
            InheritableThread(target=self._work, args=(waiting, stopped))
            for _ in range(min(len(running), self.jobs or cores, JOBS_MAX))
        ]
        for thread in threads:
            thread.start()
        try:
            while running:
                if stop():
                    raise cancelled_error()
                done, running = wait(running, POLL_SECONDS, FIRST_COMPLETED)
                for future in done:
                    ready.extend(future.result())
                while ready:
                    yield ready.popleft()
        finally:
            stopped.set()
            for thread in threads:
                thread.join()
            for future in running:
                if future.done() and future.exception() is None:
                    ready.extend(future.result())
            delete_chunks(self.store, ready)

    def _work(
        self, waiting: SimpleQueue[tuple[_Wave, Future[list[Computed]]]], stopped: threading.Event
    ) -> None:
        """Compute waiting waves until none is left or `stopped` is set. Each result or exception
        goes to the wave's future."""
        while not stopped.is_set():
            try:
                wave, future = waiting.get_nowait()
            except Empty:
                return
            try:
                future.set_result(self._compute(wave, stopped))
            except BaseException as error:  # noqa: BLE001  (the future carries it to its waiter)
                future.set_exception(error)

    def _compute(self, wave: _Wave, stopped: threading.Event) -> list[Computed]:
        """Compute the wave in a Spark job and return a result for each chunk.

        A chunk is a FailedChunk if its computation failed or the driver does not find its files. If
        the job failed (workers died), all are FailedChunks. Raises QueryWasCancelled.
        """
        function = partial(run_chunk, self.address, task_attempts(self.session))
        try:
            computed = run_items(
                self.session,
                function,
                wave,
                tasks=self._tasks(wave),
                description=_label(wave),
                cancelled=stopped,
            )
        except QueryWasCancelled:
            raise
        except Error as error:
            return [FailedChunk(task.index, task.partition, error) for task in wave]
        return [self._verified(chunk) for chunk in computed]

    def _verified(self, chunk: Computed) -> Computed:
        """Return the chunk; if its files are not in the driver's folder, a FailedChunk instead."""
        if not isinstance(chunk, StagedChunk) or chunk.staged is None:
            return chunk
        try:
            verify_staged(self.store, self.address, (chunk.staged,))
        except FolderNotShared as error:
            return FailedChunk(chunk.index, chunk.partition, error)
        return chunk

    def _tasks(self, wave: _Wave) -> int:
        """Return the number of tasks: work for every core, and not much more than `TASK_ROWS` rows
        a task."""
        rows = sum(task.rows for task in wave)
        cores: int = self.session.sparkContext.defaultParallelism
        return max(cores, rows // TASK_ROWS)


def waves(tasks: Sequence[ChunkTask], tasks_max: int) -> Iterator[_Wave]:
    """Yield groups of tasks that share a job, in the tasks' order: each backfill chunk alone,
    others up to `tasks_max` tasks and `WAVE_ROWS` source rows."""
    wave: list[ChunkTask] = []
    rows = 0
    for task in tasks:
        is_alone = task.purpose == "backfill"
        if wave and (is_alone or len(wave) >= tasks_max or rows + task.rows > WAVE_ROWS):
            yield tuple(wave)
            wave, rows = [], 0
        wave.append(task)
        rows += task.rows
    if wave:
        yield tuple(wave)


def make_executor(
    location: str, services: Services, settings: Mapping[str, SettingValue]
) -> SparkExecutor:
    """Return the executor of SETTINGS engine = 'spark' (entry point group `olapdb.executors`), on
    the active session or on a new local one."""
    jobs = Settings.of(settings).integer("backfill_threads")
    return SparkExecutor(spark_session(), services, jobs)


def _label(wave: _Wave) -> str:
    """Return the name of a wave's job in Spark's UI: purpose, view, first partition."""
    view, first = wave[0].view, wave[0]
    more = f" and {len(wave) - 1} more" if len(wave) > 1 else ""
    return f"{first.purpose} of {view.database}.{view.name}, partition {first.partition}{more}"
