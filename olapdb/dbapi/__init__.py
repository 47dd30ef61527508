"""PEP 249 for olapdb, with Arrow results.

    connection = olapdb.connect("warehouse/")
    with connection.cursor() as cursor:
        cursor.execute("SELECT origin, count() FROM flights WHERE carrier = ? GROUP BY 1", ["UA"])
        table = cursor.fetch_arrow_table()

Parameters are `?` (a sequence) or `:name`, `%(name)s`, `{name:Type}` (a mapping).  There are no
transactions: every statement is one atomic commit; `commit()` does nothing, `rollback()` neither.
"""

from __future__ import annotations

from olapdb.dbapi.connection import Connection, connect
from olapdb.dbapi.cursor import Cursor
from olapdb.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from olapdb.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
