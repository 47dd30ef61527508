"""What SYSTEM STOP … said: which tables background work leaves alone."""

from __future__ import annotations

import threading


class Pauses:
    """Of one kind of background work, in this process; any thread.

    STOP of everything holds for tables made later too; START of one table excepts it from that.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._everything = False
        self._stopped: set[str] = set()
        self._excepted: set[str] = set()

    def set(self, running: bool, table_id: str | None = None) -> None:
        """START or STOP, of a table or (None) of everything."""
        with self._lock:
            if table_id is None:
                self._everything = not running
                self._stopped.clear()
                self._excepted.clear()
                return
            (self._excepted if running else self._stopped).add(table_id)
            (self._stopped if running else self._excepted).discard(table_id)

    def paused(self, table_id: str) -> bool:
        with self._lock:
            if table_id in self._stopped:
                return True
            return self._everything and table_id not in self._excepted
