"""A small bounded cache that many threads share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

Cached = TypeVar("Cached")

ENTRIES_MAX = 1024


class Cache:
    """A thread-safe cache of values computed from their keys; the least recently used are dropped
    first.

    Two threads that miss together may both compute the value; the first one stored is kept, so keys
    must name everything that the value depends on.  A pickled cache arrives empty.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._entries: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = threading.Lock()

    def get_or_make(self, key: Hashable, make: Callable[[], Cached]) -> Cached:
        """Return the cached value of `key`, else call `make` and cache its result. Threads that
        come at once may each call `make`; all get the same value."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return cast(Cached, self._entries[key])
        value = make()
        with self._lock:
            cached = self._entries.setdefault(key, value)
            while len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)
        return cast(Cached, cached)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[object, ...]:
        return Cache, (self._entries_max,)
