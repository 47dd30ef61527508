"""A process that forks while one of its threads opens writers: what `test_writers` runs.

It has no other threads, and no warehouse of another test is open in it. It ends with 0 if each
child could open a writer, and prints what a destructor raised."""

from __future__ import annotations

import os
import sys
import threading

from olapdb.catalog.sqlite.fork_guard import ForkGuard

FORKS = 200


class Opened:
    """A writer that has nothing to do at a fork."""

    def pause(self) -> None:
        """Do nothing."""

    def resume(self) -> None:
        """Do nothing."""


def main() -> int:
    """Fork while another thread registers writers; return 0 if no child waited in vain."""
    failures: list[object] = []
    sys.unraisablehook = lambda failure: failures.append(failure.exc_value)
    kept, done = [Opened() for _ in range(200)], threading.Event()
    for writer in kept:
        ForkGuard.register(writer)

    def open_more() -> None:
        """Register writers that are collected at once."""
        while not done.is_set():
            ForkGuard.register(Opened())

    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=open_more)
    thread.start()
    try:
        waiting = sum(os.waitpid(_child(), 0)[1] != 0 for _ in range(FORKS))
    finally:
        done.set()
        thread.join()
    print(waiting, failures)
    return int(bool(waiting or failures))


def _child() -> int:
    """Fork a process that opens a writer in a thread of its own; return its id."""
    child = os.fork()
    if not child:
        opener = threading.Thread(target=lambda: ForkGuard.register(Opened()), daemon=True)
        opener.start()
        opener.join(10)
        os._exit(int(opener.is_alive()))
    return child


if __name__ == "__main__":
    sys.exit(main())
