"""ALTER TABLE: comments, DELETE and DROP PARTITION; the rest is refused by its name."""

from __future__ import annotations

from dataclasses import replace

from olapdb.errors import BadArguments, NoSuchColumn, NotSupportedError
from olapdb.model.changes import ObjectIs, PutObject
from olapdb.model.schema import SchemaObject, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.create import commit


def alter(statement: nodes.Alter, context: StatementContext) -> Result:
    """One commit an action; what cannot be done is refused before anything is."""
    context = context.with_settings(statement.settings)
    for action in statement.actions:
        _refuse_unknown(action)
    affected = 0
    for action in statement.actions:
        affected += _alter(statement, action, context)
    return Result(affected_rows=affected)


def _refuse_unknown(action: nodes.AlterAction) -> None:
    known = (
        nodes.ModifyComment | nodes.CommentColumn | nodes.DeleteWhere | nodes.PartitionAction
    )
    if not isinstance(action, known) or (
        isinstance(action, nodes.PartitionAction) and action.action != "DROP"
    ):
        what = action.text if isinstance(action, nodes.OtherAction) else _words(action)
        raise NotSupportedError(
            f"ALTER TABLE … {what} is not supported yet.",
            hint="MODIFY COMMENT, COMMENT COLUMN, DELETE WHERE and DROP PARTITION are.",
            position=action.position,
        )


def _words(action: nodes.AlterAction) -> str:
    if isinstance(action, nodes.PartitionAction):
        return f"{action.action} PARTITION"
    name = type(action).__name__
    return "".join(f" {c}" if c.isupper() else c.upper() for c in name).strip().upper()


def _alter(statement: nodes.Alter, action: nodes.AlterAction, context: StatementContext) -> int:
    snapshot = context.snapshot()
    match action:
        case nodes.ModifyComment(comment=comment):
            _put(context, replace(context.require(snapshot, statement.table), comment=comment))
        case nodes.CommentColumn():
            _put(context, _with_column_comment(context.require(snapshot, statement.table), action))
        case nodes.DeleteWhere():
            from olapdb.statements.maintain import delete

            return delete(
                nodes.Delete(statement.table, action.where, action.partition), context
            ).affected_rows
        case nodes.PartitionAction():
            return _drop_partition(statement, action, context, snapshot)
    return 0


def _put(context: StatementContext, item: SchemaObject) -> None:
    commit(context, "ALTER", [ObjectIs(item.id, item.version)], [PutObject(item)])


def _with_column_comment(item: SchemaObject, action: nodes.CommentColumn) -> SchemaObject:
    if all(c.name != action.name for c in item.columns):
        if action.if_exists:
            return item
        raise NoSuchColumn(
            f"{item.database}.{item.name} has no column {action.name}.",
            hint=f"It has {', '.join(c.name for c in item.columns)}.",
            position=action.position,
        )
    columns = tuple(
        replace(c, comment=action.comment) if c.name == action.name else c for c in item.columns
    )
    return replace(item, columns=columns)


def _drop_partition(
    statement: nodes.Alter, action: nodes.PartitionAction, context: StatementContext,
    snapshot: Snapshot,
) -> int:  # fmt: skip
    from olapdb.ingest.delete import drop_partition

    table = context.require_table(snapshot, statement.table, "DROP PARTITION")
    partition_id = find_partition(action.partition, table, context, snapshot)
    result = drop_partition(
        context.services, table.id, partition_id, query_id=context.query_id, statement=context.text
    )
    return result.rows


def find_partition(
    reference: nodes.PartitionReference, table: Table, context: StatementContext, snapshot: Snapshot
) -> str:
    """The partition id that `PARTITION value` or `PARTITION ID 'x'` names; it need not exist."""
    if reference.kind == "ID":
        return str(reference.id)
    if reference.kind != "VALUE" or reference.value is None:
        raise NotSupportedError(
            f"PARTITION {reference.kind} is not supported here.",
            hint="Name one partition by its value or by ID.",
            position=reference.position,
        )
    if not table.partition_key:
        raise BadArguments(
            f"{table.database}.{table.name} has no PARTITION BY; its partition is ID 'all'.",
            position=reference.position,
        )
    from olapdb.bind import bind_constant
    from olapdb.execute.layout import TableLayout, json_value, partition_id

    types = [e.type for e in TableLayout(table, context.environment).partition_expressions]
    given = reference.value
    is_tuple = isinstance(given, nodes.TupleLiteral) and len(types) > 1
    elements = given.elements if is_tuple and isinstance(given, nodes.TupleLiteral) else (given,)
    if len(elements) != len(types):
        raise BadArguments(
            f"PARTITION BY {table.partition_key} has {len(types)} elements, {len(elements)} are given.",
            position=reference.position,
        )
    scope = context.scope(snapshot)
    values = [json_value(bind_constant(e, t, scope)) for e, t in zip(elements, types, strict=True)]
    return partition_id(values, types)
