"""What CREATE MATERIALIZED VIEW … REFRESH defines: the view, its target and its query, before a commit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from olapdb import errors
from olapdb.bind.qualify import qualify
from olapdb.config import Settings
from olapdb.model.requirements import Requirement, RevisionIs, SchemaIs
from olapdb.model.schema import RefreshableView, SchemaObject, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.inner_tables import inner_builder
from olapdb.statements.query import select
from olapdb.system.ddl import create_refreshable
from olapdb.views.definition.column_compatibility import check_columns
from olapdb.views.definition.definition import columns_of_plan
from olapdb.views.definition.kept_settings import frozen_settings
from olapdb.views.refresh.schedule import checked


def stored_definition(statement: nodes.CreateMaterializedView, context: StatementContext) -> str:
    """Return the statement that SHOW CREATE would show of the view, without creating it. Raises what
    CREATE OR REPLACE raises before its first refresh."""
    context = context.with_settings(statement.settings)
    snapshot = context.snapshot()
    view, target, _ = defined(statement, context, statement.name, snapshot)
    return create_refreshable(view, target, snapshot)


def defined(
    statement: nodes.CreateMaterializedView,
    context: StatementContext,
    made_name: nodes.TableName,
    snapshot: Snapshot,
) -> tuple[RefreshableView, Table, Plan]:
    """Return the view as `made_name`, its target, which is new if there is no TO, and the plan of
    its query. Raise what refuses the definition."""
    clause = statement.refresh
    assert clause is not None
    database, name = context.locate(made_name)
    existing = context.find(snapshot, statement.name)
    replaced = existing if isinstance(existing, RefreshableView) else None
    checked(clause)
    plan, text, settings = bound(statement.query, context, snapshot)
    view_id, now_ms = str(uuid.uuid4()), context.services.clock_ms()
    target = _target(statement, plan, view_id, context, snapshot)
    _refuse_target(target, replaced, statement, snapshot)
    check_columns(
        f"{database}.{name}", plan, target, statement.columns, snapshot, context.environment
    )
    view = RefreshableView(
        id=view_id,
        database=database,
        name=name,
        columns=columns_of_plan(plan),
        query=text,
        target_id=target.id,
        refresh=schedule_text(clause),
        # A view that replaces another takes its id.
        depends_on=dependencies(clause, replaced.id if replaced else view_id, context, snapshot),
        append=clause.append,
        inner=statement.target is None,
        settings=settings,
        zone=context.environment.zone,
        comment=statement.comment,
        created_ms=now_ms,
        stopped=replaced is not None,
        scheduled_from_ms=now_ms if statement.empty else 0,
    )
    return view, target, plan


def bound(
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
    """Return the TO table, or build the inner table. Raise UnknownTable.

    Also raises QueryNotSupportedInMaterializedView."""
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
    would remove or add others to, and for an engine that cannot exchange its rows: those of the
    MergeTree family and Memory can."""
    position = None if statement.target is None else statement.target.position
    if not target.engine.is_merge_tree and target.engine.name != "Memory":
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
        appends = statement.refresh is not None and statement.refresh.append
        harm = (
            "a refresh would add rows to those of its query"
            if appends
            else "whose rows a refresh would remove"
        )
        raise errors.BadArguments(
            f"Table {target.database}.{target.name} is already the target of {name}, {harm}.",
            hint="Give the view a table of its own.",
            position=position,
        )


def dependencies(
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


def schedule_text(clause: nodes.RefreshClause) -> str:
    """Return the checked clause as it is stored: without DEPENDS ON, whose views are stored by
    id."""
    return to_sql(replace(checked(clause).clause, depends_on=()))


def unchanged(plan: Plan, target: Table) -> Sequence[Requirement]:
    """Return the requirements that the tables of the query and the target are as they were read."""
    return [*(RevisionIs(*item) for item in plan.tables), SchemaIs(target.id, target.version)]
