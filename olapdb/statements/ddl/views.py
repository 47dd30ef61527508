"""CREATE MATERIALIZED VIEW, ATTACH, DETACH and MODIFY QUERY."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from olapdb.bind.added_filters import refuse_added_filters
from olapdb.errors import NotSupportedError, TableAlreadyExists
from olapdb.model.schema import MaterializedView, RefreshableView, View
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl import refreshable_views
from olapdb.statements.ddl.attempts import retry_on_conflict
from olapdb.statements.ddl.detached_tables import attach_object, detach_object
from olapdb.statements.ddl.inner_tables import inner_builder
from olapdb.statements.ddl.plain_views import draft_read_view
from olapdb.views.definition.create import create_view, judge_statement, set_attached
from olapdb.views.definition.modify_query import modify_query

if TYPE_CHECKING:
    from olapdb.views.jobs.executor import Executor
    from olapdb.views.provability import Judgement


def create_materialized_view(
    statement: nodes.CreateMaterializedView, context: StatementContext
) -> Result:
    """Run CREATE MATERIALIZED VIEW; its target and its read view are created in the same commit. INSERTs
    after its commit fire the trigger; older rows are its gap until a backfill. With REFRESH it is no
    trigger: see `refreshable_views`."""
    refuse_added_filters(statement.query)
    context = context.with_settings(statement.settings, takes_engine=statement.populate)
    context.require_warehouse_zone("A materialized view", statement.position)
    if statement.refresh is not None:
        return refreshable_views.create_refreshable_view(statement, context)
    creation = create_view(
        context.origin(),
        statement,
        database=context.database,
        build_inner=inner_builder(context),
        draft_read_view=lambda created, snapshot: draft_read_view(created, context, snapshot),
        executor=chunk_executor(context),
        progress=context.progress,
    )
    context.statistics.warnings += creation.warnings
    return Result()


def judged_statement(
    statement: nodes.CreateMaterializedView, context: StatementContext
) -> Judgement:
    """Return the judgement that CREATE would make of the definition; nothing is created."""
    context = context.with_settings(statement.settings)
    return judge_statement(
        context.origin(), statement, database=context.database, build_inner=inner_builder(context)
    )


def attach_or_detach(statement: nodes.Attach | nodes.Detach, context: StatementContext) -> Result:
    """Run ATTACH or DETACH.

    DETACH of a materialized view stops the trigger; rows inserted until the next ATTACH are the view's
    gap. Other objects are hidden, see `detached_tables`. A database raises NotSupportedError: every
    process that opens the warehouse sees the same ones. ATTACH of what exists raises
    TableAlreadyExists without IF NOT EXISTS."""
    if statement.kind == "DATABASE":
        verb = type(statement).__name__.upper()
        raise NotSupportedError(
            f"{verb} DATABASE is not supported: every process that opens the warehouse sees the same"
            " databases.",
            hint="DETACH its tables, or RENAME it.",
            position=statement.position,
        )
    retry_on_conflict(context, partial(_attach_or_detach, statement, context))
    return Result()


def _attach_or_detach(
    statement: nodes.Attach | nodes.Detach, context: StatementContext, snapshot: Snapshot
) -> None:
    """Make one attempt of `attach_or_detach` at the snapshot."""
    attaches = isinstance(statement, nodes.Attach)
    item = context.find(snapshot, statement.name)
    if isinstance(item, MaterializedView):
        set_trigger(item, attaches, context)
    elif isinstance(statement, nodes.Detach):
        if item is None and statement.if_exists:
            return
        item = context.require(snapshot, statement.name)
        detach_object(statement, item, context, snapshot)
    elif item is None:
        attach_object(statement, context, snapshot)
    elif not statement.if_not_exists:
        raise TableAlreadyExists(
            f"{item.database}.{item.name} exists, and is attached.",
            hint="Say IF NOT EXISTS.",
            position=statement.name.position,
        )


def set_trigger(view: MaterializedView, attached: bool, context: StatementContext) -> None:
    """Set whether INSERTs fire the view's trigger; SYSTEM STOP and START VIEW do the same."""
    set_attached(context.origin(), view.id, attached)


def alter_query(statement: nodes.Alter, context: StatementContext) -> Result:
    """Run ALTER TABLE view MODIFY QUERY. Rows that the old query made are stale until a replay.

    Raises NotSupportedError."""
    if len(statement.actions) > 1:
        raise NotSupportedError(
            "MODIFY QUERY stands alone in its ALTER TABLE.",
            hint="Alter the target first, by its own name; then the view's query.",
            position=statement.position,
        )
    (action,) = statement.actions
    assert isinstance(action, nodes.ModifyQuery)
    context = context.with_settings(statement.settings)
    context.require_warehouse_zone("The query of a view", statement.position)
    if isinstance(context.find(context.snapshot(), statement.table), RefreshableView):
        return refreshable_views.modify_query(statement, context)
    if isinstance(context.find(context.snapshot(), statement.table), View):
        raise NotSupportedError(
            f"MODIFY QUERY: {statement.table} is a plain view.",
            hint="CREATE OR REPLACE VIEW gives it another query.",
            position=statement.table.position,
        )
    view = context.require_view(context.snapshot(), statement.table)
    modify_query(context.origin(), view.id, action.query, database=context.database)
    return Result()


def chunk_executor(context: StatementContext) -> Executor:
    """Return the executor that the setting `engine` selects for chunks."""
    return context.engine.executor(context.settings.text("engine"), context.settings)
