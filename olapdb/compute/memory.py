"""The memory that a query's operators hold, counted against its limit."""

from __future__ import annotations

import os
import sys
import threading
from functools import cache

from olapdb import errors
from olapdb.config import Settings
from olapdb.storage.column_cache import process_columns

_ADVICE = (
    "Raise it with SETTINGS max_memory_usage = <bytes> (0, the default, is half of the machine's),"
    " let the query read, group or join fewer rows at once, or let it spill to disk:"
    " max_bytes_ratio_before_external_group_by, …_sort, …_join and …_distinct are 0.5 unless they"
    " were changed."
)
_ADVICE_FOR = {
    "GROUP BY": " The disk takes groups, and the state of one group of uniqExact, quantileExact, topK and"
    " DISTINCT values, but not that of others, such as groupArray or groupUniqArray of too many values. Use"
    " groupArray(n)(x), or GROUP BY more keys.",
    "window functions": " The disk takes the rows of a partition, but the rows of one frame, and those of"
    " nth_value by an expression and unbounded RANGE to an offset, must fit the memory: use a shorter frame, or PARTITION BY more keys.",
    "ARRAY JOIN": " Rows are joined some at a time, but the arrays of one row must fit the memory: let several rows have"
    " shorter arrays, as FROM numbers(n) does in place of arrayJoin(range(n)).",
    "FINAL": " The disk takes the rows of FINAL, but what they leave of one sorting key must fit the memory, and so must all"
    " rows of one key of a SummingMergeTree with summed maps.",
}
"""What else to do where an operator cannot go on, by its name."""


class MemoryTracker:
    """The memory that operators of a query hold: hash tables, sort buffers, join sides, sets.

    `limit_bytes` 0 is no limit.  What the queries need comes before the process's cache of columns,
    which gives way where both together exceed half of the machine's memory.  Batches on their way from one operator to the next are bounded
    by the look-ahead and by bytes (`ExecutionContext.batch_bytes`), and not counted.  Thread-safe.
    """

    def __init__(self, limit_bytes: int = 0) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.peak_bytes = 0
        self._lock = threading.Lock()

    def add(self, more_bytes: int, what: str) -> None:
        """Count more bytes (or fewer, if negative) for the operator `what`.

        Raises MemoryLimitExceeded if this would exceed the limit."""
        with self._lock:
            total = self.used_bytes + more_bytes
            if more_bytes > 0 and self.limit_bytes and total > self.limit_bytes:
                raise errors.MemoryLimitExceeded(
                    f"Memory limit for the query exceeded: {what} would bring it to"
                    f" {total:,} bytes, max_memory_usage is {self.limit_bytes:,}.",
                    hint=_ADVICE + _ADVICE_FOR.get(what, ""),
                )
            self.used_bytes = total
            self.peak_bytes = max(self.peak_bytes, total)
        if more_bytes > 0:
            _make_room(total)

    @property
    def available_bytes(self) -> int:
        """Return the bytes that the query may still hold."""
        return self.limit_bytes - self.used_bytes if self.limit_bytes else sys.maxsize

    def account(self, what: str) -> MemoryAccount:
        """Return an empty account for the operator `what`, to use in a `with` block."""
        return MemoryAccount(self, what)


class MemoryAccount:
    """The memory that one operator holds; leaving the `with` block releases it."""

    def __init__(self, tracker: MemoryTracker, what: str) -> None:
        self._tracker, self._what, self._held_bytes = tracker, what, 0

    @property
    def available_bytes(self) -> int:
        """Return the most bytes that the operator may hold in all: those that the account counts now and those that the
        query may still take."""
        return self._held_bytes + self._tracker.available_bytes

    @property
    def held_bytes(self) -> int:
        """Return the bytes that the account counts."""
        return self._held_bytes

    def set(self, held_bytes: int) -> None:
        """Count `held_bytes` for the operator instead of the last amount.

        Raises MemoryLimitExceeded if this would exceed the query's limit."""
        change = held_bytes - self._held_bytes
        self._tracker.add(change, self._what)
        self._held_bytes = held_bytes

    def grow(self, more_bytes: int) -> None:
        """Add bytes to the operator's count. Raises MemoryLimitExceeded if this exceeds the query's
        limit."""
        self.set(self._held_bytes + more_bytes)

    def __enter__(self) -> MemoryAccount:
        return self

    def __exit__(self, *error: object) -> None:
        self.set(0)


def memory_limit(settings: Settings) -> int:
    """Return `max_memory_usage` in bytes, by default half of the machine's memory; 0 means no
    limit."""
    return settings.integer("max_memory_usage") or _half_of_memory()


def _make_room(query_bytes: int) -> None:
    """Shrink the cache of columns so that it fits into half of the machine's memory beside a query's
    bytes."""
    half_bytes, columns = _half_of_memory(), process_columns()
    if half_bytes and columns.bytes > half_bytes - query_bytes:
        columns.shrink_to(half_bytes - query_bytes)


@cache
def _half_of_memory() -> int:
    """Return the default of max_memory_usage in bytes; 0 (no limit) if the system does not report
    it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 0
