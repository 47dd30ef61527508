"""Writing to the catalog's file: take the turn, run a transaction, find out the outcome of its
COMMIT."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.connections import Connections
from olapdb.catalog.sqlite.errors import catalog_error
from olapdb.catalog.sqlite.fair_lock import FairLock, Ticket, TicketQueue
from olapdb.catalog.sqlite.fork_guard import ForkGuard
from olapdb.errors import CatalogBusy, CommitUnknown, OperationalError, ReadOnly
from olapdb.errors import Error as OlapdbError

_FORK_WAIT_MS = 5_000


class CatalogWriter:
    """The writers of a process take turns by a lock; processes take turns by a queue beside the
    file.

    `notice_fork` is called before each turn: a child must not wait for its parent's locks.
    """

    def __init__(
        self,
        connections: Connections,
        path: str,
        *,
        read_only: bool,
        lock_timeout_ms: int,
        notice_fork: Callable[[], object],
    ) -> None:
        self._connections = connections
        self._path = path
        self._read_only = read_only
        self._lock_timeout_ms = lock_timeout_ms
        self._notice_fork = notice_fork
        self._turn = FairLock()
        self._turn_thread: int | None = None  # the thread that holds the turn
        self._paused: Ticket | None = None
        self._closed = False
        alone = connections.in_memory or read_only
        self._queue = None if alone else TicketQueue(f"{os.path.splitext(path)[0]}.lock")
        if not read_only:
            ForkGuard.register(self)

    @contextmanager
    def turn(self, purpose: str) -> Iterator[None]:
        """Wait for the turn among this process's threads, then among processes. Reentrant for the
        thread that holds it. Raises ReadOnly."""
        self._notice_fork()
        if self._read_only:
            raise ReadOnly("The warehouse is open for reading only.", hint="Open it to write.")
        if self._turn_thread == threading.get_ident():
            yield
            return
        ticket = self._turn.acquire(self._lock_timeout_ms, purpose)
        try:
            if self._queue is not None:
                self._enqueue(self._queue, purpose)
            self._turn_thread = threading.get_ident()
            yield
        finally:
            self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        """Release the ticket's turn. Do nothing if `abandon_turn` released it before and Python
        only now closes the generator of `turn`."""
        if self._turn.held_by(ticket.thread) is not ticket:
            return
        try:
            self._turn_thread = None
            if self._queue is not None:
                self._queue.release()
        finally:
            self._turn.release(ticket)

    def abandon_turn(self) -> None:
        """Release this thread's turn, if it has one, after an interrupt ended its statement. The
        interrupt may have come between any two steps, even while the turn was being released."""
        ticket = self._turn.held_by(threading.get_ident())
        if ticket is not None:
            self._leave(ticket)

    def pause(self) -> None:
        """Take the turn before a fork, for a bounded time. If another thread writes for longer, the
        fork proceeds, and the child may find the catalog busy for ever."""
        if not self._closed and self._turn.held_by(threading.get_ident()) is None:
            with suppress(CatalogBusy):
                self._paused = self._turn.acquire(_FORK_WAIT_MS, "fork")

    def resume(self) -> None:
        """Release the turn that `pause` took."""
        ticket, self._paused = self._paused, None
        if ticket is not None:
            self._turn.release(ticket)

    @contextmanager
    def writing(self, purpose: str) -> Iterator[sqlite3.Connection]:
        """Take the turn and yield the writing connection. A transaction that is still open in the
        end is rolled back."""
        with self.turn(purpose), self._connections.exclusive() as connection:
            try:
                yield connection
            finally:
                self.rollback(connection)  # an interrupt may have left a transaction open

    @contextmanager
    def housekeeping(self, purpose: str) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside a transaction that makes no entry in the log of commits: for
        leases, jobs, vacuum."""
        with self.writing(purpose) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                self.rollback(connection)
                raise catalog_error(error, self._path) from error
            except BaseException:
                self.rollback(connection)
                raise

    def commit(self, connection: sqlite3.Connection, commit_id: str, number: int) -> None:
        """Run the COMMIT; raise only if it surely failed, or CommitUnknown."""
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if not self._was_committed(commit_id, number):
                raise catalog_error(error, self._path) from error

    def _was_committed(self, commit_id: str, number: int) -> bool:
        """Return whether a COMMIT that raised took effect, as a new connection sees it.

        Absence is no proof: the log may hold the whole transaction, unseen until a recovery finds
        it. So absence counts only after another transaction was committed, which overwrites that
        place. Raises CommitUnknown if that fails too; nothing may be deleted then.
        """
        try:
            if self._connections.in_memory:
                self.rollback(self._connections.writer())
            else:
                self._connections.discard_writer()
            connection = self._connections.writer()
            connection.execute("BEGIN IMMEDIATE")
            number_found = sql.commit_by_id.value(connection, after=number - 1, commit_id=commit_id)
            if number_found is None:
                sql.set_meta(connection, name="fence", content=commit_id)
            connection.execute("COMMIT")
        except (sqlite3.Error, OlapdbError) as error:
            self._connections.discard_writer()
            raise CommitUnknown(
                f"Nobody knows whether commit {commit_id} happened: the catalog does not answer.",
                hint="Nothing was deleted. Reconnect and look, or send the same token again.",
            ) from error
        return number_found is not None

    def rollback(self, connection: sqlite3.Connection) -> None:
        """Roll back an open transaction."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._connections.discard_writer()

    def _enqueue(self, queue: TicketQueue, purpose: str) -> None:
        """Wait for this process's place in the queue. Raise CatalogBusy after the timeout,
        OperationalError if the queue's file fails."""
        try:
            queue.acquire(self._lock_timeout_ms, purpose)
        except OSError as error:
            raise OperationalError(
                f"The queue of writers beside {self._path} failed: {error.strerror}.",
                hint="Check that the warehouse's folder can be written.",
            ) from error

    def forget_inherited(self) -> None:
        """Replace the locks in a child process: they belong to the parent."""
        self._turn, self._turn_thread, self._paused = FairLock(), None, None
        self._close_queue()

    def close(self) -> None:
        """Close the queue's file; from now on `pause` does not wait before a fork."""
        self._closed = True
        self._close_queue()

    def _close_queue(self) -> None:
        """Close the file of the queue, if it was opened."""
        if self._queue is not None:
            self._queue.close()
