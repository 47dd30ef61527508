"""Which processes have the warehouse open, and the oldest snapshot that each still reads.

A process registers by a file of its own in `catalog.processes/`, which it keeps locked while it
lives: a process that can take the lock knows that the owner has ended, even if its process id was
reused.  The file holds the smallest pinned commit number (8 bytes, 0 for none), so pinning a
snapshot costs a write of 8 bytes and no transaction.
"""

from __future__ import annotations

import os
import struct
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from olapdb.errors import system_error

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

_PIN = struct.Struct("<q")


class Registration:
    """This process's entry, and its view of all processes. `folder` None: a catalog in memory,
    which has one process only."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._pins: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._published = 0
        self._descriptor = -1
        self.token = ""

    def ensure(self) -> str:
        """Register at first use; return the token for leases."""
        with self._lock, self._named_errors():
            self._register()
            return self.token

    def pin(self, number: int) -> None:
        """Pin a commit number; pins are counted."""
        with self._lock, self._named_errors():
            self._pins[number] += 1
            try:
                self._publish()
            except OSError:
                self._remove_pin(number)
                raise

    def unpin(self, number: int) -> None:
        """Remove a pin; never fails. If the file cannot be written it keeps the smaller number
        until the next pin, which only keeps parts for longer."""
        with self._lock:
            self._remove_pin(number)
            with suppress(OSError):
                self._publish()

    def own_lowest_pin(self) -> int:
        """Return the smallest number pinned by this process, 0 for none."""
        with self._lock:
            return self._lowest_pin()

    def living_and_lowest_pin(self) -> tuple[frozenset[str], int]:
        """Return (tokens of the living processes, smallest number that any of them has pinned or
        0). Removes the entries of processes that have ended."""
        if self._folder is None or not os.path.isdir(self._folder):
            lowest = self.own_lowest_pin()
            return frozenset({self.token} if self.token else ()), lowest
        alive: set[str] = set()
        pins: list[int] = []
        with self._named_errors():
            for name in os.listdir(self._folder):
                if name.startswith("."):
                    continue
                pinned = self._read_pin(name)
                if pinned is not None:
                    alive.add(name)
                    pins.append(pinned)
        return frozenset(alive), min((p for p in pins if p > 0), default=0)

    def close(self) -> None:
        """Remove this process's entry."""
        with self._lock:
            if self._descriptor >= 0:
                if self._folder is not None:
                    # If this fails, another process removes it: the lock is free.
                    with suppress(OSError):
                        _unlink(os.path.join(self._folder, self.token))
                os.close(self._descriptor)
                self._descriptor = -1
            self.token = ""
            self._pins.clear()
            self._published = 0

    def forget_inherited(self) -> None:
        """Drop the parent's entry in a forked child; the parent keeps its lock."""
        self._lock = threading.Lock()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self.token = ""
        self._pins = Counter()
        self._published = 0

    def _register(self) -> None:
        """Register this process, if it is not yet: draw a token and create its file, locked until
        the process ends. A catalog in memory only gets a token."""
        if self.token:
            return
        token = uuid.uuid4().hex
        if self._folder is not None and fcntl is not None:
            os.makedirs(self._folder, exist_ok=True)
            # Locked before it has its name, so that no process takes it for a dead one's.
            hidden = os.path.join(self._folder, f".{token}")
            descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                os.pwrite(descriptor, _PIN.pack(0), 0)
                os.rename(hidden, os.path.join(self._folder, token))
            except OSError:
                os.close(descriptor)
                with suppress(OSError):
                    _unlink(hidden)
                raise
            self._descriptor = descriptor
            self._published = 0
        self.token = token

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Convert OSErrors inside the `with` to errors that name the registry's folder."""
        try:
            yield
        except OSError as error:
            raise system_error(error, self._folder or "") from error

    def _lowest_pin(self) -> int:
        """Return the oldest commit that this process pins, 0 without pins."""
        return min(self._pins, default=0)

    def _remove_pin(self, number: int) -> None:
        """Remove one pin of commit `number`."""
        self._pins[number] -= 1
        if self._pins[number] <= 0:
            del self._pins[number]

    def _publish(self) -> None:
        """Write the oldest pin of this process to its file, if it changed, for other processes to
        read."""
        if self._folder is None:
            return
        lowest = self._lowest_pin()
        if lowest != self._published:
            self._register()
            if self._descriptor >= 0:
                os.pwrite(self._descriptor, _PIN.pack(lowest), 0)
            self._published = lowest

    def _read_pin(self, name: str) -> int | None:
        """Return the pin of a living process (0 for none). None if the process has ended; its entry
        is then removed."""
        path = os.path.join(self._folder or "", name)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            data = os.pread(descriptor, _PIN.size, 0)
            return int(_PIN.unpack(data)[0]) if len(data) == _PIN.size else 0
        else:
            _unlink(path)
            return None
        finally:
            os.close(descriptor)


def living(folder: str, tokens: Iterable[str]) -> frozenset[str]:
    """Return those of the tokens whose processes live. It only reads, so that a process without
    write access can call it; an entry whose lock is free belongs to a process that has ended."""
    alive = set()
    for token in tokens:
        try:
            descriptor = os.open(os.path.join(folder, token), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise system_error(error, folder) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            alive.add(token)
        finally:
            os.close(descriptor)
    return frozenset(alive)


def _unlink(path: str) -> None:
    """Delete a file unless it is already deleted."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
