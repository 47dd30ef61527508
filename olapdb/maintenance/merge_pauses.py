"""The tables for which SYSTEM STOP … has paused background work."""

from __future__ import annotations

import threading


class Pauses:
    """The pauses of one kind of background work in this process. Thread-safe.

    STOP of everything also holds for tables created later; START of one table exempts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._everything = False
        self._stopped: set[str] = set()
        self._excepted: set[str] = set()

    def set(self, running: bool, table_id: str | None = None) -> None:
        """Start or stop the work for a table, or (None) for all."""
        with self._lock:
            if table_id is None:
                self._everything = not running
                self._stopped.clear()
                self._excepted.clear()
                return
            (self._excepted if running else self._stopped).add(table_id)
            (self._stopped if running else self._excepted).discard(table_id)

    def paused(self, table_id: str) -> bool:
        """Return whether the work is stopped for the table."""
        with self._lock:
            if table_id in self._stopped:
                return True
            return self._everything and table_id not in self._excepted
