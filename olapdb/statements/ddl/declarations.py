"""What ClickHouse checks of a CREATE TABLE before it looks whether the name is taken: columns,
indexes, projections, constraints and AS. The engine and its clauses come after it."""

from __future__ import annotations

from olapdb.bind import BindScope, bind_expression
from olapdb.errors import IncorrectQuery, in_clause
from olapdb.model.schema import Engine, Table
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.column_checks import check_columns
from olapdb.statements.ddl.indexes import refuse_taken_name
from olapdb.statements.ddl.projections import add_projections
from olapdb.statements.ddl.table_definition import (
    columns_from,
    constraints_of,
    refuse_repeated_columns,
    template_table,
)
from olapdb.statements.ddl.type_checks import refuse_suspicious
from olapdb.statements.query import select


def check_declaration(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> None:
    """Raise what ClickHouse raises for a table's columns, indexes, projections, constraints or AS,
    in CREATE TABLE [IF NOT EXISTS] of a name that is taken. Says nothing of engine and keys."""
    like = template_table(statement, context, snapshot)
    if not statement.columns:
        if like is None and statement.query is not None:
            select.plan_query(statement.query, context, snapshot)
        elif statement.like is None and statement.function is None and _needs_columns(statement):
            raise IncorrectQuery(
                f"CREATE TABLE {statement.table} names no columns.",
                hint="Give a column list, AS SELECT, or AS another table.",
                position=statement.position,
            )
        return
    columns = columns_from(statement.columns, context, snapshot)
    refuse_repeated_columns(columns, statement.position)
    for column in columns:
        refuse_suspicious(column.type, column.name, context.settings)
    database, name = context.locate(statement.table)
    table = Table(
        "",
        database,
        name,
        Engine("MergeTree"),
        columns,
        constraints=tuple(dict(constraints_of(statement, like)).items()),
    )
    scope = context.scope(snapshot)
    check_columns(table, scope)
    _check_indexes(statement.indexes, table, scope)
    add_projections(statement.projections, table)


def _needs_columns(statement: nodes.CreateTable) -> bool:
    """Return whether the table's engine does not know its columns from elsewhere."""
    engine = statement.storage.engine
    return engine is None or engine.name not in ("Merge", "Alias", "Distributed", "Buffer")


def _check_indexes(
    definitions: tuple[nodes.IndexDefinition, ...], table: Table, scope: BindScope
) -> None:
    """Raise IllegalIndex for a repeated name, and what binding an index's expression raises."""
    names: set[str] = set()
    for definition in definitions:
        refuse_taken_name(definition, names)
        names.add(definition.name)
        with in_clause(f"INDEX {definition.name}"):
            bind_expression(definition.expression, table, scope)
