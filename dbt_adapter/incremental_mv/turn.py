"""The turn of a run's threads: one of them at a time brings a model up to date.

What a model needs of a small warehouse are some ten short statements, all of them Python. Four threads
that send theirs at once take nearly twice the CPU time of one, since they contend for the interpreter.
A thread that computes many rows gives the turn up meanwhile, so that large backfills run side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

ROWS_IN_TURN_MAX = 200_000
"""The most source rows that a backfill computes without giving up the turn."""


class Turn:
    """The right to work on the warehouse, which one thread of a process has at a time. A thread
    holds it within `taken`, and lets another have it within `given_up`."""

    def __init__(self) -> None:
        """Begin with the turn free."""
        self._lock = threading.Lock()
        self._holder = 0
        self._is_ended = False

    def end(self) -> None:
        """Let no thread have the turn any more: the run is cancelled. Those that wait for it fail."""
        self._is_ended = True

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the turn in the body, once it is free. Raises DbtRuntimeError if the run was cancelled
        meanwhile."""
        self._take()
        try:
            yield
        finally:
            if self._holder == threading.get_ident():
                self._give()

    @contextmanager
    def given_up(
        self, progress: Callable[[Any], None] | None = None
    ) -> Iterator[Callable[[Any], None] | None]:
        """Leave the turn to others while the body computes; do nothing in a thread without it.

        Yields the function to call with the job's events. With `progress` the turn is given up once
        the planned chunks are too many rows, else at once."""
        if self._holder != threading.get_ident():
            yield progress
            return
        if progress is None:
            self._give()
        try:
            yield None if progress is None else self._watched(progress)
        finally:
            if self._holder != threading.get_ident():
                self._take()

    def _watched(self, progress: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a function that passes events on to `progress`, and gives the turn up once more
        than ROWS_IN_TURN_MAX rows are planned."""
        planned = 0

        def watch(event: Any) -> None:
            """Pass the event on and add up its planned rows; give the turn up if they are too many."""
            nonlocal planned
            progress(event)
            planned += event.rows if event.phase == "planned" else 0
            if planned > ROWS_IN_TURN_MAX and self._holder == threading.get_ident():
                self._give()

        return watch

    def _take(self) -> None:
        """Wait for the turn. Raises DbtRuntimeError if the run was cancelled meanwhile."""
        self._lock.acquire()
        if self._is_ended:
            self._lock.release()
            raise DbtRuntimeError(
                "The run was cancelled. Run dbt again to bring the model up to date."
            )
        self._holder = threading.get_ident()

    def _give(self) -> None:
        """Let the next thread have the turn."""
        self._holder = 0
        self._lock.release()
