"""What is observed of running work: counts while EXPLAIN ANALYZE watches a thread, and what rows take.

Lookups of cached columns and calls of compiled kernels are counted, in watched threads alone.

A query's first run does some tasks in its own thread, to see what a row takes. `RowCosts` tells it to later runs: threads
begin at once, or not at all, and no task is small for the sake of that. Where threads save nothing, since they wait for each
other's turns in the interpreter, a later run does without them.
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

_STEADY_SHARE = 0.8
"""Runs are steady once one takes more than this part of the one before."""

_SLOWER_SHARE = 0.75
"""What does not count of the time that a run took longer than those before."""

_TRIED_AGAIN_RUNS = 64
"""The slower of both ways, with threads and without, is tried again after so many runs."""

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


@dataclass
class _ScanCosts:
    """Measured times of a scan, in microseconds a row: the processor time of its last run, and how long the query waited
    for its rows with threads (`shared`) and without (`alone`). None: no such run yet."""

    processor: float
    shared: float | None = None
    alone: float | None = None
    is_steady: bool = False
    """Whether a run with threads took about as long as the one before: the first ones fill caches."""
    runs: int = 0
    """Runs since both ways were tried."""


class RowCosts:
    """The time that a row took, with all that a thread does of it, by the scan. For many threads."""

    def __init__(self) -> None:
        self._scans: dict[Hashable, _ScanCosts] = {}

    def expected(self, scan: Hashable, rows: int) -> float | None:
        """Return the microseconds that so many rows of a scan are expected to take one thread; None if
        the scan has not run before."""
        known = self._scans.get(scan)
        return None if known is None else known.processor * rows

    def threads_pay(self, scan: Hashable, rows: int, lost_max: int) -> bool:
        """Return whether threads should work on so many rows of a scan that has run before.

        They do until their runs take the same time. One thread is then tried, where that loses at most `lost_max`
        microseconds, and the way that took less is kept. The other one is tried again once in a while, since a busy
        machine may have misled."""
        known = self._scans[scan]
        if known.shared is None:
            return True
        if known.alone is None:
            lost = (known.processor - known.shared) * rows
            return not known.is_steady or lost > lost_max
        lost = abs(known.alone - known.shared) * rows
        is_trial = known.runs >= _TRIED_AGAIN_RUNS and lost <= lost_max
        return (known.shared <= known.alone) != is_trial

    def learn(
        self, scan: Hashable, rows: int, microseconds: float, waited: float, *, shared: bool | None
    ) -> None:
        """Note the microseconds that the rows of a scan took of processors, and that the query waited for them: `shared` by
        threads or not; None for a run that was both.

        A scan that threads share takes more processor time than one that they do not; so the last run counts. Of a run that
        waited longer than those before a quarter counts: other programs may have worked beside it."""
        processor, waited = microseconds / max(rows, 1), waited / max(rows, 1)
        known = self._scans.setdefault(scan, _ScanCosts(processor))
        known.processor = processor
        if shared is None:
            return
        before = known.shared if shared else known.alone
        is_trial = before is None or known.runs >= _TRIED_AGAIN_RUNS
        slower = 0.0 if before is None else max(waited - before, 0.0)
        after = waited if is_trial else waited - slower * _SLOWER_SHARE
        if shared:
            known.is_steady = before is not None and waited > _STEADY_SHARE * before
            known.shared = after
        else:
            known.alone = after
        known.runs = 0 if is_trial else known.runs + 1


class TaskMeter:
    """The processor time of a query's tasks, and how long the query waited for them. Tasks may be of many threads."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._waited = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time within the block as time that the query waits for an answer."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._waited += time.perf_counter() - started

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

    @property
    def waited_microseconds(self) -> float:
        """Return how long the answers were waited for."""
        return 1e6 * self._waited
