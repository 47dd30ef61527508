"""The result of a statement: names, types and Arrow batches, and its statistics.

The batches are computed while they are read.  Column names are the user's and may repeat, so no
column is looked up by name here.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property

import pyarrow as pa

from olapdb.errors import InterfaceError, foreign_error
from olapdb.records import dataclass
from olapdb.types import DataType
from olapdb.types.arrow import arrow_schema
from olapdb.types.arrow_values import array_of
from olapdb.types.python_values import python_values


@dataclass
class QueryStatistics:
    """Counters of one query, which several threads increment. Parts and granules are summed over
    the query's tables, before (`total`) and after pruning (`read`)."""

    rows_read: int = 0
    bytes_read: int = 0
    parts_total: int = 0
    parts_read: int = 0
    granules_total: int = 0
    granules_read: int = 0
    rows_written: int = 0
    duplicates_dropped: int = 0
    """Rows that `deduplicate_by` rejected."""
    duplicate_inserts: int = 0
    """INSERTs that did nothing, because their token or source offsets were known."""
    elapsed_seconds: float = 0.0
    memory_peak_bytes: int = 0
    spilled_bytes: int = 0
    """Bytes that operators wrote to temporary files, as compressed on disk."""
    spilled_uncompressed_bytes: int = 0
    """The size in memory of what they wrote."""
    temporary_files: int = 0
    """Temporary files that were made."""
    open_temporary_files: Counter[str] = field(default_factory=Counter)
    """The number of open temporary files, by operation: Sort, Aggregation, Join, Distinct."""
    rows_before_limit: int | None = None
    """Rows that the outermost LIMIT was given, where the FORMAT says it; None without a LIMIT."""
    warnings: list[str] = field(default_factory=list)
    """What the statement did although it is questionable, such as a view beyond a guardrail."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add_read(self, rows: int, read_bytes: int) -> None:
        """Count rows and bytes that were read."""
        with self._lock:
            self.rows_read += rows
            self.bytes_read += read_bytes

    def count_before_limit(self, rows: int) -> None:
        """Count rows that a LIMIT was given."""
        with self._lock:
            self.rows_before_limit = (self.rows_before_limit or 0) + rows

    def add_spilled(self, disk_bytes: int, memory_bytes: int) -> None:
        """Count bytes written to a temporary file."""
        with self._lock:
            self.spilled_bytes += disk_bytes
            self.spilled_uncompressed_bytes += memory_bytes

    def add_temporary_file(self, purpose: str) -> None:
        """Count a temporary file that was opened."""
        with self._lock:
            self.temporary_files += 1
            self.open_temporary_files[purpose] += 1

    def remove_temporary_file(self, purpose: str) -> None:
        """Uncount an open temporary file."""
        with self._lock:
            self.open_temporary_files[purpose] -= 1

    def add_selection(
        self, parts_total: int, parts_read: int, granules_total: int, granules_read: int
    ) -> None:
        """Count parts and granules before and after pruning."""
        with self._lock:
            self.parts_total += parts_total
            self.parts_read += parts_read
            self.granules_total += granules_total
            self.granules_read += granules_read


class InsertedRows(int):
    """The number of rows that an INSERT inserted, and what it recognized as duplicates.

    `duplicate`: all rows came before, by token or source offsets, and nothing was changed.
    `duplicates_dropped`: rows that the table's `deduplicate_by` rejected.  `commit`: the number of
    the commit, None without one.
    """

    duplicate: bool
    duplicates_dropped: int
    commit: int | None

    def __new__(
        cls,
        rows: int,
        *,
        duplicate: bool = False,
        duplicates_dropped: int = 0,
        commit: int | None = None,
    ) -> InsertedRows:
        inserted = super().__new__(cls, rows)
        inserted.duplicate, inserted.duplicates_dropped = duplicate, duplicates_dropped
        inserted.commit = commit
        return inserted

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, object]]:
        return (int(self),), dict(self.__dict__)


@dataclass(frozen=True)
class Output:
    """How a result is written: the name of the statement's FORMAT, "" without one, and a function
    from (result, its batches, format) to the text, piece by piece."""

    format: str
    write: Callable[[Result, Iterator[pa.RecordBatch], str], Iterator[bytes]]


class Result:
    """The result of a statement. Read it once: as batches, as a table, or as rows.

    `schema` has the user's names (which may repeat) and each column's ClickHouse type in its
    metadata.  A statement that returns no rows has no columns; `affected_rows` is then what it
    inserted or deleted, -1 if not applicable.  Closing a result early stops its query.
    """

    _defer: Callable[[Callable[[], None]], None] | None = None

    def __init__(
        self,
        names: Sequence[str] = (),
        types: Sequence[DataType] = (),
        batches: Iterable[pa.RecordBatch] = (),
        statistics: QueryStatistics | None = None,
        *,
        affected_rows: int = -1,
        query_id: str = "",
        totals: pa.RecordBatch | None = None,
    ) -> None:
        self.names = tuple(names)
        self.types = tuple(types)
        self.statistics = statistics or QueryStatistics()
        self.affected_rows = affected_rows
        self.query_id = query_id
        self._totals = totals
        self._source: Iterator[pa.RecordBatch] | None = iter(batches)
        self._callbacks: list[Callable[[], None]] = []
        self.zone: str | None = None
        """The zone of the query where it is not the warehouse's: Python's values have it."""
        self.output: Output | None = None
        """How the rows are written as text; None for statements without such a form."""
        self.failures: list[BaseException] = []
        """The exception that the query raised while its rows were drawn: none or one."""

    @property
    def has_columns(self) -> bool:
        """Return whether the statement returns rows."""
        return bool(self.names)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the batches: the user's names, ClickHouse types in the metadata."""
        return arrow_schema(self.names, self.types)

    @property
    def totals(self) -> pa.RecordBatch | None:
        """The row of WITH TOTALS, of `schema`; None for a query without it."""
        if self._totals is None:
            return None
        return pa.RecordBatch.from_arrays(self._totals.columns, schema=self.schema)

    def on_close(self, callback: Callable[[], None]) -> None:
        """Register a callback. It runs once, when all rows were read or the result is closed or
        fails. Callbacks run in the order of registration."""
        self._callbacks.append(callback)

    def defer_callbacks_to(self, defer: Callable[[Callable[[], None]], None]) -> None:
        """Give `defer` the callbacks of `on_close` if the result is freed before it was read to the
        end or closed. Python frees it at an arbitrary point, where no callback may wait for a lock.
        """
        self._defer = defer

    def through(
        self, step: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    ) -> Result:
        """Pass the batches not read yet through `step`; return this same result."""
        if self._source is not None:
            source = self._source
            self._source = _chain(step(source), source)
        return self

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, each of `schema`. They can be read once: raises InterfaceError if they
        were read before. Errors of the query are raised here."""

        def named(batch: pa.RecordBatch) -> pa.RecordBatch:
            """Return the batch with the result's names and types."""
            return pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)

        return self._drain(named)

    def batches_named(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches with other column names and no types in the metadata: the input of an
        INSERT."""
        new_names = list(names)
        return self._drain(lambda batch: batch.rename_columns(new_names))

    def _drain(self, named: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the source, so that the result can be read only once, and return its batches. Raise
        InterfaceError if it was read or closed before. `named` gives a batch its names."""
        if self._source is None:
            raise InterfaceError("This result was read or closed before.", hint="Run it again.")
        source, self._source = self._source, None
        return self._drained(source, named)

    def _drained(
        self, source: Iterator[pa.RecordBatch], named: Callable[[pa.RecordBatch], pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches. Record a failure; call the callbacks when the reader ends, or defer
        them if it stops early."""
        try:
            for batch in source:
                if self.names:
                    yield named(batch)
        except GeneratorExit:
            self._abandon()
            raise
        except BaseException as error:
            bug = foreign_error(error, "The query")
            self.failures.append(bug or error)
            if bug is not None:
                raise bug from error
            raise
        finally:
            close_iterator(source)
            self._finish()

    def reader(self) -> pa.RecordBatchReader:
        """Return the batches as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def read_all(self) -> pa.Table:
        """Return all rows as a table; names may repeat."""
        return pa.Table.from_batches(list(self.batches()), schema=self.schema)

    def to_rows(self) -> list[tuple[object, ...]]:
        """Return all rows as tuples of Python values, see `python_values`."""
        rows: list[tuple[object, ...]] = []
        for batch in self.batches():
            columns = [
                python_values(column, data_type, self.zone)
                for column, data_type in zip(batch.columns, self.types, strict=True)
            ]
            rows.extend(zip(*columns, strict=True))
        return rows

    def close(self) -> None:
        """Stop the query if it still runs, and call the callbacks. Idempotent."""
        source, self._source = self._source, None
        if source is not None:
            close_iterator(source)
        self._finish()

    def _finish(self) -> None:
        """Call each callback once, in the order of registration."""
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def _abandon(self) -> None:
        """Defer the callbacks, because a garbage collector may be running this. Does nothing
        without `_defer`."""
        if self._defer is not None:
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                self._defer(callback)

    def __del__(self) -> None:
        self._abandon()


def from_columns(
    names: Sequence[str], types: Sequence[DataType], columns: Sequence[Sequence[object]]
) -> Result:
    """Return a result of a few Python values, given column by column (SHOW, DESCRIBE, EXPLAIN)."""
    arrays = [array_of(c, t.arrow) for c, t in zip(columns, types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(names, types))
    return Result(names, types, [batch])


def _chain(
    derived: Iterator[pa.RecordBatch], source: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield from `derived`, which draws from `source`. Closing this closes both iterators."""
    try:
        yield from derived
    finally:
        close_iterator(derived)
        close_iterator(source)


def close_iterator(source: object) -> None:
    """Close a generator, or what can be closed like one, so that its `finally` blocks run; other
    iterators have nothing to close."""
    close = getattr(source, "close", None)
    if close is not None:
        close()
