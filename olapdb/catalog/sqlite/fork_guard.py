"""A fork waits until nobody in this process is in the midst of a commit.

SQLite keeps in memory which locks the process has on the file.  A child of a fork inherits that
memory, without the thread that would give a lock back: while one commits, its child could never
write.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class ForkAware(Protocol):
    def pause(self) -> None:
        """Returns when nobody is in the midst of a commit, for a bounded time at most."""

    def resume(self) -> None:
        """After the fork, in the parent. The child makes its locks anew."""


class ForkGuard:
    """Whom the forks of this process wait for: as long as it lives, for Python has no way to be
    told no more. One fork at a time, and nobody comes meanwhile."""

    _waited_for: WeakSet[ForkAware] = WeakSet()
    _guard = threading.RLock()  # the child's too: of the thread that forks
    _told = False

    @classmethod
    def wait_for(cls, one: ForkAware) -> None:
        with cls._guard:
            cls._waited_for.add(one)
            if not cls._told and hasattr(os, "register_at_fork"):
                os.register_at_fork(
                    before=cls._before,
                    after_in_parent=cls._after,
                    after_in_child=cls._guard.release,
                )
                cls._told = True

    @classmethod
    def _before(cls) -> None:
        cls._guard.acquire()
        for one in list(cls._waited_for):
            one.pause()

    @classmethod
    def _after(cls) -> None:
        for one in list(cls._waited_for):
            one.resume()
        cls._guard.release()
