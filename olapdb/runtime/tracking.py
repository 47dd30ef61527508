"""Run a statement as a tracked query: listed while it runs, cancellable, logged when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable

from olapdb.errors import TooDeepRecursion, foreign_error
from olapdb.result import Result
from olapdb.runtime.activity import RunningQuery
from olapdb.runtime.services import Services


class QueryTracker:
    """The running queries of one session. `on_end` is called after each of them. Thread-safe."""

    def __init__(self, services: Services, on_end: Callable[[], None]) -> None:
        self._services = services
        self._on_end = on_end
        self._running: set[threading.Event] = set()
        # Reentrant: a signal handler may call `cancel` while this thread holds the lock.
        self._lock = threading.RLock()

    def run(
        self, query: RunningQuery, answer: Callable[[], Result], *, runs_user_code: bool
    ) -> Result:
        """Call `answer` and return its result; while it runs, system.processes lists the query.

        A result with rows ends its query when its rows were all read or it is closed. Exceptions
        that are not olapdb's are reported as bugs of olapdb, unless the statement `runs_user_code`:
        then they may be the caller's and are raised unchanged.
        """
        try:
            with self._lock:
                self._running.add(query.cancelled)
            self._services.activity.begin(query)
            result = answer()
            if not result.has_columns:
                self._end(query, rows=max(result.affected_rows, 0))
        except RecursionError:
            too_deep = TooDeepRecursion(
                "The statement's expressions are nested too deeply.",
                hint="Split it with WITH; write a long chain of OR as IN (…).",
            )
            self._end(query, too_deep)
            raise too_deep from None
        except BaseException as error:
            if not isinstance(error, Exception):
                # Ctrl-C may come between any two steps, even between those that leave the turn.
                self._services.catalog.abandon_turn()
            bug = None if runs_user_code else foreign_error(error, "The statement")
            self._end(query, bug or error)
            if bug is not None:
                raise bug from error
            raise
        result.query_id = query.query_id
        result.statistics = query.statistics
        if result.has_columns:
            failures = result.failures
            result.defer_callbacks_to(self._services.deferred.add)
            result.on_close(lambda: self._end(query, failures[0] if failures else None))
        return result

    def cancel(self) -> None:
        """Make the running queries end with QUERY_WAS_CANCELLED at their next batch."""
        with self._lock:
            for event in self._running:
                event.set()

    def _end(self, query: RunningQuery, error: BaseException | None = None, rows: int = 0) -> None:
        """Log the query as ended with its error, if any, and its number of rows. Then call
        `on_end`."""
        query.statistics.elapsed_seconds = query.elapsed_seconds
        self._services.activity.end(query, rows, error)
        with self._lock:
            self._running.discard(query.cancelled)
        self._on_end()
