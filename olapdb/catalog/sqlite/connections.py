"""A process's connections to the catalog's file; handles forks and read-only folders."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

from olapdb.catalog.sqlite.errors import catalog_error, primary_code
from olapdb.catalog.sqlite.tables import TABLES_OF_FORMAT_2, create_statements
from olapdb.errors import CannotOpenWarehouse, CatalogChanged, InterfaceError, system_error
from olapdb.model.failpoint import Durability

MEMORY = ":memory:"
_IDLE_MAX = 16
_OPENING_SECONDS_MAX = 2.0
_OPENING_PAUSE_SECONDS = 0.01
_CACHE_KIB = 16_384
_CHECKPOINT_PAGES = 4_000
_JOURNAL_BYTES_MAX = 64 << 20


class _File(NamedTuple):
    """The state of the catalog's file: whether a log is beside it, and when it changed."""

    logged: bool
    modified_nanoseconds: int
    bytes: int


class Connections:
    """A pool of reading connections and one for writing; a single one for ":memory:".

    A fork is noticed at the next use: the child opens its own connections.
    """

    def __init__(self, path: str, durability: Durability, read_only: bool) -> None:
        self._path = path
        self._durability = durability
        self._read_only = read_only
        self._closed = False
        # Connections inherited by a fork: SQLite forbids using or closing them.
        self._inherited: list[sqlite3.Connection] = []
        self._reset()

    @property
    def in_memory(self) -> bool:
        """Return whether the catalog is in memory, so that all share one connection."""
        return self._path == MEMORY

    def _reset(self) -> None:
        """Start with an empty pool that belongs to the calling process, after opening or a fork."""
        self._process_id = os.getpid()
        self._idle: list[sqlite3.Connection] = []
        self._mutex = threading.Lock()
        self._shared = threading.RLock()
        self._writer: sqlite3.Connection | None = None

    def forked(self) -> bool:
        """Return whether this is the first call in a child of a fork. If so, start with an empty
        pool; the parent's connections stay open and untouched."""
        if self._process_id == os.getpid():
            return False
        if self.in_memory:
            # The child has a copy of the memory; only a lock may be held by a thread it lacks.
            self._process_id, self._shared = os.getpid(), threading.RLock()
            return True
        self._inherited.extend(self._idle)
        if self._writer is not None:
            self._inherited.append(self._writer)
        self._reset()
        return True

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for a few SELECTs; errors of the driver become ours."""
        if self.in_memory:
            with self._shared:
                yield self.writer()
            return
        if self._read_only:
            with self._reading_only() as connection:
                yield connection
            return
        connection = self._borrow()
        try:
            yield connection
        except sqlite3.Error as error:
            connection.close()
            raise catalog_error(error, self._path) from error
        except BaseException:
            _rollback(connection)
            self._give_back(connection)
            raise
        else:
            self._give_back(connection)

    @contextmanager
    def _reading_only(self) -> Iterator[sqlite3.Connection]:
        """Yield a new connection for one read, because writers may come and go.

        Without a log beside the file it reads without locks: if a writer changed the file
        meanwhile, it raises CatalogChanged, whatever the read returned.
        """
        try:
            connection, file = self._open_read_only()
        except sqlite3.Error as error:
            raise catalog_error(error, self._path) from error
        try:
            yield connection
        except sqlite3.Error as error:
            if self._met_writer(error, file):
                raise self._changed_by_writer() from error
            raise catalog_error(error, self._path) from error
        finally:
            connection.close()
        if self._changed_unlogged(file):
            raise self._changed_by_writer()

    def _met_writer(self, error: sqlite3.Error, file: _File) -> bool:
        """Return whether a reading connection got the error because a writer opened, closed or
        changed the catalog at that moment.

        While the log comes or goes, SQLite misses its shared memory (CANTOPEN) or would have to
        write it anew (READONLY). A file that is read without locks and changes may look damaged.
        """
        transient = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        return primary_code(error) in transient or self._changed_unlogged(file)

    def _changed_unlogged(self, file: _File) -> bool:
        """Return whether the file, which had no log and is read without locks, has changed."""
        return not file.logged and self._file_state() != file

    def _changed_by_writer(self) -> CatalogChanged:
        """Return the error of a read during which a writer changed, opened or closed the file."""
        return CatalogChanged(
            f"A writer changed the catalog {self._path} while it was being read.",
            hint="Run it again.",
        )

    def _file_state(self) -> _File:
        """Return the present state of the catalog's file. An empty log counts as none."""
        try:
            # An empty log counts as none: SQLite creates one if a reader finds it just removed.
            logged = os.path.getsize(f"{self._path}-wal") > 0
        except FileNotFoundError:
            logged = False
        except OSError as error:
            raise system_error(error, self._path) from error
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise system_error(error, self._path) from error
        return _File(logged, status.st_mtime_ns, status.st_size)

    @contextmanager
    def consistent(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection as `reading` does, inside a transaction: all SELECTs see one state."""
        with self.reading() as connection:
            if connection.in_transaction:  # in memory, inside a commit
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                _rollback(connection)  # nothing was written; it only ends the read

    @contextmanager
    def exclusive(self) -> Iterator[sqlite3.Connection]:
        """Yield the writing connection to the holder of the turn."""
        with self._shared:
            yield self.writer()

    def writer(self) -> sqlite3.Connection:
        """Return the writing connection, opened at first use. Raises InterfaceError."""
        if self._closed:
            raise InterfaceError("The warehouse is closed.", hint="Connect again.")
        if self._writer is None:
            self._writer = self.open()
        return self._writer

    def discard_writer(self) -> None:
        """Close the write connection after an error that may have left it in an unknown state."""
        if self._writer is not None and not self.in_memory:
            self._writer.close()
            self._writer = None

    def open(self) -> sqlite3.Connection:
        """Open a connection with our settings; errors of the driver become ours."""
        try:
            return self._open()
        except sqlite3.Error as error:
            raise catalog_error(error, self._path) from error

    def close(self) -> None:
        """Close all connections of this process."""
        self._closed = True
        if self._process_id != os.getpid():
            return
        with self._mutex:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self) -> sqlite3.Connection:
        """Open a new SQLite connection with our PRAGMAs, or a read-only one if the warehouse is.
        Errors of the driver are raised unchanged."""
        if self.in_memory:
            return sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
        # auto_vacuum before the log: it only takes effect on a file without any page.
        if self._read_only:
            return self._open_read_only()[0]
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        synchronous = "FULL" if self._durability == "full" else "OFF"
        connection.execute("PRAGMA busy_timeout = 30000")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES_MAX}")
        return connection

    def _open_read_only(self) -> tuple[sqlite3.Connection, _File]:
        """Open a connection that writes nothing, not even shared memory beside the file; return it
        with the file's state.

        Without a log the file is complete and is read without locks.  While a writer comes or goes,
        the log may exist without its shared memory or the reverse, and SQLite cannot open the file;
        so it retries.

        Raises CannotOpenWarehouse.
        """
        until = time.monotonic() + _OPENING_SECONDS_MAX
        while True:
            file = self._file_state()
            connection = self._connect_read_only(file)
            try:
                _add_missing_tables(connection)
                return connection, file
            except sqlite3.Error as error:
                connection.close()
                if not self._met_writer(error, file):
                    raise
                if time.monotonic() > until:
                    raise CannotOpenWarehouse(
                        f"The catalog {self._path} has a log that only a writer can bring in.",
                        hint="Connect once without read_only=True, then read again.",
                    ) from error
            time.sleep(_OPENING_PAUSE_SECONDS)

    def _connect_read_only(self, file: _File) -> sqlite3.Connection:
        """Open the file for reading only: through its log if it has one, else as immutable, so that
        SQLite creates no files beside it."""
        options = "mode=ro&readonly_shm=1" if file.logged else "mode=ro&immutable=1"
        return sqlite3.connect(
            f"file:{quote(os.path.abspath(self._path))}?{options}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def _borrow(self) -> sqlite3.Connection:
        """Return an idle connection, or a new one. Raise InterfaceError if the warehouse is
        closed."""
        if self._closed:
            raise InterfaceError("The warehouse is closed.", hint="Connect again.")
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        return self.open()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        """Keep the connection for the next reader; close it if the pool is full or closed."""
        with self._mutex:
            if len(self._idle) < _IDLE_MAX and not self._closed:
                self._idle.append(connection)
                return
        connection.close()


def _add_missing_tables(connection: sqlite3.Connection) -> None:
    """Give a catalog of format 1, which is read without migration, empty temporary tables for those
    that came later. They live in the connection's memory: nothing is written to the warehouse."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}
    missing = [table for table in TABLES_OF_FORMAT_2 if table not in names]
    if "blocks" in names and missing:
        connection.execute("PRAGMA temp_store = MEMORY")
        for text in create_statements(missing):
            connection.execute(text.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))


def _rollback(connection: sqlite3.Connection) -> None:
    """Roll back the open transaction, if there is one."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
