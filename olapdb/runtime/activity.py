"""What this process does and did: running statements, the log of ended ones, counters, errors.

It is kept in memory: a log in the warehouse would turn each read into a write.  What changed the
warehouse is recorded in its commits (system.snapshots) for good.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from olapdb.errors import Error
from olapdb.records import dataclass
from olapdb.result import QueryStatistics

ENTRIES_MAX = 10_000
_FAILED_CODE = 1001


@dataclass(frozen=True)
class RunningQuery:
    """A statement that has not ended. Its `statistics` grow; setting `cancelled` ends it."""

    query_id: str
    query: str
    kind: str
    database: str
    settings: Mapping[str, object]
    started_ms: int
    statistics: QueryStatistics
    cancelled: threading.Event
    _started: float = field(default_factory=time.perf_counter)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the statement began."""
        return time.perf_counter() - self._started


@dataclass(frozen=True, slots=True)
class EndedQuery:
    """An entry of the log. `exception` is "" on success; `written_rows` is 0 if the statement wrote
    none."""

    query_id: str
    query: str
    kind: str
    database: str
    settings: Mapping[str, object]
    started_ms: int
    duration_seconds: float
    read_rows: int
    read_bytes: int
    written_rows: int
    memory_peak_bytes: int
    exception_code: int = 0
    exception_name: str = ""
    exception: str = ""


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """The number of statements that failed with one error, and its last occurrence."""

    name: str
    code: int
    count: int
    last_ms: int
    last_message: str
    last_query_id: str


@dataclass(frozen=True)
class RunningMerge:
    """A merge in progress: its input parts, their rows and their bytes."""

    table_id: str
    partition_id: str
    part_names: tuple[str, ...]
    rows: int
    bytes: int
    _started: float = field(default_factory=time.perf_counter)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the merge began."""
        return time.perf_counter() - self._started


class Activity:
    """The statements, merges and counters of one open warehouse. Thread-safe; the newest
    `ENTRIES_MAX` ended statements are kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, RunningQuery] = {}
        self._ended: deque[EndedQuery] = deque(maxlen=ENTRIES_MAX)
        self._errors: dict[str, ErrorCount] = {}
        self._events: Counter[str] = Counter()
        self._merges: dict[int, RunningMerge] = {}  # by identity: a batch has thousands

    def begin(self, query: RunningQuery) -> None:
        """Add a running statement and count it."""
        with self._lock:
            self._running[query.query_id] = query
            self._events["Query"] += 1
            if query.kind in ("Select", "Insert"):
                self._events[f"{query.kind}Query"] += 1

    def cancel_all(self) -> None:
        """Make every running statement end at its next batch."""
        with self._lock:
            for query in self._running.values():
                query.cancelled.set()

    def end(
        self, query: RunningQuery, written_rows: int, error: BaseException | None = None
    ) -> None:
        """Move a running statement to the log and count it; do nothing if it has ended before."""
        statistics = query.statistics
        code, name, message = _described(error)
        entry = EndedQuery(
            query.query_id,
            query.query,
            query.kind,
            query.database,
            query.settings,
            query.started_ms,
            query.elapsed_seconds,
            statistics.rows_read,
            statistics.bytes_read,
            written_rows,
            statistics.memory_peak_bytes,
            code,
            name,
            message,
        )
        with self._lock:
            if self._running.pop(query.query_id, None) is None:
                return  # it has ended before: an interrupt came while it did
            self._ended.append(entry)
            self._events["SelectedRows"] += statistics.rows_read
            self._events["SelectedBytes"] += statistics.bytes_read
            self._events["ExternalProcessingFilesTotal"] += statistics.temporary_files
            self._events["ExternalProcessingCompressedBytesTotal"] += statistics.spilled_bytes
            self._events["ExternalProcessingUncompressedBytesTotal"] += (
                statistics.spilled_uncompressed_bytes
            )
            self._events["InsertedRows"] += written_rows if query.kind == "Insert" else 0
            if error is not None:
                self._events["FailedQuery"] += 1
                if query.kind in ("Select", "Insert"):
                    self._events[f"Failed{query.kind}Query"] += 1
                previous = self._errors.get(name)
                self._errors[name] = ErrorCount(
                    name,
                    code,
                    (previous.count if previous else 0) + 1,
                    query.started_ms + int(query.elapsed_seconds * 1000),
                    message,
                    query.query_id,
                )

    @contextmanager
    def merging(self, merge: RunningMerge) -> Iterator[None]:
        """List the merge while the `with` block runs, and count it if the block succeeds."""
        with self._lock:
            self._merges[id(merge)] = merge
        try:
            yield
            self.count("Merge")
            self.count("MergedRows", merge.rows)
        finally:
            with self._lock:
                del self._merges[id(merge)]

    def merges(self) -> tuple[RunningMerge, ...]:
        """Return the merges in progress."""
        with self._lock:
            return tuple(self._merges.values())

    def count(self, event: str, by: int = 1) -> None:
        """Add `by` to the counter `event`."""
        with self._lock:
            self._events[event] += by

    def running(self) -> tuple[RunningQuery, ...]:
        """Return the running statements, oldest first."""
        with self._lock:
            return tuple(self._running.values())

    def ended(self) -> tuple[EndedQuery, ...]:
        """Return the ended statements, oldest first."""
        with self._lock:
            return tuple(self._ended)

    def errors(self) -> tuple[ErrorCount, ...]:
        """Return one entry for each error name that occurred."""
        with self._lock:
            return tuple(self._errors.values())

    def events(self) -> Mapping[str, int]:
        """Return the nonzero counters since this process opened the warehouse."""
        with self._lock:
            return {name: value for name, value in self._events.items() if value}


def _described(error: BaseException | None) -> tuple[int, str, str]:
    """Return (code, name, message) of an error; (0, "", "") for None."""
    if error is None:
        return 0, "", ""
    if isinstance(error, Error):
        return error.code, error.name, str(error)
    return _FAILED_CODE, type(error).__name__, f"{type(error).__name__}: {error}"
