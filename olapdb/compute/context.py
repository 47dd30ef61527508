"""The context of a running query: snapshot, settings, limits, memory accounts, threads."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from copy import copy
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from olapdb import errors
from olapdb.compute.memory import MemoryTracker, memory_limit
from olapdb.compute.profile import QueryProfile
from olapdb.compute.spill.files import TemporaryData, TemporaryDataLimits
from olapdb.config import SESSION_SETTINGS, Settings, tuning
from olapdb.functions.base import Environment
from olapdb.model.part import Part
from olapdb.model.snapshot import Snapshot
from olapdb.observation import RowCosts, TaskMeter
from olapdb.records import dataclass
from olapdb.result import QueryStatistics, close_iterator
from olapdb.threads import ThreadPool

if TYPE_CHECKING:
    from olapdb.compute.dictionary_rows import DictionaryRows
    from olapdb.compute.hash_table import Lookup
    from olapdb.compute.shared_group_codes import SharedCodes
    from olapdb.plan.nodes import Limit, Node
    from olapdb.storage.store import Store

__all__ = [
    "BATCH_ROWS",
    "ExecutionContext",
    "LargeSet",
    "QueryStatistics",
    "SharedRows",
    "Subqueries",
    "SystemReader",
]

BATCH_ROWS = 131_072
"""The most rows of a batch between operators."""

SHARES_OF_LIMIT = 16
"""The part of a query's memory that the rows of a batch may take, for each thread."""

LOOK_AHEAD_PER_THREAD = 2
"""Tasks in flight for each thread, so that memory is bounded and no thread waits."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")

Subqueries = dict[int, "pa.Scalar | Lookup | LargeSet | DictionaryRows"]
"""The answers of subqueries by their number: a scalar, the set of an IN, a dictionary."""


@dataclass(frozen=True)
class LargeSet:
    """The set of an IN that memory does not take: its query is read again, as the side of a join that
    spills. `limit_bytes` is the memory of the query."""

    limit_bytes: int


SystemReader = Callable[[str, Sequence[str], Mapping[str, frozenset[str]]], "pa.Table"]
"""(name of the table, columns, values) -> its rows, the columns in that order: `system.*` and
`information_schema.*` tables. Rows may be left out that have none of `values` in a column."""


def no_system_tables(
    name: str, columns: Sequence[str], values: Mapping[str, frozenset[str]]
) -> pa.Table:
    """Raise InternalError: the reader of contexts without system tables (executors, unit tests)."""
    raise errors.InternalError(f"system.{name} was read where there are no system tables.")


@dataclass
class SharedRows:
    """The rows of a subplan that occurs several times in a query, once all of them are there."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    is_complete: bool = False


@dataclass
class ExecutionContext:
    """The state of one running query, discarded at its end.

    `blocks[table id]` is read instead of the table (a view's trigger); `parts[table id]` restricts
    a table to those parts (a backfill chunk, a replay); `codes` are group codes that several queries
    over one block share.  `totals` has the row of WITH TOTALS by the `id` of its Aggregate.  `store` may be None if no stored table is read.  `close`, or the end of
    the result, ends its threads.
    """

    snapshot: Snapshot | None = None
    store: Store | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    blocks: Mapping[str, pa.Table] = field(default_factory=dict)
    parts: Mapping[str, Sequence[Part]] = field(default_factory=dict)
    system: SystemReader = no_system_tables
    statistics: QueryStatistics = field(default_factory=QueryStatistics)
    memory: MemoryTracker = field(default_factory=MemoryTracker)
    cancelled: threading.Event = field(default_factory=threading.Event)
    subqueries: Subqueries = field(default_factory=dict)
    codes: SharedCodes | None = None
    totals: dict[int, pa.RecordBatch] = field(default_factory=dict)
    working: dict[str, pa.RecordBatch] = field(default_factory=dict)
    """The rows of the last step of each WITH RECURSIVE, by its key."""
    shared: dict[int, SharedRows] = field(default_factory=dict)
    """The rows of the plan's `Shared` nodes, by their number."""
    join_filters: bool = False
    """True if the keys of a join's held side drop rows where the other side is read. Views read
    their rows without, so that batches are cut alike wherever a view is computed."""
    joins_batches: bool = False
    """True if several batches may be grouped as one. Views group theirs as they are cut."""
    cuts_wide_rows: bool = False
    """True if batches may be cut by their bytes. Views, and functions of the rows of a batch, take theirs as they are."""
    left_out: dict[int, frozenset[str]] = field(default_factory=dict)
    """The ids of parts that a Scan, by its `id`, does not read: projections stand in for them."""
    projections: bool = False
    """True if projections may be read in place of parts. Views read the parts themselves."""
    counted_limits: frozenset[int] = frozenset()
    """The outermost LIMITs, by `id`, whose input rows are counted; see `before_limit`."""
    counted_sorts: dict[int, Limit] = field(default_factory=dict)
    """The LIMIT above each sort, by its `id`, whose input is counted in place of the LIMIT's."""
    profile: QueryProfile | None = None
    """The times and rows of the plan's nodes under EXPLAIN ANALYZE, else None."""
    batch_rows: int = BATCH_ROWS
    row_costs: RowCosts = field(default_factory=RowCosts)
    """The times that earlier runs of the plan took a row, by scan."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._started = self.clock()
        self._process_id = os.getpid()
        self.rows_at_once = sys.maxsize
        """How many rows of a task to work on at once, so that a query ends soon after it is cancelled."""
        self._reading_seconds: dict[int, float] = {}
        self._pool: ThreadPool | None = None
        self._temporary: TemporaryData | None = None
        self.settings = settings = Settings.of(self.settings)
        if not self.memory.limit_bytes:
            self.memory.limit_bytes = memory_limit(settings)
        # Only a smaller max_block_size changes anything: batches follow the parts' row groups.
        block_rows = settings.integer("max_block_size")
        if block_rows < int(SESSION_SETTINGS["max_block_size"].default):
            self.batch_rows = min(self.batch_rows, block_rows)
        self._time_limit_seconds = settings.number("max_execution_time")
        self._rows_to_read_max = _least(settings, "max_rows_to_read")
        self._bytes_to_read_max = _least(settings, "max_bytes_to_read")
        self._limits_speed = any(settings.integer(name) for name in _SPEEDS)
        self._partitions_to_read_max = settings.integer("max_partitions_to_read")
        self.threads = settings.threads

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count the processor time of the block, in this thread, as time for reading: of what a task takes it does not
        tell how long work on its rows takes."""
        started = time.thread_time()
        try:
            yield
        finally:
            thread = threading.get_ident()
            spent = time.thread_time() - started
            self._reading_seconds[thread] = self._reading_seconds.get(thread, 0.0) + spent

    def _working_seconds(self) -> float:
        """Return the processor time of this thread that was not for reading."""
        return time.thread_time() - self._reading_seconds.get(threading.get_ident(), 0.0)

    @property
    def batch_bytes(self) -> int:
        """Return about how many bytes the rows that an operator works on at once, or makes at once, may have: some
        megabytes, or a small part of the query's memory for each thread. Those that wait are not accounted."""
        limit_bytes = self.memory.limit_bytes
        if not limit_bytes:
            return tuning.LARGE_TASK_BYTES
        return min(tuning.LARGE_TASK_BYTES, limit_bytes // (SHARES_OF_LIMIT * self.threads))

    def count_read(self, rows: int, read_bytes: int) -> None:
        """Add to the statistics; raise TooManyRows past max_rows_to_read, TooManyBytes past
        max_bytes_to_read."""
        self.statistics.add_read(rows, read_bytes)
        if self._limits_speed:
            self._check_speed()
        limit = self._rows_to_read_max
        if limit and self.statistics.rows_read > limit:
            raise errors.TooManyRows(
                f"The query read more than max_rows_to_read = {limit} rows.",
                hint="Narrow it by the partition or sorting key, or raise the setting.",
            )
        limit = self._bytes_to_read_max
        if limit and self.statistics.bytes_read > limit:
            raise errors.TooManyBytes(
                f"The query read more than max_bytes_to_read = {limit} bytes.",
                hint="Name fewer columns, or raise the setting.",
            )

    def _check_speed(self) -> None:
        """Wait so that the query reads no faster than max_execution_speed…; raise TooSlow if it reads less a second
        than min_execution_speed…, once timeout_before_checking_execution_speed seconds have passed."""
        settings = Settings.of(self.settings)
        elapsed = self.clock() - self._started
        read = (self.statistics.rows_read, self.statistics.bytes_read)
        least = [settings.integer(name) for name in _SPEEDS[:2]]
        after = settings.number("timeout_before_checking_execution_speed")
        for count, speed in zip(read, least, strict=True):
            if speed and elapsed > after and count < speed * elapsed:
                raise errors.TooSlow(
                    f"The query reads {count / elapsed:.0f} a second, less than {speed}.",
                    hint="The settings min_execution_speed and …_bytes say how many it must.",
                )
        most = [settings.integer(name) for name in _SPEEDS[2:]]
        waits = [count / speed - elapsed for count, speed in zip(read, most, strict=True) if speed]
        if (wait := max(waits, default=0.0)) > 0:
            if self._time_limit_seconds:
                wait = min(wait, max(self._time_limit_seconds - elapsed, 0.0))
            self.cancelled.wait(wait)
            self.check()

    def count_partitions(self, partition_ids: Collection[str]) -> None:
        """Raise TooManyPartitions for more partitions of a table than max_partitions_to_read."""
        limit = self._partitions_to_read_max
        if 0 < limit < len(partition_ids):
            raise errors.TooManyPartitions(
                f"The query reads {len(partition_ids)} partitions of a table, more than"
                f" max_partitions_to_read = {limit}.",
                hint="Narrow it by the partition key, or raise the setting.",
            )

    def count_selection(
        self, node: Node, parts: tuple[int, int], granules: tuple[int, int]
    ) -> None:
        """Add the (total, read) parts and granules of a scan to the statistics."""
        self.statistics.add_selection(*parts, *granules)
        if self.profile is not None:
            self.profile.of(node).selection = (*parts, *granules)

    def note(self, node: Node, text: str) -> None:
        """Add a line of text to what EXPLAIN ANALYZE shows of the node; do nothing in other queries."""
        if self.profile is not None:
            self.profile.of(node).notes.append(text)

    def watched(self, batches: Iterator[pa.RecordBatch], node: Node) -> Iterator[pa.RecordBatch]:
        """Return the batches of a node; where EXPLAIN ANALYZE runs, they are counted."""
        return batches if self.profile is None else self.profile.watch(batches, node)

    def runs_within(self, node: Node, *inputs: Node) -> None:
        """Let EXPLAIN ANALYZE show that the node's operator does the work of some inputs too."""
        if self.profile is not None:
            for below in inputs:
                self.profile.of(below).runner = node

    def require_store(self) -> Store:
        """Return the store; raise InternalError if the context has none."""
        if self.store is None:
            raise errors.InternalError("A stored table is read, but the context has no store.")
        return self.store

    def require_snapshot(self) -> Snapshot:
        """Return the snapshot; raise InternalError if the context has none."""
        if self.snapshot is None:
            raise errors.InternalError("A stored table is read, but the context has no snapshot.")
        return self.snapshot

    def temporary(self) -> TemporaryData:
        """Return the query's temporary files, in a folder of the warehouse unless `tmp_path` names
        one. `close` closes them."""
        if self._temporary is None:
            settings = Settings.of(self.settings)
            folder = self.store.temporary_folder if self.store is not None else None
            folder = settings.text("tmp_path") or folder
            limits = TemporaryDataLimits(
                settings.integer("max_temporary_data_on_disk_size_for_query"),
                settings.integer("min_free_disk_space_for_temporary_data"),
                settings.text("temporary_files_codec"),
            )
            self._temporary = TemporaryData(folder, limits, self.statistics)
        return self._temporary

    def within_task(self, limit_bytes: int) -> ExecutionContext:
        """Return a context for operators that a thread of this query runs: they start nothing in other threads, and
        have a memory limit of their own, `limit_bytes`, which the caller counts in this query's memory."""
        inner = copy(self)
        inner.threads, inner.profile, inner.memory = 1, None, MemoryTracker(limit_bytes)
        return inner

    def check(self) -> None:
        """Raise QueryWasCancelled or TimeoutExceeded if the query must end.

        Operators call it once a batch. Raises InterfaceError in the child of a fork, which lacks the
        threads that the query waits for."""
        if os.getpid() != self._process_id:
            raise errors.InterfaceError(
                "The child of a fork cannot go on with what its parent reads.",
                hint="Run the statement again in the child.",
            )
        if self.cancelled.is_set():
            raise errors.QueryWasCancelled("The query was cancelled.")
        if self._time_limit_seconds:
            elapsed = self.clock() - self._started
            if elapsed > self._time_limit_seconds:
                raise errors.TimeoutExceeded(
                    f"The query ran for {elapsed:.3f} seconds, max_execution_time is"
                    f" {self._time_limit_seconds:g}.",
                    hint="Raise it with SETTINGS max_execution_time = <seconds> (0 is no limit).",
                )

    def parallel(self, work: Callable[[Item], Answer], items: Iterable[Item]) -> Iterator[Answer]:
        """Yield `work(item)` for each item, in their order, several computed at a time.

        `work` must not wait for other work of this context.  A single item runs in the caller's
        thread, so that a small query starts none.  At most `threads * 2` answers wait.
        """
        if self.profile is not None:
            work = self.profile.task(work)
        source = iter(items)
        futures: deque[Future[Answer]] = deque()
        try:
            first_item = next(source, _NOTHING)
            second_item = next(source, _NOTHING) if self.threads > 1 else _NOTHING
            if isinstance(first_item, _Nothing):
                return
            if isinstance(second_item, _Nothing):
                self.check()
                yield work(first_item)
                for item in source:
                    self.check()
                    yield work(item)
                return
            pool = self._threads()
            futures.append(pool.submit(work, first_item))
            futures.append(pool.submit(work, second_item))
            for item in source:
                futures.append(pool.submit(work, item))
                if len(futures) > self.threads * LOOK_AHEAD_PER_THREAD:
                    self.check()
                    yield futures.popleft().result()
            while futures:
                self.check()
                yield futures.popleft().result()
        finally:
            for future in futures:
                future.cancel()
            close_iterator(source)

    def parallel_if_long(
        self,
        work: Callable[[Item], Answer],
        items: Sequence[Item],
        rows: Sequence[int],
        together: Callable[[Sequence[Item]], Sequence[Item]] | None = None,
        stages: int = 1,
        *,
        scan: Hashable = None,
        is_long: bool = False,
    ) -> Iterator[Answer]:
        """Yield `work(item)` for each item, as `parallel` does, but in the caller's thread if they are expected to take
        little time together. `rows` has the rows of each. What an earlier run of the plan took for the same `scan`
        tells that, else the first items do, unless the caller knows that all of them take long (`is_long`). `together`
        joins items to fewer ones for a single thread. `stages` is the number of operators that `work` runs, each of
        which has its own cost for an item. Threads take turns in the interpreter, and each turn wakes one that
        sleeps."""
        if is_long and self.threads > 1 and len(items) >= tuning.ALONE_TASKS_MIN:
            yield from self.parallel(
                lambda pair: self._measured(work, *pair), zip(items, rows, strict=True)
            )
            return
        all_rows = sum(rows)
        if scan is None:
            yield from self._judged_by_first(work, items, rows, together, stages)
            return
        meter = TaskMeter()
        metered = meter.metered(work)
        is_known_long = self.is_long(scan, all_rows)
        if is_known_long is None:
            yield from self._judged_by_first(metered, items, rows, together, stages)
        elif is_known_long:
            yield from _waited_for(self.parallel(metered, items), meter)
        else:
            yield from _waited_for(self._alone(metered, items, together), meter)
        self.row_costs.learn(
            scan, all_rows, meter.microseconds, meter.waited_microseconds, shared=is_known_long
        )

    def _alone(
        self,
        work: Callable[[Item], Answer],
        items: Sequence[Item],
        together: Callable[[Sequence[Item]], Sequence[Item]] | None,
    ) -> Iterator[Answer]:
        """Yield `work(item)` for each item, done in the caller's thread, of items that `together` puts together."""
        alone = work if self.profile is None else self.profile.task(work)
        for item in items if together is None else together(items):
            self.check()
            yield alone(item)

    def is_long(self, scan: Hashable, rows: int) -> bool | None:
        """Return whether threads save time for `rows` rows of a scan; None if no earlier run was measured. Also set
        `rows_at_once` so that the rows worked on at once take a bounded time."""
        expected = self.row_costs.expected(scan, rows)
        if expected is None:
            return None
        if expected:
            self.rows_at_once = int(tuning.BATCH_MICROSECONDS * rows / expected)
        return (
            self.threads > 1
            and expected > tuning.KNOWN_ALONE_MICROSECONDS
            and self.row_costs.threads_pay(scan, rows, tuning.TRIED_MICROSECONDS_MAX)
        )

    def _judged_by_first(
        self,
        work: Callable[[Item], Answer],
        items: Sequence[Item],
        rows: Sequence[int],
        together: Callable[[Sequence[Item]], Sequence[Item]] | None,
        stages: int,
    ) -> Iterator[Answer]:
        """Do what `parallel_if_long` does where nothing is known of the items: run the first ones in the caller's
        thread until their time tells whether threads pay for the rest (`tuning.ALONE_MICROSECONDS`). Their time also
        sets `rows_at_once`."""
        if len(items) < tuning.ALONE_TASKS_MIN:
            yield from self.parallel(work, items)
            return
        alone = work if self.profile is None else self.profile.task(work)
        # What the first of many small items computes for all of them, as of a dictionary, counts once.
        judged_min = 2 if rows[1] <= 2 * rows[0] else 1
        own = tuning.TASK_MICROSECONDS + tuning.STAGE_MICROSECONDS * (stages - 1)
        left, row_microseconds, may_be_long = sum(rows), math.inf, self.threads > 1
        row_work_microseconds = math.inf
        judged = 0
        for judged, (item, item_rows) in enumerate(zip(items, rows, strict=True), 1):
            self.check()
            started, worked = time.perf_counter(), self._working_seconds()
            answer = alone(item)
            microseconds = 1e6 * (time.perf_counter() - started)
            work_microseconds = 1e6 * (self._working_seconds() - worked)
            row_microseconds = min(
                row_microseconds, max(microseconds - own, 0.0) / max(item_rows, 1)
            )
            row_work_microseconds = min(
                row_work_microseconds, max(work_microseconds - own, 0.0) / max(item_rows, 1)
            )
            left -= item_rows
            yield answer
            if judged < judged_min:
                continue
            expected = row_microseconds * left
            shortest = tuning.ALONE_TASK_MICROSECONDS * (len(items) - judged)
            limit = max(tuning.ALONE_MICROSECONDS, shortest)
            may_be_long = may_be_long and expected > limit
            # A first item of few rows says little: where it leaves that open, the second one decides.
            if not may_be_long or judged > judged_min or expected > tuning.UNSURE_FACTOR * limit:
                break
        if row_work_microseconds:
            self.rows_at_once = int(tuning.BATCH_MICROSECONDS / row_work_microseconds)
        others = items[judged:]
        if may_be_long:
            yield from self.parallel(work, others)
            return
        yield from self._alone(work, others, together)

    def _measured(self, work: Callable[[Item], Answer], item: Item, rows: int) -> Answer:
        """Return `work(item)`. The first call that takes measurable time sets `rows_at_once`, by its time for `rows`
        rows."""
        started = self._working_seconds()
        answer = work(item)
        microseconds = 1e6 * (self._working_seconds() - started)
        if self.rows_at_once == sys.maxsize and microseconds:
            self.rows_at_once = int(tuning.BATCH_MICROSECONDS * rows / microseconds)
        return answer

    def parallel_if_slow(
        self, work: Callable[[Item], Answer], items: Iterable[Item]
    ) -> Iterator[Answer]:
        """Yield `work(item)` for each of some small items, as `parallel` does, but in the caller's thread until they have
        taken a while (`tuning.ALONE_FIRST_MICROSECONDS`)."""
        alone = work if self.profile is None else self.profile.task(work)
        source = iter(items)
        try:
            seconds_left = tuning.ALONE_FIRST_MICROSECONDS / 1e6
            for item in source:
                self.check()
                started = time.perf_counter()
                answer = alone(item)
                seconds_left -= time.perf_counter() - started
                yield answer
                if seconds_left < 0 and self.threads > 1:
                    break
            yield from self.parallel(work, source)
        finally:
            close_iterator(source)

    def _threads(self) -> ThreadPool:
        """Return the query's thread pool, made on first use."""
        if self._pool is None:
            self._pool = ThreadPool(self.threads, "olapdb-query")
        return self._pool

    def close(self) -> None:
        """End the threads after their current work, remove the temporary files, and complete the
        statistics. Idempotent."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        if self._temporary is not None:
            self._temporary.close()
        self.statistics.elapsed_seconds = self.clock() - self._started
        self.statistics.memory_peak_bytes = self.memory.peak_bytes


class _Nothing:
    """A marker that `next` returns for an ended iterator; no item has this class."""


_NOTHING = _Nothing()


def _waited_for(answers: Iterator[Answer], meter: TaskMeter) -> Iterator[Answer]:
    """Yield the answers; the meter counts the time until each of them, without what the caller does with it."""
    try:
        while True:
            with meter.waiting():
                answer = next(answers, _NOTHING)
            if isinstance(answer, _Nothing):
                return
            yield answer
    finally:
        close_iterator(answers)


_SPEEDS = (
    *("min_execution_speed", "min_execution_speed_bytes"),
    *("max_execution_speed", "max_execution_speed_bytes"),
)


def _least(settings: Settings, name: str) -> int:
    """Return the smaller of a limit and its form for the servers that hold the data; 0 means no limit."""
    limits = (settings.integer(name), settings.integer(f"{name}_leaf"))
    return min((limit for limit in limits if limit), default=0)
