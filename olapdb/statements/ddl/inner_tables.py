"""The tables that CREATE MATERIALIZED VIEW creates: the inner one of a view without TO, and the target of one
with TO and an ENGINE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from olapdb.model.schema import Column, Table
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.detached_tables import refuse_detached_name
from olapdb.statements.ddl.table_definition import build_table
from olapdb.statements.ddl.type_checks import refuse_suspicious


def inner_builder(
    context: StatementContext,
) -> Callable[[nodes.CreateMaterializedView, tuple[Column, ...], str], Table]:
    """Return the function that builds the table: (statement, columns of the query, name) ->
    table."""

    def build(
        statement: nodes.CreateMaterializedView, columns: tuple[Column, ...], name: str
    ) -> Table:
        """Return the table for the statement's storage clauses and these columns."""
        owner = statement.target or statement.name
        definition = nodes.CreateTable(
            table=nodes.TableName(name, owner.database, position=owner.position),
            columns=_inner_columns(statement.columns, columns),
            constraints=statement.constraints,
            storage=statement.storage or nodes.StorageClause(),
            position=statement.position,
        )
        snapshot = context.snapshot()
        table = build_table(definition, context, snapshot)
        if statement.target is not None:
            refuse_detached_name(table.database, table.name, snapshot, owner.position)
            for column in table.columns:
                refuse_suspicious(column.type, column.name, context.settings)
        return table

    return build


def _inner_columns(
    declared: tuple[nodes.ColumnDefinition, ...], made: tuple[Column, ...]
) -> tuple[nodes.ColumnDefinition, ...]:
    """Return the column definitions of the inner table: the statement's list, else the columns
    `made` by the query. A declared column without type and default has the query's type."""
    types = {column.name: column.type for column in made}
    if not declared:
        return tuple(nodes.ColumnDefinition(name, data_type) for name, data_type in types.items())
    return tuple(
        replace(definition, type=types[definition.name])
        if definition.type is None and definition.default is None and definition.name in types
        else definition
        for definition in declared
    )
