"""The process's cache of decoded columns: the values of one column in one row group of a part.

Parts never change, so neither do entries.  A key names what is stored, by file and column id; readers
convert a column whose type changed after they took it.  Entries were verified when they were decoded.

Eviction is S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023):
new entries wait in a small queue and move to the main one when they were used again, so that one large
scan cannot flush what is read often.  What a reader decodes of many bytes at once is kept from the second read on:
a first one works in memory that it uses again, which is much faster than memory that the process never used.
A lookup takes no lock.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import pyarrow as pa

from olapdb import observation
from olapdb.config import tuning
from olapdb.records import dataclass
from olapdb.storage.column_chunks import (
    bytes_of_parts,
    cut_array,
    is_in_window,
    may_be_joined,
    neighbours,
    window_groups,
)

SHARE_OF_MEMORY = 8
"""The default size is the machine's memory divided by this."""

_NEW_SHARE = 10
"""The queue of new entries gets the cache's size divided by this."""

_USES_MAX = 3

_REMOVED_MAX = 4_096
"""Removed entries whose places the queues may keep."""


class FileKey(NamedTuple):
    """A part file of a store that this process opened; `store` is the store's number."""

    store: int
    path: str


class ChunkKey(NamedTuple):
    """A column's row group in a file. `coded`: kept as a dictionary. `shared`: kept as codes of a
    dictionary of the whole file, see `shared_codes`."""

    column_id: int
    row_group: int
    coded: bool
    shared: bool = False


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Bytes and number of entries now; lookups and evicted bytes since the process began."""

    bytes: int
    entries: int
    bytes_max: int
    hits: int
    misses: int
    evicted_bytes: int


class _Entry:
    """The values of a chunk; `uses` counts lookups up to `_USES_MAX`, `file` is None once removed.

    The entries of `run` share the memory of one array, and leave the cache together. `joined` has the first n of them
    from this one on as one array, by n, as far as readers asked for it."""

    __slots__ = ("file", "is_new", "joined", "key", "nbytes", "run", "uses", "values")

    def __init__(self, file: FileKey, key: ChunkKey, values: pa.Array, nbytes: int) -> None:
        self.file: FileKey | None = file
        self.key = key
        self.values: pa.Array | None = values
        self.nbytes = nbytes
        self.uses = 0
        self.is_new = True
        self.run: Sequence[_Entry] = ()
        self.joined: dict[int, pa.Array] = {}


class ColumnCache:
    """Decoded chunks of columns, bounded by bytes; safe for many threads."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.reset()

    def reset(self) -> None:
        """Begin with no entries and a new lock. In the child of a fork: a thread that the child
        lacks may hold the lock, half way through a change."""
        self._files: dict[FileKey, dict[ChunkKey, _Entry]] = {}
        self._new: deque[_Entry] = deque()
        self._main: deque[_Entry] = deque()
        self._removed = 0
        self._abandoned: deque[int] = deque()
        self._evicted: OrderedDict[tuple[FileKey, ChunkKey], int] = OrderedDict()
        self._lock = threading.Lock()
        self._new_bytes = self._main_bytes = self._ghost_bytes = 0
        self._hits = self._misses = self._evicted_bytes = 0

    @property
    def bytes(self) -> int:
        """Return the bytes of the values of all entries together."""
        return self._new_bytes + self._main_bytes

    @property
    def bytes_max(self) -> int:
        """Return the most bytes that the cache keeps; 0 turns it off."""
        return self._bytes_max

    @property
    def entry_bytes_max(self) -> int:
        """Return the most bytes that an entry may have."""
        return self._bytes_max // _NEW_SHARE

    def has(self, file: FileKey, *keys: ChunkKey) -> bool:
        """Return whether the cache has all of the chunks. No lookup is counted, no entry used."""
        return self._files.get(file, {}).keys() >= set(keys)

    def has_groups(self, file: FileKey, first: ChunkKey, count: int) -> bool:
        """Return whether the cache has `count` row groups of a column, from `first` on; else as `has`."""
        column_id, start, coded, shared = first
        keys = {(column_id, group, coded, shared) for group in range(start, start + count)}
        return self._files.get(file, {}).keys() >= keys

    def knows(self, file: FileKey, key: ChunkKey) -> bool:
        """Return whether the cache has a chunk, or remembers it without its values."""
        return key in self._files.get(file, {}) or (file, key) in self._evicted

    def get(self, file: FileKey, keys: Sequence[ChunkKey]) -> list[pa.Array | None]:
        """Return the chunks' values, None for those that are not in the cache."""
        entries = self._files.get(file, {})
        chunks: list[pa.Array | None] = []
        hits = 0
        for key in keys:
            entry = entries.get(key)
            values = None if entry is None else entry.values
            if entry is not None and values is not None:
                # An increment that is lost to a race does no harm.
                entry.uses = min(entry.uses + 1, _USES_MAX)
                hits += 1
            chunks.append(values)
        self._count(hits, len(keys) - hits)
        return chunks

    def joined(self, file: FileKey, first: ChunkKey, count: int) -> pa.Array | None:
        """Return `count` chunks that follow each other, from the first on, as the array that `join` made of them
        before; None if it did not."""
        entry = self._files.get(file, {}).get(first)
        values = None if entry is None else entry.joined.get(count)
        if entry is None or values is None:
            return None
        for cached in entry.run:  # they leave together
            cached.uses = min(cached.uses + 1, _USES_MAX)
        self._count(count, 0)
        return values

    def _count(self, hits: int, misses: int) -> None:
        """Add to the counts of look-ups that found their chunk (hits) and that did not (misses)."""
        with self._lock:
            self._hits += hits
            self._misses += misses
        counts = observation.current()
        if counts is not None:
            counts.cache_hits += hits
            counts.cache_misses += misses

    def put(self, file: FileKey, key: ChunkKey, values: pa.Array) -> None:
        """Keep a chunk, unless it is there already or larger than the queue of new entries."""
        self.put_all(file, [key], [values], [int(values.nbytes)])

    def put_all(
        self,
        file: FileKey,
        keys: Sequence[ChunkKey],
        chunks: Sequence[pa.Array],
        sizes: Sequence[int],
    ) -> None:
        """Keep chunks of `sizes` bytes, except those that are there already or larger than the queue of new entries."""
        largest = self.entry_bytes_max
        new_entries = [
            _Entry(file, key, values, nbytes)
            for key, values, nbytes in zip(keys, chunks, sizes, strict=True)
            if nbytes <= largest
        ]
        if not new_entries:
            return
        with self._lock:
            while self._abandoned:
                self._forget_store(self._abandoned.popleft())
            entries = self._files.setdefault(file, {})
            for entry in (entry for entry in new_entries if entry.key not in entries):
                entries[entry.key] = entry
                ghost_bytes = self._evicted.pop((file, entry.key), None)
                if ghost_bytes is None:
                    self._new.append(entry)
                    self._new_bytes += entry.nbytes
                else:
                    self._ghost_bytes -= ghost_bytes
                    self._promote(entry)
            self._evict_to(self._bytes_max)

    def is_first_read(self, file: FileKey, keys: Sequence[ChunkKey], sizes: Sequence[int]) -> bool:
        """Return whether chunks of `sizes` bytes have more than `tuning.KEPT_AT_ONCE_BYTES_MAX` bytes together, and the
        cache knows none of them. It then remembers their keys without their values, like evicted ones, so that the next
        read of them keeps them."""
        if sum(sizes) <= tuning.KEPT_AT_ONCE_BYTES_MAX:
            return False
        with self._lock:
            entries = self._files.get(file, {})
            if any(key in entries or (file, key) in self._evicted for key in keys):
                return False
            for key, nbytes in zip(keys, sizes, strict=True):
                self._remember(file, key, nbytes)
        return True

    def join(self, file: FileKey, keys: Sequence[ChunkKey], chunks: Sequence[pa.Array]) -> pa.Array:
        """Return the chunks of a column, which are the values of `keys`, as one array.

        Chunks that lie one after the other in memory are not copied. Others are copied once: the cache
        then keeps them as parts of the copy. Chunks of other arrays are copied with what the window has
        beside them, so that no later reader copies them again."""
        values = neighbours(chunks)
        if values is not None:
            self._note(file, keys, chunks, values)
            return values
        window = window_groups(len(chunks[0]))
        around = self._around(file, keys, window)
        if around is None:
            values = pa.concat_arrays(chunks)
            if is_in_window([key.row_group for key in keys], window):
                self.link(file, keys, cut_array(values, list(map(len, chunks))))
            return values
        keys_around, chunks_around = around
        sizes = list(map(len, chunks_around))
        whole = pa.concat_arrays(chunks_around)
        self.link(file, keys_around, cut_array(whole, sizes))
        start = sum(sizes[: keys_around.index(keys[0])])
        return whole.slice(start, sum(map(len, chunks)))

    def _note(
        self, file: FileKey, keys: Sequence[ChunkKey], chunks: Sequence[pa.Array], values: pa.Array
    ) -> None:
        """Remember `values`, the array of all chunks, at the entry of the first key, if the chunks lie in the cache as
        parts of one array and follow each other. `joined` then finds it."""
        with self._lock:
            entries = self._files.get(file, {})
            first, last = entries.get(keys[0]), entries.get(keys[-1])
            if first is None or last is None or not first.run or first.run is not last.run:
                return
            follow = keys[-1].row_group - keys[0].row_group == len(keys) - 1
            if follow and first.values is chunks[0] and last.values is chunks[-1]:
                first.joined[len(keys)] = values

    def _around(
        self, file: FileKey, keys: Sequence[ChunkKey], window: int
    ) -> tuple[list[ChunkKey], list[pa.Array]] | None:
        """Return the chunks that the cache has without a gap in the window of `keys`, which is `window` row groups,
        where some of `keys` are parts of other arrays. None if none is, or they are too large for one array."""
        if not is_in_window([key.row_group for key in keys], window):
            return None
        entries = self._files.get(file, {})
        if not any(entry is not None and entry.run for entry in map(entries.get, keys)):
            return None
        values: dict[int, pa.Array] = {}
        for key in keys:
            entry = entries.get(key)
            if entry is None or entry.values is None:
                return None
            values[key.row_group] = entry.values
        start = keys[0].row_group // window * window
        before = range(keys[0].row_group - 1, start - 1, -1)
        behind = range(keys[-1].row_group + 1, start + window)
        for row_groups in (before, behind):
            for row_group in row_groups:
                entry = entries.get(keys[0]._replace(row_group=row_group))
                if entry is None or entry.values is None:
                    break
                values[row_group] = entry.values
        ordered_keys = [keys[0]._replace(row_group=row_group) for row_group in sorted(values)]
        chunks = [values[key.row_group] for key in ordered_keys]
        is_one_type = len({chunk.type for chunk in chunks}) == 1
        return (ordered_keys, chunks) if is_one_type and may_be_joined(chunks) else None

    def link(
        self,
        file: FileKey,
        keys: Sequence[ChunkKey],
        parts: Sequence[pa.Array],
        whole: pa.Array | None = None,
    ) -> None:
        """Set the entries of `keys` to `parts`, parts of one array that are then evicted together. Nothing changes if
        an entry is missing, or shares its array with other entries. `joined` finds `whole`, that array, if it is given."""
        with self._lock:
            entries = self._files.get(file, {})
            run = [entry for key in keys if (entry := entries.get(key)) is not None]
            chosen = set(map(id, run))
            if len(run) == len(keys) and all(id(o) in chosen for e in run for o in e.run):
                for entry, values in zip(run, parts, strict=True):
                    entry.values = values
                    entry.run = run
                    entry.joined = {}
                if whole is not None:
                    run[0].joined[len(run)] = whole

    def resize(self, bytes_max: int) -> None:
        """Set how many bytes the cache may keep, and evict entries until it keeps no more."""
        with self._lock:
            self._bytes_max = bytes_max
            self._evict_to(bytes_max)

    def shrink_to(self, kept_bytes: int) -> None:
        """Evict entries until at most `kept_bytes` are left; the cache may grow again."""
        with self._lock:
            self._evict_to(max(kept_bytes, 0))

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            for file in list(self._files):
                self._forget(file)
            self._evicted.clear()
            self._ghost_bytes = 0

    def forget_file(self, file: FileKey) -> None:
        """Remove the entries of a file."""
        with self._lock:
            self._forget(file)

    def forget_store(self, store: int) -> None:
        """Remove the entries of all files of a store."""
        with self._lock:
            self._forget_store(store)

    def forget_store_soon(self, store: int) -> None:
        """Remove the entries of a store at the next `put`. For finalizers: the garbage collector may
        call them in a thread that holds the lock."""
        self._abandoned.append(store)

    def entries(self, store: int) -> Iterator[tuple[str, ChunkKey, pa.DataType, int, int]]:
        """Yield (path, key, Arrow type, rows, bytes) of each entry of a store."""
        with self._lock:
            files = [(f.path, entries) for f, entries in self._files.items() if f.store == store]
            listed = [(path, entry) for path, entries in files for entry in entries.values()]
        for path, entry in listed:
            if (values := entry.values) is not None:
                yield path, entry.key, values.type, len(values), entry.nbytes

    def statistics(self) -> CacheStatistics:
        """Return the present size and the counts since the process began."""
        with self._lock:
            return CacheStatistics(
                bytes=self.bytes,
                entries=sum(map(len, self._files.values())),
                bytes_max=self._bytes_max,
                hits=self._hits,
                misses=self._misses,
                evicted_bytes=self._evicted_bytes,
            )

    # --- the caller holds the lock

    def _evict_to(self, kept_bytes: int) -> None:
        """Evict entries until at most `kept_bytes` are left."""
        new_max = kept_bytes // _NEW_SHARE
        while self.bytes > kept_bytes:
            if self._new and (self._new_bytes > new_max or not self._main):
                self._evict_new()
            elif self._main:
                self._evict_main()
            else:
                return

    def _evict_new(self) -> None:
        """Move the oldest new entry to the main queue if it was used, else evict it and remember
        its key."""
        entry = self._new.popleft()
        if entry.file is None:
            return
        self._new_bytes -= entry.nbytes
        if entry.uses:
            self._promote(entry)
            return
        self._remember(entry.file, entry.key, entry.nbytes)
        self._drop(entry)

    def _remember(self, file: FileKey, key: ChunkKey, nbytes: int) -> None:
        """Remember the key of a chunk that the cache has not: if it is put soon, it is kept for longer."""
        self._evicted[file, key] = nbytes
        self._ghost_bytes += nbytes
        while self._ghost_bytes > self._bytes_max:
            self._ghost_bytes -= self._evicted.popitem(last=False)[1]

    def _evict_main(self) -> None:
        """Give the oldest entry of the main queue another round if it was used, else evict it."""
        entry = self._main.popleft()
        if entry.file is None:
            return
        if entry.uses:
            entry.uses -= 1
            self._main.append(entry)
            return
        self._main_bytes -= entry.nbytes
        self._drop(entry)

    def _promote(self, entry: _Entry) -> None:
        """Append an entry to the main queue."""
        entry.is_new = False
        entry.uses = 0
        self._main.append(entry)
        self._main_bytes += entry.nbytes

    def _drop(self, entry: _Entry) -> None:
        """Remove an evicted entry from its file; its queue no longer has it."""
        file = entry.file
        assert file is not None
        entries = self._files[file]
        del entries[entry.key]
        self._evicted_bytes += entry.nbytes
        entry.file = None
        for other in entry.run:
            if other.file is not None:
                self._leave(other)
                self._evicted_bytes += other.nbytes
                entries.pop(other.key, None)
        entry.run = ()
        entry.joined = {}
        if not entries:
            self._files.pop(file, None)

    def _leave(self, entry: _Entry) -> None:
        """Take an entry out of the counts of bytes. Its place in a queue stays, without values, until
        the queue reaches it or is cleaned."""
        if entry.is_new:
            self._new_bytes -= entry.nbytes
        else:
            self._main_bytes -= entry.nbytes
        entry.file = entry.values = None
        entry.run = ()
        entry.joined = {}
        self._removed += 1

    def _forget_store(self, store: int) -> None:
        """Remove the entries of all files of a store."""
        for file in [file for file in self._files if file.store == store]:
            self._forget(file)

    def _forget(self, file: FileKey) -> None:
        """Remove the entries of a file."""
        entries = self._files.pop(file, {})
        for entry in entries.values():
            self._leave(entry)
        if self._removed > _REMOVED_MAX:
            self._new = deque(entry for entry in self._new if entry.file is not None)
            self._main = deque(entry for entry in self._main if entry.file is not None)
            self._removed = 0


class StoreColumns:
    """The entries of one store in the cache of the process. They leave it with this object, or
    when `forget` is called."""

    def __init__(self, columns: ColumnCache | None = None) -> None:
        self.shared = columns or process_columns()
        self.store = next(_stores)
        self.making: set[tuple[str, int]] = set()
        """The path and column of shared codes that a thread makes now."""
        weakref.finalize(self, self.shared.forget_store_soon, self.store)

    def file(self, path: str) -> FileKey:
        """Return the key of a file of the store."""
        return FileKey(self.store, path)

    def keep(self, path: str, keys: Sequence[ChunkKey], chunks: Sequence[pa.Array]) -> None:
        """Keep row groups of one column of a file."""
        file = self.file(path)
        for key, values in zip(keys, chunks, strict=True):
            self.shared.put(file, key, values)

    def keep_whole(self, path: str, keys: Sequence[ChunkKey], parts: Sequence[pa.Array]) -> None:
        """Keep row groups of one column of a file that are parts of one array."""
        self.keep(path, keys, parts)
        self.shared.link(self.file(path), keys, parts)

    def keep_read(self, path: str, keys: Sequence[ChunkKey], chunks: Sequence[pa.Array]) -> None:
        """Keep row groups of one column that a reader decoded, many bytes only if they were read before."""
        file, sizes = self.file(path), [int(chunk.nbytes) for chunk in chunks]
        if not self.shared.is_first_read(file, keys, sizes):
            self.shared.put_all(file, keys, chunks, sizes)

    def keep_read_whole(
        self, path: str, keys: Sequence[ChunkKey], values: pa.Array, rows: Sequence[int]
    ) -> None:
        """Keep row groups of `rows` rows that follow each other, which a reader decoded as one array, as `keep_read`
        does."""
        file, parts = self.file(path), cut_array(values, rows)
        sizes = bytes_of_parts(values, parts)
        if not self.shared.is_first_read(file, keys, sizes):
            self.shared.put_all(file, keys, parts, sizes)
            self.shared.link(file, keys, parts, values)

    def forget_file(self, path: str) -> None:
        """Remove the entries of a file of the store."""
        self.shared.forget_file(self.file(path))

    def forget(self) -> None:
        """Remove the entries of the store."""
        self.shared.forget_store(self.store)


_stores = itertools.count()


@cache
def process_columns() -> ColumnCache:
    """Return the cache that all stores of this process share."""
    columns = ColumnCache(default_bytes_max())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=columns.reset)
    return columns


def default_bytes_max() -> int:
    """Return the default size: a share of the machine's memory, 256 MiB if the system does not report
    it."""
    try:
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 256 << 20
    return memory_bytes // SHARE_OF_MEMORY
