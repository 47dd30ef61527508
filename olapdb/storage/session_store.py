"""The files of a session's temporary tables, and a store that reads them beside the warehouse's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from olapdb.errors import InternalError, MemoryLimitExceeded
from olapdb.records import dataclass
from olapdb.storage.cache import PartCache
from olapdb.storage.store import MemoryStore, Store, StoredFile


class TemporaryStore(MemoryStore):
    """A store in memory whose files together have at most `bytes_max` bytes, 0 for no limit.

    It shares the caches of the warehouse's store, so that a deleted file leaves these too."""

    def __init__(self, cache: PartCache) -> None:
        super().__init__()
        self._cache = cache
        self.bytes_max = 0

    def write(self, path: str, write_to: Callable[[pa.NativeFile], None]) -> int:
        """Store the bytes that `write_to` writes; return their number. Raise MemoryLimitExceeded,
        and store nothing, if the files would exceed the limit."""
        size = super().write(path, write_to)
        if self.bytes_max and self.total_bytes() > self.bytes_max:
            self.delete(path)
            raise MemoryLimitExceeded(
                f"The temporary tables of the session would have more than {self.bytes_max:,} bytes,"
                " the limit max_memory_usage.",
                hint="DROP or TRUNCATE those that you no longer need, use a table of a database, or"
                " raise max_memory_usage.",
            )
        return size

    def total_bytes(self) -> int:
        """Return the bytes of all files together."""
        return sum(file.bytes for file in self.list(""))


@dataclass(frozen=True)
class SessionStore:
    """A store that reads the files of two: a session's temporary ones, and the warehouse's.

    Queries read it. Nothing writes to it: a statement writes to the store that owns its table.
    """

    base: Store
    temporary: Store

    @property
    def cache(self) -> PartCache:
        """The caches of the store of the warehouse."""
        return self.base.cache

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random access. Raises FileDoesntExist."""
        return self._owner(path).open_input(path)

    def write(self, path: str, write_to: Callable[[pa.NativeFile], None]) -> int:
        """Raise InternalError: a query writes no part."""
        raise InternalError(f"A query writes the file {path}.")

    def sync(self) -> None:
        """Do nothing: nothing was written."""
        return

    def delete(self, path: str) -> None:
        """Raise InternalError: a query deletes no part."""
        raise InternalError(f"A query deletes the file {path}.")

    def exists(self, path: str) -> bool:
        """Return whether one of the stores has the file."""
        return self._owner(path).exists(path)

    def size(self, path: str) -> int:
        """Return the file's bytes. Raises FileDoesntExist."""
        return self._owner(path).size(path)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield the files of both stores whose path begins with `prefix`."""
        yield from self.temporary.list(prefix)
        yield from self.base.list(prefix)

    def local_path(self, path: str) -> str | None:
        """Return the file's path in the file system; None for a temporary one."""
        return self._owner(path).local_path(path)

    @property
    def temporary_folder(self) -> str | None:
        """The temporary folder of the store of the warehouse; None if it has none."""
        return self.base.temporary_folder

    def _owner(self, path: str) -> Store:
        """Return the store that has the file."""
        return self.temporary if self.temporary.exists(path) else self.base
