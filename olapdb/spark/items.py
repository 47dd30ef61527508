"""Run a Python function over work items in Spark tasks: the one primitive of this package.

    results = run_items(spark, count_rows, ["a.parquet", "b.parquet"])

The caller plans the items; no data is shuffled.  A task may run more than once, and only one of its
attempts returns a result here; only files of that attempt count.
"""

from __future__ import annotations

import pickle
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, NoReturn, Protocol, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import InheritableThread, TaskContext, cloudpickle
from pyspark.errors import PySparkException

from olapdb import errors
from olapdb.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Payload = TypeVar("Payload")
Outcome = TypeVar("Outcome")

POLL_SECONDS = 0.1
PARTITION_ITEMS_MAX = 10_000
"""Spark keeps a record of every task; split more items than this over several calls."""

_RESULT = "item long, outcome binary"


class Cancellation(Protocol):
    """A flag that a job should end, such as a threading.Event."""

    def is_set(self) -> bool:
        """Return whether the job should end."""
        ...


@dataclass(frozen=True)
class _Failure:
    """The outcome of a failing task: `error` is the exception itself if it is olapdb's (these can
    be pickled); of any other only the text."""

    kind: str
    message: str
    trace: str
    error: errors.Error | None


@dataclass(frozen=True)
class _Success(Generic[Outcome]):
    """The value that a task's function returned."""

    value: Outcome


def run_items(
    session: SparkSession,
    function: Callable[[Payload], Outcome],
    payloads: Sequence[Payload],
    *,
    tasks: int = 0,
    description: str = "olapdb",
    on_progress: Callable[[int, int], None] | None = None,
    cancelled: Cancellation | None = None,
) -> list[Outcome]:
    """Return `[function(payload) for payload in payloads]`, computed by `tasks` Spark tasks, each
    with a contiguous share of the items (0: one task for each item, which costs about 30 ms).

    `function`, payloads and results are pickled (by cloudpickle, so a closure works); all results
    must fit in the driver's memory.  `on_progress(done, of)` is called in this thread while the job
    runs, with the numbers of finished and of all tasks; `cancelled` stops the job when set.

    A failing call is retried as often as Spark retries a task, unless its error is one of olapdb's
    that would recur.  Raises that error unchanged, with a note naming the item; ExecutorFailed,
    with item, class, message and traceback, for any other exception of a task and for a lost
    worker; QueryWasCancelled.
    """
    if not payloads:
        return []
    if len(payloads) > PARTITION_ITEMS_MAX:
        raise errors.InternalError(f"{len(payloads)} items in one Spark job; group them.")
    count = len(payloads)
    mapper = _mapper(function, tuple(payloads), task_attempts(session))
    spread = min(tasks, count) if tasks > 0 else count
    frame = session.range(0, count, 1, spread).mapInArrow(mapper, _RESULT)
    job = SparkJob(session, f"olapdb-{uuid.uuid4().hex}", description)
    rows = job.run(frame.collect, on_progress=on_progress, of=spread, cancelled=cancelled)
    return _outcomes([(row.item, bytes(row.outcome)) for row in rows], count)


class SparkJob:
    """Spark jobs under one job group, which can be watched and cancelled."""

    def __init__(self, session: SparkSession, group: str, description: str) -> None:
        self._session = session
        self._group = group
        self._description = description

    def run(
        self,
        action: Callable[[], list[Outcome]],
        *,
        on_progress: Callable[[int, int], None] | None = None,
        of: int = 0,
        cancelled: Cancellation | None = None,
    ) -> list[Outcome]:
        """Run `action` in a new thread and return its result. `on_progress` gets the finished tasks
        meanwhile, of `of` tasks (0: of those that Spark has planned so far). Raises the action's
        errors as `raise_translated` does."""
        results: list[list[Outcome]] = []
        failures: list[BaseException] = []
        done = threading.Event()

        def act() -> None:
            """Run the Spark action under the job group; leave its result or exception to the
            caller's thread."""
            try:
                self._session.sparkContext.setJobGroup(self._group, self._description, True)
                results.append(action())
            except BaseException as error:  # noqa: BLE001  (carried to the caller's thread)
                failures.append(error)
            finally:
                done.set()

        thread = InheritableThread(target=act)
        thread.start()
        try:
            self._watch(done, on_progress, of, cancelled)
        except BaseException:
            self._stop(done)
            raise
        thread.join()
        if failures:
            raise_translated(failures[0], cancelled)
        if on_progress is not None and of:
            on_progress(of, of)
        return results[0]

    def cancel(self) -> None:
        """Cancel the jobs of the group."""
        self._session.sparkContext.cancelJobGroup(self._group)

    def _stop(self, done: threading.Event) -> None:
        """Cancel the job again and again until the action has ended: a job that Spark has not
        started yet is not in its group."""
        self.cancel()
        while not done.wait(POLL_SECONDS):
            self.cancel()

    def _watch(
        self,
        done: threading.Event,
        on_progress: Callable[[int, int], None] | None,
        of: int,
        cancelled: Cancellation | None,
    ) -> None:
        """Poll until `done`: report progress when it changes, stop the job when `cancelled` is set.
        `of` is the number of items in total, 0 for Spark's number of tasks."""
        reported = (-1, -1)
        while not done.wait(POLL_SECONDS):
            if cancelled is not None and cancelled.is_set():
                self._stop(done)
                return
            if on_progress is not None:
                finished, planned = self._tasks()
                if (finished, of or planned) != reported:
                    reported = (finished, of or planned)
                    on_progress(*reported)

    def _tasks(self) -> tuple[int, int]:
        """Return the numbers of finished and of planned tasks of the group's stages."""
        tracker = self._session.sparkContext.statusTracker()
        jobs = (
            tracker.getJobInfo(identifier) for identifier in tracker.getJobIdsForGroup(self._group)
        )
        numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
        stages = [
            info for identifier in numbers if (info := tracker.getStageInfo(identifier)) is not None
        ]
        return (
            sum(stage.numCompletedTasks for stage in stages),
            sum(stage.numTasks for stage in stages),
        )


def raise_translated(error: BaseException, cancelled: Cancellation | None = None) -> NoReturn:
    """Raise an error of Spark as ExecutorFailed, or QueryWasCancelled if `cancelled` is set; raise
    any other error unchanged."""
    if isinstance(error, errors.Error) or not isinstance(error, PySparkException | Py4JError):
        raise error
    if cancelled is not None and cancelled.is_set():
        raise errors.QueryWasCancelled("The Spark job was cancelled.") from error
    raise errors.ExecutorFailed(
        f"The Spark job failed: {type(error).__name__}: {_first_lines(str(error))}",
        hint="Nothing was committed. Where a worker died, give Spark more memory or smaller parts.",
    ) from error


def failure_of(error: Exception) -> _Failure:
    """Return the failure that a task returns instead of a result: class, text and traceback, with
    the error itself if it is olapdb's."""
    return _Failure(
        type(error).__name__,
        str(error),
        "".join(traceback.format_exception(error)),
        error if isinstance(error, errors.Error) else None,
    )


def raise_failure(item: int, failure: _Failure) -> NoReturn:
    """Raise a task's failure: the error itself if it is olapdb's and would recur, else
    ExecutorFailed. `item` is the item's number, from 0."""
    if failure.error is not None and _is_lasting(failure.error):
        failure.error.add_note(f"In item {item} of a Spark job.")
        raise failure.error
    raise errors.ExecutorFailed(
        f"Item {item} of a Spark job failed: {failure.kind}: {failure.message}",
        hint=f"Nothing of it was committed.\n{failure.trace}",
    ) from failure.error


def is_final(error: Exception, attempts: int) -> bool:
    """Return whether a task should return this error as its result, instead of raising it for Spark
    to retry."""
    context = TaskContext.get()
    last = context is None or context.attemptNumber() + 1 >= attempts
    return last or _is_lasting(error)


def _is_lasting(error: Exception) -> bool:
    """Return whether another attempt would raise the error again. True for errors of olapdb, except
    OperationalError and InternalError, which may pass; a folder that is not shared does not
    pass."""
    if isinstance(error, errors.FolderNotShared):
        return True
    return isinstance(error, errors.Error) and not isinstance(
        error, errors.OperationalError | errors.InternalError
    )


def task_attempts(session: SparkSession) -> int:
    """Return how many times Spark runs a failing task before its job fails."""
    context = session.sparkContext
    master = context.master
    if master.startswith("local["):
        _, comma, attempts = master.removeprefix("local[").rstrip("]").partition(",")
        return int(attempts) if comma else 1
    if master == "local":
        return 1
    return int(context.getConf().get("spark.task.maxFailures", "4") or 4)


def _mapper(
    function: Callable[[Payload], Outcome], payloads: tuple[Payload, ...], attempts: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a Spark task: it runs `function` on the payload of each item, given by
    number from 0, and yields pickled outcomes."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row (item number, pickled outcome) for each item number in the first column."""
        # Spark reads the columns by position and trusts their types.
        schema = pa.schema([("item", pa.int64()), ("outcome", pa.binary())])
        for batch in batches:
            for item in batch.column(0).to_pylist():
                outcome = _attempt(function, payloads[item], attempts)
                data = cloudpickle.dumps(outcome)
                yield pa.RecordBatch.from_arrays([[item], [data]], schema=schema)

    return run


def _attempt(
    function: Callable[[Payload], Outcome], payload: Payload, attempts: int
) -> _Success[Outcome] | _Failure:
    """Run the function. Return its value, or its error as a failure if that is final (see
    `is_final`). Raise any other error, so that Spark retries."""
    try:
        return _Success(function(payload))
    except Exception as error:  # a task's errors travel as data, so that their class is not lost
        if not is_final(error, attempts):
            raise
        return failure_of(error)


def _outcomes(rows: Sequence[tuple[int, bytes]], count: int) -> list[Outcome]:
    """Return the values by item number, from 0. Raise the first failure if any, InternalError
    unless Spark answered all `count` items."""
    by_item: dict[int, Outcome] = {}
    for item, data in rows:
        outcome: _Success[Outcome] | _Failure = pickle.loads(data)
        if isinstance(outcome, _Failure):
            raise_failure(item, outcome)
        by_item[item] = outcome.value
    if sorted(by_item) != list(range(count)):
        raise errors.InternalError(f"Spark answered {len(by_item)} of {count} items.")
    return [by_item[item] for item in range(count)]


def _first_lines(text: str, lines_max: int = 30) -> str:
    """Shorten a longer text to `lines_max` lines: the first two, "…", the last ones."""
    lines = text.strip().splitlines()
    return "\n".join(
        lines if len(lines) <= lines_max else [*lines[:2], "…", *lines[3 - lines_max :]]
    )
