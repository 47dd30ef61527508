"""system.parts, parts_columns, detached_parts and view_retained; the display of partition
values."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from olapdb.engine.layout import TableLayout
from olapdb.functions import display
from olapdb.model.columns import PartColumns
from olapdb.model.detached import PERMANENTLY_DETACHED, is_hidden, own_names
from olapdb.model.part import Part, detached_table
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.sql.literals import show_names
from olapdb.storage.codec import DEFAULT_CODEC
from olapdb.system.registry import Row, SystemContext, SystemTable, moment
from olapdb.types import DataType, Date, DateTime, Decimal, Float, Integer, plain
from olapdb.types.arrow_values import array_of


class PartitionTexts:
    """The values of a table's partitions as ClickHouse displays them: 202401, 2024-01-05, eu,
    ('eu',202401), tuple()."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._texts: dict[tuple[object, ...], str] = {}

    def of(self, part: Part) -> str:
        """Return the display text of the part's partition; "tuple()" without a partition key."""
        value = part.partition_value
        if not value:
            return "tuple()"
        text = self._texts.get(value)
        if text is None:
            text = self._texts[value] = self._text(value)
        return text

    def _text(self, value: tuple[object, ...]) -> str:
        """Return the display text of partition key values, in parentheses if there are several.
        Values that do not match the key's number of items are shown by Python's str()."""
        types = [e.type for e in TableLayout(self._table).partition_expressions]
        if len(types) != len(value):
            return str(value)
        texts = [_display(v, t, quoted=len(types) > 1) for v, t in zip(value, types, strict=True)]
        return texts[0] if len(texts) == 1 else f"({','.join(texts)})"


def _display(value: object, data_type: DataType, *, quoted: bool) -> str:
    """Return a value's text as ClickHouse shows it. The catalog holds dates as days, timestamps as
    ticks of the type's unit. `quoted` puts quotes around all but numbers."""
    if value is None:
        return "NULL"
    arrow = plain(data_type).arrow
    if pa.types.is_date32(arrow):
        array = array_of([value], pa.int32()).view(arrow)
    elif pa.types.is_timestamp(arrow):
        array = array_of([value], pa.int64()).view(arrow)
    else:
        try:
            array = array_of([value], arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return str(value)
    (text,) = display(array, plain(data_type))
    is_number = isinstance(plain(data_type), Integer | Float | Decimal)
    if is_number or not quoted:
        return text or ""
    escaped = (text or "").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def live_parts(context: SystemContext, table: Table) -> list[Part]:
    """Return the table's parts in the query's snapshot that have rows."""
    return [p for p in context.snapshot.parts(table.id) if p.rows]


class _Times:
    """The bounds that parts have of the first Date and the first DateTime in the partition key."""

    def __init__(self, table: Table) -> None:
        self._texts = PartColumns(table)
        named = [c for c in table.stored_columns if _names(table.partition_key, c.name)]
        self._date = next((c for c in named if isinstance(plain(c.type), Date)), None)
        self._time = next((c for c in named if isinstance(plain(c.type), DateTime)), None)

    def of(self, part: Part) -> tuple[object, object, object, object]:
        """Return (min_date, max_date, min_time, max_time); the epoch for those that the partition
        key or the part lacks."""
        days, seconds = self._bounds(part, self._date), self._bounds(part, self._time)
        return (
            *(moment(day * 86_400_000).date() for day in days),
            *(moment(second * 1000) for second in seconds),
        )  # type: ignore[return-value]

    def _bounds(self, part: Part, column: Column | None) -> tuple[int, int]:
        """Return the part's lowest and highest value of the column as integers; (0, 0) if
        unknown."""
        name = None if column is None else self._texts.name_in(part, column)
        low, high, _ = part.bounds.get(name or "", (None, None, 0))
        return (low, high) if isinstance(low, int) and isinstance(high, int) else (0, 0)


def _names(expression: str, column: str) -> bool:
    """Return whether the SQL expression contains the column's name as a whole word."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", expression) is not None


def _part_type(part: Part) -> str:
    """Return "Inline" (rows in the catalog), "Void" (no rows) or "Parquet"."""
    return "Inline" if part.inline else ("Void" if not part.rows else "Parquet")


def _parts(context: SystemContext) -> Iterator[Row]:
    """List the live parts of all tables, placeholders without rows too."""
    for item in context.objects("table"):
        if not isinstance(item, Table):
            continue
        writers = {view.id for view in context.snapshot.views_into(item.id)}
        partitions, times = PartitionTexts(item), _Times(item)
        for part in context.snapshot.parts(item.id):
            blocks = part.block_range
            yield (
                item.database,
                item.name,
                part.id,
                part.name,
                part.partition_id,
                partitions.of(part),
                _part_type(part),
                1,
                part.rows,
                part.bytes,
                sum(part.compressed_bytes.values()),
                sum(part.uncompressed_bytes.values()),
                part.granules,
                blocks.first,
                blocks.last,
                part.level,
                part.schema_version,
                part.checksum,
                part.path,
                int(bool(writers and part.rows) and not part.written_by(writers)),
                sum(c.rows for c in part.contributions),
                moment(part.created_ms),
                part.created_commit,
                item.engine.name,
                "default",
                0,
                0,
                int(bool(part.path)),
                *times.of(part),
                part.checksum,
                part.codec or DEFAULT_CODEC,
                0,
                0,
                1,
            )


def _parts_columns(context: SystemContext) -> Iterator[Row]:
    """List the stored columns of all live parts with rows. A column that a part lacks is left
    out."""
    for item in context.objects("table"):
        if not isinstance(item, Table):
            continue
        part_columns, partitions, times = PartColumns(item), PartitionTexts(item), _Times(item)
        for part in live_parts(context, item):
            blocks, bounds = part.block_range, times.of(part)
            for position, column in enumerate(item.stored_columns, 1):
                if part_columns.name_in(part, column) is None:
                    continue
                compressed = part_columns.sizes(part, part.compressed_bytes, column)
                yield (
                    item.database,
                    item.name,
                    part.name,
                    part.partition_id,
                    partitions.of(part),
                    1,
                    part.rows,
                    part.bytes,
                    column.name,
                    column.type.name,
                    position,
                    compressed,
                    compressed,
                    part_columns.sizes(part, part.uncompressed_bytes, column),
                    part.id,
                    _part_type(part),
                    part.granules,
                    sum(part.compressed_bytes.values()),
                    sum(part.uncompressed_bytes.values()),
                    moment(part.created_ms),
                    blocks.first,
                    blocks.last,
                    part.level,
                    *bounds,
                    item.engine.name,
                    "default",
                    part.path,
                    column.default_kind,
                    show_names(column.described_default),
                )


def _detached_tables(context: SystemContext) -> Iterator[Row]:
    """List the tables and views that are detached, by database and name."""
    hidden = [item for item in context.snapshot.objects() if is_hidden(item.database)]
    for item in sorted(hidden, key=lambda item: own_names(item.name)):
        yield *own_names(item.name), item.id, "", int(item.database == PERMANENTLY_DETACHED)


def _detached(context: SystemContext) -> Iterator[Row]:
    """List the detached parts of all tables."""
    for item in context.objects("table"):
        if not isinstance(item, Table):
            continue
        for part in context.snapshot.parts(detached_table(item.id)):
            blocks = part.block_range
            yield (
                item.database,
                item.name,
                part.partition_id,
                part.name,
                part.bytes,
                moment(part.created_ms),
                "default",
                part.path,
                part.detached_reason,
                blocks.first,
                blocks.last,
                part.level,
                part.rows,
            )


def _retained(context: SystemContext) -> Iterator[Row]:
    """List the frozen slices of all views: one row for each slice of a retained partition."""
    for item in context.objects("view"):
        if not isinstance(item, MaterializedView):
            continue
        for retained in context.snapshot.retained(item.id):
            for target_slice in retained.slices:
                yield (
                    item.database,
                    item.name,
                    retained.side,
                    retained.partition,
                    retained.rows,
                    target_slice.partition,
                    target_slice.rows,
                    target_slice.verdict,
                    retained.cause,
                    retained.statement,
                    retained.query_id,
                    moment(retained.since_ms),
                    retained.commit,
                )


TABLES = (
    SystemTable(
        "parts",
        """database String, table String, uuid String, name String, partition_id String,
        partition String, part_type String, active UInt8, rows UInt64, bytes_on_disk UInt64,
        data_compressed_bytes UInt64, data_uncompressed_bytes UInt64, marks UInt64,
        min_block_number Int64, max_block_number Int64, level UInt32, schema_version UInt64,
        checksum String, path String, is_bypass UInt8, contributed_rows UInt64,
        modification_time DateTime, commit UInt64, engine String, disk_name String,
        marks_bytes UInt64, primary_key_bytes_in_memory UInt64, files UInt64, min_date Date,
        max_date Date, min_time DateTime, max_time DateTime, hash_of_all_files String,
        default_compression_codec String, is_frozen UInt8, has_lightweight_delete UInt8,
        visible UInt8""",
        _parts,
    ),
    SystemTable(
        "parts_columns",
        """database String, table String, name String, partition_id String, partition String,
        active UInt8, rows UInt64, bytes_on_disk UInt64, column String, type String,
        column_position UInt64, column_bytes_on_disk UInt64, column_data_compressed_bytes UInt64,
        column_data_uncompressed_bytes UInt64, uuid String, part_type String, marks UInt64,
        data_compressed_bytes UInt64, data_uncompressed_bytes UInt64,
        modification_time DateTime, min_block_number Int64, max_block_number Int64, level UInt32,
        min_date Date, max_date Date, min_time DateTime, max_time DateTime, engine String,
        disk_name String, path String, default_kind String, default_expression String""",
        _parts_columns,
        "The columns that each part holds, with their bytes",
    ),
    SystemTable(
        "detached_parts",
        """database String, table String, partition_id Nullable(String), name String,
        bytes_on_disk UInt64, modification_time DateTime, disk String, path String,
        reason Nullable(String), min_block_number Nullable(Int64),
        max_block_number Nullable(Int64), level Nullable(UInt32), rows UInt64""",
        _detached,
        "Parts that were detached and not attached again.",
    ),
    SystemTable(
        "detached_tables",
        "database String, table String, uuid UUID, metadata_path String, is_permanently UInt8",
        _detached_tables,
        "Tables and views that DETACH hides, until ATTACH.",
    ),
    SystemTable(
        "view_retained",
        """database String, view String, side String, partition_id String, rows UInt64,
        target_partition_id Nullable(String), target_rows UInt64, verdict String, cause String,
        statement String, query_id String, since DateTime64(3), commit UInt64""",
        _retained,
        "Slices of views that are frozen, since rows left by retention, with their last verdict.",
    ),
)
