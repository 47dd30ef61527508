"""Fair locks for writers: among the threads of a process, and among the processes of a warehouse.

SQLite's own wait is a sleep that grows, so a busy writer can starve another for seconds.  Here
writers are served in order of arrival, and give up after their own timeout.  The turn is the
exclusive right to commit, which one thread of one process holds at a time.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections import deque

from olapdb.errors import CatalogBusy
from olapdb.records import dataclass

try:
    import fcntl
except ImportError:  # not a Unix: SQLite's own lock has to do
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False, slots=True)
class Ticket:
    """A thread's place in the queue for the lock; its gate opens when the thread gets the lock."""

    purpose: str
    thread: int
    gate: threading.Lock


class FairLock:
    """A lock that threads get in order of arrival."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._holder: Ticket | None = None
        self._waiting: deque[Ticket] = deque()

    def acquire(self, timeout_ms: int, purpose: str) -> Ticket:
        """Return the ticket for `release`. Raises CatalogBusy, naming the holder, after
        `timeout_ms`."""
        ticket = Ticket(purpose, threading.get_ident(), threading.Lock())
        ticket.gate.acquire()
        try:
            with self._mutex:
                if self._holder is None:
                    self._holder = ticket
                    return ticket
                self._waiting.append(ticket)
            if ticket.gate.acquire(timeout=timeout_ms / 1000):
                return ticket
            with self._mutex:
                holder = self._holder
            if holder is not ticket:
                purpose = "" if holder is None else holder.purpose
                raise busy(f"a thread of this process ({purpose})", timeout_ms)
            return ticket  # the lock was passed to us between the timeout and here
        except BaseException:
            self.release(ticket)  # Ctrl-C too: else the lock would stay with a dead ticket
            raise

    def release(self, ticket: Ticket) -> None:
        """Give up a ticket, whether it holds the lock or waits. Idempotent."""
        with self._mutex:
            if self._holder is ticket:
                self._holder = self._waiting.popleft() if self._waiting else None
                if self._holder is not None:
                    self._holder.gate.release()
            elif ticket in self._waiting:
                self._waiting.remove(ticket)

    def held_by(self, thread: int) -> Ticket | None:
        """Return the thread's ticket if it holds the lock, else None."""
        holder = self._holder
        return holder if holder is not None and holder.thread == thread else None


_FLOCK = "@hhqqi0q"
_COUNTER = struct.Struct("<q")
_HOLDER_AT, _HOLDER_BYTES = 8, 120
_TICKETS_AT = 1 << 32
_POLL_SECONDS = 0.0005


class TicketQueue:
    """A fair lock between processes, by a file of tickets.

    A writer draws the next number t (under a lock on byte 0) and locks byte _TICKETS_AT + t; it is
    its turn when no lower byte is locked.  The locks are the kernel's and belong to the open file,
    so a killed process gives its place up at once.  One thread at a time (see FairLock).

        tickets   … 41   42      43
        locks        -   held    waits for 0..42 to be free
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._ticket = 0

    def acquire(self, timeout_ms: int, purpose: str) -> None:
        """Wait for this process's turn. Raises CatalogBusy after `timeout_ms`."""
        if fcntl is None or not hasattr(fcntl, "F_OFD_SETLK"):
            return
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._wait(timeout_ms, purpose)
        except BaseException:
            # Else all other processes would wait while this one lives.  Closing releases
            # whatever a failure or an interrupt left locked.
            self.release()
            self.close()
            raise

    def _wait(self, timeout_ms: int, purpose: str) -> None:
        """Draw a ticket and poll until no process holds an earlier ticket. Then write into the file
        who holds the turn. Raise CatalogBusy after the timeout."""
        deadline = time.monotonic() + timeout_ms / 1000
        self._ticket = ticket = self._draw()
        while not self._lock(fcntl.F_RDLCK, _TICKETS_AT, ticket):
            if time.monotonic() > deadline:
                raise busy(self._holder(), timeout_ms)
            time.sleep(_POLL_SECONDS)
        self._lock(fcntl.F_UNLCK, _TICKETS_AT, ticket)
        text = f"process {os.getpid()} ({purpose[:60]})".encode()
        os.pwrite(self._descriptor, text[:_HOLDER_BYTES].ljust(_HOLDER_BYTES), _HOLDER_AT)

    def release(self) -> None:
        """Give up the turn or the place in the queue. Idempotent."""
        if self._ticket:
            self._lock(fcntl.F_UNLCK, _TICKETS_AT + self._ticket, 1)
            self._ticket = 0

    def close(self) -> None:
        """Close the file of tickets, which releases all its locks."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._ticket = 0

    def _draw(self) -> int:
        """Return the next number of the counter in the file, from 1, with its byte locked for this
        process. Byte 0 is locked meanwhile."""
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLKW, _flock(fcntl.F_WRLCK, 0, 1))
        try:
            counter = os.pread(self._descriptor, _COUNTER.size, 0)
            ticket = (_COUNTER.unpack(counter)[0] if len(counter) == _COUNTER.size else 0) + 1
            os.pwrite(self._descriptor, _COUNTER.pack(ticket), 0)
            self._lock(fcntl.F_WRLCK, _TICKETS_AT + ticket, 1)
        finally:
            self._lock(fcntl.F_UNLCK, 0, 1)
        return int(ticket)

    def _lock(self, kind: int, start: int, length: int) -> bool:
        """Lock or unlock bytes of the file by F_OFD_SETLK without waiting. `kind` is F_RDLCK,
        F_WRLCK or F_UNLCK. Return False if another process holds a conflicting lock."""
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _flock(kind, start, length))
        except BlockingIOError:
            return False
        return True

    def _holder(self) -> str:
        """Return the text that the last holder of the turn wrote: its process id and purpose."""
        text = os.pread(self._descriptor, _HOLDER_BYTES, _HOLDER_AT)
        return text.strip(b"\0 ").decode("utf-8", "replace") or "another process"


def _flock(kind: int, start: int, length: int) -> bytes:
    """Return C's `struct flock` for bytes of a file, for fcntl."""
    return struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0)


def busy(holder: str, timeout_ms: int) -> CatalogBusy:
    """Return the CatalogBusy error that names the holder."""
    return CatalogBusy(
        f"The catalog was not free within {timeout_ms} ms; {holder} has it.",
        hint="Run the statement again; a larger lock_acquire_timeout_ms waits longer.",
    )
