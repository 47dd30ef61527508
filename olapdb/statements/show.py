"""SHOW, DESCRIBE, EXISTS."""

from __future__ import annotations

import difflib

from olapdb.errors import NotSupportedError, Position, UnknownDatabase
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements import select
from olapdb.statements.context import StatementContext, unknown_table
from olapdb.storage.codec import codec_text
from olapdb.types import STRING, UINT8


def require_database(name: str, snapshot: Snapshot, position: Position | None) -> None:
    """UnknownDatabase with the nearest name, unless it exists."""
    if name in snapshot.databases or name == "system":
        return
    near = difflib.get_close_matches(name, snapshot.databases, n=1)
    hint = f"Did you mean {near[0]}?" if near else "SHOW DATABASES lists those there are."
    raise UnknownDatabase(f"Database {name} does not exist.", hint=hint, position=position)


def show(statement: nodes.Show, context: StatementContext) -> Result:
    """SHOW as ClickHouse answers it; TABLES and DATABASES heed LIKE and LIMIT."""
    snapshot = context.reading_snapshot()
    match statement.kind:
        case "DATABASES":
            return _names("name", statement, [*snapshot.databases, "system"])
        case "TABLES" | "VIEWS":
            database = statement.database or context.database
            require_database(database, snapshot, statement.position)
            if database == "system":
                return _names("name", statement, list(context.engine.system))
            found = snapshot.objects(database)
            wanted = [o.name for o in found if statement.kind == "TABLES" or not isinstance(o, Table)]
            return _names("name", statement, wanted)
        case "CREATE" | "CREATE TABLE" | "CREATE VIEW":
            from olapdb.system.ddl import create_statement

            assert statement.table is not None
            item = context.require(snapshot, statement.table)
            return from_columns(["statement"], [STRING], [[create_statement(item, snapshot)]])
        case "COLUMNS":
            assert statement.table is not None
            return describe(nodes.Describe(table=statement.table), context)
        case "SETTINGS":
            names = [n for n in context.settings if _matches(n, statement)]
            values = [str(context.settings[n]) for n in names]
            return from_columns(["name", "value"], [STRING, STRING], [names, values])
        case _:
            raise NotSupportedError(
                f"SHOW {statement.kind} is not supported.",
                hint="SHOW TABLES, DATABASES, CREATE TABLE, COLUMNS and SETTINGS are.",
                position=statement.position,
            )


_DESCRIBED = ("name", "type", "default_type", "default_expression", "comment",
              "codec_expression", "ttl_expression")  # fmt: skip


def describe(statement: nodes.Describe, context: StatementContext) -> Result:
    """DESCRIBE TABLE t, or DESCRIBE (SELECT …); ClickHouse's seven columns."""
    if statement.query is not None:
        described = select.describe(statement.query, context)
        rows: list[tuple[str, ...]] = [(n, t.name, "", "", "", "", "") for n, t in described]
    else:
        assert statement.table is not None
        rows = [_described(c) for c in _columns(statement.table, context)]
    columns = [[row[i] for row in rows] for i in range(len(_DESCRIBED))]
    return from_columns(_DESCRIBED, [STRING] * len(_DESCRIBED), columns)


def _columns(name: nodes.TableName, context: StatementContext) -> tuple[Column, ...]:
    database, table = context.locate(name)
    if database == "system":
        if table not in context.engine.system:
            raise unknown_table(context.reading_snapshot(), database, table).at(name.position)
        fields = context.engine.system[table].fields
        return tuple(Column(i, n, t) for i, (n, t) in enumerate(fields))
    snapshot = context.reading_snapshot()
    item = context.require(snapshot, name)
    if isinstance(item, MaterializedView) and not item.columns:
        target = snapshot.by_id(item.target_id)
        return target.columns if target is not None else ()
    return item.columns


def _described(column: Column) -> tuple[str, ...]:
    return (
        column.name, column.type.name, column.default_kind, column.default, column.comment,
        codec_text(column), "",
    )  # fmt: skip


def exists(statement: nodes.ExistsObject, context: StatementContext) -> Result:
    """One row, `result`: 1 or 0."""
    snapshot = context.reading_snapshot()
    if statement.kind == "DATABASE":
        found = statement.name.name in snapshot.databases or statement.name.name == "system"
    else:
        item = context.find(snapshot, statement.name)
        found = item is not None and (statement.kind == "TABLE" or not isinstance(item, Table))
    return from_columns(["result"], [UINT8], [[int(found)]])


def _names(header: str, statement: nodes.Show, names: list[str]) -> Result:
    kept = sorted(n for n in names if _matches(n, statement))
    if statement.limit is not None:
        kept = kept[: statement.limit]
    return from_columns([header], [STRING], [kept])


def _matches(name: str, statement: nodes.Show) -> bool:
    if statement.like is None:
        return True
    import pyarrow.compute as pc

    matched = pc.match_like([name], statement.like, ignore_case=statement.case_insensitive)
    return bool(matched[0].as_py()) != statement.negated
