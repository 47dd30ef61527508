"""system.databases, tables, columns, snapshots, one; with ClickHouse's column names."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb import types
from olapdb.model.columns import PartColumns
from olapdb.model.schema import MaterializedView, SchemaObject, Table, View
from olapdb.storage.codec import codec_clause, parquet_text
from olapdb.storage.store import LocalStore
from olapdb.system.ddl import create_statement, engine_full, key_list
from olapdb.system.part_tables import live_parts
from olapdb.system.registry import SYSTEM_DATABASES, Row, SystemContext, SystemTable, moment

_STRINGS: types.DataType = types.Array(types.STRING)
_MAYBE_COUNT: types.DataType = types.Nullable(types.UINT64)


def _databases(context: SystemContext) -> Iterator[Row]:
    path = _root(context)
    for database in sorted(context.snapshot.databases.values(), key=lambda d: d.name):
        yield database.name, "Atomic", database.id, database.comment, path, 0
    yield "system", "Memory", "", "What the warehouse knows of itself", path, 0
    for name in SYSTEM_DATABASES[1:]:
        yield name, "Memory", "", "The same, by the names of the SQL standard", path, 0


def _root(context: SystemContext) -> str:
    """The folder of the warehouse; "" in memory."""
    store = context.services.store
    return f"{store.root.absolute()}/" if isinstance(store, LocalStore) else ""


def _totals(context: SystemContext, item: SchemaObject) -> tuple[int | None, int | None]:
    target = item if isinstance(item, Table) else None
    if isinstance(item, MaterializedView) and item.inner:
        found = context.snapshot.by_id(item.target_id)
        target = found if isinstance(found, Table) else None
    if target is None:
        return None, None
    parts = live_parts(context, target)
    return sum(p.rows for p in parts), sum(p.bytes for p in parts)


def _tables(context: SystemContext) -> Iterator[Row]:
    snapshot, root = context.snapshot, _root(context)
    for item in snapshot.objects():
        table = item if isinstance(item, Table) else None
        rows, size = _totals(context, item)
        target = snapshot.by_id(item.target_id) if isinstance(item, MaterializedView) else None
        views = snapshot.views_on(item.id) if table else ()
        statement = create_statement(item, snapshot)
        yield (
            item.database,
            item.name,
            item.id,
            table.engine.name if table else type(item).__name__,
            engine_full(table) if table else "",
            statement,
            item.query if isinstance(item, View | MaterializedView) else "",
            table.partition_key if table else "",
            key_list(table.sorting_key) if table else "",
            key_list(table.sorting_key[: table.primary_key]) if table else "",
            rows,
            size,
            item.comment,
            moment(item.created_ms),
            0,
            [v.database for v in views],
            [v.name for v in views],
            target.database if target else "",
            target.name if target else "",
            "",
            int(table is not None),
            *_part_counts(context, table),
            table.revision if table else 0,
            sorted({i.type for i in table.indexes} if table else ()),
            "default" if table and table.engine.is_merge_tree else "",
            [f"{root}data/{table.id}/"] if root and table else [],
        )
    from olapdb.system.information_schema import DATABASE, information_tables
    from olapdb.system.registry import tables

    for name in information_tables():
        yield (
            DATABASE,
            name,
            "",
            "View",
            "",
            "",
            "",
            "",
            "",
            "",
            None,
            None,
            "",
            moment(0),
            0,
            [],
            [],
            "",
            "",
            "",
            0,
            None,
            None,
            None,
            None,
            0,
            [],
            "",
            [],
        )

    for name, known in tables().items():
        yield (
            "system",
            name,
            "",
            f"System{name.title().replace('_', '')}",
            "",
            "",
            "",
            "",
            "",
            "",
            None,
            None,
            known.comment,
            moment(0),
            0,
            [],
            [],
            "",
            "",
            "",
            0,
            None,
            None,
            None,
            None,
            0,
            [],
            "",
            [],
        )


def _part_counts(
    context: SystemContext, table: Table | None
) -> tuple[int | None, int | None, int | None, int | None]:
    """Parts, active ones, which is all of them, row groups, and bytes before compression."""
    if table is None:
        return None, None, None, None
    parts = live_parts(context, table)
    return (
        len(parts),
        len(parts),
        sum(part.granules for part in parts),
        sum(sum(part.uncompressed_bytes.values()) for part in parts),
    )


def _columns(context: SystemContext) -> Iterator[Row]:
    from olapdb.system.information_schema import DATABASE, information_tables
    from olapdb.system.registry import tables

    for item in context.snapshot.objects():
        table = item if isinstance(item, Table) else None
        parts = live_parts(context, table) if table else []
        known = PartColumns(table) if table else None
        keys = [k.expression.strip("`") for k in table.sorting_key] if table else []
        sorting, primary = set(keys), set(keys[: table.primary_key] if table else [])
        for position, column in enumerate(item.columns, 1):
            yield (
                item.database,
                item.name,
                column.name,
                column.type.name,
                position,
                column.default_kind,
                column.default,
                sum(known.sizes(p, p.compressed_bytes, column) for p in parts) if known else 0,
                sum(known.sizes(p, p.uncompressed_bytes, column) for p in parts) if known else 0,
                column.comment,
                int(table is not None and column.name in table.partition_key),
                int(column.name in sorting),
                codec_clause(column),
                parquet_text(column, table) if table is not None and column.stored else "",
                int(column.name in primary),
                0,
                0,
                *_precision(column.type),
            )
    known_tables = [("system", one) for one in tables().values()]
    known_tables += [(DATABASE, one) for one in information_tables().values()]
    for database, system_table in known_tables:
        for position, (name, data_type) in enumerate(system_table.fields, 1):
            yield (
                database,
                system_table.name,
                name,
                data_type.name,
                position,
                "",
                "",
                0,
                0,
                "",
                0,
                0,
                "",
                "",
                0,
                0,
                0,
                *_precision(data_type),
            )


def _precision(data_type: types.DataType) -> tuple[int | None, ...]:
    """Bytes of a text; digits of a number, their base and those after the point; digits after the
    point of a second."""
    inner = types.plain(data_type)
    match inner:
        case types.FixedString(length):
            return length, None, None, None, None
        case types.Integer(bits):
            return None, bits, 2, 0, None
        case types.Float(bits):
            return None, bits, 2, None, None
        case types.Decimal(precision, scale):
            return None, precision, 10, scale, None
        case types.Date() | types.Date32() | types.DateTime():
            return None, None, None, None, 0
        case types.DateTime64(precision):
            return None, None, None, None, precision
        case _:
            return None, None, None, None, None


def _indexes(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
        for index in item.indexes if isinstance(item, Table) else ():
            yield (
                item.database,
                item.name,
                index.name,
                index.type,
                index.type_full,
                index.expression,
                index.granularity,
                "Explicit",
            )


def _snapshots(context: SystemContext) -> Iterator[Row]:
    for entry in context.services.catalog.commits(up_to=context.snapshot.number):
        yield (
            entry.number,
            entry.kind,
            entry.query_id,
            entry.statement,
            moment(entry.time_ms),
            entry.process_id,
        )


def _dropped_tables(context: SystemContext) -> Iterator[Row]:
    for index, one in enumerate(context.services.catalog.dropped_tables()):
        table = one.table
        yield (
            index,
            table.database,
            table.name,
            table.id,
            table.engine.name,
            moment(one.dropped_ms),
            int(one.complete),
        )


TABLES = (
    SystemTable(
        "databases",
        (
            ("name", types.STRING),
            ("engine", types.STRING),
            ("uuid", types.STRING),
            ("comment", types.STRING),
            ("data_path", types.STRING),
            ("is_external", types.UINT8),
        ),
        _databases,
    ),
    SystemTable(
        "dropped_tables",
        (
            ("index", types.UINT32),
            ("database", types.STRING),
            ("table", types.STRING),
            ("uuid", types.STRING),
            ("engine", types.STRING),
            ("table_dropped_time", types.DATETIME),
            ("complete", types.UINT8),
        ),
        _dropped_tables,
        "What UNDROP TABLE may bring back, while its parts are complete",
    ),
    SystemTable(
        "tables",
        (
            ("database", types.STRING),
            ("name", types.STRING),
            ("uuid", types.STRING),
            ("engine", types.STRING),
            ("engine_full", types.STRING),
            ("create_table_query", types.STRING),
            ("as_select", types.STRING),
            ("partition_key", types.STRING),
            ("sorting_key", types.STRING),
            ("primary_key", types.STRING),
            ("total_rows", _MAYBE_COUNT),
            ("total_bytes", _MAYBE_COUNT),
            ("comment", types.STRING),
            ("metadata_modification_time", types.DATETIME),
            ("is_temporary", types.UINT8),
            ("dependencies_database", _STRINGS),
            ("dependencies_table", _STRINGS),
            ("target_database", types.STRING),
            ("target_table", types.STRING),
            ("sampling_key", types.STRING),
            ("has_own_data", types.UINT8),
            ("parts", _MAYBE_COUNT),
            ("active_parts", _MAYBE_COUNT),
            ("total_marks", _MAYBE_COUNT),
            ("total_bytes_uncompressed", _MAYBE_COUNT),
            ("metadata_version", types.INT32),
            ("skipping_indices_types", _STRINGS),
            ("storage_policy", types.STRING),
            ("data_paths", _STRINGS),
        ),
        _tables,
    ),
    SystemTable(
        "columns",
        (
            ("database", types.STRING),
            ("table", types.STRING),
            ("name", types.STRING),
            ("type", types.STRING),
            ("position", types.UINT64),
            ("default_kind", types.STRING),
            ("default_expression", types.STRING),
            ("data_compressed_bytes", types.UINT64),
            ("data_uncompressed_bytes", types.UINT64),
            ("comment", types.STRING),
            ("is_in_partition_key", types.UINT8),
            ("is_in_sorting_key", types.UINT8),
            ("compression_codec", types.STRING),
            ("parquet_codec", types.STRING),
            ("is_in_primary_key", types.UINT8),
            ("marks_bytes", types.UINT64),
            ("is_in_sampling_key", types.UINT8),
            ("character_octet_length", _MAYBE_COUNT),
            ("numeric_precision", _MAYBE_COUNT),
            ("numeric_precision_radix", _MAYBE_COUNT),
            ("numeric_scale", _MAYBE_COUNT),
            ("datetime_precision", _MAYBE_COUNT),
        ),
        _columns,
    ),
    SystemTable(
        "data_skipping_indices",
        (
            ("database", types.STRING),
            ("table", types.STRING),
            ("name", types.STRING),
            ("type", types.STRING),
            ("type_full", types.STRING),
            ("expr", types.STRING),
            ("granularity", types.UINT64),
            ("creation", types.STRING),
        ),
        _indexes,
    ),
    SystemTable(
        "snapshots",
        (
            ("number", types.UINT64),
            ("kind", types.STRING),
            ("query_id", types.STRING),
            ("statement", types.STRING),
            ("time", types.DateTime64(3)),
            ("process_id", types.UINT64),
        ),
        _snapshots,
    ),
    SystemTable("one", (("dummy", types.UINT8),), lambda context: [(0,)]),
)
