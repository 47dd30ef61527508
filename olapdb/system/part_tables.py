"""system.parts, parts_columns, detached_parts and view_retained; how a partition's value is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from olapdb.engine.layout import TableLayout
from olapdb.functions import display
from olapdb.model.columns import PartColumns
from olapdb.model.part import Part, detached_table
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.storage.codec import DEFAULT_CODEC
from olapdb.system.registry import Row, SystemContext, SystemTable, moment
from olapdb.types import (
    DATE,
    DATETIME,
    INT64,
    STRING,
    UINT8,
    UINT32,
    UINT64,
    DataType,
    Date,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Nullable,
    plain,
)

_MAYBE_STRING: DataType = Nullable(STRING)


class PartitionTexts:
    """The values of a table's partitions as ClickHouse shows them: 202401, 2024-01-05, eu,
    ('eu',202401), tuple()."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[tuple[object, ...], str] = {}

    def of(self, part: Part) -> str:
        value = part.partition_value
        if not value:
            return "tuple()"
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._text(value)
        return found

    def _text(self, value: tuple[object, ...]) -> str:
        types = [e.type for e in TableLayout(self._table).partition_expressions]
        if len(types) != len(value):
            return str(value)
        texts = [_one(v, t, quoted=len(types) > 1) for v, t in zip(value, types, strict=True)]
        return texts[0] if len(texts) == 1 else f"({','.join(texts)})"


def _one(value: object, data_type: DataType, *, quoted: bool) -> str:
    """A value as the catalog keeps it: dates are days, timestamps ticks."""
    if value is None:
        return "NULL"
    arrow = plain(data_type).arrow
    if pa.types.is_date32(arrow):
        array = pa.array([value], pa.int32()).view(arrow)
    elif pa.types.is_timestamp(arrow):
        array = pa.array([value], pa.int64()).view(arrow)
    else:
        try:
            array = pa.array([value], arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return str(value)
    (text,) = display(array, plain(data_type))
    is_number = isinstance(plain(data_type), Integer | Float | Decimal)
    if is_number or not quoted:
        return text or ""
    escaped = (text or "").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def live_parts(context: SystemContext, table: Table) -> list[Part]:
    """Those with rows."""
    return [p for p in context.snapshot.parts(table.id) if p.rows]


class _Times:
    """What parts have of the first Date and the first DateTime of a table's partition key."""

    def __init__(self, table: Table) -> None:
        self._known = PartColumns(table)
        named = [c for c in table.stored_columns if _names(table.partition_key, c.name)]
        self._date = next((c for c in named if isinstance(plain(c.type), Date)), None)
        self._time = next((c for c in named if isinstance(plain(c.type), DateTime)), None)

    def of(self, part: Part) -> tuple[object, object, object, object]:
        """(min_date, max_date, min_time, max_time); the epoch where there is none."""
        days, seconds = self._bounds(part, self._date), self._bounds(part, self._time)
        return (
            *(moment(day * 86_400_000).date() for day in days),
            *(moment(second * 1000) for second in seconds),
        )  # type: ignore[return-value]

    def _bounds(self, part: Part, column: Column | None) -> tuple[int, int]:
        name = None if column is None else self._known.name_in(part, column)
        low, high, _ = part.bounds.get(name or "", (None, None, 0))
        return (low, high) if isinstance(low, int) and isinstance(high, int) else (0, 0)


def _names(expression: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", expression) is not None


def _part_type(part: Part) -> str:
    return "Inline" if part.inline else ("Void" if not part.rows else "Parquet")


def _parts(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
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
                int(bool(writers and part.rows) and not part.made_by(writers)),
                sum(c.rows for c in part.contributions),
                moment(part.created_ms),
                part.created_commit,
                item.engine.name,
                part.bytes,
                "default",
                0,
                0,
                int(bool(part.path)),
                *times.of(part),
                part.checksum,
                DEFAULT_CODEC,
                0,
                0,
                1,
            )


def _parts_columns(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
        if not isinstance(item, Table):
            continue
        known, partitions, times = PartColumns(item), PartitionTexts(item), _Times(item)
        for part in live_parts(context, item):
            blocks, between = part.block_range, times.of(part)
            for position, column in enumerate(item.stored_columns, 1):
                if known.name_in(part, column) is None:
                    continue
                compressed = known.sizes(part, part.compressed_bytes, column)
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
                    known.sizes(part, part.uncompressed_bytes, column),
                    part.id,
                    _part_type(part),
                    part.granules,
                    part.bytes,
                    sum(part.compressed_bytes.values()),
                    sum(part.uncompressed_bytes.values()),
                    moment(part.created_ms),
                    blocks.first,
                    blocks.last,
                    part.level,
                    *between,
                    item.engine.name,
                    "default",
                    part.path,
                    column.default_kind,
                    column.default,
                )


def _detached(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
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
    for item in context.snapshot.objects():
        if not isinstance(item, MaterializedView):
            continue
        for one in context.snapshot.retained(item.id):
            for each in one.slices:
                yield (
                    item.database,
                    item.name,
                    one.side,
                    one.partition,
                    one.rows,
                    each.partition,
                    each.rows,
                    each.verdict,
                    one.cause,
                    one.statement,
                    one.query_id,
                    moment(one.since_ms),
                    one.commit,
                )


TABLES = (
    SystemTable(
        "parts",
        (
            ("database", STRING),
            ("table", STRING),
            ("uuid", STRING),
            ("name", STRING),
            ("partition_id", STRING),
            ("partition", STRING),
            ("part_type", STRING),
            ("active", UINT8),
            ("rows", UINT64),
            ("bytes_on_disk", UINT64),
            ("data_compressed_bytes", UINT64),
            ("data_uncompressed_bytes", UINT64),
            ("marks", UINT64),
            ("min_block_number", INT64),
            ("max_block_number", INT64),
            ("level", UINT32),
            ("schema_version", UINT64),
            ("checksum", STRING),
            ("path", STRING),
            ("is_bypass", UINT8),
            ("contributed_rows", UINT64),
            ("modification_time", DATETIME),
            ("commit", UINT64),
            ("engine", STRING),
            ("bytes", UINT64),
            ("disk_name", STRING),
            ("marks_bytes", UINT64),
            ("primary_key_bytes_in_memory", UINT64),
            ("files", UINT64),
            ("min_date", DATE),
            ("max_date", DATE),
            ("min_time", DATETIME),
            ("max_time", DATETIME),
            ("hash_of_all_files", STRING),
            ("default_compression_codec", STRING),
            ("is_frozen", UINT8),
            ("has_lightweight_delete", UINT8),
            ("visible", UINT8),
        ),
        _parts,
    ),
    SystemTable(
        "parts_columns",
        (
            ("database", STRING),
            ("table", STRING),
            ("name", STRING),
            ("partition_id", STRING),
            ("partition", STRING),
            ("active", UINT8),
            ("rows", UINT64),
            ("bytes_on_disk", UINT64),
            ("column", STRING),
            ("type", STRING),
            ("column_position", UINT64),
            ("column_bytes_on_disk", UINT64),
            ("column_data_compressed_bytes", UINT64),
            ("column_data_uncompressed_bytes", UINT64),
            ("uuid", STRING),
            ("part_type", STRING),
            ("marks", UINT64),
            ("bytes", UINT64),
            ("data_compressed_bytes", UINT64),
            ("data_uncompressed_bytes", UINT64),
            ("modification_time", DATETIME),
            ("min_block_number", INT64),
            ("max_block_number", INT64),
            ("level", UINT32),
            ("min_date", DATE),
            ("max_date", DATE),
            ("min_time", DATETIME),
            ("max_time", DATETIME),
            ("engine", STRING),
            ("disk_name", STRING),
            ("path", STRING),
            ("default_kind", STRING),
            ("default_expression", STRING),
        ),
        _parts_columns,
        "The columns that each part holds, with their bytes",
    ),
    SystemTable(
        "detached_parts",
        (
            ("database", STRING),
            ("table", STRING),
            ("partition_id", _MAYBE_STRING),
            ("name", STRING),
            ("bytes_on_disk", UINT64),
            ("modification_time", DATETIME),
            ("disk", STRING),
            ("path", STRING),
            ("reason", _MAYBE_STRING),
            ("min_block_number", Nullable(INT64)),
            ("max_block_number", Nullable(INT64)),
            ("level", Nullable(UINT32)),
            ("rows", UINT64),
        ),
        _detached,
        "Parts that were detached and not attached again.",
    ),
    SystemTable(
        "view_retained",
        (
            ("database", STRING),
            ("view", STRING),
            ("side", STRING),
            ("partition_id", STRING),
            ("rows", UINT64),
            ("target_partition_id", _MAYBE_STRING),
            ("target_rows", UINT64),
            ("verdict", STRING),
            ("cause", STRING),
            ("statement", STRING),
            ("query_id", STRING),
            ("since", DateTime64(3)),
            ("commit", UINT64),
        ),
        _retained,
        "Slices of views that are frozen, since rows left by retention, with their last verdict.",
    ),
)
