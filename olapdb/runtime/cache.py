"""A small bounded cache that many threads share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

Made = TypeVar("Made")

ENTRIES_MAX = 1024


class Cache:
    """Values that can be made again from their key, least recently used ones dropped first.

    Two threads that miss together may both make the value; the first one stored is kept, so keys
    must name everything that the value depends on.  A pickled cache arrives empty.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._entries: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = threading.Lock()

    def get_or_make(self, key: Hashable, make: Callable[[], Made]) -> Made:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return cast(Made, self._entries[key])
        made = make()
        with self._lock:
            kept = self._entries.setdefault(key, made)
            while len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)
        return cast(Made, kept)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[object, ...]:
        return Cache, (self._entries_max,)
