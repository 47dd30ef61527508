"""Bounded caches of the parts that a process reads and writes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from olapdb.storage.column_cache import StoreColumns
from olapdb.storage.suspects import Suspects

FOOTERS_MAX = 4096
INLINE_BYTES_MAX = 64 << 20
INDEX_BYTES_MAX = 64 << 20
BOUNDS_MAX = 1 << 18
SELECTED_GROUPS_MAX = 1 << 18
JOINT_BYTES_MAX = 256 << 20
MASK_BYTES_MAX = 64 << 20

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """A thread-safe cache that evicts the least recently used entries beyond a total weight."""

    def __init__(self, weight_max: int) -> None:
        self.weight_max = weight_max
        self._weight = 0
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return the value of the key and mark it as used last; None if it is not cached."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Value, weight: int = 1) -> None:
        """Store a value. An entry heavier than the whole cache is not stored."""
        with self._lock:
            self._drop(key)
            if weight > self.weight_max:
                return
            self._entries[key] = (value, weight)
            self._weight += weight
            while self._weight > self.weight_max:
                self._drop(next(iter(self._entries)))

    def forget(self, key: Hashable) -> None:
        """Remove the key's value."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self._weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    def _drop(self, key: Hashable) -> None:
        """Remove an entry and subtract its weight, if it is in the cache. The caller holds the
        lock."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry[1]


class FileCache(BoundedCache[Value]):
    """A cache of what was made of files, which forgets it with any of them."""

    def __init__(self, weight_max: int) -> None:
        super().__init__(weight_max)
        self._keys: dict[str, set[Hashable]] = {}
        self._paths: dict[Hashable, tuple[str, ...]] = {}

    def put_of(self, paths: Sequence[str], key: Hashable, value: Value, weight: int) -> None:
        """Store a value that was made of the files of these paths: `forget_file` of any of them removes it. In a path
        what follows a # names a projection in the file, and does not count."""
        self.put(key, value, weight)
        files = tuple(dict.fromkeys(path.partition("#")[0] for path in paths))
        with self._lock:
            if key in self._entries:
                self._paths[key] = files
                for path in files:
                    self._keys.setdefault(path, set()).add(key)

    def forget_file(self, path: str) -> None:
        """Remove the values that were made of a file."""
        with self._lock:
            for key in tuple(self._keys.get(path, ())):
                self._drop(key)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            for key in tuple(self._entries):
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        """Remove an entry, and its key from the lists of its files. The caller holds the lock."""
        super()._drop(key)
        for path in self._paths.pop(key, ()):
            keys = self._keys[path]
            keys.discard(key)
            if not keys:
                del self._keys[path]


class PartCache:
    """All caches about parts.

    `footers` by path and `inline` decoded rows by part id, both only after their checksum was
    verified; `layouts` by table id, for the writer, and the bound keys of tables, for
    queries; `defaults`, values for columns that parts lack;
    `indexes`, skip indexes by (path, name); `bounds`, the bounds of a column in the row groups of
    several files, as pruning compares them; `selections`, the row groups that a condition leaves of several
    parts; `masks`, the rows that conditions keep of a part; `columns`, decoded columns, in the cache that all stores
    of the process share; `joints`, dictionaries for several files, see `shared_codes`; `suspects`, parts on which a read failed.
    """

    def __init__(
        self, footers_max: int = FOOTERS_MAX, inline_bytes_max: int = INLINE_BYTES_MAX
    ) -> None:
        self.footers: BoundedCache[object] = BoundedCache(footers_max)
        self.inline: BoundedCache[object] = BoundedCache(inline_bytes_max)
        self.layouts: BoundedCache[object] = BoundedCache(footers_max)
        self.defaults: BoundedCache[object] = BoundedCache(footers_max)
        self.indexes: BoundedCache[object] = BoundedCache(INDEX_BYTES_MAX)
        self.bounds: BoundedCache[object] = BoundedCache(BOUNDS_MAX)
        self.selections: BoundedCache[object] = BoundedCache(SELECTED_GROUPS_MAX)
        self.masks: FileCache[object] = FileCache(MASK_BYTES_MAX)
        self.columns = StoreColumns()
        self.joints: FileCache[object] = FileCache(JOINT_BYTES_MAX)
        self.suspects = Suspects()

    def forget(self, path: str) -> None:
        """Remove all that is cached of the file: its footer, its columns, and values that were made of them."""
        self.footers.forget(path)
        self.forget_columns(path)
        self.masks.forget_file(path)

    def forget_columns(self, path: str) -> None:
        """Remove the columns of the file, and the dictionaries that it has in common with others."""
        self.columns.forget_file(path)
        self.joints.forget_file(path)
