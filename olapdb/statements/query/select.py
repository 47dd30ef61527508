"""SELECT: bind, optimize, execute."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.bind import bind_query
from olapdb.bind.analysis import is_deterministic
from olapdb.errors import NotSupportedError, TooManyRows
from olapdb.execute import run
from olapdb.execute.pruning.force_index import check_forced_indexes
from olapdb.model.snapshot import Snapshot
from olapdb.optimize import optimize
from olapdb.plan.nodes import Plan
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.types import DataType


def run_query(query: nodes.Query, context: StatementContext) -> Result:
    """The rows of the query, as a stream over one snapshot."""
    context = with_query_settings(query, context)
    _refuse_format(query)
    return run_on(query, context, context.reading_snapshot())


def run_on(query: nodes.Query, context: StatementContext, snapshot: Snapshot) -> Result:
    """The rows of the query at a given snapshot; the snapshot stays pinned until they are drawn."""

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
    return _limited(result, context.settings.integer("max_result_rows"))


def plan_query(query: nodes.Query, context: StatementContext, snapshot: Snapshot) -> Plan:
    """Bound and optimized; remembered by text where there are no parameters."""

    key = None
    if context.parameters is None:
        key = (context.text, query, context.database, context.settings)
        plan: Plan | None = context.engine.plans.get(key)
        if plan is not None and _valid(plan, snapshot):
            return plan
    plan = bind_query(query, context.scope(snapshot))
    cacheable = key is not None and not _depends_on_query(query)
    if context.settings.boolean("optimizer"):
        plan = optimize(plan)
    if cacheable:
        context.engine.plans.put(key, plan)
    return plan


def describe(query: nodes.Query, context: StatementContext) -> tuple[tuple[str, DataType], ...]:
    context = with_query_settings(query, context)
    plan = plan_query(query, context, context.reading_snapshot())
    return tuple(zip(plan.names, plan.types, strict=True))


def _valid(plan: Plan, snapshot: Snapshot) -> bool:
    for object_id, revision in plan.tables:
        found = snapshot.by_id(object_id)
        if found is None or found.revision != revision:
            return False
    return True


def _depends_on_query(query: nodes.Query) -> bool:
    """Whether a constant of the plan could differ from one run to the next (now(), rand())."""

    return not is_deterministic(query)


def with_query_settings(query: nodes.Query, context: StatementContext) -> StatementContext:
    settings = getattr(query, "settings", ())
    return context.with_settings(settings)


def _refuse_format(query: nodes.Query) -> None:
    name = getattr(query, "format", None)
    if name is not None and name not in ("Arrow", "ArrowStream", "Null", "Native"):
        raise NotSupportedError(
            f"FORMAT {name}: results are Arrow here.",
            hint="Leave FORMAT out and use fetch_arrow_table() or fetchall().",
            position=query.position,
        )


def _limited(result: Result, rows_max: int) -> Result:
    if rows_max <= 0:
        return result
    return result.through(lambda batches: _count(batches, rows_max))


def _count(batches: Iterator[pa.RecordBatch], rows_max: int) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if rows > rows_max:
            raise TooManyRows(
                f"The result has more than max_result_rows = {rows_max} rows.",
                hint="Add a LIMIT, or raise the setting.",
            )
        yield batch
