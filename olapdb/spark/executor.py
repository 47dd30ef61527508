"""Chunks of views computed by Spark tasks: backfill, replay and reconciliation on a cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from olapdb.errors import Error, QueryWasCancelled
from olapdb.spark.items import run_items
from olapdb.spark.tasks import StoreAddress, address_of, run_chunk
from olapdb.views.chunk import ChunkTask, FailedChunk, StagedChunk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from olapdb.storage.store import Store
    from olapdb.transaction.services import Services, SettingValue

Computed = StagedChunk | FailedChunk

JOBS_MAX = 16
"""Chunks in flight at once; a job costs the driver a thread and Spark about 0.1 s."""


@dataclass(frozen=True)
class SparkExecutor:
    """Computes each chunk in a Spark job of one task, a few of them at a time.

    Chunks are so handed back, and can be published, one by one as they are done, and a failing one
    stops no other.  Tasks read and write the warehouse's folder themselves, under the driver's
    lease; only metadata comes back.  `jobs` is how many run at once (0: as many as there are
    cores, at most 16).
    """

    session: SparkSession
    store: StoreAddress
    jobs: int = 0

    @classmethod
    def on(cls, session: SparkSession, store: Store, *, jobs: int = 0) -> SparkExecutor:
        """On the store of an open warehouse; NotSupportedError for one in memory."""
        return cls(session, address_of(store), jobs)

    def run(self, tasks: Sequence[ChunkTask]) -> Iterator[Computed]:
        """Yields each chunk as soon as it is computed, one for each task, in any order. Closing
        the iterator early cancels the jobs that run and starts no other."""
        from pyspark import InheritableThread

        waiting: SimpleQueue[tuple[ChunkTask, Future[Computed]]] = SimpleQueue()
        running: set[Future[Computed]] = set()
        for task in tasks:
            future: Future[Computed] = Future()
            running.add(future)
            waiting.put((task, future))
        stopped = threading.Event()
        threads = [
            InheritableThread(target=self._work, args=(waiting, stopped))
            for _ in range(min(len(tasks), self._jobs_at_once()))
        ]
        for thread in threads:
            thread.start()
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            stopped.set()
            for thread in threads:
                thread.join()

    def _jobs_at_once(self) -> int:
        return min(self.jobs or self.session.sparkContext.defaultParallelism, JOBS_MAX)

    def _work(
        self, waiting: SimpleQueue[tuple[ChunkTask, Future[Computed]]], stopped: threading.Event
    ) -> None:
        while True:
            try:
                task, future = waiting.get_nowait()
            except Empty:
                return
            if stopped.is_set():
                future.set_result(_failed(task, QueryWasCancelled("The operation was cancelled.")))
                continue
            try:
                future.set_result(self._compute(task, stopped))
            except BaseException as error:  # carried to the thread that waits for it
                future.set_exception(error)

    def _compute(self, task: ChunkTask, stopped: threading.Event) -> Computed:
        view = task.view
        label = f"{task.purpose} of {view.database}.{view.name}, partition {task.partition}"
        try:
            return run_items(
                self.session, partial(run_chunk, self.store), [task],
                description=label, cancelled=stopped,
            )[0]  # fmt: skip
        except Error as error:
            return _failed(task, error)


def _failed(task: ChunkTask, error: Error) -> FailedChunk:
    return FailedChunk(task.index, task.partition, error)


def make_executor(
    location: str, services: Services, settings: Mapping[str, SettingValue]
) -> SparkExecutor:
    """The executor of SETTINGS engine = 'spark' (entry point group `olapdb.executors`): on the
    active session, else on a new one of this machine's cores."""
    from olapdb.spark.session import spark_session

    jobs = int(str(settings.get("backfill_threads", 0)))
    return SparkExecutor.on(spark_session(), services.store, jobs=jobs)
