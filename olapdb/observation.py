"""What work in one thread counts while EXPLAIN ANALYZE watches it: lookups of cached columns, calls of
compiled kernels. Threads that are not watched count nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from olapdb.records import dataclass


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
