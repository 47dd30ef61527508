"""What results that nobody read to their end leave to be done: snapshots unpinned, threads ended.

Python finds out that nobody holds a result wherever it makes an object, in the midst of other
statements too, whose locks the work would wait for.  So it is only put down there, and done by the
next statement, or by vacuum.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue


class DeferredWork:
    """Safe for many threads, and to be added to from a finalizer (`SimpleQueue.put` may be called
    in the midst of itself)."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def add(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def settle(self) -> None:
        """Does what has been left up to now."""
        while not self._work.empty():
            try:
                work = self._work.get_nowait()
            except Empty:  # another thread was faster
                return
            work()
