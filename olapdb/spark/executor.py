"""Chunks of views computed by Spark tasks: backfill, replay and reconciliation on a cluster."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from olapdb.config import Settings
from olapdb.errors import Error, FolderNotShared, QueryWasCancelled
from olapdb.spark.folder import StoreAddress, marked_folder, verify_staged
from olapdb.spark.items import run_items, task_attempts
from olapdb.spark.tasks import run_chunk
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk
from olapdb.views.jobs.executor import POLL_SECONDS, Stop, cancelled, never

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from olapdb.runtime.services import Services, SettingValue
    from olapdb.storage.store import Store

JOBS_MAX = 16
"""Jobs in flight at once; each costs the driver a thread."""

WAVE_ROWS = 4_000_000
TASK_ROWS = 500_000
"""Source rows up to which small chunks share a job and a task: a job costs about 0.15 s, a task
0.03 s, and reading a million rows about a second."""

Computed: TypeAlias = StagedChunk | FailedChunk
_Wave: TypeAlias = tuple[ChunkTask, ...]


@dataclass(frozen=True)
class SparkExecutor:
    """Computes chunks in Spark tasks.

    Each chunk of a backfill is a job of its own, a few at a time, so that it is handed back, and
    can be published, as soon as it is done.  Chunks of a replay or a reconciliation, which are
    published together or not at all, share jobs where they are small.  A failing chunk stops no
    other.  Tasks read and write the warehouse's folder themselves, under the driver's lease; only
    metadata comes back.  Each task checks that its folder is the driver's, and the driver checks each
    staged file before it hands a chunk on (see `olapdb.spark.folder`).  `jobs` is how many run at once (0: as many as there are cores, at most
    16).
    """

    session: SparkSession
    services: Services
    jobs: int = 0

    def run(self, tasks: Sequence[ChunkTask], stop: Stop = never) -> Iterator[Computed]:
        """Yield each chunk as soon as its job is done, one for each task, in any order. Closing the
        iterator early cancels the jobs that run and starts no other. NotSupportedError for a
        warehouse in memory."""
        with marked_folder(self.services) as address:
            yield from _Run(self.session, self.services.store, address, self.jobs).run(tasks, stop)


@dataclass(frozen=True)
class _Run:
    """The jobs of one run, whose tasks find the driver's folder by `address`."""

    session: SparkSession
    store: Store
    address: StoreAddress
    jobs: int

    def run(self, tasks: Sequence[ChunkTask], stop: Stop) -> Iterator[Computed]:
        from pyspark import InheritableThread

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
                    raise cancelled()
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
            self._drop(ready)

    def _drop(self, unwanted: Iterable[Computed]) -> None:
        """Deletes the files of chunks that nobody took: no commit can name them."""
        for one in unwanted:
            if isinstance(one, StagedChunk) and one.staged is not None:
                for path in one.staged.paths:
                    self.store.delete(path)

    def _work(
        self, waiting: SimpleQueue[tuple[_Wave, Future[list[Computed]]]], stopped: threading.Event
    ) -> None:
        while not stopped.is_set():
            try:
                wave, future = waiting.get_nowait()
            except Empty:
                return
            try:
                future.set_result(self._compute(wave, stopped))
            except BaseException as error:  # noqa: BLE001  (carried to who waits for it)
                future.set_exception(error)

    def _compute(self, wave: _Wave, stopped: threading.Event) -> list[Computed]:
        """The wave's chunks; where the whole job failed (workers died), each with that error."""
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
        return [self._verified(one) for one in computed]

    def _verified(self, chunk: Computed) -> Computed:
        """A chunk whose files are not where the driver would publish them has failed."""
        if not isinstance(chunk, StagedChunk) or chunk.staged is None:
            return chunk
        try:
            verify_staged(self.store, self.address, (chunk.staged,))
        except FolderNotShared as error:
            return FailedChunk(chunk.index, chunk.partition, error)
        return chunk

    def _tasks(self, wave: _Wave) -> int:
        """Every core has work, and no task much more than `TASK_ROWS` rows."""
        rows = sum(task.rows for task in wave)
        cores: int = self.session.sparkContext.defaultParallelism
        return max(cores, rows // TASK_ROWS)


def waves(tasks: Sequence[ChunkTask], tasks_max: int) -> Iterator[_Wave]:
    """The tasks in groups that share a job: backfill chunks alone, others up to `tasks_max` of
    together `WAVE_ROWS` source rows."""
    wave: list[ChunkTask] = []
    rows = 0
    for task in tasks:
        alone = task.purpose == "backfill"
        if wave and (alone or len(wave) >= tasks_max or rows + task.rows > WAVE_ROWS):
            yield tuple(wave)
            wave, rows = [], 0
        wave.append(task)
        rows += task.rows
    if wave:
        yield tuple(wave)


def make_executor(
    location: str, services: Services, settings: Mapping[str, SettingValue]
) -> SparkExecutor:
    """The executor of SETTINGS engine = 'spark' (entry point group `olapdb.executors`): on the
    active session, else on a new one of this machine's cores."""
    from olapdb.spark.session import spark_session

    jobs = Settings.of(settings).integer("backfill_threads")
    return SparkExecutor(spark_session(), services, jobs)


def _label(wave: _Wave) -> str:
    view, first = wave[0].view, wave[0]
    more = f" and {len(wave) - 1} more" if len(wave) > 1 else ""
    return f"{first.purpose} of {view.database}.{view.name}, partition {first.partition}{more}"
