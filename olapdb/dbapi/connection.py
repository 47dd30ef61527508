"""PEP 249's connection."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from olapdb import errors
from olapdb.dbapi.cursor import Cursor, Parameters
from olapdb.errors import InterfaceError

if TYPE_CHECKING:
    from olapdb.database import Database
    from olapdb.dbapi.views import Views
    from olapdb.model.failpoint import Durability
    from olapdb.result import InsertedRows, Result
    from olapdb.session import Session
    from olapdb.types import DataType

MEMORY = ":memory:"


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    database: str = "default",
    settings: Mapping[str, object] | None = None,
    read_only: bool = False,
    durability: Durability = "full",
) -> Connection:
    """Opens the warehouse folder `path` (made where it does not exist), or one in memory.

    All connections of a process to one folder share its caches and background merges; other
    processes may have it open too.  `settings` hold for every statement of the connection.
    With durability "full" what was acknowledged survives a crash of the machine; with "process" it
    survives one of the process only, and nothing waits for the disk.  All connections of a process
    to one folder agree on it, else InterfaceError.  Raises CannotOpenWarehouse where the folder is no warehouse of a version known here.
    """
    from olapdb.database import Database  # loads the engine: 2 s that `import olapdb` saves

    location = MEMORY if path is None else os.fspath(path)
    opened = Database.open(location, read_only=read_only, durability=durability)
    try:
        return Connection(opened, opened.session(database, settings or {}))
    except BaseException:
        opened.release()
        raise


class Connection:
    """A session on a warehouse. Threads may share it; each statement is one atomic commit."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError
    DataError = errors.DataError

    def __init__(self, database: Database, session: Session) -> None:
        self._database: Database | None = database
        self._before_close: list[Callable[[], None]] = []
        self._session = session

    @property
    def session(self) -> Session:
        """The engine's side of the connection. InterfaceError once it is closed."""
        if self._database is None:
            raise InterfaceError("The connection is closed; open another with olapdb.connect().")
        return self._session

    @property
    def database(self) -> Database:
        """The open warehouse, which other connections of this process may share."""
        if self._database is None:
            raise InterfaceError("The connection is closed; open another with olapdb.connect().")
        return self._database

    def cursor(self) -> Cursor:
        self.session  # noqa: B018  (raises where the connection is closed)
        return Cursor(self)

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """A new cursor on which the statement has been run."""
        return self.cursor().execute(operation, parameters)

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Cursor:
        return self.cursor().executemany(operation, seq_of_parameters)

    def insert(
        self,
        table: str,
        data: Any,
        *,
        columns: Sequence[str] | None = None,
        token: str | None = None,
        offsets: Mapping[str, Sequence[int]] | None = None,
    ) -> InsertedRows:
        """Inserts Arrow data: a table, batch, reader, anything with `__arrow_c_stream__`, a pandas
        frame, or a mapping of column name to values. Columns match by name; missing ones take
        their defaults, unknown ones are an error. Returns the number of rows.

        One atomic commit with every view.  A second INSERT with the same `token` does nothing.
        `offsets` say where the rows lie in the streams that they come from, as
        `{"orders-0": (4711, 4730)}`: from the first, up to, without, the second.  They are stored in
        the same commit (`system.source_offsets`), and the next INSERT has to begin where they end:
        one that ends there, or before, came already and does nothing; any other raises OffsetHole.

        The number that is returned has attributes: `duplicate` (token or offsets were known),
        `duplicates_dropped` (rows that `deduplicate_by` kept out) and `commit`.
        """
        return self.session.insert(table, data, columns=columns, token=token, offsets=offsets)

    @property
    def views(self) -> Views:
        """The materialized views: `connection.views["daily_mv"].backfill()`."""
        from olapdb.dbapi.views import Views  # needs the engine

        return Views(self.session)

    def describe(self, query: str) -> tuple[tuple[str, DataType], ...]:
        """Names and types of the query's columns, without running it."""
        return self.session.describe(query)

    def system(self, statement: str, progress: Callable[[Any], None] | None = None) -> Result:
        """Runs a slow statement (SYSTEM BACKFILL, REPLAY, RECONCILE VIEW), calling `progress` with
        each event as it happens."""
        return self.session.execute(statement, None, progress=progress)

    def commit(self) -> None:
        """Does nothing: a statement that returned is committed."""
        self.session  # noqa: B018

    def rollback(self) -> None:
        """Does nothing: there is never anything to roll back."""
        self.session  # noqa: B018

    def cancel(self) -> None:
        """Ends the statements that run on this connection, with QUERY_WAS_CANCELLED."""
        self.session.cancel()

    def close(self) -> None:
        """Idempotent. The last connection of a process to a folder closes the warehouse."""
        if self._database is None:
            return
        try:
            while self._before_close:
                self._before_close.pop()()
        finally:
            opened, self._database = self._database, None
            opened.release()

    def before_close(self, release: Callable[[], None]) -> None:
        """Have `close` call `release` first: for what is kept as long as the connection is open."""
        self._before_close.append(release)

    @property
    def closed(self) -> bool:
        return self._database is None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
