"""PEP 249's cursor, and its Arrow half."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from operator import index
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import pyarrow as pa

from olapdb.dbapi.rows import UnfetchedRows
from olapdb.dbapi.types import display_size, precision_and_scale
from olapdb.errors import (
    BadArguments,
    Error,
    InterfaceError,
    InternalError,
    NotSupportedError,
    ProgrammingError,
    Warning,
)
from olapdb.functions.edges import python_values
from olapdb.result import QueryStatistics, Result
from olapdb.types import DataType, is_nullable
from olapdb.types.arrow import exported_schema

if TYPE_CHECKING:
    import pandas

    from olapdb.dbapi.connection import Connection
    from olapdb.session import Session

Parameters: TypeAlias = Sequence[object] | Mapping[str, object]
Row: TypeAlias = tuple[Any, ...]
Description: TypeAlias = tuple[str, DataType, int | None, None, int | None, int | None, bool]

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def without_frames(method: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Return the method, whose errors show the caller's line in a traceback, and no frame below the method.

    The frames of the engine say nothing about a statement; in a notebook forty of them stood above the message. An
    InternalError keeps them for its report, and so does every error where OLAPDB_TRACEBACK is `full`."""

    @wraps(method)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        try:
            return method(*args, **kwargs)
        except Error as error:
            if isinstance(error, InternalError) or os.environ.get("OLAPDB_TRACEBACK") == "full":
                raise
            raise error.with_traceback(None) from error.__cause__

    return called


class Cursor:
    """A cursor runs one statement at a time; its result is a snapshot, unaffected by later commits.

    Results are streamed: `fetchmany` and `fetch_record_batch` hold no more than they return.
    Threads must not share a cursor; create one for each. A fetch while another thread fetches raises
    ProgrammingError.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._result: Result | None = None
        self._rest = UnfetchedRows(Result())
        self._rowcount = -1
        self._closed = False

    # --- statements

    @without_frames
    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Run the statement, or several separated by `;`, of which the last one's result stays.

        Errors are PEP 249 classes of `olapdb.errors`; a statement that fails has changed nothing.
        """
        session = self._session()
        self._release()
        self._rowcount = -1
        result = session.execute(operation, parameters)
        self._take(result)
        return self

    @without_frames
    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Run the statement once for each set of parameters; `INSERT … VALUES (?, ?)` becomes one
        INSERT of all rows."""
        session = self._session()
        self._release()
        self._rowcount = -1
        self._take(session.execute_many(operation, seq_of_parameters))
        return self

    # --- rows

    @property
    def description(self) -> tuple[Description, ...] | None:
        """(name, type, display size, None, precision, scale, nullable) of each column; None if the
        statement returned no rows. The type is an `olapdb.types.DataType`, whose `str` is
        ClickHouse's name, and which equals STRING, NUMBER, DATETIME or BINARY."""
        if self._result is None or not self._result.has_columns:
            return None
        return tuple(
            (n, t, display_size(t), None, *precision_and_scale(t), is_nullable(t))
            for n, t in zip(self._result.names, self._result.types, strict=True)
        )

    @property
    def messages(self) -> list[tuple[type[Warning], str]]:
        """The warnings of the last statement, as (Warning, text): an optional extension of PEP
        249."""
        if self._result is None:
            return []
        return [(Warning, text) for text in self._result.statistics.warnings]

    @property
    def rowcount(self) -> int:
        """Rows written by INSERT or removed by DELETE; -1 if unknown. Stays after `close()`."""
        return self._rowcount

    @property
    def lastrowid(self) -> None:
        """Always None: tables have no row ids."""
        return None

    @property
    def query_id(self) -> str:
        """The id of the last statement, as in the system tables."""
        return "" if self._result is None else self._result.query_id

    @property
    def statistics(self) -> QueryStatistics:
        """The rows, parts and granules that the last statement has read so far."""
        return QueryStatistics() if self._result is None else self._result.statistics

    @property
    def totals(self) -> Row | None:
        """The row that WITH TOTALS adds, which is not among the rows to fetch; None without it."""
        if self._result is None or self._result.totals is None:
            return None
        columns, zone = self._result.totals.columns, self._result.zone
        pairs = zip(columns, self._result.types, strict=True)
        return tuple(python_values(column, data_type, zone)[0] for column, data_type in pairs)

    @without_frames
    def fetchone(self) -> Row | None:
        """Return the next row. None if there are no more."""
        return next(self._rows_expected(), None)

    @without_frames
    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows (default: `arraysize`); fewer at the end. Raises
        BadArguments for anything but an integer from 0 on."""
        given = self.arraysize if size is None else size
        count = index(given) if hasattr(given, "__index__") else -1
        if count < 0:
            raise BadArguments(f"fetchmany() takes a number of rows from 0 on, not {given!r}.")
        return self._rows_expected().take(min(count, sys.maxsize))

    @without_frames
    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
        return self._rows_expected().take()

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows_expected())

    def __next__(self) -> Row:
        return next(self._rows_expected())

    # --- Arrow

    @without_frames
    def fetch_arrow_table(self) -> pa.Table:
        """Return all remaining rows; an Enum is a string. Fields carry their ClickHouse type in the
        metadata."""
        result = self._result_expected()
        return pa.Table.from_batches(list(self._rest.rest()), schema=_arrow_schema(result))

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """Return the remaining rows as a stream."""
        result = self._result_expected()
        return pa.RecordBatchReader.from_batches(_arrow_schema(result), self._rest.rest())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the remaining rows for any reader of Arrow streams: `pa.table(cursor)`,
        `polars.DataFrame(cursor)`, `connection.insert("t", cursor)`."""
        return self.fetch_record_batch().__arrow_c_stream__(requested_schema)

    def fetch_df(self) -> pandas.DataFrame:
        """Return all remaining rows as a pandas frame (pandas must be installed)."""
        frame: pandas.DataFrame = self.fetch_arrow_table().to_pandas()
        return frame

    # --- text

    @without_frames
    def fetch_text(self, output_format: str = "") -> bytes:
        """Return all remaining rows in a format of ClickHouse (`CSVWithNames`, `Pretty`, …): the
        one that is given, else the statement's FORMAT, else TabSeparated.

        Raises UnknownFormat, and ProgrammingError for a statement that is no query."""
        return b"".join(self.stream_text(output_format))

    def stream_text(self, output_format: str = "") -> Iterator[bytes]:
        """Return what `fetch_text` does, piece by piece: `file.writelines(cursor.stream_text())`.

        Raises ProgrammingError."""
        result = self._result_expected()
        output = result.output
        if output is None:
            raise ProgrammingError("The last statement was no query: its rows have no format.")
        return output.write(result, self._rest.rest_as_stored(), output_format or output.format)

    # --- the rest of PEP 249

    def close(self) -> None:
        """Free the result; later calls raise InterfaceError. Idempotent."""
        self._release()
        self._closed = True

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Do nothing: sizes need not be known beforehand."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values are never truncated."""

    def nextset(self) -> None:
        """Raise NotSupportedError: a statement has one result set."""
        raise NotSupportedError("A statement has one result set; run statements one by one.")

    def __repr__(self) -> str:
        if self._closed:
            return "<olapdb.Cursor: closed>"
        if self._result is None or not self._result.has_columns:
            return "<olapdb.Cursor: no rows to fetch>"
        pairs = zip(self._result.names, self._result.types, strict=True)
        columns = ", ".join(f"{name} {data_type}" for name, data_type in pairs)
        return f"<olapdb.Cursor: {columns}; fetchall(), fetch_df() and fetch_arrow_table() give the rows>"

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _session(self) -> Session:
        """Return the connection's session. Raise InterfaceError if the cursor is closed."""
        if self._closed:
            raise InterfaceError("The cursor is closed; make another with connection.cursor().")
        return self.connection.session

    def _take(self, result: Result) -> None:
        """Make this result the current one."""
        self._result = result
        self._rowcount = result.affected_rows
        self._rest = UnfetchedRows(result)

    def _release(self) -> None:
        """Close the current result, if there is one."""
        if self._result is not None:
            self._result.close()
        self._result, self._rest = None, UnfetchedRows(Result())

    def _rows_expected(self) -> UnfetchedRows:
        """Return the rows not fetched yet. Raise ProgrammingError if the last statement returned
        none."""
        self._result_expected()
        return self._rest

    def _result_expected(self) -> Result:
        """Return the current result. Raise ProgrammingError if there is none or the last statement
        returned no columns."""
        self._session()
        if self._result is None:
            raise ProgrammingError("There is no result; call execute() first.")
        if not self._result.has_columns:
            raise ProgrammingError("The last statement returned no rows to fetch.")
        return self._result


def _arrow_schema(result: Result) -> pa.Schema:
    """Return the schema of a result's batches as users get them."""
    return exported_schema(result.names, result.types)
