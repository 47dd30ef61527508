"""system.databases, tables, columns, parts, snapshots, one; with ClickHouse's column names."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.model.columns import PartColumns
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, SchemaObject, Table, View
from olapdb.storage.codec import codec_clause, parquet_text
from olapdb.system.ddl import create_statement, engine_full, key_list
from olapdb.system.part_tables import PartitionTexts
from olapdb.system.registry import Row, SystemContext, SystemTable, moment
from olapdb.types import (
    DATETIME,
    STRING,
    UINT8,
    UINT32,
    UINT64,
    Array,
    DataType,
    DateTime64,
    Nullable,
)

_STRINGS: DataType = Array(STRING)
_MAYBE_COUNT: DataType = Nullable(UINT64)


def _databases(context: SystemContext) -> Iterator[Row]:
    for database in sorted(context.snapshot.databases.values(), key=lambda d: d.name):
        yield database.name, "Atomic", database.id, database.comment
    yield "system", "Memory", "", "What the warehouse knows of itself"


def _live(context: SystemContext, table: Table) -> list[Part]:
    return [p for p in context.snapshot.parts(table.id) if p.rows]


def _totals(context: SystemContext, item: SchemaObject) -> tuple[int | None, int | None]:
    target = item if isinstance(item, Table) else None
    if isinstance(item, MaterializedView) and item.inner:
        found = context.snapshot.by_id(item.target_id)
        target = found if isinstance(found, Table) else None
    if target is None:
        return None, None
    parts = _live(context, target)
    return sum(p.rows for p in parts), sum(p.bytes for p in parts)


def _tables(context: SystemContext) -> Iterator[Row]:
    snapshot = context.snapshot
    for item in snapshot.objects():
        table = item if isinstance(item, Table) else None
        rows, size = _totals(context, item)
        target = snapshot.by_id(item.target_id) if isinstance(item, MaterializedView) else None
        views = snapshot.views_on(item.id) if table else ()
        statement = create_statement(item, snapshot)
        yield (
            item.database, item.name, item.id,
            table.engine.name if table else type(item).__name__,
            engine_full(table) if table else "",
            statement,
            item.query if isinstance(item, View | MaterializedView) else "",
            table.partition_key if table else "",
            key_list(table.sorting_key) if table else "",
            key_list(table.sorting_key[: table.primary_key]) if table else "",
            rows, size, item.comment, moment(item.created_ms), 0,
            [v.database for v in views], [v.name for v in views],
            target.database if target else "", target.name if target else "",
            "", int(table is not None), *_part_counts(context, table),
        )  # fmt: skip
    from olapdb.system.registry import tables

    for name, known in tables().items():
        yield (
            "system", name, "", f"System{name.title().replace('_', '')}", "", "", "", "", "", "",
            None, None, known.comment, moment(0), 0, [], [], "", "", "", 0, None, None, None,
        )  # fmt: skip


def _part_counts(
    context: SystemContext, table: Table | None
) -> tuple[int | None, int | None, int | None]:
    """Parts, active ones, which is all of them, and row groups."""
    if table is None:
        return None, None, None
    parts = _live(context, table)
    return len(parts), len(parts), sum(part.granules for part in parts)


def _columns(context: SystemContext) -> Iterator[Row]:
    from olapdb.system.registry import tables

    for item in context.snapshot.objects():
        table = item if isinstance(item, Table) else None
        parts = _live(context, table) if table else []
        known = PartColumns(table) if table else None
        keys = [k.expression.strip("`") for k in table.sorting_key] if table else []
        sorting, primary = set(keys), set(keys[: table.primary_key] if table else [])
        for position, column in enumerate(item.columns, 1):
            yield (
                item.database, item.name, column.name, column.type.name, position,
                column.default_kind, column.default,
                sum(known.sizes(p, p.compressed_bytes, column) for p in parts) if known else 0,
                sum(known.sizes(p, p.uncompressed_bytes, column) for p in parts) if known else 0,
                column.comment,
                int(table is not None and column.name in table.partition_key),
                int(column.name in sorting), codec_clause(column),
                parquet_text(column, table) if table is not None and column.stored else "",
                int(column.name in primary), 0,
            )  # fmt: skip
    for system_table in tables().values():
        for position, (name, data_type) in enumerate(system_table.fields, 1):
            yield (
                "system", system_table.name, name, data_type.name, position,
                "", "", 0, 0, "", 0, 0, "", "", 0, 0,
            )  # fmt: skip


def _parts(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
        if not isinstance(item, Table):
            continue
        writers = {view.id for view in context.snapshot.views_into(item.id)}
        partitions = PartitionTexts(item)
        for part in context.snapshot.parts(item.id):
            blocks = part.block_range
            yield (
                item.database, item.name, part.id, part.name, part.partition_id,
                partitions.of(part),
                "Inline" if part.inline else ("Void" if not part.rows else "Parquet"),
                1, part.rows, part.bytes, sum(part.compressed_bytes.values()),
                sum(part.uncompressed_bytes.values()), part.granules,
                blocks.first, blocks.last, part.level, part.schema_version, part.checksum, part.path,
                int(bool(writers and part.rows) and not part.made_by(writers)),
                sum(c.rows for c in part.contributions),
                moment(part.created_ms), part.created_commit,
                item.engine.name, part.bytes, "default", 0, 0,
            )  # fmt: skip


def _parts_columns(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
        if not isinstance(item, Table):
            continue
        known, partitions = PartColumns(item), PartitionTexts(item)
        for part in _live(context, item):
            for position, column in enumerate(item.stored_columns, 1):
                if known.name_in(part, column) is None:
                    continue
                yield (
                    item.database, item.name, part.name, part.partition_id, partitions.of(part),
                    1, part.rows, part.bytes, column.name, column.type.name, position,
                    known.sizes(part, part.compressed_bytes, column),
                    known.sizes(part, part.compressed_bytes, column),
                    known.sizes(part, part.uncompressed_bytes, column),
                )  # fmt: skip


def _indexes(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
        for index in item.indexes if isinstance(item, Table) else ():
            yield (
                item.database, item.name, index.name, index.type, index.type_full,
                index.expression, index.granularity,
            )  # fmt: skip


def _snapshots(context: SystemContext) -> Iterator[Row]:
    for entry in context.services.catalog.commits(up_to=context.snapshot.number):
        yield (
            entry.number, entry.kind, entry.query_id, entry.statement, moment(entry.time_ms),
            entry.process_id,
        )  # fmt: skip


def _dropped_tables(context: SystemContext) -> Iterator[Row]:
    for index, one in enumerate(context.services.catalog.dropped_tables()):
        table = one.table
        yield (
            index, table.database, table.name, table.id, table.engine.name,
            moment(one.dropped_ms), int(one.complete),
        )  # fmt: skip


TABLES = (
    SystemTable(
        "databases",
        (("name", STRING), ("engine", STRING), ("uuid", STRING), ("comment", STRING)),
        _databases,
    ),
    SystemTable(
        "dropped_tables",
        (
            ("index", UINT32), ("database", STRING), ("table", STRING), ("uuid", STRING),
            ("engine", STRING), ("table_dropped_time", DATETIME), ("complete", UINT8),
        ),
        _dropped_tables,
        "What UNDROP TABLE may bring back, while its parts are complete",
    ),
    SystemTable(
        "tables",
        (
            ("database", STRING), ("name", STRING), ("uuid", STRING), ("engine", STRING),
            ("engine_full", STRING), ("create_table_query", STRING), ("as_select", STRING),
            ("partition_key", STRING), ("sorting_key", STRING), ("primary_key", STRING),
            ("total_rows", _MAYBE_COUNT), ("total_bytes", _MAYBE_COUNT), ("comment", STRING),
            ("metadata_modification_time", DATETIME), ("is_temporary", UINT8),
            ("dependencies_database", _STRINGS), ("dependencies_table", _STRINGS),
            ("target_database", STRING), ("target_table", STRING), ("sampling_key", STRING),
            ("has_own_data", UINT8), ("parts", _MAYBE_COUNT), ("active_parts", _MAYBE_COUNT),
            ("total_marks", _MAYBE_COUNT),
        ),
        _tables,
    ),
    SystemTable(
        "columns",
        (
            ("database", STRING), ("table", STRING), ("name", STRING), ("type", STRING),
            ("position", UINT64), ("default_kind", STRING), ("default_expression", STRING),
            ("data_compressed_bytes", UINT64), ("data_uncompressed_bytes", UINT64),
            ("comment", STRING), ("is_in_partition_key", UINT8), ("is_in_sorting_key", UINT8),
            ("compression_codec", STRING), ("parquet_codec", STRING),
            ("is_in_primary_key", UINT8), ("marks_bytes", UINT64),
        ),
        _columns,
    ),
    SystemTable(
        "parts",
        (
            ("database", STRING), ("table", STRING), ("uuid", STRING), ("name", STRING),
            ("partition_id", STRING), ("partition", STRING), ("part_type", STRING),
            ("active", UINT8), ("rows", UINT64), ("bytes_on_disk", UINT64),
            ("data_compressed_bytes", UINT64), ("data_uncompressed_bytes", UINT64),
            ("marks", UINT64), ("min_block_number", UINT64), ("max_block_number", UINT64),
            ("level", UINT32), ("schema_version", UINT64), ("checksum", STRING), ("path", STRING),
            ("is_bypass", UINT8), ("contributed_rows", UINT64),
            ("modification_time", DATETIME), ("commit", UINT64), ("engine", STRING),
            ("bytes", UINT64), ("disk_name", STRING), ("marks_bytes", UINT64),
            ("primary_key_bytes_in_memory", UINT64),
        ),
        _parts,
    ),
    SystemTable(
        "parts_columns",
        (
            ("database", STRING), ("table", STRING), ("name", STRING), ("partition_id", STRING),
            ("partition", STRING), ("active", UINT8), ("rows", UINT64), ("bytes_on_disk", UINT64),
            ("column", STRING), ("type", STRING), ("column_position", UINT64),
            ("column_bytes_on_disk", UINT64), ("column_data_compressed_bytes", UINT64),
            ("column_data_uncompressed_bytes", UINT64),
        ),
        _parts_columns,
        "The columns that each part holds, with their bytes",
    ),
    SystemTable(
        "data_skipping_indices",
        (
            ("database", STRING), ("table", STRING), ("name", STRING), ("type", STRING),
            ("type_full", STRING), ("expr", STRING), ("granularity", UINT64),
        ),
        _indexes,
    ),
    SystemTable(
        "snapshots",
        (
            ("number", UINT64), ("kind", STRING), ("query_id", STRING), ("statement", STRING),
            ("time", DateTime64(3)), ("process_id", UINT64),
        ),
        _snapshots,
    ),
    SystemTable("one", (("dummy", UINT8),), lambda context: [(0,)]),
)  # fmt: skip
