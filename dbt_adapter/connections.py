"""Connections: every dbt thread has a handle of its own on one warehouse of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

import olapdb

from .credentials import MEMORY, OlapdbCredentials

logger = AdapterLogger("olapdb")


class Handle:
    """What dbt holds as a connection: a PEP 249 connection, `begin` and `commit` without meaning.

    A warehouse in memory lives as long as the process, so closing a handle on it closes nothing.
    """

    def __init__(self, connection: olapdb.Connection, *, shared: bool) -> None:
        self.connection = connection
        self._shared = shared
        self._closed = False

    def cursor(self) -> olapdb.Cursor:
        return self.connection.cursor()

    def commit(self) -> None:
        """Nothing to do: each statement is one atomic commit."""

    def rollback(self) -> None:
        """Nothing to do: a statement that failed has changed nothing."""

    def cancel(self) -> None:
        self.connection.cancel()

    def close(self) -> None:
        self._closed = True
        if not self._shared:
            self.connection.close()

    @property
    def closed(self) -> bool:
        return self._closed


class Warehouses:
    """The warehouses that this process has open for dbt, by location.

    dbt closes a thread's connection after every node.  One more connection is kept until dbt has
    finished, so that the warehouse is not closed and opened again each time.
    """

    def __init__(self) -> None:
        self._kept: dict[str, olapdb.Connection] = {}
        self._lock = threading.Lock()

    def connect(self, credentials: OlapdbCredentials) -> Handle:
        """A new handle. `olapdb.Error` where the warehouse cannot be opened."""
        location = credentials.location
        with self._lock:
            kept = self._kept.get(location)
            if kept is None or kept.closed:
                kept = self._kept[location] = self._open(credentials)
        if location == MEMORY:
            return Handle(kept, shared=True)
        return Handle(self._open(credentials), shared=False)

    def release(self) -> None:
        """Closes what is kept of warehouses in folders."""
        with self._lock:
            for location in [known for known in self._kept if known != MEMORY]:
                self._kept.pop(location).close()

    @staticmethod
    def _open(credentials: OlapdbCredentials) -> olapdb.Connection:
        path = None if credentials.location == MEMORY else credentials.location
        # not credentials.schema: dbt creates it, after it has connected
        return olapdb.connect(path, settings=credentials.settings)


class OlapdbConnectionManager(SQLConnectionManager):
    """dbt's connections. Statements commit by themselves, so transactions mean nothing here."""

    TYPE = "olapdb"
    warehouses = Warehouses()

    @classmethod
    def open(cls, connection: Connection) -> Connection:
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

    def cancel(self, connection: Connection) -> None:
        if connection.handle is not None:
            connection.handle.cancel()

    def cleanup_all(self) -> None:
        super().cleanup_all()
        self.warehouses.release()

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Errors of the engine keep their text, with code and name, as dbt's DbtDatabaseError."""
        try:
            yield
        except olapdb.Error as error:
            logger.debug(f"{type(error).__name__} while running: {sql}")
            raise DbtDatabaseError(str(error)) from error
        except DbtRuntimeError:
            raise

    @classmethod
    def get_response(cls, cursor: olapdb.Cursor) -> AdapterResponse:
        rows = cursor.rowcount
        message = "OK" if rows < 0 else f"OK {rows}"
        return AdapterResponse(
            _message=message,
            rows_affected=rows if rows >= 0 else None,
            query_id=cursor.query_id or None,
        )

    @classmethod
    def data_type_code_to_name(cls, type_code: object) -> str:
        """`description` has the types themselves; their text is ClickHouse's name."""
        return str(type_code)

    def begin(self) -> Connection:
        """Nothing begins: transactions of several statements do not exist, nor does dbt need them."""
        connection = self.get_thread_connection()
        connection.transaction_open = True
        return connection

    def commit(self) -> Connection:
        """Nothing is left to commit, whether or not something began."""
        connection = self.get_thread_connection()
        connection.transaction_open = False
        return connection

    def add_begin_query(self) -> None:
        """See `begin`."""

    def add_commit_query(self) -> None:
        """See `commit`."""

    def run_slow(
        self, sql: str, progress: Callable[[Any], None] | None = None
    ) -> tuple[AdapterResponse, list[dict[str, Any]]]:
        """A SYSTEM … VIEW statement: its rows as dictionaries; `progress` hears of each event."""
        handle: Handle = self.get_thread_connection().handle
        logger.debug(f"Running: {sql}")
        with self.exception_handler(sql):
            result = handle.connection.system(sql, progress)
            rows: list[dict[str, Any]] = result.read_all().to_pylist()
        response = AdapterResponse(_message=f"OK {len(rows)}", query_id=result.query_id or None)
        return response, rows
