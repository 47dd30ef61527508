"""CREATE MATERIALIZED VIEW, ATTACH, DETACH and MODIFY QUERY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olapdb.bind.added_filters import refuse_added_filters
from olapdb.errors import NotSupportedError, TableAlreadyExists
from olapdb.model.schema import MaterializedView, RefreshableView
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext, unknown_table
from olapdb.statements.ddl import refreshable_views
from olapdb.statements.ddl.inner_tables import inner_builder
from olapdb.views.definition.create import create_view, judge_statement, set_attached
from olapdb.views.definition.modify_query import modify_query

if TYPE_CHECKING:
    from olapdb.views.jobs.executor import Executor
    from olapdb.views.provability import Judgement


def create_materialized_view(
    statement: nodes.CreateMaterializedView, context: StatementContext
) -> Result:
    """Run CREATE MATERIALIZED VIEW. INSERTs after its commit fire the trigger; older rows are its
    gap until a backfill. With REFRESH it is no trigger: see `refreshable_views`."""
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
    """Run ATTACH or DETACH of a materialized view.

    DETACH stops the trigger; rows inserted until the next ATTACH are the view's gap. A database,
    and DETACH of a table, raise NotSupportedError: every process that opens the warehouse sees the
    same tables. ATTACH of an existing table raises TableAlreadyExists without IF NOT EXISTS, of a
    missing one UnknownTable.
    """
    snapshot = context.snapshot()
    attaches = isinstance(statement, nodes.Attach)
    if statement.kind == "DATABASE":
        raise _cannot_attach(statement, f"database {statement.name}")
    item = context.find(snapshot, statement.name)
    if item is None and isinstance(statement, nodes.Detach) and statement.if_exists:
        return Result()
    if item is None and attaches:
        database, name = context.locate(statement.name)
        error = unknown_table(snapshot, database, name)
        hint = "UNDROP TABLE brings a dropped table back; CREATE makes a view anew."
        raise type(error)(error.message, hint=hint, position=statement.name.position)
    view = context.require(snapshot, statement.name)
    if isinstance(view, MaterializedView):
        set_trigger(view, attaches, context)
        return Result()
    if isinstance(statement, nodes.Attach):
        if statement.if_not_exists:
            return Result()
        raise TableAlreadyExists(
            f"{view.database}.{view.name} exists, and is attached.",
            hint="Say IF NOT EXISTS.",
            position=statement.name.position,
        )
    raise _cannot_attach(statement, f"{view.database}.{view.name}")


def _cannot_attach(statement: nodes.Attach | nodes.Detach, what: str) -> NotSupportedError:
    """Return the error for a database, or for DETACH of an object that is not a materialized
    view."""
    verb = type(statement).__name__.upper()
    return NotSupportedError(
        f"{verb} is for materialized views; {what} is none, and every process that opens the"
        " warehouse sees the same tables.",
        hint="RENAME it into another database to put it away; DROP TABLE and UNDROP TABLE, while"
        " old_parts_lifetime lasts; DETACH PARTITION ALL sets rows aside.",
        position=statement.position,
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
    view = context.require_view(context.snapshot(), statement.table)
    modify_query(context.origin(), view.id, action.query, database=context.database)
    return Result()


def chunk_executor(context: StatementContext) -> Executor:
    """Return the executor that the setting `engine` selects for chunks."""
    return context.engine.executor(context.settings.text("engine"), context.settings)
