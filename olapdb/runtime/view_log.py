"""The views that recent INSERTs fired, in memory: the content of system.query_views_log."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import field

from olapdb.records import dataclass

ENTRIES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ViewExecution:
    """The work of one view in one INSERT, under the names of that time. `exception` is "" on
    success; `committed` is whether the INSERT was committed nevertheless."""

    time_ms: int
    duration_ns: int
    query_id: str
    view_id: str
    view_name: str
    view_query: str
    target_name: str
    rows_read: int
    bytes_read: int
    rows_written: int
    bytes_written: int
    exception_code: int = 0
    exception: str = ""
    committed: bool = True
    parts: int = 0
    peak_bytes: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ViewLog:
    """The newest `ENTRIES_MAX` executions of this process. Thread-safe."""

    _entries: deque[ViewExecution] = field(default_factory=lambda: deque(maxlen=ENTRIES_MAX))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, entry: ViewExecution) -> None:
        """Append an entry; the oldest is dropped if the log is full."""
        with self._lock:
            self._entries.append(entry)

    def entries(self) -> tuple[ViewExecution, ...]:
        """Return the entries, oldest first."""
        with self._lock:
            return tuple(self._entries)
