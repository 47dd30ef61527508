"""CREATE MATERIALIZED VIEW … REFRESH, and ALTER TABLE … MODIFY REFRESH and MODIFY QUERY of such a
view."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from olapdb import errors
from olapdb.bind.qualify import qualify
from olapdb.commit.draft import CommitDraft, publish
from olapdb.config import Settings
from olapdb.model.changes import DropObject, PutObject
from olapdb.model.requirements import (
    DatabaseExists,
    NameIsFree,
    NoDependents,
    Requirement,
    RevisionIs,
    SchemaIs,
)
from olapdb.model.schema import RefreshableView, SchemaObject, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.statements.admin import refresh
from olapdb.statements.context import StatementContext, refuse_dependents
from olapdb.statements.ddl.attempts import retry_on_conflict
from olapdb.statements.ddl.inner_tables import inner_builder
from olapdb.statements.introspect.show import require_own_database
from olapdb.statements.query import select
from olapdb.views.definition.column_compatibility import check_columns
from olapdb.views.definition.definition import columns_of_plan, frozen_settings
from olapdb.views.refresh.refreshing import awaited_views
from olapdb.views.refresh.schedule import checked


def create_refreshable_view(
    statement: nodes.CreateMaterializedView, context: StatementContext
) -> Result:
    """Run CREATE MATERIALIZED VIEW … REFRESH: create the view, and its inner table if there is no
    TO, in one commit, then refresh it, unless EMPTY or a view that it depends on forbids.

    A first refresh that fails drops the view again and raises RefreshFailed.
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
    """Run OR REPLACE: make the new view under another name, refresh it, and let it take the name of
    the old one, which is dropped in the same commit. If the refresh fails the old view stays."""
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
    """Make one attempt to drop the view of the statement's name, and to give its name to the new
    one, whose schedule begins."""
    database, name = context.locate(statement.name)
    view, old = snapshot.by_id(view_id), snapshot.find(database, name)
    if not isinstance(view, RefreshableView):
        raise errors.UnknownTable("The new view was dropped while it was made.")
    draft = CommitDraft([RevisionIs(view.id, view.revision)])
    if isinstance(old, RefreshableView):
        draft.merge(drop_draft(snapshot, old))
    else:
        draft.require(NameIsFree(database, name))
    draft.change(PutObject(replace(view.renamed(database, name), stopped=False)))
    publish(draft, context.origin("CREATE MATERIALIZED VIEW"))


def drop_draft(snapshot: Snapshot, view: RefreshableView) -> CommitDraft:
    """Return the draft of a commit that drops the view, and its inner table. Raise
    HaveDependentObjects if another view needs one of them."""
    refuse_dependents(snapshot, view, "drop")
    draft = CommitDraft(
        [RevisionIs(view.id, view.revision), NoDependents(view.id)], [DropObject(view.id)]
    )
    target = snapshot.by_id(view.target_id)
    if view.inner and target is not None:
        refuse_dependents(snapshot, target, "drop", but=(view.id,))
        draft.require(NoDependents(target.id, except_ids=(view.id,)))
        draft.change(DropObject(target.id))
    return draft


def modify_refresh(statement: nodes.Alter, context: StatementContext) -> Result:
    """Run ALTER TABLE view MODIFY REFRESH: the clause replaces the old one as a whole. Raises
    NotSupportedError if it adds or removes APPEND."""
    (action,) = _only_action(statement)
    assert isinstance(action, nodes.ModifyRefresh)

    def attempt(snapshot: Snapshot) -> None:
        """Make one attempt at the snapshot."""
        view = require_refreshable(statement.table, context, snapshot)
        if action.refresh.append != view.append:
            raise errors.NotSupportedError(
                "ALTER TABLE … MODIFY REFRESH can neither add nor remove APPEND.",
                hint="DROP VIEW, and create it anew.",
                position=action.position,
            )
        depends_on = _dependencies(action.refresh, view.id, context, snapshot)
        altered = replace(
            view,
            refresh=_schedule_text(action.refresh),
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
        """Make one attempt at the snapshot."""
        view = require_refreshable(statement.table, context, snapshot)
        target = snapshot.by_id(view.target_id)
        assert isinstance(target, Table)
        plan, text, settings = _bound(action.query, context, snapshot)
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
        _put(altered, _unchanged(plan, target), context)

    retry_on_conflict(context, attempt)
    return Result()


def require_refreshable(
    name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> RefreshableView:
    """Return the refreshable view of that name. Raise BadArguments, as ClickHouse does, if there is
    none."""
    item = context.find(snapshot, name)
    if isinstance(item, RefreshableView):
        return item
    raise errors.BadArguments(
        f"Refreshable view {name} doesn't exist.",
        hint="system.view_refreshes lists them.",
        position=name.position,
    )


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
    clause = statement.refresh
    assert clause is not None
    database, name = context.locate(made_name)
    require_own_database(database, snapshot, statement.name.position)
    existing = _object_to_replace(statement, context, snapshot)
    if existing is not None and statement.if_not_exists:
        return None
    checked(clause)
    draft = CommitDraft([DatabaseExists(database), NameIsFree(database, name)])
    plan, text, settings = _bound(statement.query, context, snapshot)
    view_id, now_ms = str(uuid.uuid4()), context.services.clock_ms()
    target = _target(statement, plan, view_id, context, snapshot)
    _refuse_target(target, existing, statement, snapshot)
    full_name = f"{database}.{name}"
    check_columns(full_name, plan, target, statement.columns, snapshot, context.environment)
    view = RefreshableView(
        id=view_id,
        database=database,
        name=name,
        columns=columns_of_plan(plan),
        query=text,
        target_id=target.id,
        refresh=_schedule_text(clause),
        depends_on=_dependencies(clause, view_id, context, snapshot),
        append=clause.append,
        inner=statement.target is None,
        settings=settings,
        zone=context.environment.zone,
        comment=statement.comment,
        created_ms=now_ms,
        stopped=existing is not None,
        scheduled_from_ms=now_ms if statement.empty else 0,
    )
    if view.inner:
        draft.change(PutObject(target))
    else:
        draft.require(*_unchanged(plan, target))
    draft.change(PutObject(view))
    publish(draft, context.origin("CREATE MATERIALIZED VIEW"))
    return view


def _drop_again(view_id: str, context: StatementContext, snapshot: Snapshot) -> None:
    """Drop the view whose first refresh failed, unless somebody else dropped it."""
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


def _bound(
    query: nodes.Query, context: StatementContext, snapshot: Snapshot
) -> tuple[Plan, str, tuple[tuple[str, str | int | float | bool], ...]]:
    """Return the query's plan, its text with qualified names, and the settings that are kept."""
    frozen = frozen_settings(context.settings.changed, getattr(query, "settings", ()))
    if isinstance(query, nodes.Select | nodes.SetOperation):
        query = replace(query, settings=(), format=None)
    kept = replace(context, settings=Settings(frozen))
    plan = select.plan_query(query, kept, snapshot)
    text = to_sql(qualify(query, kept.scope(snapshot)))
    return plan, text, tuple(sorted(frozen.items()))


def _target(
    statement: nodes.CreateMaterializedView,
    plan: Plan,
    view_id: str,
    context: StatementContext,
    snapshot: Snapshot,
) -> Table:
    """Return the TO table, or build the inner table. Raise UnknownTable."""
    if statement.target is None:
        build = inner_builder(context)
        return build(statement, columns_of_plan(plan), f".inner_id.{view_id}")
    if statement.storage is not None:
        raise errors.QueryNotSupportedInMaterializedView(
            "A materialized view has either TO a table or an ENGINE of its own, not both.",
            position=statement.position,
        )
    return context.require_table(snapshot, statement.target, "CREATE MATERIALIZED VIEW … REFRESH")


def _refuse_target(
    target: Table,
    replaced: RefreshableView | None,
    statement: nodes.CreateMaterializedView,
    snapshot: Snapshot,
) -> None:
    """Raise BadArguments for a table that a view other than `replaced` writes, whose rows a refresh
    would remove, and for an engine that cannot exchange its rows."""
    position = None if statement.target is None else statement.target.position
    if not target.engine.is_merge_tree:
        raise errors.BadArguments(
            f"Engine {target.engine.name} cannot exchange its rows in one commit, as a refresh does.",
            hint="Say ENGINE = MergeTree.",
            position=position,
        )
    writers: list[SchemaObject] = list(snapshot.views_into(target.id))
    writers += [
        view for view in snapshot.objects_of(RefreshableView) if view.target_id == target.id
    ]
    writers = [item for item in writers if replaced is None or item.id != replaced.id]
    if writers:
        name = f"{writers[0].database}.{writers[0].name}"
        raise errors.BadArguments(
            f"Table {target.database}.{target.name} is already the target of {name}, whose rows a"
            " refresh would remove.",
            hint="Give the view a table of its own.",
            position=position,
        )


def _dependencies(
    clause: nodes.RefreshClause, view_id: str, context: StatementContext, snapshot: Snapshot
) -> tuple[str, ...]:
    """Return the ids of the views of DEPENDS ON. Raise BadArguments for one that is no refreshable
    view, or that depends on this view itself."""
    needed = [require_refreshable(name, context, snapshot) for name in clause.depends_on]
    pending, seen = [item.id for item in needed], set[str]()
    while pending:
        item = snapshot.by_id(pending.pop())
        if isinstance(item, RefreshableView) and item.id not in seen:
            seen.add(item.id)
            pending += item.depends_on
    if view_id in seen:
        raise errors.BadArguments(
            "A view cannot depend on itself, nor on a view that depends on it.",
            hint="Leave it out of DEPENDS ON.",
            position=clause.position,
        )
    return tuple(dict.fromkeys(item.id for item in needed))


def _schedule_text(clause: nodes.RefreshClause) -> str:
    """Return the checked clause as it is stored: without DEPENDS ON, whose views are stored by
    id."""
    return to_sql(replace(checked(clause).clause, depends_on=()))


def _unchanged(plan: Plan, target: Table) -> Sequence[Requirement]:
    """Return the requirements that the tables of the query and the target are as they were read."""
    return [*(RevisionIs(*item) for item in plan.tables), SchemaIs(target.id, target.version)]


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
