"""ALTER TABLE: comments, DELETE and DROP PARTITION; the rest is refused by its name."""

from __future__ import annotations

from dataclasses import replace

from olapdb.errors import NoSuchColumn, NotSupportedError
from olapdb.model.changes import PutObject, RevisionIs
from olapdb.model.schema import SchemaObject
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.create import commit
from olapdb.statements.maintain import delete
from olapdb.statements.partitions import alter_partition, check_partition_action
from olapdb.statements.views import alter_query


def alter(statement: nodes.Alter, context: StatementContext) -> Result:
    """One commit an action; what cannot be done is refused before anything is."""
    if any(isinstance(action, nodes.ModifyQuery) for action in statement.actions):
        return alter_query(statement, context)
    context = context.with_settings(statement.settings)
    for action in statement.actions:
        _refuse_unknown(action, context)
    affected = 0
    for action in statement.actions:
        affected += _alter(statement, action, context)
    return Result(affected_rows=affected)


def _refuse_unknown(action: nodes.AlterAction, context: StatementContext) -> None:
    known = (
        nodes.ModifyComment | nodes.CommentColumn | nodes.DeleteWhere | nodes.PartitionAction
    )
    if isinstance(action, nodes.PartitionAction):
        return check_partition_action(action, context)
    if not isinstance(action, known):
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
            return delete(
                nodes.Delete(statement.table, action.where, action.partition), context
            ).affected_rows
        case nodes.PartitionAction():
            return alter_partition(statement, action, context)
    return 0


def _put(context: StatementContext, item: SchemaObject) -> None:
    commit(context, "ALTER", [RevisionIs(item.id, item.revision)], [PutObject(item)])


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
