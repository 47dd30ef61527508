"""PEP 249's connection."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from olapdb import errors
from olapdb.dbapi.cursor import Cursor, Parameters, without_frames
from olapdb.errors import InterfaceError, NotSupportedError
from olapdb.lazy import without_collections

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
    uncompressed_cache_size: int | None = None,
) -> Connection:
    """Open the warehouse folder `path` (created if missing), or one in memory.

    All connections of a process to one folder share its caches and background merges; other
    processes may have it open too.  `settings` hold for every statement of the connection. With
    durability "full" a committed statement survives a crash of the machine; with "process" only a
    crash of the process, and no commit waits for the disk.  All connections of a process to one
    folder must agree on it, else InterfaceError.  `uncompressed_cache_size` sets the bytes of decoded
    columns that this process keeps, for all its warehouses: an eighth of the machine's memory until a
    connection says otherwise, 0 to keep none.  Raises CannotOpenWarehouse for a folder that is
    no warehouse of a known version.
    """
    with without_collections():  # loads the engine, which `import olapdb` does not
        from olapdb.database import Database, set_uncompressed_cache_size

    location = MEMORY if path is None else os.fspath(path)
    if uncompressed_cache_size is not None:
        set_uncompressed_cache_size(uncompressed_cache_size)
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
    def autocommit(self) -> bool:
        """Always True: each statement is one commit. Setting it to False raises NotSupportedError."""
        return True

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if not value:
            raise NotSupportedError("Each statement is one commit; there is no larger transaction.")

    @property
    def session(self) -> Session:
        """The engine's session. Raises InterfaceError after `close`."""
        if self._database is None:
            raise InterfaceError("The connection is closed; open another with olapdb.connect().")
        return self._session

    @property
    def database(self) -> Database:
        """The open warehouse, which other connections of this process may share. Raises
        InterfaceError after `close`."""
        if self._database is None:
            raise InterfaceError("The connection is closed; open another with olapdb.connect().")
        return self._database

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self.session  # noqa: B018  (raises where the connection is closed)
        return Cursor(self)

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Run the statement on a new cursor; return the cursor."""
        return self.cursor().execute(operation, parameters)

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Run the statement once for each set of parameters, on a new cursor; return the cursor."""
        return self.cursor().executemany(operation, seq_of_parameters)

    @without_frames
    def insert(
        self,
        table: str,
        data: Any,
        *,
        columns: Sequence[str] | None = None,
        token: str | None = None,
        offsets: Mapping[str, Sequence[int]] | None = None,
        replace: str = "",
    ) -> InsertedRows:
        """Insert Arrow data; return the number of rows.

        `data` is a table, batch, reader, anything with `__arrow_c_stream__`, a pandas frame, or a
        mapping of column name to values. Columns match by name; missing ones take their defaults,
        unknown ones are an error.

        One atomic commit with every view.  A second INSERT with the same `token` does nothing.
        `offsets` are the rows' positions in their source streams, as `{"orders-0": (4711, 4730)}`:
        first included, second excluded.  They are stored in the same commit
        (`system.source_offsets`), and the next INSERT must begin where they end: one that ends
        there or before was delivered already and does nothing; any other raises OffsetHole.
        `replace` is a REPLACE clause, `"REPLACE USING (id)"` or `"REPLACE WHERE day = today()"`:
        rows that the new ones replace leave in the same commit.

        The returned number has attributes: `duplicate` (token or offsets were known),
        `duplicates_dropped` (rows that `deduplicate_by` rejected) and `commit`.
        """
        return self.session.insert(
            table, data, columns=columns, token=token, offsets=offsets, replace=replace
        )

    @property
    def views(self) -> Views:
        """The materialized views: `connection.views["daily_mv"].backfill()`."""
        from olapdb.dbapi.views import Views  # needs the engine

        return Views(self.session)

    @without_frames
    def describe(self, query: str) -> tuple[tuple[str, DataType], ...]:
        """Return the names and types of the query's columns, without running it."""
        return self.session.describe(query)

    def stored_query(self, query: str) -> str:
        """Return the query as a view stores it: full table names, explicit columns, no SETTINGS; or
        CREATE MATERIALIZED VIEW … REFRESH as SHOW CREATE would show it."""
        return self.session.stored_query(query)

    @without_frames
    def system(self, statement: str, progress: Callable[[Any], None] | None = None) -> Result:
        """Run a slow statement (SYSTEM BACKFILL, REPLAY, RECONCILE VIEW); call `progress` with each
        event."""
        return self.session.execute(statement, None, progress=progress)

    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Mapping[str, str],
        returns: str,
        *,
        vectorized: bool = True,
        aggregate: bool = False,
        deterministic: bool = True,
    ) -> None:
        """Make a Python callable a function of this connection's queries.

            connection.create_function("double", lambda x: pc.multiply(x, 2), {"x": "Int64"}, "Int64")
            connection.execute("SELECT double(number) FROM numbers(3)")

        `arguments` are the types of the parameters by name; values are cast to them. The callable
        gets pyarrow Arrays of equal length, of any length, and returns as many values, as an Array,
        a NumPy array or a list. With `vectorized=False` it gets the values of one row and returns
        one. An `aggregate` is a class with `accumulate(value)` and `finish()`; it sees a group's
        values in memory at once. NULL is None; NULL for a type that is not Nullable is an error.

        The function is known to this connection alone, and is not stored: definitions of tables and
        views cannot use it. Raises FunctionAlreadyExists for a name of the engine, UnknownType,
        BadArguments."""
        from olapdb.runtime.python_code import PythonOptions  # needs the engine

        options = PythonOptions(vectorized, aggregate, deterministic)
        self.session.create_function(name, function, arguments, returns, options)

    def commit(self) -> None:
        """Do nothing: a statement that returned is committed."""
        self.session  # noqa: B018

    def rollback(self) -> None:
        """Do nothing: no statement is ever pending."""
        self.session  # noqa: B018

    def cancel(self) -> None:
        """Cancel the statements that run on this connection; they raise QUERY_WAS_CANCELLED."""
        self.session.cancel()

    def close(self) -> None:
        """Close the connection and drop its temporary tables. Idempotent. The last one of a process
        to a folder closes the warehouse."""
        if self._database is None:
            return
        try:
            while self._before_close:
                self._before_close.pop()()
            self._session.close()
        finally:
            opened, self._database = self._database, None
            opened.release()

    def before_close(self, release: Callable[[], None]) -> None:
        """Register a callback that `close` calls first, to release resources that live as long as
        the connection."""
        self._before_close.append(release)

    @property
    def closed(self) -> bool:
        """Return whether the connection was closed."""
        return self._database is None

    def __repr__(self) -> str:
        if self._database is None:
            return "<olapdb.Connection: closed>"
        mode = ", read_only" if self._database.read_only else ""
        return f"<olapdb.Connection: {self._database.location}, database {self._session.database}{mode}>"

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
