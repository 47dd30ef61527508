"""Connections of dbt: each dbt thread has its own handle on a warehouse that the process shares."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import (
    AdapterResponse,
    Connection,
    ConnectionState,
    LazyHandle,
)
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

import olapdb
from olapdb.errors import SyntaxError
from olapdb.sql.parser import parse

from .credentials import MEMORY, OlapdbCredentials
from .error_text import with_line

logger = AdapterLogger("olapdb")
SETTINGS = {"insert_null_as_default": 0, "cast_keep_nullable": 1, "allow_python_functions": 1}
"""Settings of every session, unless the profile says otherwise. A NULL that a model selects into a
column that is not Nullable is an error; ClickHouse's default stores 0 or ''. dbt's macros cast columns
with NULLs to plain type names, and expect NULL; views keep this setting of their CREATE. Functions in
Python run: dbt creates those that its models call."""

RETRYABLE = (
    olapdb.errors.CommitConflict,
    olapdb.errors.CatalogBusy,
    olapdb.errors.CatalogChanged,
    olapdb.errors.Aborted,
)
"""Errors of a statement that changed nothing and may succeed when it is run again."""


def is_single_statement(sql: str) -> bool:
    """Return whether the text is one statement; False if it does not parse."""
    try:
        return len(parse(sql)) == 1
    except olapdb.Error:
        return False


class Handle:
    """The connection object that dbt holds: a PEP 249 connection whose `commit` and `rollback` do
    nothing.

    A warehouse in memory lives as long as the process, so closing a shared handle closes nothing.
    """

    def __init__(self, connection: olapdb.Connection, *, shared: bool) -> None:
        self.connection = connection
        self._shared = shared
        self._closed = False

    def cursor(self) -> olapdb.Cursor:
        """Return a new PEP 249 cursor."""
        return self.connection.cursor()

    def commit(self) -> None:
        """Do nothing: each statement is one atomic commit."""

    def rollback(self) -> None:
        """Do nothing: a failed statement has changed nothing."""

    def newest_commit(self) -> int:
        """Return the number of the newest commit of the warehouse, by whatever process."""
        return self.connection.database.services.catalog.snapshot().number

    def objects(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], object]:
        """Return the tables and views of the newest commit with these names, given as (database, name).

        The object of a table is another one after each change of the table."""
        snapshot = self.connection.database.services.catalog.snapshot()
        items = ((name, snapshot.find(*name)) for name in names)
        return {name: item for name, item in items if item is not None}

    def cancel(self) -> None:
        """End the statement that runs on this connection, from another thread."""
        self.connection.cancel()

    def close(self) -> None:
        """Close the connection, unless it is shared."""
        self._closed = True
        if not self._shared:
            self.connection.close()

    @property
    def closed(self) -> bool:
        """Return whether dbt has closed this handle."""
        return self._closed


class OpenWarehouses:
    """The warehouses that this process has open for dbt, by location.

    dbt closes a thread's connection after every node. One connection a warehouse stays open until
    dbt has finished, so that the warehouse is not closed and reopened each time.
    """

    def __init__(self) -> None:
        self._kept_open: dict[str, olapdb.Connection] = {}
        self._lock = threading.Lock()

    def connect(self, credentials: OlapdbCredentials) -> Handle:
        """Return a new handle. Raises `olapdb.Error` if the warehouse cannot be opened."""
        location = credentials.location
        with self._lock:
            connection = self._kept_open.get(location)
            if connection is None or connection.closed:
                connection = self._kept_open[location] = self._open(credentials)
        if location == MEMORY:
            return Handle(connection, shared=True)
        return Handle(self._open(credentials), shared=False)

    def release(self) -> None:
        """Close the connections that keep warehouses in folders open."""
        with self._lock:
            for location in [key for key in self._kept_open if key != MEMORY]:
                self._kept_open.pop(location).close()

    @staticmethod
    def _open(credentials: OlapdbCredentials) -> olapdb.Connection:
        """Open the warehouse of a profile, in memory if it has no path."""
        path = None if credentials.location == MEMORY else credentials.location
        # Not credentials.schema: dbt creates it only after it has connected.
        settings = {**SETTINGS, **credentials.settings}
        return olapdb.connect(path, settings=settings, read_only=credentials.read_only)


class OlapdbConnectionManager(SQLConnectionManager):
    """The connection manager of dbt. Each statement commits by itself, so there are no transactions."""

    TYPE = "olapdb"
    warehouses = OpenWarehouses()

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open a handle on the warehouse for dbt. Raises FailedToConnectError."""
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            connection.handle = cls.warehouses.connect(connection.credentials)
        except olapdb.Error as error:
            connection.handle = None
            connection.state = ConnectionState.FAIL
            raise FailedToConnectError(str(error)) from error
        connection.state = ConnectionState.OPEN
        return connection

    def get_thread_connection(self) -> Connection:
        """Return the connection of this thread, open or to be opened.

        With --single-threaded dbt closes it when it has created a schema, and goes on with it."""
        connection: Connection = super().get_thread_connection()
        if connection.state == ConnectionState.CLOSED:
            connection.handle = LazyHandle(self.open)
            connection.state = ConnectionState.INIT
        return connection

    def cancel(self, connection: Connection) -> None:
        """End the statement that runs on the connection."""
        if connection.handle is not None:
            connection.handle.cancel()

    def add_query(
        self,
        sql: str,
        auto_begin: bool = True,
        bindings: Any | None = None,
        abridge_sql_log: bool = False,
        retryable_exceptions: tuple[type[Exception], ...] = (),
        retry_limit: int = 1,
    ) -> tuple[Connection, Any]:
        """Run a statement; run it again if it lost a race, up to `retries` of the profile times.

        A script of several statements is not repeated: its first ones have committed."""
        retries = self.profile.credentials.retries
        if retries and not retryable_exceptions and is_single_statement(sql):
            retryable_exceptions, retry_limit = RETRYABLE, retries + 1
        result: tuple[Connection, Any] = super().add_query(
            sql,
            auto_begin,
            bindings,
            abridge_sql_log,
            retryable_exceptions=retryable_exceptions,
            retry_limit=retry_limit,
        )
        return result

    def cleanup_all(self) -> None:
        """Close all connections, and those that keep warehouses open."""
        super().cleanup_all()
        self.warehouses.release()

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Turn errors of the engine into DbtDatabaseError with the same text, code and name included."""
        try:
            yield
        except olapdb.Error as error:
            logger.debug(f"{type(error).__name__} while running: {sql}")
            prefix = "Syntax error. " if isinstance(error, SyntaxError) else ""
            text = with_line(error, sql, self._lines_above(sql))
            raise DbtDatabaseError(f"{prefix}{text}") from error
        except DbtRuntimeError:
            raise

    def _lines_above(self, sql: str) -> int:
        """Return the number of lines of dbt's query comment above the statement; 0 if it is behind, or there is none."""
        comment = self.query_header.comment if self.query_header is not None else None
        if comment is None or not comment.query_comment or comment.append:
            return 0
        above = comment.add("")
        return above.count("\n") if sql.startswith(above) else 0

    @classmethod
    def get_response(cls, cursor: olapdb.Cursor) -> AdapterResponse:
        """Return the response that dbt shows for a statement: rows affected and query id. Log the
        statement's warnings."""
        for _, warning in cursor.messages:
            logger.warning(warning)
        rows = cursor.rowcount
        message = "OK" if rows < 0 else f"OK {rows}"
        return AdapterResponse(
            _message=message,
            rows_affected=rows if rows >= 0 else None,
            query_id=cursor.query_id or None,
        )

    @classmethod
    def data_type_code_to_name(cls, type_code: object) -> str:
        """Return ClickHouse's name of a type in a cursor's `description`."""
        return str(type_code)

    def begin(self) -> Connection:
        """Mark the connection as in a transaction, for dbt.

        The engine has no transaction of several statements."""
        connection = self.get_thread_connection()
        connection.transaction_open = True
        return connection

    def commit(self) -> Connection:
        """Mark the connection as out of a transaction; every statement has committed already."""
        connection = self.get_thread_connection()
        connection.transaction_open = False
        return connection

    def add_begin_query(self) -> None:
        """Do nothing; see `begin`."""

    def add_commit_query(self) -> None:
        """Do nothing; see `commit`."""

    def run_system(
        self, sql: str, progress: Callable[[Any], None] | None = None
    ) -> tuple[AdapterResponse, list[dict[str, Any]]]:
        """Run a SYSTEM … VIEW statement and return its rows as dictionaries. Log its warnings.

        Calls `progress` with each event of the job."""
        handle: Handle = self.get_thread_connection().handle
        logger.debug(f"Running: {sql}")
        with self.exception_handler(sql):
            result = handle.connection.system(sql, progress)
            rows: list[dict[str, Any]] = result.read_all().to_pylist()
        for warning in result.statistics.warnings:
            logger.warning(warning)
        response = AdapterResponse(_message=f"OK {len(rows)}", query_id=result.query_id or None)
        return response, rows
