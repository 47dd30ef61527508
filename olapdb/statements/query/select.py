"""SELECT: bind, optimize, execute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from olapdb.bind import bind_query
from olapdb.bind.analysis import is_deterministic
from olapdb.bind.qualify import qualify
from olapdb.bind.user_functions import calls_of_users
from olapdb.errors import NotSupportedError, TooManyRows
from olapdb.execute import run
from olapdb.execute.pruning.force_index import check_forced_indexes
from olapdb.model.snapshot import Snapshot
from olapdb.optimize import optimize
from olapdb.plan.nodes import Plan
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.statements.context import StatementContext
from olapdb.types import DataType


def run_query(query: nodes.Query, context: StatementContext) -> Result:
    """Run the query; return its rows as a stream over one snapshot: that of SETTINGS snapshot, or
    the newest. Raise NotSupportedError for a FORMAT that is not Arrow."""
    context = with_query_settings(query, context)
    _refuse_format(query)
    return run_at(query, context, context.reading_snapshot())


def run_at(query: nodes.Query, context: StatementContext, snapshot: Snapshot) -> Result:
    """Run the query at the given snapshot; return its rows as a stream. The snapshot stays pinned
    until the stream ends or is closed. More than max_result_rows rows raise TooManyRows."""
    plan = plan_query(query, context, snapshot)
    catalog = context.services.catalog
    catalog.pin(snapshot.number)
    try:
        execution = context.execution(snapshot)
        check_forced_indexes(plan, execution)
        result = run(plan, execution)
    except BaseException:
        catalog.unpin(snapshot.number)
        raise
    result.on_close(lambda: catalog.unpin(snapshot.number))
    return _with_row_limit(result, context.settings.integer("max_result_rows"))


def plan_query(query: nodes.Query, context: StatementContext, snapshot: Snapshot) -> Plan:
    """Return the bound plan of the query, optimized unless the setting `optimizer` is off.

    Plans of statements without parameters are cached. Plans with now(), rand() and the like are
    not: their constants differ from run to run.
    """
    key = None
    if context.parameters is None:
        key = (context.text, query, context.database, context.settings)
        plan: Plan | None = context.engine.plans.get(key)
        if plan is not None and _is_current(plan, snapshot):
            return plan
    plan = bind_query(query, context.scope(snapshot))
    # A Python function that is called by its name may be replaced.
    cacheable = key is not None and not _is_volatile(query) and not calls_of_users(query)
    if context.settings.boolean("optimizer"):
        plan = optimize(plan)
    if cacheable:
        context.engine.plans.put(key, plan)
    return plan


def describe(query: nodes.Query, context: StatementContext) -> tuple[tuple[str, DataType], ...]:
    """Return the (name, type) of each result column, without running the query."""
    context = with_query_settings(query, context)
    plan = plan_query(query, context, context.reading_snapshot())
    return tuple(zip(plan.names, plan.types, strict=True))


def stored_query(query: nodes.Query, context: StatementContext) -> str:
    """Return the query as a view stores it: full table names, explicit columns, no SETTINGS."""
    context = with_query_settings(query, context)
    if isinstance(query, nodes.Select | nodes.SetOperation):
        query = replace(query, settings=(), format=None)
    return to_sql(qualify(query, context.scope(context.snapshot())))


def _is_current(plan: Plan, snapshot: Snapshot) -> bool:
    """Return whether all objects that the plan names still have the revision that was bound."""
    for object_id, revision in plan.tables:
        item = snapshot.by_id(object_id)
        if item is None or item.revision != revision:
            return False
    return True


def _is_volatile(query: nodes.Query) -> bool:
    """Return whether a constant of the plan could differ between two runs (now(), rand())."""
    return not is_deterministic(query)


def with_query_settings(query: nodes.Query, context: StatementContext) -> StatementContext:
    """Return the context with the settings of the query's SETTINGS clause."""
    settings = getattr(query, "settings", ())
    return context.with_settings(settings)


def _refuse_format(query: nodes.Query) -> None:
    """Raise NotSupportedError for a FORMAT other than Arrow, ArrowStream, Native and Null."""
    name = getattr(query, "format", None)
    if name is not None and name not in ("Arrow", "ArrowStream", "Null", "Native"):
        raise NotSupportedError(
            f"FORMAT {name}: results are Arrow here.",
            hint="Leave FORMAT out and use fetch_arrow_table() or fetchall().",
            position=query.position,
        )


def _with_row_limit(result: Result, rows_max: int) -> Result:
    """Return the result with a limit on its rows; 0 means none."""
    if rows_max <= 0:
        return result
    return result.through(lambda batches: _limit_rows(batches, rows_max))


def _limit_rows(batches: Iterator[pa.RecordBatch], rows_max: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches; raise TooManyRows once they have more than `rows_max` rows."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if rows > rows_max:
            raise TooManyRows(
                f"The result has more than max_result_rows = {rows_max} rows.",
                hint="Add a LIMIT, or raise the setting.",
            )
        yield batch
