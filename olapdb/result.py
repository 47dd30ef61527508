"""The result of a statement: names, types and Arrow batches, and its statistics.

The batches are computed while they are read.  Column names are the user's and may repeat, so no
column is looked up by name here.
"""

from __future__ import annotations

import decimal
import ipaddress
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

import pyarrow as pa

from olapdb.errors import CannotConvertType, InterfaceError, foreign_error
from olapdb.types import (
    UUID,
    AggregateFunction,
    Array,
    DataType,
    DateTime,
    DateTime64,
    Enum,
    IPv4,
    IPv6,
    LowCardinality,
    Map,
    Nullable,
    SimpleAggregateFunction,
    Time,
    Time64,
    Tuple,
    WideNumber,
    with_elements,
    with_inner,
)
from olapdb.types.arrow import arrow_schema
from olapdb.types.arrow_values import array_of


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
            _close_iterator(source)
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
            _close_iterator(source)
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
        _close_iterator(derived)
        _close_iterator(source)


def python_values(
    column: pa.Array | pa.ChunkedArray, data_type: DataType, zone: str | None = None
) -> list[object]:
    """Return a column as Python values: tuples for Tuple, dicts for Map, uuid.UUID, Decimal, date,
    timedelta for Time.

    A DateTime without a zone of its own is a naive datetime in `zone`, None for the warehouse's, one
    with a zone an aware one.  Nanoseconds are truncated to microseconds, datetime's precision.  A String
    that is not UTF-8 is bytes; within an array or a tuple it raises CannotConvertType.
    """
    if zone is not None and (shown := _in_zone(data_type, zone)) != data_type:
        column = column.cast(shown.arrow)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        values: list[object] = column.to_pylist()
    except UnicodeDecodeError as error:
        values = _with_bytes(column, error)
    except (OverflowError, ValueError) as error:
        raise CannotConvertType(
            f"A value of type {data_type} is none that Python has: {error}.",
            hint="Read it by toString(…), or as Arrow data.",
        ) from error
    convert = _converter(data_type)
    return values if convert is None else [None if v is None else convert(v) for v in values]


def _in_zone(data_type: DataType, zone: str) -> DataType:
    """Return the type with this zone in each DateTime without one."""
    match data_type:
        case DateTime(None):
            return DateTime(zone)
        case DateTime64(precision, None):
            return DateTime64(precision, zone)
        case Nullable(inner) | LowCardinality(inner):
            return type(data_type)(_in_zone(inner, zone))
        case Array(inner):
            return with_inner(data_type, _in_zone(inner, zone))
        case SimpleAggregateFunction(function, inner):
            return SimpleAggregateFunction(function, _in_zone(inner, zone))
        case Map(key, value):
            return Map(_in_zone(key, zone), _in_zone(value, zone))
        case Tuple(elements):
            return with_elements(data_type, tuple(_in_zone(element, zone) for element in elements))
        case _:
            return data_type


def _with_bytes(column: pa.Array | pa.ChunkedArray, error: UnicodeDecodeError) -> list[object]:
    """Return a String column's values as texts, those that are not UTF-8 as bytes. Raise
    CannotConvertType for a nested column. `error` is the failed decoding."""
    if not pa.types.is_string(column.type):
        raise CannotConvertType(
            f"A String within {column.type} is not UTF-8: {error}.",
            hint="Read it by hex(…), or as Arrow data.",
        ) from error
    return [_text_or_bytes(value) for value in column.cast(pa.binary()).to_pylist()]


def _text_or_bytes(value: bytes | None) -> object:
    """Decode UTF-8. Return the bytes unchanged if they are not UTF-8, None for None."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _converter(data_type: DataType) -> Callable[[object], object] | None:
    """Return the function that converts a value of Arrow's `to_pylist` to ours. None if values of
    the type need no conversion."""
    match data_type:
        case UUID():
            return _to_uuid
        case IPv4() | IPv6():
            return _to_address
        case Enum():
            return _enum_converter(data_type.texts)
        case WideNumber():
            return _to_int
        case Time() | Time64():
            return _timedelta_converter(data_type.precision)
        case DateTime(zone) | DateTime64(zone=zone):
            return _without_zone if zone is None else None
        case Nullable(inner) | LowCardinality(inner) | SimpleAggregateFunction(inner=inner):
            return _converter(inner)
        case AggregateFunction(state=state):
            return _converter(state)
        case Array(inner):
            return _array_converter(inner)
        case Map(key, value):
            return _map_converter(key, value)
        case Tuple(elements):
            return _tuple_converter(elements)
        case _:
            return None


def _enum_converter(texts: Mapping[int, str]) -> Callable[[object], object]:
    """Return the function from an Enum's number to its text."""
    return lambda number: texts.get(number) if isinstance(number, int) else number


def _to_int(value: object) -> object:
    """Convert a decimal without a fraction to an int; return any other value unchanged."""
    return int(value) if isinstance(value, decimal.Decimal) else value


def _timedelta_converter(precision: int) -> Callable[[object], object]:
    """Return the function from a time's ticks to a timedelta; nanoseconds are truncated."""
    per_second = 10**precision

    def convert(ticks: object) -> object:
        """Convert ticks; return any other value unchanged."""
        if not isinstance(ticks, int):
            return ticks
        microseconds = abs(ticks) * 1_000_000 // per_second
        return timedelta(microseconds=microseconds if ticks >= 0 else -microseconds)

    return convert


def _to_uuid(value: object) -> object:
    """Convert 16 bytes to a UUID; return any other value unchanged."""
    return uuid.UUID(bytes=value) if isinstance(value, bytes) else value


def _to_address(value: object) -> object:
    """Convert the number of an IPv4, or the bytes of an IPv6, to an address; return any other value
    unchanged."""
    return ipaddress.ip_address(value) if isinstance(value, int | bytes) else value


def _without_zone(value: object) -> object:
    """Remove the zone from a datetime; return any other value unchanged."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _identity(value: object) -> object:
    """Return the value unchanged."""
    return value


def _nullable_converter(data_type: DataType) -> Callable[[object], object]:
    """Return a function that converts a value of the type to Python's and None to None."""
    convert = _converter(data_type)
    if convert is None:
        return _identity
    convert_value = convert
    return lambda value: None if value is None else convert_value(value)


def _array_converter(inner: DataType) -> Callable[[object], object] | None:
    """Return a function that converts each item of a list. None if items of this type need no
    conversion."""
    if _converter(inner) is None:
        return None
    convert = _nullable_converter(inner)
    return lambda value: [convert(v) for v in value] if isinstance(value, list) else value


def _map_converter(key: DataType, value: DataType) -> Callable[[object], object]:
    """Return a function that converts Arrow's list of (key, value) pairs to a dict."""
    to_key, to_value = _nullable_converter(key), _nullable_converter(value)

    def convert(pairs: object) -> object:
        """Convert a list of pairs; return any other value unchanged."""
        if not isinstance(pairs, list):
            return pairs
        return {to_key(k): to_value(v) for k, v in pairs}

    return convert


def _tuple_converter(elements: Sequence[DataType]) -> Callable[[object], object]:
    """Return a function that converts Arrow's dict by element names to a tuple."""
    converters = [_nullable_converter(element) for element in elements]

    def convert(value: object) -> object:
        """Convert a dict; return any other value unchanged."""
        if not isinstance(value, dict):
            return value
        return tuple(c(v) for c, v in zip(converters, value.values(), strict=True))

    return convert


def _close_iterator(source: Iterator[pa.RecordBatch]) -> None:
    """Close a generator, so that its `finally` blocks run; other iterators have nothing to
    close."""
    close = getattr(source, "close", None)
    if close is not None:
        close()
