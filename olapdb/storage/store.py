"""Files of a warehouse behind a small interface, with the write order that a commit relies on.

A file becomes visible under its name only when it is whole: it is written under a temporary name,
flushed to the device, then renamed.  `sync()` flushes the folders, after which the names survive a
crash of the machine as well.  Paths are relative to the warehouse and use "/".
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol, TypeAlias, cast

import pyarrow as pa

from olapdb.errors import BadArguments, FileDoesntExist, OperationalError, ReadOnly, system_error
from olapdb.model.failpoint import Durability, FailpointObserver, ignore_failpoint
from olapdb.records import dataclass
from olapdb.storage.cache import PartCache

TEMPORARY_FOLDER = "tmp"
"""Temporary files of queries are there, below the warehouse's folder."""
TEMPORARY_SUFFIX = ".tmp"
_FLUSHED_BYTES_MIN = 1 << 20
_SYNC_FILE_RANGE_WRITE = 2


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of the listing; `modified_ms` is milliseconds since 1970."""

    path: str
    bytes: int
    modified_ms: int


class Store(Protocol):
    """The interface to a warehouse's files; safe for many threads."""

    @property
    def cache(self) -> PartCache:
        """The process's caches of footers, columns, inline rows and skip indexes read from this
        store."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random access. Raises FileDoesntExist."""
        ...

    def write(self, path: str, write_to: Callable[[pa.NativeFile], None]) -> int:
        """Create the file `path` with the bytes that `write_to(sink)` writes; return their number. The file appears
        whole or not at all: on NotEnoughSpace, ReadOnly or OperationalError no file is left."""
        ...

    def sync(self) -> None:
        """Make durable the names of all files written, and the absence of all files deleted, before
        this call."""
        ...

    def delete(self, path: str) -> None:
        """Delete the file; do nothing if it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether the file exists."""
        ...

    def size(self, path: str) -> int:
        """Return the file's bytes. Raises FileDoesntExist."""
        ...

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield all files whose path begins with `prefix`, temporary ones included, in no order."""
        ...

    def local_path(self, path: str) -> str | None:
        """Return the file's path in the file system, for other readers. None if the store is not in
        one."""
        ...

    @property
    def temporary_folder(self) -> str | None:
        """The folder for temporary files of queries. None if the store has none, or is read-only."""
        ...


class LocalStore:
    """A store in a folder of the local file system."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        durability: Durability = "full",
        *,
        read_only: bool = False,
        failpoint: FailpointObserver = ignore_failpoint,
    ) -> None:
        if durability not in ("full", "process"):
            raise BadArguments(f"durability is 'full' or 'process', not {durability!r}.")
        self.root = Path(root)
        self.durability = durability
        self.read_only = read_only
        self._failpoint = failpoint
        self._cache = PartCache()
        self._unsynced: set[str] = set()
        self._known_folders: set[str] = set()
        self._lock = threading.Lock()
        self._process_id = os.getpid()

    @property
    def cache(self) -> PartCache:
        """The process's caches of what is read from this store."""
        return self._cache

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random access. Raises FileDoesntExist."""
        try:
            return pa.OSFile(str(self.root / path), "rb")
        except FileNotFoundError:
            raise _missing(path) from None
        except OSError as error:
            raise storage_error(error, path) from error

    def _own_lock(self) -> threading.Lock:
        """Return the lock, replaced in the child of a fork: a thread that the child lacks may hold
        the parent's."""
        if self._process_id != os.getpid():
            self._process_id, self._lock = os.getpid(), threading.Lock()
        return self._lock

    def write(self, path: str, write_to: Callable[[pa.NativeFile], None]) -> int:
        """Write a temporary file, fsync it if durability is "full", then rename it to `path`.
        `sync` later makes the name durable. Return the bytes. Raises ReadOnly."""
        if self.read_only:
            raise ReadOnly("The warehouse is open for reading only.", hint="Open it to write.")
        final = self.root / path
        temporary = f"{final}{TEMPORARY_SUFFIX}"
        try:
            self._make_folder(os.path.dirname(path))
            with self._new_file(temporary) as sink:
                write_to(sink)
            self._failpoint("store.written")
            size = self._flush(temporary)
            self._failpoint("store.flushed")
            os.replace(temporary, final)
            self._failpoint("store.renamed")
        except BaseException as error:
            _unlink(temporary)
            if isinstance(error, OSError):
                raise storage_error(error, path) from error
            raise
        if self.durability == "full":
            with self._own_lock():
                self._unsynced.add(str(final.parent))
        return size

    def sync(self) -> None:
        """Fsync the folders in which files were written or deleted since the last call."""
        # The lock is held throughout, so a caller that finds no folder left knows they are synced.
        with self._own_lock():
            folders = sorted(self._unsynced)
            for folder in folders:
                try:
                    flush_folder(folder)
                except OSError as error:
                    raise storage_error(error, folder) from error
                self._unsynced.discard(folder)
            if folders:
                self._failpoint("store.synced")

    def delete(self, path: str) -> None:
        """Delete the file and its entries in the caches; do nothing if it does not exist. Raises ReadOnly."""
        if self.read_only:
            raise ReadOnly("The warehouse is open for reading only.", hint="Open it to write.")
        self._cache.forget(path)
        final = self.root / path
        try:
            os.unlink(final)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, path) from error
        if self.durability == "full":
            with self._own_lock():
                self._unsynced.add(str(final.parent))

    def exists(self, path: str) -> bool:
        """Return whether the file exists. Raises OperationalError if the system cannot say."""
        try:
            return (self.root / path).exists()
        except OSError as error:
            raise storage_error(error, path) from error

    def size(self, path: str) -> int:
        """Return the file's bytes. Raises FileDoesntExist."""
        try:
            return os.stat(self.root / path).st_size
        except OSError as error:
            raise storage_error(error, path) from error

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield all files whose path begins with `prefix`, temporary ones included, in no order.
        Leaves out files deleted meanwhile; raises an error if a folder cannot be read."""
        # The deepest folder that the prefix names; files below it are compared by text.
        start = self.root / prefix.rpartition("/")[0]

        def failed(error: OSError) -> None:
            """Raise the storage error of a folder that cannot be read; do nothing for one that was deleted
            meanwhile."""
            # An incomplete listing must fail: vacuum forgets what it does not see.
            if not isinstance(error, FileNotFoundError):
                raise storage_error(error, str(error.filename)) from error

        for folder, _, names in os.walk(start, onerror=failed):
            for name in names:
                full = os.path.join(folder, name)
                path = os.path.relpath(full, self.root).replace(os.sep, "/")
                if not path.startswith(prefix):
                    continue
                try:
                    status = os.stat(full)
                except FileNotFoundError:
                    continue  # renamed or deleted meanwhile
                except OSError as error:
                    raise storage_error(error, path) from error
                yield StoredFile(path, status.st_size, int(status.st_mtime * 1000))

    def local_path(self, path: str) -> str | None:
        """Return the file's path in the file system, whether the file exists or not."""
        return str(self.root / path)

    @property
    def temporary_folder(self) -> str | None:
        """The folder for temporary files of queries; None if the store is read-only."""
        return None if self.read_only else str(self.root / TEMPORARY_FOLDER)

    def _make_folder(self, folder: str) -> None:
        """Create the folder. Each new one is an entry of its parent, which needs a sync too."""
        if folder in self._known_folders and (self.root / folder).is_dir():
            return
        missing = []
        at = self.root / folder
        while not at.exists():
            missing.append(at)
            at = at.parent
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        with self._own_lock():
            if self.durability == "full":
                self._unsynced.update(str(new_folder.parent) for new_folder in missing)
            self._known_folders.add(folder)

    def _new_file(self, temporary: str) -> pa.OSFile:
        """Create a temporary file to write to."""
        begin_flush = _sync_file_range() if self.durability == "full" else None
        if begin_flush is None:
            return pa.OSFile(temporary, "wb")
        sink = _FlushedFile(temporary, "wb")
        sink.begin_flush = begin_flush
        return sink

    def _flush(self, temporary: str) -> int:
        """Write the temporary file's data to the disk if durability is "full". Return its size in
        bytes."""
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            if self.durability == "full":
                os.fsync(descriptor)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)


class MemoryStore:
    """A store in memory, for in-memory warehouses."""

    def __init__(self, failpoint: FailpointObserver = ignore_failpoint) -> None:
        self._failpoint = failpoint
        self._cache = PartCache()
        self._files: dict[str, tuple[pa.Buffer, int]] = {}
        self._lock = threading.Lock()

    @property
    def cache(self) -> PartCache:
        """The process's caches of what is read from this store."""
        return self._cache

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random access. Raises FileDoesntExist."""
        return pa.BufferReader(self._file(path)[0])

    def write(self, path: str, write_to: Callable[[pa.NativeFile], None]) -> int:
        """Store the bytes that `write_to` writes as the file `path`; return their number."""
        sink = pa.BufferOutputStream()
        write_to(sink)
        buffer = sink.getvalue()
        self._failpoint("store.written")
        with self._lock:
            self._files[path] = (buffer, int(time.time() * 1000))
        self._failpoint("store.renamed")
        return int(buffer.size)

    def sync(self) -> None:
        """Do nothing: memory is not durable."""
        return

    def delete(self, path: str) -> None:
        """Delete the file and its entries in the caches; do nothing if it does not exist."""
        self._cache.forget(path)
        with self._lock:
            self._files.pop(path, None)

    def exists(self, path: str) -> bool:
        """Return whether the file exists."""
        return path in self._files

    def size(self, path: str) -> int:
        """Return the file's bytes. Raises FileDoesntExist."""
        return int(self._file(path)[0].size)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield the files whose path begins with `prefix`, as of the first item."""
        with self._lock:
            files = [
                StoredFile(path, int(buffer.size), modified_ms)
                for path, (buffer, modified_ms) in self._files.items()
                if path.startswith(prefix)
            ]
        yield from files

    def local_path(self, path: str) -> str | None:
        """Return None: the files are not in a file system."""
        return None

    @property
    def temporary_folder(self) -> None:
        """None: the store has no folder."""
        return None

    def _file(self, path: str) -> tuple[pa.Buffer, int]:
        """Return a file's (bytes, milliseconds since 1970 of its last change). Raise
        FileDoesntExist if there is none."""
        entry = self._files.get(path)
        if entry is None:
            raise _missing(path)
        return entry


_BeginFlush: TypeAlias = Callable[[int, int, int, int], int]


class _FlushedFile(pa.OSFile):  # type: ignore[misc]  # pyarrow is untyped
    """A file whose bytes the system begins to write to the disk while the next ones are made, so that fsync has less to
    wait for. Bytes that Arrow writes by itself wait for fsync."""

    begin_flush: _BeginFlush
    _begun = 0

    def write(self, data: bytes | pa.Buffer) -> int:
        """Append bytes, and let the system write the last megabytes."""
        count: int = super().write(data)
        end: int = self.tell()
        if end - self._begun >= _FLUSHED_BYTES_MIN:
            # What it returns says nothing: fsync reports errors.
            self.begin_flush(self.fileno(), self._begun, end - self._begun, _SYNC_FILE_RANGE_WRITE)
            self._begun = end
        return count


@cache
def _sync_file_range() -> _BeginFlush | None:
    """Return the system's call to begin writing a range of a file to the disk, None where there is none (Linux has it)."""
    try:
        call = ctypes.CDLL(None).sync_file_range
    except (AttributeError, OSError, TypeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return cast("_BeginFlush", call)


def storage_error(error: OSError, path: str) -> OperationalError:
    """Return our error for an operating system's error on `path`."""
    return _missing(path) if error.errno == errno.ENOENT else system_error(error, path)


@contextmanager
def system_errors(path: str) -> Iterator[None]:
    """Convert OSErrors raised inside the `with` to errors of our tree."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, path) from error


def _missing(path: str) -> FileDoesntExist:
    """Return the error for a file that does not exist."""
    return FileDoesntExist(
        f"The file {path} does not exist in the warehouse.",
        hint="Restore it from a backup, or set its part aside: CHECK TABLE names it, SYSTEM QUARANTINE"
        " PART 'part' ON the table does it.",
    )


def _unlink(path: str) -> None:
    """Delete a temporary file if possible; errors are ignored."""
    try:
        os.unlink(path)
    except OSError:
        return  # an orphan that vacuum finds by its lease


def flush_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names in the folder durable (fsync)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
