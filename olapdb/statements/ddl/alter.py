"""ALTER TABLE: all actions of one statement are one commit.

    actions -> draft (the altered table) -> checks, views -> rows that must be read or rewritten
            -> one commit: the table, the views that follow it, parts, invalidations

Actions on partitions (`statements/dml/partitions.py`) and MODIFY QUERY (`statements/ddl/views.py`)
cannot be combined with other actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from olapdb import errors
from olapdb.commit.draft import CommitDraft
from olapdb.commit.staging import Staging
from olapdb.dml.column_reinterpretation import ColumnReinterpretation
from olapdb.dml.mutation import Mutation
from olapdb.dml.mutation_steps import Step
from olapdb.engine.expiry import ttl_rules
from olapdb.ingest.read_parts import Pin
from olapdb.model.changes import PutObject
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import NoViewSince, RevisionIs
from olapdb.model.schema import MaterializedView, RefreshableView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.runtime.failpoints import failpoint
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.nested_columns import whole_nested_actions
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.alter_table import modify_order_by, modify_settings
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict
from olapdb.statements.ddl.columns import ColumnsDraft, nested_columns
from olapdb.statements.ddl.engines import check_engine
from olapdb.statements.ddl.indexes import alter_index, rewrite_steps
from olapdb.statements.ddl.projections import (
    alter_projection,
    check_altered_projections,
    projection_steps,
)
from olapdb.statements.ddl.refreshable_views import modify_refresh
from olapdb.statements.ddl.statistics import altered_statistics
from olapdb.statements.ddl.table_definition import check_table
from olapdb.statements.ddl.ttl import materialize_ttl, ttl_after_modify, ttl_text
from olapdb.statements.ddl.type_checks import refuse_suspicious
from olapdb.statements.ddl.views import alter_query
from olapdb.statements.dml.mutations import mutation_steps
from olapdb.statements.dml.optimize_truncate import delete
from olapdb.statements.dml.partitions import alter_partition, check_partition_action
from olapdb.views.definition.column_dependencies import (
    check_altered,
    hint_of_unfit,
    refuse_needed_column,
)
from olapdb.views.definition.column_rename import views_after_column_rename
from olapdb.views.definition.judgement import Rejudged, bind_view, rejudged_draft

_COMMENTS = nodes.ModifyComment | nodes.CommentColumn
_COLUMNS = (
    nodes.AddColumn
    | nodes.DropColumn
    | nodes.RenameColumn
    | nodes.ModifyColumn
    | nodes.ConstraintAction
    | nodes.IndexAction
    | nodes.ProjectionAction
    | nodes.StatisticsAction
    | nodes.SettledAction
    | nodes.ModifyOrderBy
    | nodes.ModifySampleBy
    | nodes.ModifySetting
    | nodes.ModifyTtl
)
_ROWS = nodes.UpdateWhere | nodes.DeleteWhere | nodes.ClearColumn | nodes.MaterializeColumn


def alter(statement: nodes.Alter, context: StatementContext) -> Result:
    """Run ALTER TABLE; return the number of changed rows. Retried on CommitConflict.

    Unsupported actions raise NotSupportedError before any action runs. A MODIFY TTL is followed by
    a MATERIALIZE TTL, in a commit of its own, if the setting materialize_ttl_after_modify is on.
    """
    actions = statement.actions
    if any(isinstance(action, nodes.ModifyQuery) for action in actions):
        return alter_query(statement, context)
    if any(isinstance(action, nodes.ModifyRefresh) for action in actions):
        return modify_refresh(statement, context)
    context = context.with_settings(statement.settings)
    if not context.settings.boolean("flatten_nested"):
        statement = replace(statement, actions=whole_nested_actions(actions))
        actions = statement.actions
    if any(isinstance(action, nodes.DeleteWhere | nodes.UpdateWhere) for action in actions):
        context.require_warehouse_zone("A mutation", statement.position)
    for action in actions:
        _require_supported(action, context, alone=len(actions) == 1)
    if any(isinstance(action, nodes.PartitionAction) for action in actions):
        return _alter_partitions(statement, context)
    match actions:
        case (nodes.MaterializeTtl(partition=partition),):
            return materialize_ttl(statement.table, partition, context)
        case (nodes.DeleteWhere(where=where, partition=partition),):
            return delete(nodes.Delete(statement.table, where, partition), context)
    tried_part_ids: set[str] = set()
    rows = retry_on_conflict(
        context, lambda snapshot: _attempt(statement, context, snapshot, tried_part_ids)
    )
    if any(_sets_ttl(action) for action in actions) and context.settings.boolean(
        "materialize_ttl_after_modify"
    ):
        rows += materialize_ttl(statement.table, None, context).affected_rows
    return Result(affected_rows=rows)


def _sets_ttl(action: nodes.AlterAction) -> bool:
    """Return whether the action gives the table, or a column of it, a TTL."""
    match action:
        case nodes.ModifyTtl(ttl=rules):
            return bool(rules)
        case nodes.ModifyColumn(column=column) | nodes.AddColumn(column=column):
            return column.ttl is not None
        case _:
            return False


def _require_supported(
    action: nodes.AlterAction, context: StatementContext, *, alone: bool
) -> None:
    """Raise NotSupportedError for an action that is not supported. MATERIALIZE TTL must be the only
    action (`alone`)."""
    if isinstance(action, nodes.AddColumn | nodes.ModifyColumn):
        refuse_suspicious(action.column.type, action.column.name, context.settings)
    if isinstance(action, nodes.PartitionAction):
        check_partition_action(action, context)
        return
    if isinstance(action, nodes.MaterializeTtl) and alone:
        return
    if not isinstance(action, _COMMENTS | _COLUMNS | _ROWS):
        action_text = (
            action.text if isinstance(action, nodes.OtherAction) else _action_words(action)
        )
        raise errors.NotSupportedError(
            f"ALTER TABLE … {action_text} is not supported.",
            hint=_INSTEAD.get(action_text.partition(" ")[0].upper(), _ALTERABLE),
            position=action.position,
        )


_ALTERABLE = (
    "Columns, constraints, ORDER BY, settings, partitions, UPDATE and DELETE can be altered; see"
    " docs/differences.md."
)
_INSTEAD = dict.fromkeys(
    ("FREEZE", "UNFREEZE"),
    "SYSTEM BACKUP TO 'folder' copies a warehouse; ATTACH PARTITION … FROM shares parts with another"
    " table.",
)
"""What to use instead of an action, by its first word."""


def _action_words(action: nodes.AlterAction) -> str:
    """Return the SQL words of an action's class: DropColumn -> DROP COLUMN."""
    name = type(action).__name__
    return (
        "".join(f" {letter}" if letter.isupper() else letter.upper() for letter in name)
        .strip()
        .upper()
    )


def _alter_partitions(statement: nodes.Alter, context: StatementContext) -> Result:
    """Run partition actions, each in a commit of its own, since each changes other rows. Raise
    NotSupportedError if the statement has other actions too."""
    actions = [action for action in statement.actions if isinstance(action, nodes.PartitionAction)]
    other_action = next((action for action in statement.actions if action not in actions), None)
    if other_action is not None:
        raise errors.NotSupportedError(
            "An action on partitions stands apart from other actions.",
            hint="Make two ALTER TABLE of it.",
            position=other_action.position,
        )
    return Result(
        affected_rows=sum(alter_partition(statement, action, context) for action in actions)
    )


# --- one attempt ---------------------------------------------------------------------------------


def _attempt(
    statement: nodes.Alter, context: StatementContext, snapshot: Snapshot, tried: set[str]
) -> int:
    """Make one attempt of the ALTER at the snapshot; return the number of changed rows. `tried`
    collects the ids of parts whose values convert, over all attempts."""
    item = context.require(snapshot, statement.table)
    if isinstance(item, View) and item.alias_of:
        item = context.require_table(snapshot, statement.table, "ALTER")
        statement = replace(statement, table=nodes.TableName(item.name, item.database))
    only_comments = all(isinstance(action, _COMMENTS) for action in statement.actions)
    if only_comments:
        _commit_object(context, _with_comments(item, statement))
        return 0
    if any(isinstance(a, nodes.SettledAction) and a.of_view for a in statement.actions):
        if isinstance(item, Table):
            raise errors.NotSupportedError(
                f"{item.database}.{item.name} is no view: SQL SECURITY and DEFINER are a view's.",
                position=statement.position,
            )
        if len(statement.actions) == 1:
            return 0
    table = _table(item, statement, context, snapshot)
    draft, steps = _apply_actions(statement, table, context, snapshot)
    return _publish(draft, steps, statement, context, snapshot, tried)


def _table(
    item: SchemaObject, statement: nodes.Alter, context: StatementContext, snapshot: Snapshot
) -> Table:
    """Return the table to alter, for a view its inner table. Raise NotSupportedError
    for changes of a view's columns, which its query defines, and for Log engines."""
    if not isinstance(item, Table) and any(
        isinstance(action, _COLUMNS) for action in statement.actions
    ):
        _require_columns(item, statement)
        fix = "ALTER TABLE … MODIFY QUERY changes what the view makes"
        raise errors.NotSupportedError(
            f"{item.database}.{item.name} is a view: its columns are those of its query.",
            hint=f"{fix}; its target is altered by its own name."
            if isinstance(item, MaterializedView | RefreshableView)
            else "CREATE OR REPLACE VIEW gives it other columns.",
            position=statement.table.position,
        )
    table = context.require_table(snapshot, statement.table, "ALTER")
    if table.engine.name in ("Log", "TinyLog", "StripeLog", "Set", "Join", "File"):
        raise errors.NotSupportedError(
            f"ALTER TABLE of {table.database}.{table.name}: {table.engine.name} keeps its columns.",
            hint="CREATE a MergeTree table and INSERT … SELECT the rows.",
            position=statement.table.position,
        )
    return table


def _require_columns(item: SchemaObject, statement: nodes.Alter) -> None:
    """Raise NotFoundColumnInBlock if an action is about a column that the view does not have."""
    columns = [column.name for column in item.columns]
    for action in statement.actions:
        if not isinstance(action, nodes.DropColumn | nodes.RenameColumn | nodes.ModifyColumn):
            continue
        name = action.column.name if isinstance(action, nodes.ModifyColumn) else action.name
        if action.if_exists or name in columns:
            continue
        raise errors.NotFoundColumnInBlock(
            f"{item.database}.{item.name} has no column {name}.",
            hint=f"There are: {', '.join(columns)}.",
            position=action.position or statement.table.position,
        )


def _apply_actions(
    statement: nodes.Alter, table: Table, context: StatementContext, snapshot: Snapshot
) -> tuple[ColumnsDraft, list[Step]]:
    """Apply the actions in order; return the draft of the altered table, and the steps that rewrite
    rows."""
    draft = ColumnsDraft(table)
    steps: list[Step] = []
    for action in _expand_nested(statement.actions, table):
        match action:
            case nodes.AddColumn():
                draft.add(action)
            case nodes.DropColumn():
                draft.drop(action)
            case nodes.RenameColumn():
                draft.rename(action)
            case nodes.ModifyColumn():
                draft.modify(action)
            case nodes.CommentColumn():
                draft.comment(action)
            case nodes.ModifyComment(comment=comment):
                draft.table = replace(draft.table, comment=comment)
            case nodes.ConstraintAction():
                draft.constraint(action)
            case nodes.IndexAction():
                draft.table = alter_index(action, draft.table, context, snapshot)
                steps += rewrite_steps(action, draft.table, context, snapshot)
            case nodes.ProjectionAction():
                draft.table = alter_projection(action, draft.table)
                steps += projection_steps(action, draft.table, context, snapshot)
            case nodes.StatisticsAction():
                draft.table = altered_statistics(action, draft.table)
            case nodes.SettledAction():
                pass
            case nodes.ModifyOrderBy():
                modify_order_by(draft, action, context.scope(snapshot))
            case nodes.ModifySampleBy(expression=expression):
                if expression is None and not draft.table.sampling_key:
                    raise errors.BadArguments(
                        "The table has no SAMPLE BY to remove.",
                        hint="SHOW CREATE TABLE shows its clauses.",
                        position=action.position,
                    )
                key = "" if expression is None else to_sql(expression)
                draft.table = replace(draft.table, sampling_key=key)
            case nodes.ModifySetting():
                modify_settings(draft, action)
            case nodes.ModifyTtl():
                ttl = ttl_after_modify(action, draft.table, context.scope(snapshot))
                draft.table = replace(draft.table, ttl=ttl)
            case _:
                steps += mutation_steps(action, draft.table, context, snapshot)
    return draft, steps


def _expand_nested(
    actions: Sequence[nodes.AlterAction], table: Table
) -> Iterator[nodes.AlterAction]:
    """Yield the actions; DROP and CLEAR COLUMN of a nested structure become one action for each of
    its columns."""
    for action in actions:
        if isinstance(action, nodes.DropColumn | nodes.ClearColumn):
            for name in nested_columns(table, action.name) or (action.name,):
                yield replace(action, name=name)
        else:
            yield action


def _publish(
    draft: ColumnsDraft,
    steps: list[Step],
    statement: nodes.Alter,
    context: StatementContext,
    snapshot: Snapshot,
    tried: set[str],
) -> int:
    """Check the draft, stage the rewritten parts and commit everything at once; return the number
    of changed rows.

    The commit requires that the table and all views are unchanged since the snapshot. A statement
    that changes nothing commits nothing.
    """
    old_table = draft.before
    new_table = old_table if draft.table == old_table else draft.finished()
    if new_table is old_table and not steps:
        return 0
    new_table = check_altered_projections(old_table, new_table)
    views, rejudged = _check_views(draft, new_table, context, snapshot)
    services = context.services
    origin = context.origin(_kind(statement))
    with Pin(services, snapshot.number), Staging(origin) as staging:
        mutation = Mutation(origin, staging, snapshot, new_table, context.parameters)
        reinterpretation = ColumnReinterpretation(old_table, new_table, tried)
        reinterpretation.apply(mutation)
        for step in steps:
            mutation.run(step)
        combined_draft = CommitDraft((origin.lease, RevisionIs(old_table.id, old_table.revision)))
        if new_table is not old_table:
            combined_draft.change(*(PutObject(item) for item in (new_table, *views)))
            combined_draft.merge(rejudged_draft(origin, snapshot, rejudged))
            combined_draft.require(NoViewSince(snapshot.number))
        combined_draft.merge(mutation.draft())
        combined_draft.change(*reinterpretation.writer_invalidations(mutation))
        if combined_draft.changes:
            failpoint("alter.before_commit")
            staging.publish(combined_draft)
    services.notify_written(old_table.id)
    return mutation.rows


def _check_views(
    draft: ColumnsDraft, after: Table, context: StatementContext, snapshot: Snapshot
) -> tuple[list[MaterializedView | View], tuple[Rejudged, ...]]:
    """Check the altered table and all views around it.

    Returns the views whose text follows a rename, and the views that the ALTER makes provable or
    unproven; no view is in both. Raises AlterOfColumnIsForbidden for a change that breaks the
    engine or a view.
    """
    if after is draft.before:
        return [], ()
    try:
        check_engine(after)
    except errors.ProgrammingError as error:
        raise errors.AlterOfColumnIsForbidden(error.message, hint=error.hint) from error
    check_table(after, context, snapshot)
    ttl_text(ttl_rules(after), after, context.scope(snapshot))
    kept_ids = {column.id for column in after.columns}
    for column in draft.before.columns:
        if column.id not in kept_ids and after.column(column.name) is None:
            refuse_needed_column(snapshot, draft.before, column.name)
    rewritten_views: dict[str, MaterializedView | View] = {}
    for (old_name, new_name), (table_before, table_after) in zip(
        draft.renamed, draft.renames, strict=True
    ):
        overlay = OverlaySnapshot.of(snapshot, table_before, *rewritten_views.values())
        for view in views_after_column_rename(overlay, table_after, old_name, new_name):
            rewritten_views[view.id] = view
    rejudged = check_altered(snapshot, after, "alter", rewritten_views.values())
    _check_rewritten_views(
        list(rewritten_views.values()),
        OverlaySnapshot.of(snapshot, after, *rewritten_views.values()),
        after,
    )
    rejudged_ids = {
        judgement.view.id for judgement in rejudged
    }  # the rejudged views have the new text already
    return [view for view in rewritten_views.values() if view.id not in rejudged_ids], rejudged


def _check_rewritten_views(
    views: list[MaterializedView | View], after: Snapshot, table: Table
) -> None:
    """Raise AlterOfColumnIsForbidden if the rewritten text of a materialized view does not bind at
    the snapshot `after`."""
    for view in views:
        if not isinstance(view, MaterializedView):
            continue
        try:
            bind_view(view, after)
        except errors.Error as error:
            name = f"{view.database}.{view.name}"
            raise errors.AlterOfColumnIsForbidden(
                f"Cannot alter {table.database}.{table.name}: {name} would not bind any more."
                f" {error.message}",
                hint=hint_of_unfit(view),
            ) from error


def _kind(statement: nodes.Alter) -> str:
    """Return the commit's kind in system.snapshots: "UPDATE" if an action is an UPDATE, else
    "ALTER". Users find mutations by it."""
    if any(isinstance(action, nodes.UpdateWhere) for action in statement.actions):
        return "UPDATE"
    return "ALTER"


# --- comments ------------------------------------------------------------------------------------


def _commit_object(context: StatementContext, item: SchemaObject) -> None:
    """Commit the changed object, provided that it is unchanged since it was read."""
    commit_schema_change(context, "ALTER", [RevisionIs(item.id, item.revision)], [PutObject(item)])


def _with_comments(item: SchemaObject, statement: nodes.Alter) -> SchemaObject:
    """Return the object with the comments of the statement. Its `version` stays, since a comment
    does not change its meaning. Raises IncorrectQuery."""
    for action in statement.actions:
        if isinstance(action, nodes.ModifyComment):
            item = replace(item, comment=action.comment)
        elif isinstance(action, nodes.CommentColumn):
            item = _with_column_comment(item, action)
        else:
            raise errors.IncorrectQuery("Only comments are changed here.", position=action.position)
    return item


def _with_column_comment(item: SchemaObject, action: nodes.CommentColumn) -> SchemaObject:
    """Return the object with the column's comment; raise NotFoundColumnInBlock for a missing
    column."""
    if all(column.name != action.name for column in item.columns):
        if action.if_exists:
            return item
        raise errors.NotFoundColumnInBlock(
            f"{item.database}.{item.name} has no column {action.name}.",
            hint=f"It has {', '.join(column.name for column in item.columns)}.",
            position=action.position,
        )
    columns = tuple(
        replace(column, comment=action.comment) if column.name == action.name else column
        for column in item.columns
    )
    return replace(item, columns=columns)
