"""Work that results leave behind when they are dropped unread: unpin a snapshot, end threads.

Python may free a result wherever it allocates an object, in the middle of another statement whose
locks the work needs.  So the finalizer only queues the work; the next statement or vacuum runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue


class DeferredWork:
    """A thread-safe queue of callbacks. Finalizers may add to it: `SimpleQueue.put` is
    reentrant."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def add(self, work: Callable[[], None]) -> None:
        """Queue a callback."""
        self._work.put(work)

    def run_pending(self) -> None:
        """Run all queued callbacks and remove them from the queue."""
        while not self._work.empty():
            try:
                work = self._work.get_nowait()
            except Empty:  # another thread took it
                return
            work()
