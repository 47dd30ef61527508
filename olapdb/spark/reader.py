"""A table as a DataFrame: Spark's own Parquet reader where it can, tasks of ours where it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.dbapi.connection import Connection
from olapdb.errors import NotSupportedError, UnknownIdentifier
from olapdb.functions.base import Environment
from olapdb.functions.columns import decimal_class
from olapdb.ingest.read import read_pieces
from olapdb.ingest.trigger import Surroundings
from olapdb.model.frozen import FrozenSnapshot, freeze
from olapdb.model.part import Part
from olapdb.model.schema import Column, Table
from olapdb.spark.session import ARROW_BATCH_ROWS
from olapdb.spark.tasks import StoreAddress, address_of, open_store, worker_cache
from olapdb.spark.writer import find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NATIVE_PARTS_MAX = 300
"""Spark plans a few milliseconds for each file: 3,000 small ones take 13 s, tasks of ours 2 s."""

TASKS_PER_CORE = 3


@dataclass(frozen=True)
class _ReadTask:
    store: StoreAddress
    snapshot: FrozenSnapshot
    table: Table
    columns: tuple[str, ...]
    groups: tuple[tuple[Part, ...], ...]
    schema: pa.Schema


def read_table(
    session: SparkSession,
    connection: Connection,
    table: str,
    *,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The rows that `table` ("name" or "database.name") holds now, as a lazy DataFrame.

    It reads the parts of the snapshot at the call, whatever is inserted later, for as long as they
    are kept (`old_parts_lifetime`); a SELECT without FINAL would give the same rows, so those of a
    merging engine are not joined.  Types that Spark lacks widen: UInt8 to smallint … UInt64 to
    decimal(20, 0), decimals to 9, 18 or 38 digits; UUID and FixedString are binary.

    Raises UnknownTable, UnknownIdentifier for a column that is not stored, NotSupportedError for
    an in-memory warehouse and for types that Spark cannot hold (nanoseconds, Decimal over 38).
    """
    current = connection.session
    services = current.engine.services
    snapshot = services.catalog.snapshot()
    found = find_table(snapshot, current.database, table)
    chosen = _chosen(found, columns)
    schema = pa.schema([pa.field(c.name, _spark_arrow(_file_arrow(c), c.name)) for c in chosen])
    address = address_of(services.store)
    parts = tuple(part for part in snapshot.parts(found.id) if part.rows)
    if _is_native(parts, found):
        paths = [f"{address.root}/{part.path}" for part in parts]
        return _read_native(session, paths, schema)
    task = _ReadTask(
        store=address,
        snapshot=freeze(snapshot, (found.id,), parts={found.id: parts}),
        table=found,
        columns=tuple(c.name for c in chosen),
        groups=_groups(parts, TASKS_PER_CORE * session.sparkContext.defaultParallelism),
        schema=schema,
    )
    return _read_by_tasks(session, task)


def _chosen(table: Table, columns: Sequence[str] | None) -> tuple[Column, ...]:
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


def _is_native(parts: Sequence[Part], table: Table) -> bool:
    """Files, not too many, all with the columns that the table has now."""
    return 0 < len(parts) <= NATIVE_PARTS_MAX and not any(
        part.inline or part.schema_version != table.version for part in parts
    )


def _read_native(session: SparkSession, paths: list[str], schema: pa.Schema) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    frame: DataFrame = session.read.schema(from_arrow_schema(schema)).parquet(*paths)
    return frame


def _read_by_tasks(session: SparkSession, task: _ReadTask) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    count = max(len(task.groups), 1)
    frame: DataFrame = session.range(0, count, 1, count).mapInArrow(
        _mapper(task), from_arrow_schema(task.schema)
    )
    return frame


def _mapper(task: _ReadTask) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        around = Surroundings(
            task.snapshot, open_store(task.store), worker_cache(), {}, Environment()
        )
        for batch in batches:
            for group in batch.column(0).to_pylist():
                for part in task.groups[group] if task.groups else ():
                    yield from _part_batches(task, around, part)

    return run


def _part_batches(task: _ReadTask, around: Surroundings, part: Part) -> Iterator[pa.RecordBatch]:
    for piece in read_pieces(around, task.table, part, ARROW_BATCH_ROWS, task.columns):
        named = piece.select(list(task.columns)).cast(task.schema)
        yield from named.to_batches(max_chunksize=ARROW_BATCH_ROWS)


def _groups(parts: Sequence[Part], most: int) -> tuple[tuple[Part, ...], ...]:
    """The parts in at most `most` groups of about equal rows: each to the smallest so far."""
    count = min(most, len(parts))
    groups: list[list[Part]] = [[] for _ in range(count)]
    sizes = [0] * count
    for part in sorted(parts, key=lambda p: p.rows, reverse=True):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(part)
        sizes[smallest] += part.rows
    return tuple(tuple(group) for group in groups)


def _file_arrow(column: Column) -> pa.DataType:
    """As the column lies in files: a sum may have outgrown its decimal's precision."""
    arrow = column.type.arrow
    return decimal_class(arrow) if pa.types.is_decimal(arrow) else arrow


def _spark_arrow(kind: pa.DataType, column: str) -> pa.DataType:
    """The Arrow type that Spark reads a column of `kind` as."""
    widened = {
        pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
    }  # fmt: skip
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


def _no_type(column: str, what: str) -> NotSupportedError:
    return NotSupportedError(
        f"Spark cannot hold column {column}: it has no {what}.",
        hint="Choose the other columns with columns=[…].",
    )
