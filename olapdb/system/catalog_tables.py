"""system.databases, tables, columns, snapshots, one; with ClickHouse's column names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from olapdb import types
from olapdb.bind.syntax import walk
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.engine.projections import bind_projection
from olapdb.model.columns import PartColumns
from olapdb.model.schema import MaterializedView, RefreshableView, SchemaObject, Table, View
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import columns_of
from olapdb.sql.literals import show_names
from olapdb.sql.nodes import Identifier
from olapdb.sql.parser import parse_expression, parse_query
from olapdb.sql.view_parameters import parameters_of
from olapdb.storage.codec import codec_clause, parquet_text
from olapdb.storage.projection_reader import stored_projection
from olapdb.storage.reader import PartReader
from olapdb.storage.store import LocalStore
from olapdb.system.ddl import (
    create_statement,
    engine_full,
    expression_list,
    shown_keys,
    view_engine,
)
from olapdb.system.information_schema import DATABASE, information_tables
from olapdb.system.part_tables import live_parts
from olapdb.system.registry import Row, SystemContext, SystemTable, moment


def _databases(context: SystemContext) -> Iterator[Row]:
    """List the databases by name, then system and information_schema."""
    path = _root(context)
    for database in sorted(context.snapshot.databases.values(), key=lambda d: d.name):
        yield database.name, "Atomic", database.id, database.comment, path, 0
    yield "system", "Memory", "", "What the warehouse knows of itself", path, 0
    for name in SYSTEM_DATABASES[1:]:
        yield name, "Memory", "", "The same, by the names of the SQL standard", path, 0


def _root(context: SystemContext) -> str:
    """Return the absolute path of the warehouse's folder with a slash at its end; "" in memory."""
    store = context.services.store
    return f"{store.root.absolute()}/" if isinstance(store, LocalStore) else ""


def _totals(context: SystemContext, item: SchemaObject) -> tuple[int | None, int | None]:
    """Return rows and bytes of a table, or of a view's inner table; (None, None) for other
    views."""
    target = item if isinstance(item, Table) else None
    if isinstance(item, MaterializedView | RefreshableView) and item.inner:
        inner = context.snapshot.by_id(item.target_id)
        target = inner if isinstance(inner, Table) else None
    if target is None:
        return None, None
    parts = live_parts(context, target)
    return sum(p.rows for p in parts), sum(p.bytes for p in parts)


_ENGINES = {View: "View", MaterializedView: "MaterializedView", RefreshableView: "MaterializedView"}
"""What system.tables.engine calls the views."""
_DICTIONARY = "Dictionary"


def _engine(item: SchemaObject) -> str:
    """Return what system.tables.engine calls a view or a dictionary."""
    if isinstance(item, View) and item.merges:
        return item.engine_name
    is_dictionary = isinstance(item, View) and bool(item.dictionary)
    return _DICTIONARY if is_dictionary else _ENGINES[type(item)]


def _is_engine(item: SchemaObject) -> bool:
    """Return whether an object that is stored as a view is shown as a table with an engine of its own: a dictionary, or
    a table of the engine Merge or Alias."""
    return isinstance(item, View) and bool(item.dictionary or item.merges)


_COUNTED = (
    "total_rows",
    "total_bytes",
    "parts",
    "active_parts",
    "total_marks",
    "total_bytes_uncompressed",
)
"""The columns of system.tables for which the parts of a table are read."""


def _tables(context: SystemContext) -> Iterator[Row]:
    """List tables and views of all databases, then information_schema's and the system tables."""
    snapshot, root = context.snapshot, _root(context)
    renders, counts = context.needs("create_table_query"), context.needs(*_COUNTED)
    for item in chain(context.temporary(), context.objects()):
        table = item if isinstance(item, Table) else None
        is_temporary = item.database == TEMPORARY_DATABASE
        rows, size = _totals(context, item) if counts else (None, None)
        target = None
        if isinstance(item, MaterializedView | RefreshableView):
            target = snapshot.by_id(item.target_id)
        views = snapshot.views_on(item.id) if table else ()
        statement = create_statement(item, snapshot) if renders else ""
        yield (
            item.database,
            item.name,
            item.id,
            table.engine.name if table else _engine(item),
            _engine_full(item) if context.needs("engine_full") else "",
            statement,
            "" if isinstance(item, Table) or _is_engine(item) else item.query,
            show_names(table.partition_key) if table else "",
            show_names(shown_keys(table)[1]) if table else "",
            show_names(shown_keys(table)[0]) if table else "",
            rows,
            size,
            item.comment,
            moment(item.created_ms),
            int(is_temporary),
            [v.database for v in views],
            [v.name for v in views],
            target.database if target else "",
            target.name if target else "",
            show_names(table.sampling_key) if table else "",
            int(table is not None),
            *_part_counts(context, table if counts else None),
            table.revision if table else 0,
            sorted({i.type for i in table.indexes} if table else ()),
            "default" if table and table.engine.is_merge_tree else "",
            [f"{root}data/{table.id}/"] if root and table and not is_temporary else [],
            _parameters(item) if context.needs("parameterized_view_parameters") else [],
        )
    for name in information_tables():
        if context.keeps(database=DATABASE, name=name):
            yield {"database": DATABASE, "name": name, "engine": "View"}
    for name, system_table in context.tables.items():
        if not context.keeps(database="system", name=name):
            continue
        engine = f"System{name.title().replace('_', '')}"
        comment = system_table.comment
        yield {"database": "system", "name": name, "engine": engine, "comment": comment}


def _engine_full(item: SchemaObject) -> str:
    """Return the engine with its clauses, "" for a view."""
    if isinstance(item, Table):
        return engine_full(item)
    return view_engine(item) if isinstance(item, View) else ""


def _names_in(key: str) -> frozenset[str]:
    """Return the columns that a key's text names; "" names none."""
    nodes = walk(parse_expression(key)) if key else ()
    return frozenset(node.parts[-1] for node in nodes if isinstance(node, Identifier))


def _parameters(item: SchemaObject) -> list[tuple[str, str]]:
    """Return (name, type) of the parameters of a view that is called with values."""
    if not isinstance(item, View) or not item.has_parameters:
        return []
    return [(name, t.name) for name, t in parameters_of(parse_query(item.query)).items()]


def _part_counts(
    context: SystemContext, table: Table | None
) -> tuple[int | None, int | None, int | None, int | None]:
    """Return the number of parts, of active parts (all of them), of row groups, and the
    uncompressed bytes; None for each without a table."""
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
    """List the columns of all tables and views by position (from 1), then those of system
    tables."""
    sizes = context.needs("data_compressed_bytes", "data_uncompressed_bytes")
    for item in chain(context.temporary("table"), context.objects("table")):
        table = item if isinstance(item, Table) else None
        parts = live_parts(context, table) if table and sizes else []
        part_columns = PartColumns(table) if table and sizes else None
        keys = [k.expression.strip("`") for k in table.sorting_key] if table else []
        sampling = _names_in(table.sampling_key) if table else frozenset()
        sorting, primary = set(keys), set(keys[: table.primary_key] if table else [])
        for position, column in enumerate(columns_of(context.snapshot, item), 1):
            yield (
                item.database,
                item.name,
                column.name,
                column.type.name,
                position,
                column.default_kind,
                show_names(column.described_default),
                sum(part_columns.sizes(p, p.compressed_bytes, column) for p in parts)
                if part_columns
                else 0,
                sum(part_columns.sizes(p, p.uncompressed_bytes, column) for p in parts)
                if part_columns
                else 0,
                column.comment,
                int(table is not None and column.name in table.partition_key),
                int(column.name in sorting),
                codec_clause(column),
                parquet_text(column)
                if table is not None and column.stored and context.needs("parquet_codec")
                else "",
                int(column.name in primary),
                0,
                int(column.name in sampling),
                *_precision(column.type),
            )
    known_tables = [("system", system_table) for system_table in context.tables.values()]
    known_tables += [(DATABASE, system_table) for system_table in information_tables().values()]
    for database, system_table in known_tables:
        if not context.keeps(database=database, table=system_table.name):
            continue
        for position, (name, data_type) in enumerate(system_table.fields, 1):
            yield {
                "database": database,
                "table": system_table.name,
                "name": name,
                "type": data_type.name,
                "position": position,
                **dict(zip(_PRECISION, _precision(data_type), strict=True)),
            }


_PRECISION = (
    "character_octet_length",
    "numeric_precision",
    "numeric_precision_radix",
    "numeric_scale",
    "datetime_precision",
)


def _precision(data_type: types.DataType) -> tuple[int | None, ...]:
    """Return the values of `_PRECISION`: bytes of a text; digits of a number, their base and scale;
    fractional digits of a second. None for each that the type does not have."""
    inner = types.plain(data_type)
    match inner:
        case types.FixedString(length):
            return length, None, None, None, None
        case types.Integer(bits):
            return None, bits, 2, 0, None
        case types.Boolean():
            return None, 8, 2, 0, None
        case types.WideNumber(bits=bits):
            return None, bits, 2, 0, None
        case types.Decimal(precision, scale):
            return None, precision, 10, scale, None
        case types.Date() | types.Date32() | types.DateTime():
            return None, None, None, None, 0
        case types.DateTime64(precision):
            return None, None, None, None, precision
        case _:
            return None, None, None, None, None


def _indexes(context: SystemContext) -> Iterator[Row]:
    """List the skip indexes of all tables."""
    for item in context.objects("table"):
        for index in item.indexes if isinstance(item, Table) else ():
            yield (
                item.database,
                item.name,
                index.name,
                index.type,
                index.type_full,
                show_names(expression_list(index.expression)),
                index.granularity,
                "Explicit",
            )


def _constraints(context: SystemContext) -> Iterator[Row]:
    """List the constraints of all tables, in the order of each table."""
    for item in context.objects("table"):
        if not isinstance(item, Table):
            continue
        for name, condition in item.constraints:
            kind = "ASSUME" if name in item.assumed else "CHECK"
            yield item.database, item.name, name, kind, show_names(condition)


def _projections(context: SystemContext) -> Iterator[Row]:
    """List the projections of all tables."""
    for item in context.objects("table"):
        for p in item.projections if isinstance(item, Table) else ():
            yield item.database, item.name, p.name, p.kind, list(p.sorting_key), p.query, {}


def _projection_parts(context: SystemContext) -> Iterator[Row]:
    """List the projections that the live parts hold; it reads their footers."""
    store, snapshot = context.services.store, context.snapshot
    for item in context.objects("table"):
        if not isinstance(item, Table) or not item.projections:
            continue
        shapes = [bind_projection(p, item) for p in item.projections]
        for part in snapshot.parts(item.id):
            reader = PartReader(store, snapshot, part, item)
            for bound in shapes:
                place = stored_projection(reader, bound.definition, bound.column_types)
                if place is not None:
                    yield (
                        *(part.partition_id, bound.definition.name, part.name, 1),
                        *(place.granules, place.rows, place.size_bytes),
                        *(part.rows, part.bytes, item.database, item.name),
                    )


def _snapshots(context: SystemContext) -> Iterator[Row]:
    """List the commits up to the snapshot that the query reads, the oldest first."""
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
    """List the dropped tables that vacuum still knows; `complete` ones can be recovered by
    UNDROP."""
    for index, dropped in enumerate(context.services.catalog.dropped_tables()):
        table = dropped.table
        yield (
            index,
            table.database,
            table.name,
            table.id,
            table.engine.name,
            moment(dropped.dropped_ms),
            int(dropped.complete),
        )


TABLES = (
    SystemTable(
        "databases",
        """name String, engine String, uuid String, comment String, data_path String,
        is_external UInt8""",
        _databases,
    ),
    SystemTable(
        "dropped_tables",
        """index UInt32, database String, table String, uuid String, engine String,
        table_dropped_time DateTime, complete UInt8""",
        _dropped_tables,
        "What UNDROP TABLE may bring back, while its parts are complete",
    ),
    SystemTable(
        "tables",
        """database String, name String, uuid String, engine String, engine_full String,
        create_table_query String, as_select String, partition_key String, sorting_key String,
        primary_key String, total_rows Nullable(UInt64), total_bytes Nullable(UInt64),
        comment String, metadata_modification_time DateTime, is_temporary UInt8,
        dependencies_database Array(String), dependencies_table Array(String),
        target_database String, target_table String, sampling_key String, has_own_data UInt8,
        parts Nullable(UInt64), active_parts Nullable(UInt64), total_marks Nullable(UInt64),
        total_bytes_uncompressed Nullable(UInt64), metadata_version Int32,
        skipping_indices_types Array(String), storage_policy String, data_paths Array(String),
        parameterized_view_parameters Array(Tuple(name String, type String))""",
        _tables,
    ),
    SystemTable(
        "columns",
        """database String, table String, name String, type String, position UInt64,
        default_kind String, default_expression String, data_compressed_bytes UInt64,
        data_uncompressed_bytes UInt64, comment String, is_in_partition_key UInt8,
        is_in_sorting_key UInt8, compression_codec String, parquet_codec String,
        is_in_primary_key UInt8, marks_bytes UInt64, is_in_sampling_key UInt8,
        character_octet_length Nullable(UInt64), numeric_precision Nullable(UInt64),
        numeric_precision_radix Nullable(UInt64), numeric_scale Nullable(UInt64),
        datetime_precision Nullable(UInt64)""",
        _columns,
    ),
    SystemTable(
        "data_skipping_indices",
        """database String, table String, name String, type String, type_full String, expr String,
        granularity UInt64, creation Enum8('Explicit' = 0, 'Implicit' = 1)""",
        _indexes,
    ),
    SystemTable(
        "constraints",
        "database String, table String, name String, type Enum8('CHECK' = 0, 'ASSUME' = 1),"
        " expression String",
        _constraints,
    ),
    SystemTable(
        "projections",
        """database String, table String, name String, type Enum8('Normal' = 0, 'Aggregate' = 1),
        sorting_key Array(String),
        query String, settings Map(String, String)""",
        _projections,
    ),
    SystemTable(
        "projection_parts",
        """partition_id String, name String, parent_name String, active UInt8, marks UInt64,
        rows UInt64, bytes_on_disk UInt64, parent_rows UInt64, parent_bytes_on_disk UInt64,
        database String, table String""",
        _projection_parts,
    ),
    SystemTable(
        "snapshots",
        """number UInt64, kind String, query_id String, statement String, time DateTime64(3),
        process_id UInt64""",
        _snapshots,
    ),
    SystemTable("one", "dummy UInt8", lambda context: [(0,)]),
)
