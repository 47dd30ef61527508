"""Vacuum in the background, on its own thread, so that neither merges nor vacuum wait for the
other.

A round purges all parts that are due, however many.  It does so in short transactions with pauses
between, in which INSERTs commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from olapdb.errors import Error
from olapdb.lazy import LazyModule
from olapdb.runtime.services import Services

if TYPE_CHECKING:
    from olapdb.maintenance import vacuum as vacuums
else:
    vacuums = LazyModule("olapdb.maintenance.vacuum")

ROUND_SECONDS = 30.0
PAUSE_SECONDS = 0.02
STOP_SECONDS_MAX = 60.0
FAILURES = (Error, OSError, ValueError, ArithmeticError, MemoryError)
"""Exceptions that a table's data or the machine can cause (Arrow's are ValueErrors and
OSErrors)."""


class VacuumThread:
    """A thread that can be started, stopped and started again. `failed` is called with what a round
    raised; the next round tries again."""

    def __init__(
        self,
        services: Services,
        failed: Callable[[Exception], object],
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        self._services = services
        self._failed = failed
        self._round_seconds = round_seconds
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread unless it runs."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stopping = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._stopping,), name="olapdb-vacuum", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Stop after the present step; return when it has ended. Idempotent."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._stopping.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS_MAX)

    def end_soon(self) -> None:
        """Begin no further step; return at once."""
        self._stopping.set()

    def _run(self, stopping: threading.Event) -> None:
        """Vacuum after each pause of `_round_seconds` until `stopping` is set; record failures."""
        while not stopping.wait(self._round_seconds):
            try:
                vacuums.vacuum(
                    self._services, may_continue=lambda: not stopping.wait(PAUSE_SECONDS)
                )
            except FAILURES as error:
                self._failed(error)
