"""A table as a DataFrame: our own tasks read the parts of a snapshot that stays pinned.

Spark's Parquet reader would be as fast and could push filters down, but it could not distinguish
the warehouse's folder from another one under the same path, and would report a released snapshot as
a missing file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from olapdb.dbapi.connection import Connection
from olapdb.errors import FileDoesntExist, NotSupportedError, UnknownIdentifier
from olapdb.functions.base import Environment
from olapdb.functions.edges import exported
from olapdb.functions.kernels.decimal_width import decimal_class
from olapdb.ingest.read_parts import read_pieces
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.frozen import FrozenSnapshot, freeze
from olapdb.model.part import Part
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.spark.folder import StoreAddress, mark_folder, open_pinned_store, unmark_folder
from olapdb.spark.session import ARROW_BATCH_ROWS
from olapdb.spark.tasks import worker_cache
from olapdb.spark.writer import find_table
from olapdb.types import is_nullable
from olapdb.types.arrow import exported_type, is_exported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_PER_CORE = 3
SLICE_ROWS_MIN = 250_000
"""A part with fewer rows is read by one task; a task costs about 30 ms."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """Some granules of a part (None: all), and about how many rows they have."""

    part: Part
    granules: range | None
    rows: int


@dataclass(frozen=True)
class _ReadTask:
    """The input of every task of one frame: which slices of parts each task reads, of which
    columns."""

    store: StoreAddress
    snapshot: FrozenSnapshot
    table: Table
    columns: tuple[str, ...]
    groups: tuple[tuple[_Slice, ...], ...]
    schema: pa.Schema
    environment: Environment


def read_table(
    session: SparkSession,
    connection: Connection,
    table: str,
    *,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows that `table` ("name" or "database.name") holds now, as a lazy DataFrame.

    It reads the snapshot of the call each time it is used, whatever is inserted, merged, deleted or
    dropped later: the snapshot stays pinned, so that vacuum keeps its parts, until `connection` is
    closed.  After that the frame fails with SNAPSHOT_TOO_OLD.  Rows are those of a SELECT without
    FINAL: a merging engine's rows are not combined.  Types that Spark lacks widen: UInt8 to
    smallint … UInt64 to decimal(20, 0), decimals to 9, 18 or 38 digits; UUID and FixedString are
    binary.

    Raises UnknownTable, UnknownIdentifier for a column that is not stored, NotSupportedError for an
    in-memory warehouse and for types that Spark cannot hold (nanoseconds, Decimal over 38).  An
    executor that does not see the warehouse's folder under the same path fails with
    FOLDER_NOT_SHARED.  Spark raises its tasks' exceptions as its own, with our text.
    """
    current = connection.session
    catalog = current.engine.services.catalog
    with catalog.pinned() as snapshot:
        stored_table = find_table(snapshot, current.database, table)
        selected = _chosen(stored_table, columns)
        schema = pa.schema(
            [
                pa.field(c.name, _spark_arrow(_file_arrow(c), c.name), is_nullable(c.type))
                for c in selected
            ]
        )
        address = _PINS.keep(connection, snapshot)
        parts = tuple(part for part in snapshot.parts(stored_table.id) if part.rows)
        task = _ReadTask(
            store=address,
            snapshot=freeze(snapshot, (stored_table.id,), parts={stored_table.id: parts}),
            table=stored_table,
            columns=tuple(c.name for c in selected),
            groups=_groups(parts, TASKS_PER_CORE * session.sparkContext.defaultParallelism),
            schema=schema,
            environment=current.engine.services.environment(),
        )
    return _read_by_tasks(session, task)


class _Pins:
    """The snapshots that frames read, by connection: each is pinned once, with a marker, until the
    connection is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakKeyDictionary[Connection, dict[int, StoreAddress]] = WeakKeyDictionary()

    def keep(self, connection: Connection, snapshot: Snapshot) -> StoreAddress:
        """Pin the snapshot until the connection is closed; return the address with its marker. A
        snapshot is pinned once. The caller holds a pin of its own meanwhile."""
        services = connection.session.engine.services
        with self._lock:
            addresses = self._of.get(connection)
            if addresses is None:
                addresses = self._of[connection] = {}
                connection.before_close(lambda: self._release(connection))
            if snapshot.number not in addresses:
                address = mark_folder(services)
                services.catalog.pin(snapshot.number)
                addresses[snapshot.number] = address
            return addresses[snapshot.number]

    def _release(self, connection: Connection) -> None:
        """Remove the markers and pins of a connection that is being closed."""
        services = connection.database.services
        with self._lock:
            addresses = self._of.pop(connection, {})
        for number, address in addresses.items():
            # The marker first: a task that finds it may rely on the pin.
            unmark_folder(services, address)
            services.catalog.unpin(number)


_PINS = _Pins()


def _chosen(table: Table, columns: Sequence[str] | None) -> tuple[Column, ...]:
    """Return the stored columns with these names (None: all). Raise UnknownIdentifier if the table
    stores no column of a name."""
    stored = {c.name: c for c in table.stored_columns}
    if columns is None:
        return tuple(stored.values())
    unknown = [name for name in columns if name not in stored]
    if unknown:
        raise UnknownIdentifier(
            f"{table.database}.{table.name} stores no column {', '.join(unknown)}.",
            hint=f"It stores {', '.join(stored)}.",
        )
    return tuple(stored[name] for name in columns)


def _read_by_tasks(session: SparkSession, task: _ReadTask) -> DataFrame:
    """Return a frame of one Spark task for each group of slices; each task reads its parts
    itself."""
    count = max(len(task.groups), 1)
    frame: DataFrame = session.range(0, count, 1, count).mapInArrow(
        _mapper(task), from_arrow_schema(task.schema)
    )
    return frame


def _mapper(task: _ReadTask) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a Spark task: it yields the rows of the groups whose numbers (from 0)
    it gets."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the groups whose numbers are in the first column."""
        store = open_pinned_store(task.store)
        context = TriggerContext(task.snapshot, store, worker_cache(), {}, task.environment)
        for batch in batches:
            for group in batch.column(0).to_pylist():
                for part_slice in task.groups[group] if task.groups else ():
                    yield from _slice_batches(task, context, part_slice)

    return run


def _slice_batches(
    task: _ReadTask, context: TriggerContext, part_slice: _Slice
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one slice with the frame's columns and types. Raise SnapshotTooOld if the
    driver's connection was closed meanwhile."""
    pieces = read_pieces(
        context,
        task.table,
        part_slice.part,
        ARROW_BATCH_ROWS,
        task.columns,
        granules=part_slice.granules,
    )
    try:
        for piece in pieces:
            named = _with_texts(piece.select(list(task.columns)), task).cast(task.schema)
            yield from named.to_batches(max_chunksize=ARROW_BATCH_ROWS)
    except FileDoesntExist:
        open_pinned_store(task.store)  # SnapshotTooOld where the connection was closed meanwhile
        raise


def _with_texts(piece: pa.Table, task: _ReadTask) -> pa.Table:
    """Return the rows of a part as users get it: texts of Enums in place of numbers, durations for times."""
    for at, name in enumerate(task.columns):
        column = task.table.column(name)
        if column is not None and is_exported(column.type):
            chunks = [exported(chunk, column.type) for chunk in piece.column(at).chunks]
            texts = pa.chunked_array(chunks, exported_type(column.type))
            piece = piece.set_column(at, name, texts)
    return piece


def _groups(parts: Sequence[Part], groups_max: int) -> tuple[tuple[_Slice, ...], ...]:
    """Return at most `groups_max` groups of slices with about equal rows. Large parts are cut by
    granules; each slice, largest first, goes to the smallest group so far."""
    rows = sum(part.rows for part in parts)
    slice_rows = max(SLICE_ROWS_MIN, rows // groups_max)
    slices = [part_slice for part in parts for part_slice in _slices(part, slice_rows)]
    groups: list[list[_Slice]] = [[] for _ in range(min(groups_max, len(slices)))]
    sizes = [0] * len(groups)
    for part_slice in sorted(slices, key=lambda part_slice: part_slice.rows, reverse=True):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(part_slice)
        sizes[smallest] += part_slice.rows
    return tuple(tuple(group) for group in groups)


def _slices(part: Part, rows_max: int) -> Iterator[_Slice]:
    """Cut a part into slices of whole granules with about `rows_max` rows each. An inline part is
    one slice."""
    count = min(-(-part.rows // rows_max), part.granules)
    if count <= 1 or part.inline:
        yield _Slice(part, None, part.rows)
        return
    bounds = [part.granules * number // count for number in range(count)]
    for first, end in pairwise((*bounds, part.granules)):
        yield _Slice(part, range(first, end), part.rows * (end - first) // part.granules)


def _file_arrow(column: Column) -> pa.DataType:
    """Return the Arrow type that Spark gets: a decimal has the most digits of its width, because a
    sum may exceed the column's precision; an Enum is a string."""
    arrow = exported_type(column.type)
    return decimal_class(arrow) if pa.types.is_decimal(arrow) else arrow


def _spark_arrow(kind: pa.DataType, column: str) -> pa.DataType:
    """Return the Arrow type in which Spark reads a column, nested types included. Raise
    NotSupportedError for nanoseconds and Decimal over 38 digits."""
    widened = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
    }
    if kind in widened:
        return widened[kind]
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            raise _no_type(column, "nanoseconds; DateTime64(6) is the finest that it has")
        return pa.timestamp("us", "UTC")
    if pa.types.is_decimal256(kind):
        raise _no_type(column, "Decimal of more than 38 digits")
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_map(kind):
        return pa.map_(_spark_arrow(kind.key_type, column), _spark_arrow(kind.item_type, column))
    if pa.types.is_list(kind):
        return pa.list_(_spark_arrow(kind.value_type, column))
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([pa.field(f.name, _spark_arrow(f.type, column)) for f in fields])
    return kind


def _no_type(column: str, type_name: str) -> NotSupportedError:
    """Return the error about a column whose type Spark lacks."""
    return NotSupportedError(
        f"Spark cannot hold column {column}: it has no {type_name}.",
        hint="Choose the other columns with columns=[…].",
    )
