"""CREATE MATERIALIZED VIEW, ATTACH and DETACH."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.errors import NotSupportedError
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.create import build_table

if TYPE_CHECKING:
    from olapdb.views.executor import Executor


def create_materialized_view(
    statement: nodes.CreateMaterializedView, context: StatementContext
) -> Result:
    """The trigger is live from its commit on; older rows are its gap until they are backfilled."""
    from olapdb.views.create import create_view

    context = context.with_settings(statement.settings)
    created = create_view(
        context.services, statement, database=context.database, settings=context.settings,
        query_id=context.query_id, text=context.text, build_inner=_inner_builder(context),
        executor=executor_of(context), progress=context.progress,
    )  # fmt: skip
    context.statistics.warnings += created.warnings
    return Result()


def _inner_builder(
    context: StatementContext,
) -> Callable[[nodes.CreateMaterializedView, tuple[Column, ...], str], Table]:
    def build(
        statement: nodes.CreateMaterializedView, columns: tuple[Column, ...], name: str
    ) -> Table:
        definition = nodes.CreateTable(
            table=nodes.TableName(name, statement.name.database),
            columns=_inner_columns(statement.columns, columns),
            storage=statement.storage or nodes.StorageClause(),
            position=statement.position,
        )
        return build_table(definition, context, context.snapshot())

    return build


def _inner_columns(
    declared: tuple[nodes.ColumnDefinition, ...], made: tuple[Column, ...]
) -> tuple[nodes.ColumnDefinition, ...]:
    """The statement's column list, which is the inner table's own; without one, what the query
    makes.  A declared column without a type has the query's."""
    types = {c.name: c.type for c in made}
    if not declared:
        return tuple(nodes.ColumnDefinition(n, t) for n, t in types.items())
    return tuple(
        replace(one, type=types[one.name])
        if one.type is None and one.default is None and one.name in types
        else one
        for one in declared
    )


def attach_or_detach(statement: nodes.Attach | nodes.Detach, context: StatementContext) -> Result:
    """DETACH VIEW stops the trigger, what comes in meanwhile is its gap; ATTACH starts it again."""
    snapshot = context.snapshot()
    found = context.find(snapshot, statement.name)
    if found is None and isinstance(statement, nodes.Detach) and statement.if_exists:
        return Result()
    view = context.require(snapshot, statement.name)
    if not isinstance(view, MaterializedView):
        raise NotSupportedError(
            f"{type(statement).__name__.upper()} is for materialized views; {statement.name} is none.",
            position=statement.position,
        )
    attach(view, isinstance(statement, nodes.Attach), context)
    return Result()


def attach(view: MaterializedView, attached: bool, context: StatementContext) -> None:
    """Whether the view's trigger fires; SYSTEM STOP and START VIEW say the same."""
    from olapdb.views.create import set_attached

    set_attached(
        context.services, view.id, attached, query_id=context.query_id, statement=context.text
    )


def alter_query(statement: nodes.Alter, context: StatementContext) -> Result:
    """ALTER TABLE view MODIFY QUERY: what the old query made is stale until it is replayed."""
    from olapdb.views.modify import modify_query

    if len(statement.actions) > 1:
        raise NotSupportedError(
            "MODIFY QUERY stands alone in its ALTER TABLE.",
            hint="Alter the target first, by its own name; then the view's query.",
            position=statement.position,
        )
    (action,) = statement.actions
    assert isinstance(action, nodes.ModifyQuery)
    context = context.with_settings(statement.settings)
    view = context.require_view(context.snapshot(), statement.table)
    modify_query(
        context.services, view.id, action.query, database=context.database,
        settings=context.settings, query_id=context.query_id, statement=context.text,
    )  # fmt: skip
    return Result()


def executor_of(context: StatementContext) -> Executor:
    """Who computes chunks: SETTINGS engine says."""
    return context.engine.executor(context.settings.text("engine"), context.settings)
