"""Which statements are about temporary tables, and which may not name one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from olapdb.bind.names import name_of_set
from olapdb.bind.syntax import walk
from olapdb.errors import (
    BadDatabaseForTemporaryTable,
    EngineRequired,
    IncorrectQuery,
    NotSupportedError,
    UnknownTable,
)
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext

StatementT = TypeVar("StatementT", bound=nodes.Statement)

_SHOWN = ("CREATE", "CREATE TABLE", "COLUMNS", "INDEXES")
_SHOW_CREATE = "CREATE TEMPORARY TABLE"


def routed(
    statement: nodes.Statement, context: StatementContext
) -> tuple[nodes.Statement, StatementContext]:
    """Return the statement and its context, which is `on_temporary` if it is about a temporary
    table.

    Raises BadDatabaseForTemporaryTable for one with a database, UnknownTable where TEMPORARY names
    none, NotSupportedError for a definition or a mutation that reads one."""
    _refuse_readers(statement, context)
    match statement:
        case nodes.Query():  # before nodes that a process which only reads never imports
            return statement, context
        case nodes.Insert(function=nodes.TableFunction()):
            return statement, context
        case nodes.CreateTable(temporary=True):
            default = context.settings.text("default_temporary_table_engine")
            return _create(statement, default), replace(context, on_temporary=True)
        case nodes.CreateView(temporary=True, name=name):
            _refuse_database(name, "view")
            return statement, replace(context, on_temporary=True)
        case nodes.Show(kind=kind, table=nodes.TableName() as name) if kind == _SHOW_CREATE:
            return replace(statement, kind="CREATE TABLE"), _required(name, context)
        case nodes.Show(kind=kind, table=nodes.TableName() as name) if kind in _SHOWN:
            return statement, for_table(name, context)
        case nodes.ExistsObject(temporary=True):
            return statement, replace(context, on_temporary=True)
        case nodes.Alter(temporary=True) | nodes.Truncate(temporary=True):
            return statement, _required(statement.table, context)
        case (
            nodes.Insert()
            | nodes.Delete()
            | nodes.Update()
            | nodes.Alter()
            | nodes.Truncate()
            | nodes.Optimize()
            | nodes.Describe()
            | nodes.CheckTable()
        ) if statement.table is not None:  # one table, which means a temporary one first
            return statement, for_table(statement.table, context)
        case _:
            return statement, context


def for_table(name: nodes.TableName, context: StatementContext) -> StatementContext:
    """Return the context of a statement about the table of this name, which means the session's
    temporary table if there is one and no database is said."""
    return replace(context, on_temporary=True) if _is_temporary(name, context) else context


def split_drop(
    statement: nodes.Drop, context: StatementContext
) -> Iterator[tuple[nodes.Drop, StatementContext]]:
    """Yield a DROP of the tables of the warehouse, then one of the temporary tables, each with its
    context; none for either without names.

    DROP TEMPORARY TABLE is about temporary tables alone, also where there are none of the name."""
    if statement.temporary:
        names = tuple(replace(name, database=None) for name in statement.names)
        yield replace(statement, names=names), replace(context, on_temporary=True)
        return
    own = tuple(name for name in statement.names if _is_temporary(name, context))
    if statement.kind not in ("TABLE", "VIEW") or not own:
        yield statement, context
        return
    others = tuple(name for name in statement.names if name not in own)
    if others:
        yield replace(statement, names=others), context
    yield replace(statement, names=own), replace(context, on_temporary=True)


def _is_temporary(name: nodes.TableName, context: StatementContext) -> bool:
    """Return whether the name, without a database, is that of a temporary table of the session."""
    own = context.temporary
    return name.database is None and own is not None and name.name in own.ids()


def _required(name: nodes.TableName, context: StatementContext) -> StatementContext:
    """Return the context of a statement that says TEMPORARY. Raise UnknownTable if the session has
    no such table."""
    if not _is_temporary(name, context):
        raise UnknownTable(
            f"Temporary table {name} does not exist.",
            hint="SHOW TEMPORARY TABLES lists those of this session.",
            position=name.position,
        )
    return replace(context, on_temporary=True)


def _create(statement: nodes.CreateTable, default: str) -> nodes.CreateTable:
    """Return CREATE TEMPORARY TABLE with its engine: the default where it names none.

    Raises BadDatabaseForTemporaryTable, EngineRequired, NotSupportedError and IncorrectQuery."""
    _refuse_database(statement.table, "table")
    if statement.clone:
        raise NotSupportedError(
            "CREATE TEMPORARY TABLE … CLONE AS is not supported: a clone shares the files of its"
            " source, and a temporary table is in memory.",
            hint="Say AS SELECT * FROM the table.",
            position=statement.position,
        )
    engine = statement.storage.engine
    if engine is not None and engine.name.startswith("Replicated"):
        raise IncorrectQuery(
            f"A temporary table cannot have the engine {engine.name}: it belongs to one session.",
            hint=f"Say {engine.name.removeprefix('Replicated')}.",
            position=engine.position,
        )
    if engine is not None:
        return statement
    if default == "None":
        raise EngineRequired(
            "Table engine is not specified in CREATE query.",
            hint="Say ENGINE = …, or SET default_temporary_table_engine = 'Memory'.",
        )
    engine = nodes.EngineClause(default, position=statement.position)
    return replace(statement, storage=replace(statement.storage, engine=engine))


def _refuse_database(name: nodes.TableName, kind: str) -> None:
    """Raise BadDatabaseForTemporaryTable if the name of a temporary table or view has a database."""
    if name.database is not None:
        raise BadDatabaseForTemporaryTable(
            f"A temporary {kind} belongs to the session and is in no database.",
            hint=f"Leave {name.database} out.",
            position=name.position,
        )


# --- what is stored cannot read the tables of one session


def _refuse_readers(statement: nodes.Statement, context: StatementContext) -> None:
    """Raise NotSupportedError if a view's query, that of a REBUILD too, or a condition that a mutation computes,
    names a temporary table."""
    own = context.temporary
    names = own.ids() if own is not None else {}
    if not names:
        return
    reader: nodes.Node
    match statement:
        case nodes.CreateView(temporary=False) | nodes.CreateMaterializedView():
            what, reader = "A view", statement.query
        case nodes.Delete() | nodes.Update() | nodes.Alter():
            what, reader = "A mutation or an ALTER", statement
        case nodes.SystemView():
            what, reader = "A view", statement
        case nodes.Insert(replacing=nodes.Replacing() as replacing):
            what, reader = "REPLACE", replacing
        case _:
            return
    for name in _names_read(reader):
        if name.database is None and name.name in names:
            raise NotSupportedError(
                f"{what} cannot read {name.name}, a temporary table of this session: others"
                " compute it too.",
                hint="INSERT its rows into a table of a database, and read that one. If a column is meant, write its"
                f" table before it: t.{name.name}.",
                position=name.position,
            )


def _names_read(root: nodes.Node) -> Iterator[nodes.TableName]:
    """Yield the names of tables that queries below the node read, but for those that WITH defines. A name right of IN
    may be a column's."""
    defined = {node.name for node in walk(root) if isinstance(node, nodes.WithItem)}
    for node in walk(root):
        match node:
            case nodes.TableReference(table=name) if name.name not in defined:
                yield name
            case nodes.In() | nodes.Function() if (name_read := name_of_set(node)) is not None and (
                len(name_read.parts) == 1 and name_read.parts[0] not in defined
            ):
                yield nodes.TableName(name_read.parts[0], position=name_read.position)
