"""SHOW, DESCRIBE, EXISTS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from olapdb import errors
from olapdb.bind.subcolumns import all_subcolumns
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.bind.virtual import virtual_columns
from olapdb.config import lookup, setting_text
from olapdb.model.schema import Column, MaterializedView, RefreshableView, SchemaObject, Table, View
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot, columns_of
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.sql.format import to_lines
from olapdb.sql.literals import show_names
from olapdb.sql.nested_columns import with_whole_nested
from olapdb.sql.parser import parse_one, parse_query
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_database
from olapdb.statements.introspect.described_functions import described_source, function_defaults
from olapdb.statements.introspect.show_filters import (
    Listing,
    camel_case,
    checked_grant,
    columns_of_table,
    grant_listing,
    indexes_of_table,
    name_listing,
    no_clusters,
    no_indexes,
    no_roles,
    system_rows,
)
from olapdb.statements.query import select
from olapdb.storage.codec import codec_text
from olapdb.system.ddl import create_database, create_statement
from olapdb.system.information_schema import information_tables
from olapdb.types import STRING, UINT8, DataType
from olapdb.types.indented import indented_name


def show(statement: nodes.Show, context: StatementContext) -> Result:
    """Run SHOW as ClickHouse answers it, from the system tables."""
    snapshot = context.reading_snapshot()
    match statement.kind:
        case "CREATE" | "CREATE TABLE" | "CREATE VIEW" | "CREATE DICTIONARY" | "CREATE DATABASE":
            text = _create_statement(statement, context, snapshot)
            return from_columns(
                ["statement"], [STRING], [[to_lines(with_whole_nested(parse_one(text)))]]
            )
        case "SETTING":
            assert statement.table is not None
            value = context.settings[lookup(statement.table.name).name]
            return from_columns(["value"], [STRING], [[setting_text(value)]])
        case "TABLES" if statement.where is not None:
            return _tables_where(statement, context)
        case "MERGES":
            return _merges(statement, context)
        case "PROCESSLIST":
            listing = system_rows("processes", None, "query", context, snapshot)
        case _:
            listing = _listing(statement, context, snapshot)
    return listing.narrowed(statement, context, snapshot)


def _listing(statement: nodes.Show, context: StatementContext, snapshot: Snapshot) -> Listing:
    """Return the rows of a SHOW that lists things, before LIKE, WHERE and LIMIT."""
    match statement.kind:
        case "DATABASES":
            listing = system_rows("databases", ["name"], "name", context, snapshot)
            return name_listing([str(name) for (name,) in listing.rows])
        case "TABLES" | "VIEWS" | "DICTIONARIES":
            return _tables(statement, context, snapshot)
        case "TEMPORARY TABLES":
            return _listed(snapshot.objects(TEMPORARY_DATABASE), full=statement.full)
        case "COLUMNS":
            assert statement.table is not None
            table = _shown_table(statement.table, context, snapshot)
            return columns_of_table(_columns(statement.table, context), table, statement.full)
        case "INDEXES":
            assert statement.table is not None
            table = _shown_table(statement.table, context, snapshot)
            return indexes_of_table(table) if table is not None else no_indexes()
        case "SETTINGS":
            fields = ["name", "type", "value", "changed"]
            listing = system_rows("settings", fields, "name", context, snapshot)
            rows = tuple(row[:3] for row in listing.rows if row[3] or not statement.changed)
            return Listing(listing.fields[:3], rows)
        case "FUNCTIONS":
            return system_rows("functions", None, "name", context, snapshot).by_name()
        case "GRANTS":
            read_only = not context.services.lease_id
            return grant_listing(statement.named, read_only, statement.position)
        case "CHECK GRANT":
            assert statement.named is not None
            return checked_grant(statement.named, read_only=not context.services.lease_id)
        case "CURRENT ROLES" | "ENABLED ROLES":
            return no_roles(enabled=statement.kind == "ENABLED ROLES")
        case "CLUSTERS" | "CLUSTER":
            return no_clusters(whole=statement.kind == "CLUSTER")
        case "FILESYSTEM CACHES":
            return Listing((("Caches", STRING),), (), "Caches")
        case "ENGINES":
            return system_rows("table_engines", None, "name", context, snapshot).by_name()
        case _:
            raise errors.InternalError(f"No handler for SHOW {statement.kind}.")


def _tables(statement: nodes.Show, context: StatementContext, snapshot: Snapshot) -> Listing:
    """Return the listing of SHOW [FULL] TABLES, VIEWS and DICTIONARIES; FULL adds the engines."""
    database = statement.database or context.database
    require_database(database, snapshot, statement.position)
    if statement.kind == "DICTIONARIES":
        return name_listing([o.name for o in snapshot.objects(database) if _is_dictionary(o)])
    if database in SYSTEM_DATABASES[1:]:
        engines = dict.fromkeys(information_tables(), "View")
    elif database == "system":
        engines = {name: f"System{camel_case(name)}" for name in context.engine.system}
    else:
        items = snapshot.objects(database)
        shown = [i for i in items if statement.kind == "TABLES" or _is_view(i)]
        return _listed(shown, full=statement.full)
    return _listing_of(engines, full=statement.full)


def _listed(items: Iterable[SchemaObject], *, full: bool) -> Listing:
    """Return the listing of tables and views by name, with `full` their engines too."""
    engines = {item.name: _engine(item) for item in items}
    return _listing_of(engines, full=full)


def _listing_of(engines: Mapping[str, str], *, full: bool) -> Listing:
    """Return the listing of names, with `full` their engines too."""
    if not full:
        return name_listing(list(engines))
    return Listing((("name", STRING), ("engine", STRING)), tuple(sorted(engines.items())))


def _is_dictionary(item: SchemaObject | None) -> bool:
    """Return whether the object is a dictionary."""
    return isinstance(item, View) and bool(item.dictionary)


def _is_view(item: SchemaObject) -> bool:
    """Return whether the object is a view, materialized or not."""
    is_merge = isinstance(item, View) and bool(item.merges)
    return not isinstance(item, Table) and not _is_dictionary(item) and not is_merge


def _engine(item: SchemaObject) -> str:
    """Return the name of the object's engine: of a table, or of its kind."""
    if isinstance(item, Table):
        return item.engine.name
    if isinstance(item, View) and item.merges:
        return item.engine_name
    return "Dictionary" if _is_dictionary(item) else type(item).__name__


def _tables_where(statement: nodes.Show, context: StatementContext) -> Result:
    """Run SHOW TABLES … WHERE: the condition is over the columns of system.tables."""
    database = statement.database or context.database
    require_database(database, context.reading_snapshot(), statement.position)
    assert statement.where is not None
    names = [nodes.Identifier((name,)) for name in ("name", "engine")]
    of_database = nodes.Function(
        "equals", (nodes.Identifier(("database",)), nodes.Literal(database))
    )
    query = nodes.Select(
        columns=tuple(names if statement.full else names[:1]),
        source=nodes.TableReference(nodes.TableName("tables", "system")),
        where=nodes.Function("and", (of_database, statement.where)),
        order_by=(nodes.OrderItem(names[0]),),
        limit=None if statement.limit is None else nodes.Literal(statement.limit),
        position=statement.position,
    )
    return select.run_query(query, context)


_MERGES = """
SELECT table, database, CAST(NULL, 'Nullable(Float64)') AS estimate_complete,
    round(elapsed, 2) AS elapsed, nan AS progress, is_mutation,
    formatReadableSize(total_size_bytes_compressed) AS size_compressed, '' AS memory_usage
FROM system.merges ORDER BY elapsed DESC
"""
"""A merge's progress is unknown until it commits: NaN, and the estimate is NULL."""


def _merges(statement: nodes.Show, context: StatementContext) -> Result:
    """Run SHOW MERGES, the longest first; LIKE applies to the table."""
    query = parse_query(_MERGES)
    assert isinstance(query, nodes.Select)
    if statement.like is not None:
        match_function = "ilike" if statement.case_insensitive else "like"
        where: nodes.Expression = nodes.Function(
            match_function, (nodes.Identifier(("table",)), nodes.Literal(statement.like))
        )
        query = replace(
            query, where=nodes.Function("not", (where,)) if statement.negated else where
        )
    if statement.limit is not None:
        query = replace(query, limit=nodes.Literal(statement.limit))
    return select.run_query(query, context)


def _shown_table(
    name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> Table | None:
    """Return the stored table whose keys are shown; for a materialized view its target.

    None for a system table or other object without stored rows. Raises UnknownTable.
    """
    if context.locate(name)[0] in SYSTEM_DATABASES:
        _columns(name, context)  # raises UnknownTable
        return None
    item: SchemaObject | None = context.require(snapshot, name)
    if isinstance(item, MaterializedView | RefreshableView):
        item = snapshot.by_id(item.target_id)
    return item if isinstance(item, Table) else None


def _create_statement(statement: nodes.Show, context: StatementContext, snapshot: Snapshot) -> str:
    """Return the CREATE statement of the object. Raise BadArguments for SHOW CREATE VIEW of a
    table or dictionary, and for SHOW CREATE DICTIONARY of another object."""
    if statement.kind == "CREATE DATABASE":
        name = statement.database or context.database
        require_database(name, snapshot, statement.position)
        return create_database(name, snapshot.databases.get(name))
    assert statement.table is not None
    database = context.locate(statement.table)[0]
    if database in SYSTEM_DATABASES:
        columns = _columns(statement.table, context)
        column_list = ", ".join(f"`{column.name}` {column.type.name}" for column in columns)
        name = statement.table.name
        return f"CREATE TABLE {database}.{name} ({column_list}) ENGINE = System{camel_case(name)}"
    item = _created_object(statement.table, context, snapshot)
    is_dictionary = _is_dictionary(item)
    wrong_kind = is_dictionary != (statement.kind == "CREATE DICTIONARY")
    if (statement.kind == "CREATE VIEW" and isinstance(item, Table)) or (
        wrong_kind
        and statement.kind in ("CREATE VIEW", "CREATE DICTIONARY")
        and (is_dictionary or statement.kind == "CREATE DICTIONARY")
    ):
        raise errors.BadArguments(
            f"{item.database}.{item.name} is not a {statement.kind.split()[1].lower()}.",
            hint="Say SHOW CREATE TABLE.",
            position=statement.table.position,
        )
    return create_statement(item, snapshot)


def _created_object(
    name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> SchemaObject:
    """Return the object of that name. Raise CannotGetCreateTableQuery if there is none."""
    try:
        return context.require(snapshot, name)
    except errors.UnknownTable as error:
        raise errors.CannotGetCreateTableQuery(error.message, hint=error.hint).at(
            name.position
        ) from None


_DESCRIBED = (
    "name",
    "type",
    "default_type",
    "default_expression",
    "comment",
    "codec_expression",
    "ttl_expression",
)


def describe(statement: nodes.Describe, context: StatementContext) -> Result:
    """Run DESCRIBE TABLE t or DESCRIBE (SELECT …): ClickHouse's seven columns, or as the settings
    describe_… choose."""
    context = context.with_settings(statement.settings)
    described_query = described_source(statement.query)
    table = described_query if isinstance(described_query, nodes.TableName) else statement.table
    if isinstance(described_query, nodes.Select | nodes.SetOperation):
        result_columns = select.describe(described_query, context)
        defaults = function_defaults(described_query)
        rows: list[tuple[object, ...]] = [
            (name, indented_name(data_type), *defaults.get(name, ("", "")), "", "", "")
            for name, data_type in result_columns
        ]
        virtual_rows: list[tuple[object, ...]] = []
        parts = _subcolumn_rows(result_columns)
    else:
        assert table is not None
        _refuse_parameters(table, context)
        described = _columns(table, context)
        rows = [_describe_row(column) for column in described]
        virtual_rows = _virtual_rows(table, context)
        parts = [
            (*part[:4], row[4], "" if _OF_STRUCTURE.search(str(part[0])) else row[5], row[6])
            for row, column in zip(rows, described, strict=True)
            for part in _subcolumn_rows([(column.name, column.type)])
        ]
    has_parts = context.settings.boolean("describe_include_subcolumns")
    if not has_parts:
        parts = []
    every = [*rows, *virtual_rows, *parts]
    column_count = 2 if context.settings.boolean("describe_compact_output") else len(_DESCRIBED)
    names: list[str] = list(_DESCRIBED[:column_count])
    types: list[DataType] = [STRING] * column_count
    columns: list[list[object]] = [[row[i] for row in every] for i in range(column_count)]
    before = len(rows), len(virtual_rows)
    if has_parts:
        names, types = [*names, "is_subcolumn"], [*types, UINT8]
        columns.append([int(at >= sum(before)) for at in range(len(every))])
    if context.settings.boolean("describe_include_virtual_columns"):
        names, types = [*names, "is_virtual"], [*types, UINT8]
        columns.append([int(before[0] <= at < sum(before)) for at in range(len(every))])
    return from_columns(names, types, columns)


_OF_STRUCTURE = re.compile(r"\.(?:null|size[0-9]+)\Z")
"""Names of the parts that say where values are, which the column's codec does not compress."""


def _subcolumn_rows(columns: Iterable[tuple[str, DataType]]) -> list[tuple[object, ...]]:
    """Return the rows of DESCRIBE for the subcolumns of these columns, at every depth."""
    return [
        (f"{name}.{path}", indented_name(part), "", "", "", "", "")
        for name, data_type in columns
        for path, part in all_subcolumns(data_type)
    ]


def _refuse_parameters(name: nodes.TableName, context: StatementContext) -> None:
    """Raise NoColumnsWithoutParameters for a view with parameters: it has no columns until they are given."""
    item = context.find(context.reading_snapshot(), name)
    if isinstance(item, View) and item.has_parameters:
        raise errors.NoColumnsWithoutParameters(
            f"The view {item.database}.{item.name} has no columns without its parameters.",
            hint=f"DESCRIBE {item.name}(name = value, …).",
            position=name.position,
        )


def _virtual_rows(name: nodes.TableName, context: StatementContext) -> list[tuple[object, ...]]:
    """Return the rows of DESCRIBE for the virtual columns of the table. Return [] unless the
    setting describe_include_virtual_columns is on, and for an object without stored rows."""
    if not context.settings.boolean("describe_include_virtual_columns"):
        return []

    table = _shown_table(name, context, context.reading_snapshot())
    if table is None:
        return []
    return [
        (column.name, column.type.name, "", "", column.comment, "", "")
        for column in virtual_columns(table)
    ]


def _columns(name: nodes.TableName, context: StatementContext) -> tuple[Column, ...]:
    """Return the columns of a table, view or system table; of a materialized view without its own,
    those of its target. Raise UnknownTable."""
    database, table = context.locate(name)
    if database in SYSTEM_DATABASES:
        system_table = context.system_table(database, table)
        if system_table is None:
            raise errors.UnknownTable(
                f"There is no system table {database}.{table}.",
                hint=f"SHOW TABLES FROM {database} lists them.",
                position=name.position,
            )
        return tuple(
            Column(number, column_name, data_type)
            for number, (column_name, data_type) in enumerate(system_table.fields)
        )
    snapshot = context.reading_snapshot()
    item = context.require(snapshot, name)
    if isinstance(item, MaterializedView) and not item.columns:
        target = snapshot.by_id(item.target_id)
        return target.columns if target is not None else ()
    return columns_of(snapshot, item)


def _describe_row(column: Column) -> tuple[object, ...]:
    """Return the column's row of DESCRIBE."""
    return (
        column.name,
        indented_name(column.type),
        column.default_kind,
        show_names(column.described_default),
        column.comment,
        codec_text(column),
        show_names(column.ttl),
    )


def exists(statement: nodes.ExistsObject, context: StatementContext) -> Result:
    """Return one row, `result`: 1 or 0."""
    snapshot = context.reading_snapshot()
    if statement.kind == "DATABASE":
        name = statement.name.name
        object_exists = name in snapshot.databases or name in SYSTEM_DATABASES
    else:
        item = context.find(snapshot, statement.name)
        object_exists = item is not None and (
            statement.kind == "TABLE"
            or (
                (statement.kind == "DICTIONARY") == _is_dictionary(item)
                and not isinstance(item, Table)
            )
        )
    return from_columns(["result"], [UINT8], [[int(object_exists)]])
