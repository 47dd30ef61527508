"""The views that recent INSERTs fired, in memory: what system.query_views_log shows."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

ENTRIES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ViewExecution:
    """One view's work in one INSERT: the names are those of then. `exception` is "" where it
    succeeded; `lands` tells whether the INSERT was committed all the same."""

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
    lands: bool = True
    parts: int = 0
    peak_bytes: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ViewLog:
    """The newest `ENTRIES_MAX`, of this process; safe for many threads."""

    _entries: deque[ViewExecution] = field(default_factory=lambda: deque(maxlen=ENTRIES_MAX))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, entry: ViewExecution) -> None:
        with self._lock:
            self._entries.append(entry)

    def entries(self) -> tuple[ViewExecution, ...]:
        """Oldest first."""
        with self._lock:
            return tuple(self._entries)
