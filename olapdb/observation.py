"""What is observed of running work: counts while EXPLAIN ANALYZE watches a thread, and what rows take.

Lookups of cached columns and calls of compiled kernels are counted, in watched threads alone.

A query's first run does some tasks in its own thread, to see what a row takes. `RowCosts` tells it to later runs: threads
begin at once, or not at all, and no task is small for the sake of that.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TypeVar

from olapdb.records import dataclass

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass
class Counts:
    """Chunks that the column cache had and lacked, and calls of kernels by name. For one thread at a
    time."""

    cache_hits: int = 0
    cache_misses: int = 0
    kernels: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add the counts of another thread's work to these."""
        self.cache_hits += other.cache_hits
        self.cache_misses += other.cache_misses
        self.kernels.update(other.kernels)


_thread = threading.local()


def current() -> Counts | None:
    """Return the counts of the work that this thread does now, None if it is not watched."""
    counts: Counts | None = getattr(_thread, "counts", None)
    return counts


@contextmanager
def counting(counts: Counts) -> Iterator[None]:
    """Let the work of this thread within the block count there, and not where it counted before."""
    before = current()
    _thread.counts = counts
    try:
        yield
    finally:
        _thread.counts = before


class RowCosts:
    """The processor time that a row took, with all that a thread does of it, by the scan. For many threads."""

    def __init__(self) -> None:
        self._microseconds: dict[Hashable, float] = {}

    def expected(self, scan: Hashable, rows: int) -> float | None:
        """Return the microseconds that so many rows of a scan are expected to take one thread; None if
        the scan has not run before."""
        known = self._microseconds.get(scan)
        return None if known is None else known * rows

    def learn(self, scan: Hashable, rows: int, microseconds: float) -> None:
        """Note what the rows of a scan took. A scan that threads share takes more than one that they do not;
        so the last run counts."""
        self._microseconds[scan] = microseconds / max(rows, 1)


class TaskMeter:
    """The processor time of a query's tasks. For many threads."""

    def __init__(self) -> None:
        self._seconds: list[float] = []

    def metered(self, work: Callable[[Item], Answer]) -> Callable[[Item], Answer]:
        """Return the work, whose calls are timed."""

        def metered_work(item: Item) -> Answer:
            started = time.thread_time()
            answer = work(item)
            self._seconds.append(time.thread_time() - started)
            return answer

        return metered_work

    @property
    def microseconds(self) -> float:
        """Return the time that all calls took together, in microseconds."""
        return 1e6 * sum(self._seconds)
