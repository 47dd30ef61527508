"""UPDATE, OPTIMIZE … DEDUPLICATE, and the actions of ALTER TABLE that rewrite rows, as steps of a
mutation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olapdb import errors
from olapdb.dml.delete import refuse_array_join
from olapdb.dml.mutation_steps import (
    DeduplicateStep,
    DeleteStep,
    MaterializeColumnStep,
    SetStep,
    Step,
)
from olapdb.dml.update import mutate
from olapdb.engine.layout import TableLayout
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.dml.partitions import find_partition
from olapdb.statements.query.select import plan_query

if TYPE_CHECKING:
    from collections.abc import Sequence


def update(statement: nodes.Update, context: StatementContext) -> Result:
    """Run UPDATE t SET a = x WHERE …: one commit changes the rows, and invalidates the view slices
    computed from them.

    Raises IncorrectQuery without a WHERE.
    """
    context = context.with_settings(statement.settings)
    context.require_warehouse_zone("An UPDATE", statement.position)
    snapshot = context.snapshot()
    table = context.require_table(snapshot, statement.table, "UPDATE")
    if statement.where is None:
        raise errors.SyntaxError(
            "UPDATE needs a WHERE.", hint="WHERE 1 changes every row.", position=statement.position
        )
    refuse_array_join(statement)
    result = mutate(
        context.origin("UPDATE"),
        table.id,
        SetStep(statement.assignments, statement.where),
        parameters=context.parameters,
    )
    return Result(affected_rows=result.rows)


def deduplicate(
    statement: nodes.Optimize,
    table: Table,
    partition_id: str | None,
    context: StatementContext,
    snapshot: Snapshot,
) -> None:
    """Run OPTIMIZE … DEDUPLICATE [BY …]: keep the first of equal rows in each partition. The commit
    invalidates the view slices computed from removed rows."""
    step = DeduplicateStep(deduplication_columns(statement, table, context, snapshot), partition_id)
    mutate(context.origin("DEDUPLICATE"), table.id, step, parameters=context.parameters)


def deduplication_columns(
    statement: nodes.Optimize, table: Table, context: StatementContext, snapshot: Snapshot
) -> tuple[str, ...]:
    """Return the columns to compare: those of BY, or all stored ones without BY. Raise
    NoSuchColumn, BadArguments for a column that is not stored, ThereIsNoColumn if a key column is
    missing."""
    if not statement.deduplicate_by:
        return tuple(column.name for column in table.stored_columns)
    for expression in statement.deduplicate_by:
        if isinstance(expression, nodes.Identifier) and table.column(expression.parts[-1]) is None:
            raise _no_such_column(expression.parts[-1], table, expression)

    query = nodes.Select(
        columns=statement.deduplicate_by,
        source=nodes.TableReference(nodes.TableName(table.name, table.database)),
    )
    names = plan_query(query, context, snapshot).names
    stored_names = {column.name for column in table.stored_columns}
    unstored_name = next((name for name in names if name not in stored_names), None)
    if unstored_name is not None:
        raise errors.BadArguments(
            f"DEDUPLICATE BY {unstored_name}: it is no stored column of {table.database}.{table.name}.",
            position=statement.position,
        )
    missing = sorted(_key_columns(table) - set(names))
    if missing:
        raise errors.ThereIsNoColumn(
            f"DEDUPLICATE BY must name all columns of ORDER BY and PARTITION BY;"
            f" {', '.join(missing)} is missing.",
            position=statement.position,
        )
    return tuple(dict.fromkeys(names))


def mutation_steps(
    action: nodes.AlterAction, table: Table, context: StatementContext, snapshot: Snapshot
) -> Sequence[Step]:
    """Return the mutation steps of the action; `table` is the table after the preceding actions."""
    match action:
        case nodes.UpdateWhere():
            refuse_array_join(action)
            partition = _partition(action.partition, table, context, snapshot)
            return (SetStep(action.assignments, action.where, partition),)
        case nodes.DeleteWhere():
            refuse_array_join(action)
            partition = _partition(action.partition, table, context, snapshot)
            return (DeleteStep(action.where, partition),)
        case nodes.ClearColumn():
            return _clear_steps(action, table, context, snapshot)
        case nodes.MaterializeColumn():
            return _materialize_steps(action, table, context, snapshot)
        case _:
            raise errors.InternalError(f"No handler for the action {type(action).__name__}.")


def _partition(
    reference: nodes.PartitionReference | None,
    table: Table,
    context: StatementContext,
    snapshot: Snapshot,
) -> str | None:
    """Return the id of the referenced partition; None without a reference."""
    if reference is None:
        return None
    return find_partition(reference, table, context, snapshot)


def _clear_steps(
    action: nodes.ClearColumn, table: Table, context: StatementContext, snapshot: Snapshot
) -> Sequence[Step]:
    """Return the steps of CLEAR COLUMN: every row gets the column's default again. Raise
    NotFoundColumnInBlock, AlterOfColumnIsForbidden for a key column."""
    if table.column(action.name) is None:
        if action.if_exists:
            return ()
        raise errors.NotFoundColumnInBlock(
            f"There is no column {action.name} in {table.database}.{table.name} to clear.",
            hint=f"It has {', '.join(existing.name for existing in table.columns)}.",
            position=action.position,
        )
    column = _require_stored(action.name, table, action)
    if column.name in _key_columns(table) or column.name in table.engine.arguments:
        raise errors.AlterOfColumnIsForbidden(
            f"Cannot CLEAR column {column.name} of {table.database}.{table.name}: it is part of its"
            " key.",
            hint="Its values decide where rows lie. DELETE the rows, or INSERT them anew.",
            position=action.position,
        )
    partition = _partition(action.partition, table, context, snapshot)
    return (SetStep((), None, partition, recompute=(column.name,)),)


def _materialize_steps(
    action: nodes.MaterializeColumn, table: Table, context: StatementContext, snapshot: Snapshot
) -> Sequence[Step]:
    """Return the steps of MATERIALIZE COLUMN.

    A DEFAULT column is written into the parts that lack it, so that a later change of the
    expression does not change its values. A MATERIALIZED column is computed again for all rows.
    Raises CannotUpdateColumn for a key column, BadArguments for a column without stored values or
    default.
    """
    column = table.column(action.name)
    if column is None:
        raise _no_such_column(action.name, table, action)
    if column.name in _key_columns(table):
        raise errors.CannotUpdateColumn(
            f"Cannot materialize column {column.name}: it is part of the key, and rows are sorted"
            " by it.",
            position=action.position,
        )
    if not column.stored or not column.default:
        reason = "is computed when it is read" if not column.stored else "has no default expression"
        raise errors.BadArguments(
            f"Cannot materialize column {column.name}: it {reason}.", position=action.position
        )
    partition = _partition(action.partition, table, context, snapshot)
    if column.default_kind == "MATERIALIZED":
        return (SetStep((), None, partition, recompute=(column.name,)),)
    return (MaterializeColumnStep(column.name, partition),)


def _require_stored(name: str, table: Table, action: nodes.AlterAction) -> Column:
    """Return the column; raise NoSuchColumn, or BadArguments if no part stores it."""
    column = table.column(name)
    if column is None:
        raise _no_such_column(name, table, action)
    if not column.stored:
        raise errors.BadArguments(
            f"Column {name} is {column.default_kind}: no part has it.", position=action.position
        )
    return column


def _no_such_column(name: str, table: Table, action: nodes.Node) -> errors.NoSuchColumn:
    """Return the error for a column that the table lacks."""
    return errors.NoSuchColumn(
        f"There is no column {name} in {table.database}.{table.name}.",
        hint=f"It has {', '.join(column.name for column in table.columns)}.",
        position=action.position,
    )


def _key_columns(table: Table) -> frozenset[str]:
    """Return the columns of ORDER BY and PARTITION BY."""
    layout = TableLayout(table)
    return layout.sorting_columns | layout.partition_columns
