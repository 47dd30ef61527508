"""CREATE TABLE … ENGINE = Alias('db', 't'), and Buffer('db', 't', …): another name of a table.

A Buffer hands rows on at once: small blocks wait in the catalog for a merge, as in every table, so
that they are neither lost in a crash nor unknown to views."""

from __future__ import annotations

import uuid
from dataclasses import replace

from olapdb.errors import BadArguments, NotSupportedError, NumberOfArgumentsDoesntMatch
from olapdb.model.schema import View
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.formatter.definitions import format_engine
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl.engines import refuse_clauses


def is_alias(statement: nodes.CreateTable) -> bool:
    """Return whether the statement creates a table of the engine Alias or Buffer."""
    engine = statement.storage.engine
    return engine is not None and engine.name in ("Alias", "Buffer")


def build_alias(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> View:
    """Return the Alias of the statement; nothing is published.

    Its table need not exist. Raises NumberOfArgumentsDoesntMatch, BadArguments for columns, keys and
    an Alias of an Alias, NotSupportedError for AS and a temporary one."""
    engine = statement.storage.engine
    assert engine is not None
    database, name = context.locate(statement.table)
    require_own_database(database, snapshot, statement.table.position)
    refuse_clauses(engine.name, statement.storage)
    if engine.name == "Buffer":
        return _buffer(statement, engine, (database, name), context)
    if statement.query is not None or statement.like is not None or database == TEMPORARY_DATABASE:
        raise NotSupportedError(
            "An Alias has no AS clause, and is not temporary.",
            hint="Say CREATE TABLE name ENGINE = Alias('table').",
            position=statement.position,
        )
    if statement.columns or statement.indexes or statement.constraints or statement.projections:
        raise BadArguments(
            "An Alias has the columns of its table.",
            hint="Leave the list out.",
            position=statement.position,
        )
    table = _aliased(engine, context)
    other = snapshot.find(*table)
    if (isinstance(other, View) and other.alias_of) or table == (database, name):
        raise BadArguments(
            "An Alias cannot refer to an Alias.",
            hint="Name the table itself.",
            position=statement.position,
        )
    source = nodes.TableReference(nodes.TableName(table[1], table[0]))
    return View(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        columns=(),
        query=to_sql(nodes.Select((nodes.Star(),), source=source)),
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
        merges=format_engine(replace(engine, arguments=tuple(map(_quoted, engine.arguments)))),
        alias_of=table,
    )


_BUFFER_ARGUMENTS = (9, 12)
"""The smallest and the largest number of arguments of Buffer."""


def _buffer(
    statement: nodes.CreateTable,
    engine: nodes.EngineClause,
    own: tuple[str, str],
    context: StatementContext,
) -> View:
    """Return the Buffer of the statement: it reads and writes its table at once.

    Raises NumberOfArgumentsDoesntMatch, BadArguments for other arguments than ClickHouse has,
    NotSupportedError for AS SELECT, a temporary one, and a Buffer of no table."""
    fewest, most = _BUFFER_ARGUMENTS
    if not fewest <= len(engine.arguments) <= most:
        raise NumberOfArgumentsDoesntMatch(
            "Storage Buffer requires from 9 to 12 parameters: database, table, num_layers,"
            " min_time, max_time, min_rows, max_rows, min_bytes, max_bytes.",
            position=engine.position,
        )
    for argument in engine.arguments[2:]:
        if not (isinstance(argument, nodes.Literal) and isinstance(argument.value, int | float)):
            raise BadArguments("The limits of a Buffer are numbers.", position=argument.position)
    if statement.query is not None or own[0] == TEMPORARY_DATABASE:
        raise NotSupportedError(
            "A Buffer has no rows of its own to fill, and is not temporary.",
            hint="INSERT into it, or into its table.",
            position=statement.position,
        )
    table = (_text(engine.arguments[0], context), _text(engine.arguments[1], context))
    if table == own:
        raise BadArguments("A Buffer cannot refer to itself.", position=statement.position)
    named = tuple(nodes.Literal(text) for text in table)
    source = nodes.TableReference(nodes.TableName(table[1], table[0]))
    return View(
        id=str(uuid.uuid4()),
        database=own[0],
        name=own[1],
        columns=(),
        query=to_sql(nodes.Select((nodes.Star(),), source=source)),
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
        merges=format_engine(replace(engine, arguments=(*named, *engine.arguments[2:]))),
        alias_of=table,
    )


def _aliased(engine: nodes.EngineClause, context: StatementContext) -> tuple[str, str]:
    """Return the database and name that the arguments give: `t`, `db.t`, or `db, t`."""
    names = [_text(argument, context) for argument in engine.arguments]
    if len(names) == 1:
        database, dot, name = names[0].partition(".")
        return (database, name) if dot else (context.database, names[0])
    if len(names) != 2:
        raise NumberOfArgumentsDoesntMatch(
            f"Alias takes a table, or a database and a table, not {len(names)} arguments.",
            hint="Say ENGINE = Alias('table') or Alias('database', 'table').",
            position=engine.position,
        )
    return names[0], names[1]


def _text(argument: nodes.Expression, context: StatementContext) -> str:
    """Return a quoted or bare name, or the current database. Raise BadArguments for other values."""
    match argument:
        case nodes.Literal(value=str() as text) if text:
            return text
        case nodes.Identifier(parts=parts):
            return ".".join(parts)
        case nodes.Function(name="currentDatabase"):
            return context.database
        case _:
            raise BadArguments(
                "The engine takes names of a database and a table.", position=argument.position
            )


def _quoted(argument: nodes.Expression) -> nodes.Expression:
    """Return the argument as SHOW CREATE has it: names are texts."""
    if isinstance(argument, nodes.Identifier):
        return nodes.Literal(".".join(argument.parts))
    return argument
