"""Make a fork wait until no thread of this process is in the middle of a commit.

SQLite keeps in memory which locks the process holds on the file.  The child of a fork inherits that
memory, without the thread that would release a lock: if one was committing, the child could never
write.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class ForkAware(Protocol):
    """A writer that can pause around a fork."""

    def pause(self) -> None:
        """Return when no commit is in progress, or after a bounded time."""

    def resume(self) -> None:
        """Continue after the fork, in the parent. The child recreates its locks."""


class ForkGuard:
    """Writers to pause before os.fork(), held by weak references. The at-fork hooks are permanent:
    Python cannot unregister them. Only one fork runs at a time."""

    _writers: WeakSet[ForkAware] = WeakSet()
    _guard = threading.RLock()  # the forking thread holds it, in the child too
    _hooked = False

    @classmethod
    def register(cls, writer: ForkAware) -> None:
        """Register a writer; from now on each fork of this process pauses it."""
        with cls._guard:
            cls._writers.add(writer)
            if not cls._hooked and hasattr(os, "register_at_fork"):
                os.register_at_fork(
                    before=cls._before,
                    after_in_parent=cls._after,
                    after_in_child=cls._guard.release,
                )
                cls._hooked = True

    @classmethod
    def _before(cls) -> None:
        """Pause all writers of the process, before os.fork()."""
        cls._guard.acquire()
        for writer in list(cls._writers):
            writer.pause()

    @classmethod
    def _after(cls) -> None:
        """Let the paused writers continue, in the parent and in the child."""
        for writer in list(cls._writers):
            writer.resume()
        cls._guard.release()
