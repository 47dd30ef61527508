"""CREATE TABLE … ENGINE = Merge(db, 'regexp'): it has no rows, and reads those of other tables."""

from __future__ import annotations

import uuid

from olapdb.bind.merge_tables import merged_columns
from olapdb.errors import NotSupportedError
from olapdb.model.columns import fresh_columns
from olapdb.model.schema import Column, View
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.merge_tables import MergedTables, merged_tables
from olapdb.sql.trees import is_current_database
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl.engines import refuse_clauses
from olapdb.statements.ddl.table_definition import columns_from, template_table


def is_merge_table(statement: nodes.CreateTable) -> bool:
    """Return whether the statement creates a table of the engine Merge."""
    engine = statement.storage.engine
    return engine is not None and engine.name == "Merge"


def build_merge_table(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> View:
    """Return the Merge table of the statement; nothing is published.

    Its columns are those of the list, of the AS table, or of all tables that match now. Raises
    BadArguments for keys, NotSupportedError for AS SELECT, indexes and constraints, and
    CannotExtractTableStructure if nothing matches."""
    engine = statement.storage.engine
    assert engine is not None
    database, name = context.locate(statement.table)
    require_own_database(database, snapshot, statement.table.position)
    refuse_clauses("Merge", statement.storage)
    if statement.query is not None or statement.clone or statement.indexes or statement.constraints:
        raise NotSupportedError(
            "A Merge table stores no rows: it has no AS SELECT, CLONE, INDEX or CONSTRAINT.",
            hint="Give it columns, or leave them out.",
            position=statement.position,
        )
    merged = merged_tables(_with_database(engine.arguments, context), None, engine.position)
    columns = _columns(statement, merged, context, snapshot)
    return View(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        columns=columns,
        query=to_sql(
            nodes.Select((nodes.Star(),), source=nodes.TableFunction("merge", merged.arguments))
        ),
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
        merges=merged.engine,
    )


def _with_database(
    arguments: tuple[nodes.Expression, ...], context: StatementContext
) -> tuple[nodes.Expression, ...]:
    """Return the arguments with the name of the current database for `currentDatabase()`."""
    return tuple(
        nodes.Literal(context.database) if is_current_database(a) else a for a in arguments
    )


def _columns(
    statement: nodes.CreateTable,
    merged: MergedTables,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Column, ...]:
    """Return the columns of the list, of the AS table or of all tables that match."""
    if statement.columns:
        columns = columns_from(statement.columns, context, snapshot)
    elif (like := template_table(statement, context, snapshot)) is not None:
        columns = fresh_columns(like.columns)
    else:
        return merged_columns(snapshot, merged)
    return tuple(Column(c.id, c.name, c.type, comment=c.comment) for c in columns if c.stored)
