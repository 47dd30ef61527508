"""Refreshes in the background: a thread of its own makes those that are due.

A refresh may take long, and neither merges nor vacuum wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from olapdb.maintenance.vacuum_thread import FAILURES, STOP_SECONDS_MAX

POLL_SECONDS = 1.0
IDLE_SECONDS = 5.0
"""How often the schedules are looked at, and how often where there are no refreshable views."""


class RefreshThread:
    """A thread that can be started and stopped. `refresh_due(may_continue)` makes the refreshes that
    are due, begins none when `may_continue()` is false, and returns whether there are refreshable
    views; `failed` is called with what it raised."""

    def __init__(
        self,
        refresh_due: Callable[[Callable[[], bool]], bool],
        failed: Callable[[Exception], object],
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._refresh_due = refresh_due
        self._failed = failed
        self._poll_seconds = poll_seconds
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. It can be started once."""
        self._thread = threading.Thread(target=self._run, name="olapdb-refresh", daemon=True)
        self._thread.start()

    def end_soon(self) -> None:
        """Begin no further refresh; return at once."""
        self._stopping.set()

    def stop(self) -> None:
        """Begin no further refresh, and return when the present one has ended. Idempotent."""
        self.end_soon()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS_MAX)

    def _run(self) -> None:
        """Make due refreshes until `stop`; record failures."""
        pause = self._poll_seconds
        while not self._stopping.wait(pause):
            try:
                has_views = self._refresh_due(lambda: not self._stopping.is_set())
                pause = self._poll_seconds if has_views else IDLE_SECONDS
            except FAILURES as error:
                self._failed(error)
