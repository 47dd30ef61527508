"""CREATE TABLE … ENGINE = Dictionary(d) and GenerateRandom(…), or AS f(…): tables that store no rows.

Each is a view with columns of its own: over the dictionary, or over the table function
generateRandom, so that whatever reads it knows what it reads."""

from __future__ import annotations

import uuid

from olapdb import errors
from olapdb.bind.dictionary_rows import find_dictionary
from olapdb.model.schema import Column, View
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.formatter.definitions import format_engine
from olapdb.sql.formatter.queries import format_relation
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl.engines import refuse_clauses
from olapdb.statements.ddl.table_definition import columns_from
from olapdb.statements.query import select
from olapdb.types import quote_identifier

_ENGINES = ("Dictionary", "GenerateRandom")


def is_derived(statement: nodes.CreateTable) -> bool:
    """Return whether the statement creates a table of one of these engines."""
    engine = statement.storage.engine
    return engine is not None and engine.name in _ENGINES


def build_derived(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> View:
    """Return the table of the statement; nothing is published.

    Raises IncorrectQuery without columns, NotSupportedError for AS, indexes and constraints, and for
    a temporary one, and the errors of the engine's arguments."""
    engine = statement.storage.engine
    assert engine is not None
    database, name = context.locate(statement.table)
    require_own_database(database, snapshot, statement.table.position)
    refuse_clauses(engine.name, statement.storage)
    other = statement.query is not None or statement.like is not None
    if other or statement.indexes or statement.constraints or database == TEMPORARY_DATABASE:
        raise errors.NotSupportedError(
            f"A table of the engine {engine.name} stores no rows: it has no AS, INDEX or CONSTRAINT,"
            " and is not temporary.",
            hint="Give it columns with types.",
            position=statement.position,
        )
    columns = tuple(
        Column(c.id, c.name, c.type, comment=c.comment)
        for c in columns_from(statement.columns, context, snapshot)
        if c.stored
    )
    if not columns:
        raise errors.IncorrectQuery(
            "Incorrect CREATE query: required list of column descriptions.",
            position=statement.position,
        )
    build = _over_dictionary if engine.name == "Dictionary" else _over_generator
    query, text = build(engine, columns, context, snapshot)
    return View(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        columns=columns,
        query=to_sql(query),
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
        merges=text,
    )


def calls_function(statement: nodes.CreateTable) -> bool:
    """Return whether the statement creates a table that calls a table function."""
    return statement.function is not None


def build_call(statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot) -> View:
    """Return the table of CREATE TABLE … AS f(…), which calls f whenever it is read; nothing is
    published.

    Raises NotSupportedError for indexes, constraints and a temporary one, NotFoundColumnInBlock for a
    column that f does not give, and the errors of the call."""
    database, name = context.locate(statement.table)
    require_own_database(database, snapshot, statement.table.position)
    of_table = (statement.indexes, statement.constraints, statement.projections)
    if any(of_table) or database == TEMPORARY_DATABASE:
        raise errors.NotSupportedError(
            "A table that calls a table function stores no rows: it has no INDEX or CONSTRAINT, and"
            " is not temporary.",
            hint="CREATE TABLE … ENGINE = … AS SELECT * FROM f(…) keeps the rows.",
            position=statement.position,
        )
    call = statement.function
    assert call is not None
    given = select.describe(nodes.Select((nodes.Star(),), source=call), context)
    columns = tuple(Column(at, column, kind) for at, (column, kind) in enumerate(given, 1))
    if statement.columns:
        wanted = columns_from(statement.columns, context, snapshot)
        known = {(column.name, column.type) for column in columns}
        for column in wanted:
            if (column.name, column.type) not in known:
                raise errors.NotFoundColumnInBlock(
                    f"Column {column.name} {column.type} is none of the table function.",
                    hint=f"There are {', '.join(f'{n} {t}' for n, t in given)}.",
                    position=statement.position,
                )
        columns = wanted
    return View(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        columns=columns,
        query=to_sql(nodes.Select(_named(columns), source=call)),
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
        merges=f"AS {format_relation(call)}",
    )


def _over_dictionary(
    engine: nodes.EngineClause,
    columns: tuple[Column, ...],
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[nodes.Query, str]:
    """Return the query of Dictionary(d) and its engine as text, without the name, which may change.

    Raises NumberOfArgumentsDoesntMatch, BadArguments for an unknown dictionary, ThereIsNoColumn for
    a column that it lacks or has of another type."""
    arguments = [
        a.value if isinstance(a, nodes.Literal) else ".".join(getattr(a, "parts", ()))
        for a in engine.arguments
    ]
    if len(arguments) != 1 or not isinstance(arguments[0], str) or not arguments[0]:
        raise errors.NumberOfArgumentsDoesntMatch(
            "Storage Dictionary requires single parameter: name of dictionary.",
            position=engine.position,
        )
    database, _, name = arguments[0].rpartition(".")
    dictionary = find_dictionary(snapshot, database or context.database, name)
    known = {(column.name, column.type) for column in dictionary.columns}
    for column in columns:
        if (column.name, column.type) not in known:
            raise errors.ThereIsNoColumn(
                f"Not found column {column.name} {column.type} in dictionary {arguments[0]!r}.",
                hint=f"There are {', '.join(f'{c.name} {c.type}' for c in dictionary.columns)}.",
                position=engine.position,
            )
    source = nodes.TableReference(nodes.TableName(name, dictionary.database))
    return nodes.Select(_named(columns), source=source), engine.name


def _over_generator(
    engine: nodes.EngineClause,
    columns: tuple[Column, ...],
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[nodes.Query, str]:
    """Return the query of GenerateRandom([seed[, texts[, arrays]]]) and its engine as text."""
    structure = nodes.Literal(
        ", ".join(f"{quote_identifier(c.name)} {c.type.name}" for c in columns)
    )
    call = nodes.TableFunction("generateRandom", (structure, *engine.arguments))
    return nodes.Select(_named(columns), source=call), format_engine(engine)


def _named(columns: tuple[Column, ...]) -> tuple[nodes.Expression, ...]:
    """Return an expression for each column: its name."""
    return tuple(nodes.Identifier((column.name,)) for column in columns)
