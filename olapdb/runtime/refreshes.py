"""The refreshes of views that run in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WAIT_SECONDS = 0.1
"""How often a wait for another refresh looks whether its own statement was cancelled."""


class RunningRefreshes:
    """The views being refreshed, each by one statement at a time. Safe for many threads."""

    def __init__(self) -> None:
        self._running: dict[str, threading.Event] = {}
        self._changed = threading.Condition()
        self.closing = False
        """True once the warehouse closes: a refresh that this cancels is not recorded as failed."""

    @contextmanager
    def refreshing(
        self, view_id: str, cancelled: threading.Event, refuse_cancelled: Callable[[], None]
    ) -> Iterator[None]:
        """Hold, inside the `with`, the right to refresh the view, which one statement of this
        process has at a time. Wait for it first; `refuse_cancelled`, called meanwhile, may raise.
        Setting `cancelled` ends the refresh."""
        with self._changed:
            while view_id in self._running:
                self._changed.wait(WAIT_SECONDS)
                refuse_cancelled()
            self._running[view_id] = cancelled
        try:
            yield
        finally:
            with self._changed:
                del self._running[view_id]
                self._changed.notify_all()

    def is_running(self, view_id: str) -> bool:
        """Return whether this process refreshes the view now."""
        return view_id in self._running

    def cancel(self, view_id: str) -> None:
        """Cancel the refresh of the view if one runs in this process."""
        running = self._running.get(view_id)
        if running is not None:
            running.set()

    def cancel_all(self) -> None:
        """Cancel all refreshes that run in this process, because it ends or the warehouse closes."""
        self.closing = True
        for cancelled in tuple(self._running.values()):
            cancelled.set()

    def wait(self, view_id: str, refuse_cancelled: Callable[[], None]) -> None:
        """Return when no refresh of the view runs in this process; `refuse_cancelled` may raise
        meanwhile."""
        with self._changed:
            while view_id in self._running:
                self._changed.wait(WAIT_SECONDS)
                refuse_cancelled()
