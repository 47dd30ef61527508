"""CREATE MATERIALIZED VIEW … REFRESH, and ALTER TABLE … MODIFY REFRESH and MODIFY QUERY of such a
view."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from olapdb import errors
from olapdb.commit.draft import CommitDraft, publish
from olapdb.model.changes import DropObject, PutObject
from olapdb.model.requirements import (
    DatabaseExists,
    NameIsFree,
    NoDependents,
    Requirement,
    RevisionIs,
)
from olapdb.model.schema import RefreshableView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.admin import refresh
from olapdb.statements.context import StatementContext, refuse_dependents, unknown_table
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl.attempts import retry_on_conflict
from olapdb.statements.ddl.refreshable_definition import (
    bound,
    defined,
    dependencies,
    require_refreshable,
    schedule_text,
    unchanged,
)
from olapdb.views.definition.column_compatibility import check_columns
from olapdb.views.definition.definition import columns_of_plan
from olapdb.views.refresh.refreshing import awaited_views


def create_refreshable_view(
    statement: nodes.CreateMaterializedView, context: StatementContext
) -> Result:
    """Run CREATE MATERIALIZED VIEW … REFRESH: create the view, and its inner table if there is no
    TO, in one commit, then refresh it, unless EMPTY or a view that it depends on forbids.

    A first refresh that fails drops the view again and raises RefreshFailed.
    Also raises NotSupportedError.
    """
    if context.parameters:
        raise errors.NotSupportedError(
            "The query of a view takes no parameters.", hint="Write the values into it."
        )
    if statement.or_replace and isinstance(
        context.find(context.snapshot(), statement.name), RefreshableView
    ):
        return _replace_view(statement, context)
    view = retry_on_conflict(context, partial(_create, statement, context, statement.name))
    if view is None or not _is_refreshed_first(statement, view, context):
        return Result()
    try:
        # Only if due: the background of this or another process may have been first.
        refresh.refresh_now(view.id, context, only_if_due=True)
        refresh.wait_for(view, context)
    except BaseException:
        retry_on_conflict(context, partial(_drop_again, view.id, context))
        raise
    return Result()


def _is_refreshed_first(
    statement: nodes.CreateMaterializedView, view: RefreshableView, context: StatementContext
) -> bool:
    """Return whether CREATE refreshes the new view: not with EMPTY, nor while it waits for
    another."""
    return not statement.empty and not awaited_views(view, context.services.catalog.snapshot())


def _replace_view(statement: nodes.CreateMaterializedView, context: StatementContext) -> Result:
    """Run OR REPLACE: make the new view under another name, refresh it, and let it take the place of
    the old one in one commit. Views that depend on the old one depend on the new one then. If the
    refresh fails the old view stays."""
    hidden = nodes.TableName(f".new.{uuid.uuid4()}", context.locate(statement.name)[0])
    view = retry_on_conflict(context, partial(_create, statement, context, hidden))
    assert view is not None
    try:
        if _is_refreshed_first(statement, view, context):
            refresh.refresh_now(view.id, context)
        retry_on_conflict(context, partial(_take_name, view.id, statement, context))
    except BaseException:
        retry_on_conflict(context, partial(_drop_again, view.id, context))
        raise
    return Result()


def _take_name(
    view_id: str,
    statement: nodes.CreateMaterializedView,
    context: StatementContext,
    snapshot: Snapshot,
) -> None:
    """Make one attempt to give the new view the name and the id of the old one, with its own inner
    table; its schedule begins. The old inner table goes. Without an old view the new one only takes
    the name. Raises HaveDependentObjects if another view joins the old inner table.
    Also raises UnknownTable."""
    database, name = context.locate(statement.name)
    view, old = snapshot.by_id(view_id), snapshot.find(database, name)
    if not isinstance(view, RefreshableView):
        raise errors.UnknownTable("The new view was dropped while it was made.")
    draft = CommitDraft([RevisionIs(view.id, view.revision)])
    if isinstance(old, RefreshableView):
        draft.require(RevisionIs(old.id, old.revision))
        draft.change(DropObject(view.id))
        _drop_inner_table(old, snapshot, draft)
        _rename_inner_table(view, old.id, snapshot, draft)
        view = replace(view, id=old.id, revision=old.revision, created_ms=old.created_ms)
    else:
        draft.require(NameIsFree(database, name))
    draft.change(PutObject(replace(view.renamed(database, name), stopped=False)))
    publish(draft, context.origin("CREATE MATERIALIZED VIEW"))


def _rename_inner_table(
    view: RefreshableView, owner_id: str, snapshot: Snapshot, draft: CommitDraft
) -> None:
    """Add to the draft that the view's inner table gets the name of that of the view `owner_id`."""
    table = snapshot.by_id(view.target_id)
    if view.inner and isinstance(table, Table):
        draft.require(RevisionIs(table.id, table.revision))
        draft.change(PutObject(table.renamed(view.database, f".inner_id.{owner_id}")))


def drop_draft(snapshot: Snapshot, view: RefreshableView) -> CommitDraft:
    """Return the draft of a commit that drops the view, and its inner table. Raise
    HaveDependentObjects if another view needs one of them."""
    refuse_dependents(snapshot, view, "drop")
    draft = CommitDraft(
        [RevisionIs(view.id, view.revision), NoDependents(view.id)], [DropObject(view.id)]
    )
    _drop_inner_table(view, snapshot, draft)
    return draft


def _drop_inner_table(view: RefreshableView, snapshot: Snapshot, draft: CommitDraft) -> None:
    """Add to the draft that the view's inner table goes, if it has one. Raise HaveDependentObjects
    if another view needs the table."""
    target = snapshot.by_id(view.target_id)
    if view.inner and target is not None:
        refuse_dependents(snapshot, target, "drop", but=(view.id,))
        draft.require(NoDependents(target.id, except_ids=(view.id,)))
        draft.change(DropObject(target.id))


def modify_refresh(statement: nodes.Alter, context: StatementContext) -> Result:
    """Run ALTER TABLE view MODIFY REFRESH: the clause replaces the old one as a whole. Raises
    NotSupportedError if it adds or removes APPEND."""
    (action,) = _only_action(statement)
    assert isinstance(action, nodes.ModifyRefresh)

    def attempt(snapshot: Snapshot) -> None:
        """Store the new REFRESH clause in the view, in one commit at this snapshot;
        `retry_on_conflict` repeats it. Raises NotSupportedError for a table, and for a clause that
        adds or removes APPEND."""
        if isinstance(context.find(snapshot, statement.table), Table):
            raise errors.NotSupportedError(
                "ALTER TABLE … MODIFY REFRESH is for refreshable views, not for tables.",
                hint="system.view_refreshes lists the views.",
                position=action.position,
            )
        if context.find(snapshot, statement.table) is None:
            raise unknown_table(snapshot, *context.locate(statement.table)).at(
                statement.table.position
            )
        view = require_refreshable(statement.table, context, snapshot)
        if action.refresh.append != view.append:
            raise errors.NotSupportedError(
                "ALTER TABLE … MODIFY REFRESH can neither add nor remove APPEND.",
                hint="DROP VIEW, and create it anew.",
                position=action.position,
            )
        depends_on = dependencies(action.refresh, view.id, context, snapshot)
        altered = replace(
            view,
            refresh=schedule_text(action.refresh),
            depends_on=depends_on,
            retry=0,
            version=view.version + 1,
        )
        _put(altered, [RevisionIs(item, _revision(snapshot, item)) for item in depends_on], context)

    retry_on_conflict(context, attempt)
    return Result()


def modify_query(statement: nodes.Alter, context: StatementContext) -> Result:
    """Run ALTER TABLE view MODIFY QUERY of a refreshable view; its next refresh runs the query.

    The target keeps its columns and rows. Raises BadArguments if there is no such view, and what
    `check_columns` raises for a query whose columns do not fit the target."""
    (action,) = _only_action(statement)
    assert isinstance(action, nodes.ModifyQuery)

    def attempt(snapshot: Snapshot) -> None:
        """Check the new query against the target and store it in the view, in one commit at this
        snapshot."""
        view = require_refreshable(statement.table, context, snapshot)
        target = snapshot.by_id(view.target_id)
        assert isinstance(target, Table)
        plan, text, settings = bound(action.query, context, snapshot)
        name = f"{view.database}.{view.name}"
        check_columns(name, plan, target, (), snapshot, context.environment)
        altered = replace(
            view,
            query=text,
            columns=columns_of_plan(plan),
            settings=settings,
            zone=context.environment.zone,
            version=view.version + 1,
        )
        _put(altered, unchanged(plan, target), context)

    retry_on_conflict(context, attempt)
    return Result()


def system(statement: nodes.System, context: StatementContext) -> Result:
    """Run SYSTEM REFRESH VIEW v, WAIT VIEW v, STOP VIEWS or START VIEWS. REFRESH returns when the
    refresh is done, and raises RefreshFailed if it fails."""
    if statement.command in ("STOP VIEWS", "START VIEWS"):
        refresh.set_all_stopped(statement.command == "STOP VIEWS", context)
        return Result()
    assert statement.table is not None
    view = require_refreshable(statement.table, context, context.snapshot())
    if statement.command == "WAIT VIEW":
        refresh.wait_for(view, context)
        return Result()
    return Result(affected_rows=refresh.refresh_now(view.id, context))


# --- creation


def _create(
    statement: nodes.CreateMaterializedView,
    context: StatementContext,
    made_name: nodes.TableName,
    snapshot: Snapshot,
) -> RefreshableView | None:
    """Make one attempt at the snapshot to create the view as `made_name`; None if IF NOT EXISTS
    found the view. One that shall replace another is made stopped."""
    database, name = context.locate(made_name)
    require_own_database(database, snapshot, statement.name.position)
    existing = _object_to_replace(statement, context, snapshot)
    if existing is not None and statement.if_not_exists:
        return None
    draft = CommitDraft([DatabaseExists(database), NameIsFree(database, name)])
    view, target, plan = defined(statement, context, made_name, snapshot)
    if view.inner:
        draft.change(PutObject(target))
    else:
        draft.require(*unchanged(plan, target))
    draft.change(PutObject(view))
    publish(draft, context.origin("CREATE MATERIALIZED VIEW"))
    return view


def _drop_again(view_id: str, context: StatementContext, snapshot: Snapshot) -> None:
    """Drop the view whose first refresh failed, unless another statement has dropped it."""
    view = snapshot.by_id(view_id)
    if isinstance(view, RefreshableView):
        publish(drop_draft(snapshot, view), context.origin("CREATE MATERIALIZED VIEW"))


def _object_to_replace(
    statement: nodes.CreateMaterializedView, context: StatementContext, snapshot: Snapshot
) -> RefreshableView | None:
    """Return the refreshable view that has the name; None if the name is free. Raise
    TableAlreadyExists without OR REPLACE or IF NOT EXISTS, or for another object."""
    existing = context.find(snapshot, statement.name)
    if existing is None:
        return None
    replaces = statement.or_replace or statement.if_not_exists
    if replaces and isinstance(existing, RefreshableView):
        return existing
    raise errors.TableAlreadyExists(
        f"{existing.database}.{existing.name} exists.",
        hint="DROP it first, or choose another name.",
        position=statement.name.position,
    )


def _revision(snapshot: Snapshot, object_id: str) -> int:
    """Return the revision of an object of the snapshot."""
    item = snapshot.by_id(object_id)
    assert item is not None
    return item.revision


def _put(
    altered: RefreshableView, requirements: Sequence[Requirement], context: StatementContext
) -> None:
    """Commit the altered view."""
    draft = CommitDraft([RevisionIs(altered.id, altered.revision), *requirements])
    draft.change(PutObject(altered))
    publish(draft, context.origin("ALTER"))


def _only_action(statement: nodes.Alter) -> tuple[nodes.AlterAction]:
    """Return the statement's one action. Raise NotSupportedError if it has several."""
    if len(statement.actions) > 1:
        raise errors.NotSupportedError(
            "MODIFY REFRESH and MODIFY QUERY stand alone in their ALTER TABLE.",
            hint="Make several ALTER TABLE of it.",
            position=statement.position,
        )
    return (statement.actions[0],)
