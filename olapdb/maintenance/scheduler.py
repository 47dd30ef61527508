"""Background merges on one thread, for which no INSERT waits; vacuum has its own
(`vacuum_thread`)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from olapdb.commit.origin import CommitOrigin
from olapdb.errors import CommitConflict
from olapdb.lazy import LazyModule
from olapdb.maintenance.damaged_parts import check_suspects
from olapdb.maintenance.merge_pauses import Pauses
from olapdb.maintenance.vacuum_thread import FAILURES, STOP_SECONDS_MAX, VacuumThread
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.threads import is_ending

if TYPE_CHECKING:
    from olapdb.maintenance import merge_planner
    from olapdb.maintenance.merger import MergeResult
else:
    merge_planner = LazyModule("olapdb.maintenance.merge_planner")

SWEEP_SECONDS = 30.0
"""How often all tables are examined: parts become worth merging by age alone."""
QUIET_SECONDS = 0.1
DELAY_SECONDS_MAX = 0.5
"""Work begins when no table was notified for QUIET_SECONDS, or DELAY_SECONDS_MAX after the first
one was. A merge of many small parts costs hardly more than one of a few, and during a burst the
INSERTs do not share the interpreter with a merge."""
PAUSE_SECONDS = 0.02
IDLE_POLL_SECONDS = 0.005
CONFLICTS_MAX = 3
HISTORY_MAX = 1_000


@dataclass(frozen=True, slots=True)
class FailedMerge:
    """The exception of a background merge (of `table_id`) or of vacuum ("")."""

    table_id: str
    time_ms: int
    error: Exception


class MergeScheduler:
    """The background merges of a warehouse; can be started, stopped and started again.

    `notify` queues a table that got parts.  `errors` and `merges` keep the last thousand, for
    system tables; a table whose merge failed is tried again at the next sweep.
    """

    def __init__(
        self,
        services: Services,
        *,
        sweep_seconds: float = SWEEP_SECONDS,
        expire: Callable[[CommitOrigin, str], object] | None = None,
    ) -> None:
        """Create a stopped scheduler. `expire` removes a table's rows that have expired by its
        TTL."""
        self._services = services
        self._expire = expire
        self._expired_at: dict[str, float] = {}
        self._sweep_seconds = sweep_seconds
        self._pending: set[str] = set()
        self._notified = 0
        # Not an Event: an interrupt during `set`, in an INSERT, could leave its lock held.
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._stopping = threading.Event()
        self._idle = True
        self._lock = threading.Lock()
        self._queued = threading.Lock()
        self._thread: threading.Thread | None = None
        self._condition = threading.Condition()
        self._merging = self._expiring = ""
        """The table that each is at, "" for none; guarded by `_turn`."""
        self._merge_pauses, self._ttl_pauses = Pauses(), Pauses()
        self._vacuum = VacuumThread(services, partial(self._failed, ""))
        self.errors: deque[FailedMerge] = deque(maxlen=HISTORY_MAX)
        self.merges: deque[MergeResult] = deque(maxlen=HISTORY_MAX)

    @property
    def running(self) -> bool:
        """Return whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the threads; do nothing if they run, or at the end of the process."""
        with self._lock:
            if self.running or is_ending():
                return
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="olapdb-merges", daemon=True)
            self._thread.start()
            self._vacuum.start()

    def stop(self) -> None:
        """Return when neither a merge nor a step of vacuum is in progress; the present one is
        finished first. Idempotent."""
        with self._lock:
            thread, self._thread = self._thread, None
        self._stopping.set()
        self._wake.put(None)
        self._vacuum.stop()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS_MAX)

    def end_soon(self) -> None:
        """Begin no further merge or step of vacuum; the present one ends at its next part or
        page."""
        self._stopping.set()
        self._wake.put(None)
        self._vacuum.end_soon()

    def set_merges(self, running: bool, table_id: str | None = None) -> None:
        """Implement SYSTEM START or STOP MERGES of a table, or (None) of all. A stop returns when
        no merge of the table is in progress."""
        self._merge_pauses.set(running, table_id)
        if table_id is None and not running:
            self.stop()
        elif running:
            self.start()
            self._notify_resumed(table_id)
        else:
            with self._condition:  # the merge that began before is finished
                self._condition.wait_for(lambda: self._merging != table_id, STOP_SECONDS_MAX)

    def set_ttl(self, running: bool, table_id: str | None = None) -> None:
        """Implement SYSTEM START or STOP TTL MERGES: whether expired rows are removed in the
        background."""
        self._ttl_pauses.set(running, table_id)
        if running:
            self._notify_resumed(table_id)
        else:
            with self._condition:
                self._condition.wait_for(
                    lambda: self._expiring != table_id if table_id else not self._expiring,
                    STOP_SECONDS_MAX,
                )

    def expires(self, table_id: str) -> bool:
        """Return whether expired rows of the table may be removed: no STOP TTL MERGES applies."""
        return not self._ttl_pauses.paused(table_id)

    def _set_current(self, *, merging: str = "", expiring: str = "") -> None:
        """Record the table being merged or expired; without arguments, that the work ended."""
        with self._condition:
            self._merging, self._expiring = merging, expiring
            self._condition.notify_all()

    def _notify_resumed(self, table_id: str | None) -> None:
        """Queue the table after a pause; None: the next sweep examines all."""
        if table_id is not None:
            self.notify(table_id)

    def notify(self, table_id: str) -> None:
        """Queue a table for merging. Never blocks for a merge."""
        with self._queued:
            self._pending.add(table_id)
            self._notified += 1
            self._idle = False
        if self._wake.empty():
            self._wake.put(None)

    def wait_idle(self, timeout_seconds: float) -> bool:
        """Wait until the queue is processed; return False after the timeout. For tests and
        benchmarks."""
        until = time.monotonic() + timeout_seconds
        while self.running and not self._idle:
            if time.monotonic() > until:
                return False
            time.sleep(IDLE_POLL_SECONDS)
        return True

    def _run(self) -> None:
        """Sweep on time and work on the pending tables, until the scheduler stops."""
        next_sweep = time.monotonic() + self._sweep_seconds
        while not self._stopping.is_set():
            self._sleep(max(0.0, next_sweep - time.monotonic()))
            if time.monotonic() >= next_sweep:
                self._queue_all()
                next_sweep = time.monotonic() + self._sweep_seconds
            self._wait_for_quiet()
            while self._pending and not self._stopping.is_set():
                self._expire_and_merge(self._pending.pop())
            with self._queued:
                if not self._pending:
                    self._idle = True

    def _sleep(self, seconds: float) -> None:
        """Sleep until a notification or the timeout; several notifications count as one."""
        with suppress(Empty):
            self._wake.get(timeout=seconds)
            while True:
                self._wake.get_nowait()

    def _wait_for_quiet(self) -> None:
        """Wait until a burst of INSERTs is over, for a bounded time."""
        until = time.monotonic() + DELAY_SECONDS_MAX
        seen = -1
        while seen != self._notified and time.monotonic() < until:
            seen = self._notified
            if not self._pending or self._stopping.wait(QUIET_SECONDS):
                return

    def _expire_and_merge(self, table_id: str) -> None:
        """Expire and merge a table until no merge is worthwhile or conflicts repeat."""
        try:
            self._remove_expired(table_id)
        except FAILURES as error:  # the catalog does not answer; the next sweep tries again
            self._failed(table_id, error)
            return
        try:
            self._set_current(merging=table_id)
            self._merge(table_id)
        finally:
            self._set_current()

    def _merge(self, table_id: str) -> None:
        """Merge the table until no merge is worthwhile, it is paused, or conflicts repeat."""
        conflicts = 0
        while self._may_merge(table_id):
            try:
                done = merge_planner.merge_worthwhile(
                    self._services, table_id, wanted=partial(self._may_merge, table_id)
                )
            except CommitConflict:  # the policy chooses again, from the present parts
                conflicts += 1
                if conflicts > CONFLICTS_MAX:
                    return
                continue
            except FAILURES as error:
                self._failed(table_id, error)
                return
            if not done:
                return
            self.merges.extend(done)
            # INSERTs first: they share the interpreter and the disk.
            self._stopping.wait(PAUSE_SECONDS)

    def _remove_expired(self, table_id: str) -> None:
        """Remove expired rows before the merges, which then need not rewrite them, and recompress
        parts; at most once in `merge_with_ttl_timeout`."""
        table = self._services.catalog.snapshot().by_id(table_id)
        if self._expire is None or not isinstance(table, Table) or not table.expires:
            return
        timeout = float(table.setting("merge_with_ttl_timeout"))
        now = time.monotonic()
        if now - self._expired_at.get(table_id, -timeout) < timeout:
            return
        try:
            self._set_current(expiring=table_id)
            if not self.expires(table_id):
                return
            self._expired_at[table_id] = now
            self._expire(CommitOrigin(self._services), table_id)
            settings = {"max_threads": merge_planner.BACKGROUND_THREADS}
            origin = CommitOrigin(self._services, "MERGE", settings=settings)
            self.merges.extend(merge_planner.recompress(origin, table_id))
        except CommitConflict:  # it has been retried; the next round tries again
            self._expired_at.pop(table_id)
        except FAILURES as error:
            self._failed(table_id, error)
        finally:
            self._set_current()

    def _queue_all(self) -> None:
        """Queue all tables that store rows."""
        try:
            for item in self._services.catalog.snapshot().objects():
                if isinstance(item, Table) and item.engine.stores_rows:
                    self._pending.add(item.id)
        except FAILURES as error:
            self._failed("", error)

    def record_failure(self, error: Exception) -> None:
        """Record an error of background work that belongs to no table."""
        self._failed("", error)

    def _may_merge(self, table_id: str) -> bool:
        """Return whether merges of the table may run: not stopping, and not paused."""
        return not (self._stopping.is_set() or self._merge_pauses.paused(table_id))

    def _failed(self, table_id: str, error: Exception) -> None:
        """Record a failed merge or vacuum, and check the parts that it could not read."""
        self._services.activity.count("FailedMerge")
        check_suspects(self._services)
        self.errors.append(FailedMerge(table_id, self._services.clock_ms(), error))
