"""CREATE statements of existing objects, as SHOW CREATE and system.tables print them."""

from __future__ import annotations

from dataclasses import replace

from olapdb.bind.analysis import referenced_tables
from olapdb.bind.dictionary_definition import definition_of
from olapdb.config import SESSION_SETTINGS
from olapdb.model.schema import (
    Column,
    DatabaseEntry,
    KeyItem,
    MaterializedView,
    RefreshableView,
    SchemaObject,
    Table,
    View,
)
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot, columns_of
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.nodes import Literal, TableName
from olapdb.sql.parser import parse_expression, parse_query, parse_refresh
from olapdb.storage.codec import codec_clause
from olapdb.system.dictionary_ddl import current_statement
from olapdb.types import backquoted, quote_identifier


def view_engine(item: View) -> str:
    """Return the engine of a table that stores no rows, `Dictionary` with its dictionary's name."""
    if item.called_function:
        return ""
    if item.engine_name != "Dictionary":
        return item.merges
    ((database, name),) = {
        (table.database or item.database, table.name)
        for table in referenced_tables(parse_query(item.query))
    }
    shown = name if database == item.database else f"{database}.{name}"
    return f"Dictionary({to_sql(Literal(shown))})"


def qualified(database: str, name: str) -> str:
    """Return the quoted name with its database."""
    return f"{quote_identifier(database)}.{quote_identifier(name)}"


def create_database(name: str, database: DatabaseEntry | None) -> str:
    """Return the CREATE DATABASE statement; `database` None: a database of system tables."""
    if database is None:
        return f"CREATE DATABASE {quote_identifier(name)} ENGINE = Memory"
    text = f"CREATE DATABASE {quote_identifier(name)} ENGINE = Atomic"
    return text + _comment(database.comment)


def create_statement(item: SchemaObject, snapshot: Snapshot) -> str:
    """Return the statement that creates the object, in one line with qualified names."""
    match item:
        case Table():
            return _create_table(item)
        case View() if item.dictionary:
            return to_sql(current_statement(item, definition_of(item)))
        case View() if item.merges:
            listed = _columns(columns_of(snapshot, item))
            head = f"CREATE TABLE {qualified(item.database, item.name)}"
            head += f" ({listed})" if listed else ""  # the table of an Alias may be gone
            if item.called_function:
                return f"{head} AS {item.called_function}{_comment(item.comment)}"
            return f"{head} ENGINE = {view_engine(item)}{_comment(item.comment)}"
        case View():
            columns = f" ({_columns(item.columns)})" if item.columns else ""
            head = f"CREATE VIEW {qualified(item.database, item.name)}"
            if item.database == TEMPORARY_DATABASE:
                head = f"CREATE TEMPORARY VIEW {quote_identifier(item.name)}"
            return f"{head}{columns} AS {item.query}{_comment(item.comment)}"
        case MaterializedView():
            return _create_materialized_view(item, snapshot)
        case RefreshableView():
            return create_refreshable(item, snapshot.by_id(item.target_id), snapshot)


def engine_full(table: Table) -> str:
    """Return `MergeTree PARTITION BY … ORDER BY … SETTINGS …`, the content of
    system.tables.engine_full."""
    text = str(table.engine)
    if not table.engine.is_merge_tree:
        return text + _settings(table.settings)
    if table.partition_key:
        text += f" PARTITION BY {table.partition_key}"
    primary, order = key_clauses(table)
    text += f" PRIMARY KEY {primary}" if primary else ""
    text += f" ORDER BY {order}"
    if table.sampling_key:
        text += f" SAMPLE BY {table.sampling_key}"
    if table.ttl:
        text += f" TTL {table.ttl}"
    settings = table.settings
    if all(name != "index_granularity" for name, _ in settings):
        settings += (("index_granularity", table.setting("index_granularity")),)
    return text + _settings(settings)


def key_clauses(table: Table) -> tuple[str, str]:
    """Return the texts of PRIMARY KEY, "" for none, and of ORDER BY, as they were written unless an
    ALTER changed the key since."""
    order_by = _order_by(table)
    *declared, items = table.declared_keys or ("", "", "")
    if table.declared_keys and items == key_list(table.sorting_key):
        primary, order = declared
        return primary, order or primary or "tuple()"
    primary = ""
    if 0 < table.primary_key < len(order_by):
        kept = table.sorting_key[: table.primary_key]
        primary = key_text(kept)
        if table.declared_keys and f"{items}, ".startswith(f"{key_list(kept)}, "):
            primary = declared[0] or declared[1]
    return primary, key_text(order_by) if order_by else "tuple()"


def shown_keys(table: Table) -> tuple[str, str]:
    """Return the content of primary_key and sorting_key of system.tables: the items of the keys, one
    in parentheses with them if it was written so."""
    primary, order = key_clauses(table)
    whole = table.primary_key == len(table.sorting_key)
    shown = (
        (primary or (order if whole else ""), table.sorting_key[: table.primary_key]),
        (order, table.sorting_key),
    )
    texts = (
        text if len(items) == 1 and text.startswith("(") else key_list(items)
        for text, items in shown
    )
    return next(texts), next(texts)


def _settings(settings: tuple[tuple[str, object], ...]) -> str:
    """Return the SETTINGS clause with a leading blank, "" without settings."""
    if not settings:
        return ""
    return " SETTINGS " + ", ".join(f"{n} = {_setting(v)}" for n, v in settings)


def _order_by(table: Table) -> tuple[KeyItem, ...]:
    """Return the sorting key as declared: without the version that VersionedCollapsingMergeTree
    appends to it."""
    *declared, last = table.sorting_key or (None,)
    version = table.engine.version if table.engine.sign is not None else None
    if last is None or last.expression.strip("`") != version or table.primary_key != len(declared):
        return table.sorting_key
    return table.sorting_key[:-1]


def key_text(items: tuple[KeyItem, ...]) -> str:
    """Return the key as an ORDER BY clause has it: `a` or `(a, b DESC)`."""
    return key_list(items) if len(items) == 1 else f"({key_list(items)})"


def key_list(items: tuple[KeyItem, ...]) -> str:
    """Return the key's items as SQL, separated by commas: `a, b DESC`, the content of
    system.tables.sorting_key."""
    return ", ".join(i.expression + (" DESC" if i.descending else "") for i in items)


def _create_table(table: Table) -> str:
    """Return the CREATE TABLE statement of a table."""
    indexes = "".join(
        f", INDEX {quote_identifier(i.name)} {i.expression} TYPE {i.type_full}"
        f" GRANULARITY {i.granularity}"
        for i in table.indexes
    )
    projections = "".join(
        f", PROJECTION {quote_identifier(p.name)} ({p.query})" for p in table.projections
    )
    constraints = "".join(
        f", CONSTRAINT {quote_identifier(n)} {'ASSUME' if n in table.assumed else 'CHECK'} {e}"
        for n, e in table.constraints
    )
    if table.database == TEMPORARY_DATABASE:
        head = f"CREATE TEMPORARY TABLE {quote_identifier(table.name)}"
    else:
        head = f"CREATE TABLE {qualified(table.database, table.name)}"
    return (
        f"{head} "
        f"({_columns(table.columns)}{indexes}{projections}{constraints}) ENGINE = {engine_full(table)}"
        f"{_comment(table.comment)}"
    )


def _create_materialized_view(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return the CREATE MATERIALIZED VIEW statement: with the engine of an inner table, else with
    TO target. Lists only the settings that differ from the defaults."""
    target = snapshot.by_id(view.target_id)
    name = qualified(view.database, view.name)
    select = _select(view)
    if view.inner and isinstance(target, Table):
        return (
            f"CREATE MATERIALIZED VIEW {name} ({_columns(target.columns)})"
            f" ENGINE = {engine_full(target)} {select}"
        )
    where = "" if target is None else f" TO {qualified(target.database, target.name)}"
    return f"CREATE MATERIALIZED VIEW {name}{where} ({_columns(view.columns)}) {select}"


def _select(view: MaterializedView | RefreshableView) -> str:
    """Return `AS SELECT …` with the settings that differ from the defaults, and the comment."""
    changed = tuple(
        setting for setting in view.settings if setting[1] != SESSION_SETTINGS[setting[0]].default
    )
    return f"AS {view.query}{_settings(changed)}{_comment(view.comment)}"


def create_refreshable(
    view: RefreshableView, target: SchemaObject | None, snapshot: Snapshot
) -> str:
    """Return the CREATE MATERIALIZED VIEW … REFRESH statement of a view that writes `target`. Views
    that it depends on and that are gone are left out."""
    needed = [snapshot.by_id(view_id) for view_id in view.depends_on]
    clause = replace(
        parse_refresh(view.refresh),
        depends_on=tuple(TableName(item.name, item.database) for item in needed if item),
    )
    head = f"CREATE MATERIALIZED VIEW {qualified(view.database, view.name)} {to_sql(clause)}"
    select = _select(view)
    if view.inner and isinstance(target, Table):
        return f"{head} ({_columns(target.columns)}) ENGINE = {engine_full(target)} {select}"
    where = "" if target is None else f" TO {qualified(target.database, target.name)}"
    return f"{head}{where} ({_columns(view.columns)}) {select}"


def _columns(columns: tuple[Column, ...]) -> str:
    """Return the column definitions, separated by commas."""
    return ", ".join(_column(c) for c in columns)


def _column(column: Column) -> str:
    """Return a column's definition: name, type, default, comment, codec, TTL, settings."""
    text = f"{backquoted(column.name)} {column.type.name}"
    if column.default_kind:
        text += f" {column.default_kind} {column.default}".rstrip()
    codec = codec_clause(column)
    text += _comment(column.comment) + (f" {codec}" if codec else "")
    text += f" STATISTICS({column.statistics})" if column.statistics else ""
    text += f" TTL {column.ttl}" if column.ttl else ""
    return text + (f" SETTINGS ({column.settings})" if column.settings else "")


def _comment(comment: str) -> str:
    """Return the COMMENT clause with a leading blank, "" without a comment."""
    escaped = comment.replace("\\", "\\\\").replace("'", "\\'")
    return f" COMMENT '{escaped}'" if comment else ""


def _setting(value: object) -> str:
    """Return a setting's value as an SQL literal."""
    return (
        f"'{value}'"
        if isinstance(value, str)
        else str(int(value) if isinstance(value, bool) else value)
    )


def expression_list(text: str) -> str:
    """Return an index's expression as ClickHouse lists it: the elements of a tuple separated by commas, any other
    expression as it is."""
    match parse_expression(text):
        case nodes.TupleLiteral(elements):
            return ", ".join(to_sql(element) for element in elements)
        case nodes.Function("tuple", arguments):
            return ", ".join(to_sql(argument) for argument in arguments)
    return text
