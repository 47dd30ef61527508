"""Writing to the file: one's turn, a transaction in it, and the outcome of its COMMIT."""

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


class Writer:
    """Writers of a process take turns by a lock, then processes by a queue beside the file.

    `notice_fork` is called before a turn is asked for: a child must not wait for locks of its
    parent."""

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
        self._turn_of: int | None = None  # the thread that has it
        self._paused: Ticket | None = None
        self._closed = False
        alone = connections.in_memory or read_only
        self._queue = None if alone else TicketQueue(f"{os.path.splitext(path)[0]}.lock")
        if not read_only:
            ForkGuard.wait_for(self)

    @contextmanager
    def turn(self, what: str) -> Iterator[None]:
        """Among this process's threads, then among processes; again within it by the same thread."""
        self._notice_fork()
        if self._read_only:
            raise ReadOnly("The warehouse is open for reading only.", hint="Open it to write.")
        if self._turn_of == threading.get_ident():
            yield
            return
        place = self._turn.acquire(self._lock_timeout_ms, what)
        try:
            if self._queue is not None:
                self._enqueue(self._queue, what)
            self._turn_of = threading.get_ident()
            yield
        finally:
            self._leave(place)

    def _leave(self, place: Ticket) -> None:
        """Nothing where the place was given up before: by `give_up`, and Python has just found the
        generator of `turn`."""
        if self._turn.held_by(place.thread) is not place:
            return
        try:
            self._turn_of = None
            if self._queue is not None:
                self._queue.release()
        finally:
            self._turn.release(place)

    def give_up(self) -> None:
        """The turn of this thread, if it has one, whose statement an interrupt has ended: it may
        have come between any two steps, those of leaving too."""
        place = self._turn.held_by(threading.get_ident())
        if place is not None:
            self._leave(place)

    def pause(self) -> None:
        """Before a fork: nobody writes until `resume`. Whoever writes for longer than is waited for
        goes on, and the child may find the catalog busy for ever."""
        if not self._closed and self._turn.held_by(threading.get_ident()) is None:
            with suppress(CatalogBusy):
                self._paused = self._turn.acquire(_FORK_WAIT_MS, "fork")

    def resume(self) -> None:
        place, self._paused = self._paused, None
        if place is not None:
            self._turn.release(place)

    @contextmanager
    def writing(self, what: str) -> Iterator[sqlite3.Connection]:
        """Our turn, and the connection that writes."""
        with self.turn(what), self._connections.exclusive() as connection:
            try:
                yield connection
            finally:
                self.abandon(connection)  # an interrupt may have left it open

    @contextmanager
    def housekeeping(self, what: str) -> Iterator[sqlite3.Connection]:
        """A transaction that is no commit: leases, and what vacuum removes."""
        with self.writing(what) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                self.abandon(connection)
                raise catalog_error(error, self._path) from error
            except BaseException:
                self.abandon(connection)
                raise

    def commit(self, connection: sqlite3.Connection, commit_id: str, number: int) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if not self._was_committed(commit_id, number):
                raise catalog_error(error, self._path) from error

    def _was_committed(self, commit_id: str, number: int) -> bool:
        """The outcome of a COMMIT that raised, seen from a new connection.

        Absence is not proof: the log may hold the transaction whole, yet unseen, until a recovery
        finds it.  So absence counts only after another transaction was committed, which writes
        over that place.  CommitUnknown where not even that succeeds; nothing may be deleted then.
        """
        try:
            if self._connections.in_memory:
                self.abandon(self._connections.writer())
            else:
                self._connections.discard_writer()
            connection = self._connections.writer()
            connection.execute("BEGIN IMMEDIATE")
            found = sql.commit_by_id.value(connection, after=number - 1, commit_id=commit_id)
            if found is None:
                sql.set_meta(connection, name="fence", content=commit_id)
            connection.execute("COMMIT")
        except (sqlite3.Error, OlapdbError) as error:
            self._connections.discard_writer()
            raise CommitUnknown(
                f"Nobody knows whether commit {commit_id} happened: the catalog does not answer.",
                hint="Nothing was deleted. Reconnect and look, or send the same token again.",
            ) from error
        return found is not None

    def abandon(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._connections.discard_writer()

    def _enqueue(self, queue: TicketQueue, what: str) -> None:
        try:
            queue.acquire(self._lock_timeout_ms, what)
        except OSError as error:
            raise OperationalError(
                f"The queue of writers beside {self._path} failed: {error.strerror}.",
                hint="Check that the warehouse's folder can be written.",
            ) from error

    def forget_inherited(self) -> None:
        """In a child process: the parent's locks are not ours."""
        self._turn, self._turn_of, self._paused = FairLock(), None, None
        self._close_queue()

    def close(self) -> None:
        self._closed = True
        self._close_queue()

    def _close_queue(self) -> None:
        if self._queue is not None:
            self._queue.close()
