"""SELECT: bind, optimize, execute."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.bind import bind_query
from olapdb.bind.analysis import is_deterministic
from olapdb.bind.projection import ROWS_MAX
from olapdb.bind.qualify import qualify
from olapdb.bind.user_functions import calls_of_users
from olapdb.config import Settings
from olapdb.config.limits import SYNTAX_LIMITS
from olapdb.engine.layout import shared_layout
from olapdb.errors import TooManyColumns, TooManyRowsOrBytes
from olapdb.execute import ExecutionContext, estimator_of, run
from olapdb.execute.operators.before_limit import COUNTING_FORMATS, prepare_counts
from olapdb.execute.pruning.force_index import check_forced_indexes
from olapdb.lazy import LazyModule
from olapdb.model.session_snapshot import temporary_ids
from olapdb.model.snapshot import Snapshot
from olapdb.optimize import optimize
from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.order_joins import joined_tables, order_joins
from olapdb.optimize.share_subplans import share_subplans
from olapdb.optimize.statistics import statistics_of
from olapdb.plan.expressions import Call, Cast, ColumnRef, Constant, Expression, InValues
from olapdb.plan.nodes import Join, Limit, Plan, Project, Values
from olapdb.plan.tree import all_expressions, all_nodes, all_scans
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.query.text_search import use_text_indexes
from olapdb.types import DataType

if TYPE_CHECKING:
    from olapdb.formats import registry
    from olapdb.optimize import query_rules, wide_rows
    from olapdb.sql import format as sql_format
    from olapdb.statements.query import syntax_limits
else:
    registry = LazyModule("olapdb.formats.registry")
    query_rules = LazyModule("olapdb.optimize.query_rules")
    wide_rows = LazyModule("olapdb.optimize.wide_rows")
    sql_format = LazyModule("olapdb.sql.format")
    syntax_limits = LazyModule("olapdb.statements.query.syntax_limits")

_SHORT_BYTES = 64
"""A constant text of so many bytes is short."""


def run_query(query: nodes.Query, context: StatementContext) -> Result:
    """Run the query of a statement; return its rows as a stream over one snapshot: that of SETTINGS
    snapshot, or the newest. The settings `limit` and `offset` cut it. Raise UnknownFormat for a
    FORMAT that does not exist."""
    context = with_query_settings(query, context)
    if (name := getattr(query, "format", None)) is not None:
        registry.find_output(name)
    snapshot = context.with_temporary(context.reading_snapshot())
    plan = _with_limits(plan_query(query, context, snapshot), context)
    execution = context.execution(snapshot)
    if name is not None and name.lower() in COUNTING_FORMATS:
        prepare_counts(plan.root, execution)
    return run_plan(plan, execution, context)


def run_at(query: nodes.Query, context: StatementContext, snapshot: Snapshot) -> Result:
    """Run the query at the given snapshot; return its rows as a stream. The snapshot stays pinned
    until the stream ends or is closed. More than max_result_rows rows raise TooManyRowsOrBytes.

    The settings `limit` and `offset` cut it only if its own SETTINGS clause names them."""
    snapshot = context.with_temporary(snapshot)
    plan = plan_query(query, context, snapshot)
    if names_limits(getattr(query, "settings", ())):
        plan = _with_limits(plan, context)
    return run_plan(plan, context.execution(snapshot), context)


def names_limits(settings: Sequence[nodes.Setting]) -> bool:
    """Return whether a SETTINGS clause names `limit` or `offset`."""
    return any(setting.name in ("limit", "offset") for setting in settings)


def _with_limits(plan: Plan, context: StatementContext) -> Plan:
    """Return the plan of a statement's result, cut by the settings `limit` and `offset`."""
    count, offset = context.settings.integer("limit"), context.settings.integer("offset")
    if not count and not offset:
        return plan
    limit = Limit(plan.root, min(count, ROWS_MAX) or None, min(offset, ROWS_MAX))
    return replace(plan, root=limit)


def run_plan(plan: Plan, execution: ExecutionContext, context: StatementContext) -> Result:
    """Run a plan at the snapshot of `execution`, as `run_at` does."""
    settings = context.settings
    execution.joins_batches = True
    execution.cuts_wide_rows = not plan.reads_blocks
    execution.row_costs = plan.row_costs
    execution.projections = settings.boolean("optimize_use_projections")
    execution.join_filters = settings.boolean("optimizer") and settings.boolean(
        "enable_join_runtime_filters"
    )
    _check_columns(plan, settings.integer("max_columns_to_read"))
    unpin = context.pin(execution.require_snapshot())
    try:
        check_forced_indexes(plan, execution)
        result = run(plan, execution)
    except BaseException:
        unpin()
        raise
    result.on_close(unpin)
    if context.environment.stored_zone is not None:
        result.zone = context.environment.zone
    return _with_result_limits(result, settings)


def _check_columns(plan: Plan, columns_max: int) -> None:
    """Raise TooManyColumns if the plan reads more columns of a table than the limit; 0 means none."""
    for scan in all_scans(plan.root) if columns_max else ():
        if len(scan.columns) > columns_max:
            raise TooManyColumns(
                f"The query reads {len(scan.columns)} columns of {scan.table.database}."
                f"{scan.table.name}, more than max_columns_to_read = {columns_max}.",
                hint="Name fewer columns, or raise the setting.",
            )


def plan_query(query: nodes.Query, context: StatementContext, snapshot: Snapshot) -> Plan:
    """Return the bound plan of the query, optimized unless the setting `optimizer` is off, its
    inner joins in the order that suits the snapshot's rows.

    Plans of statements without parameters are cached, those with joins by the sizes of their tables
    too. Plans with now(), rand() and the like are not: their constants differ from run to run.
    """
    snapshot = context.with_temporary(snapshot)
    plan, key = _plan_as_written(query, context, snapshot)
    limit = _join_order_limit(plan, context)
    if not limit:
        return plan
    statistics = statistics_of(snapshot)
    if key is not None:
        sizes = tuple(statistics(table).rows.bit_length() for table in plan.joined_tables)
        known: tuple[Plan, Plan] | None = context.engine.plans.get((key, sizes))
        if known is not None and known[0] is plan:
            return known[1]
    estimator = estimator_of(context.execution(snapshot))
    ordered = order_joins(plan, estimator, limit)
    if context.settings.boolean("push_aggregates_below_joins"):
        ordered = query_rules.push_aggregates(ordered, estimator)
    ordered = _with_bounded_rows(_with_semi_joins(ordered, context, estimator))
    if key is not None:
        context.engine.plans.put((key, sizes), (plan, ordered))
    return ordered


def _plan_as_written(
    query: nodes.Query, context: StatementContext, snapshot: Snapshot
) -> tuple[Plan, Hashable | None]:
    """Return the plan with its joins in the order written, and the key under which it is cached,
    None where it is not."""
    key = None
    if context.parameters is None:
        own = tuple(sorted(temporary_ids(snapshot).items()))
        key = (context.text, query, context.database, context.settings, own)
        plan: Plan | None = context.engine.plans.get(key)
        if plan is not None and _is_current(plan, snapshot):
            return plan, key
    if not context.settings.changed.keys().isdisjoint(SYNTAX_LIMITS):
        syntax_limits.check_syntax(query, context.text, context.settings)
    plan = bind_query(query, replace(context.scope(snapshot), refuses_columns=True))
    # A Python function that is called by its name may be replaced.
    cacheable = (
        key is not None
        and not plan.momentary
        and not _is_volatile(query)
        and not calls_of_users(query)
    )
    plan = use_text_indexes(
        plan,
        lambda table: shared_layout(table, context.services.cache, context.services.zone),
        preprocess=context.settings.boolean("use_skip_indexes"),
    )
    if context.settings.boolean("optimizer"):
        plan = optimize(plan)
        if _has_outer_joins(plan):
            plan = query_rules.narrow_outer_joins(
                plan,
                converts=context.settings.boolean("query_plan_convert_outer_join_to_inner_join"),
                transfers=context.settings.boolean("query_plan_propagate_predicate_across_join"),
            )
        plan = replace(plan, joined_tables=joined_tables(plan))
        if not _join_order_limit(plan, context):
            plan = _shared(plan, context)
    if not _join_order_limit(plan, context):
        plan = _with_bounded_rows(plan)
    if cacheable:
        context.engine.plans.put(key, plan)
    return plan, key if cacheable else None


def _join_order_limit(plan: Plan, context: StatementContext) -> int:
    """Return up to how many relations every order of joins is considered; 0 where there is none to
    choose."""
    if not plan.joined_tables or not context.settings.boolean("optimizer"):
        return 0
    return context.settings.integer("query_plan_optimize_join_order_limit")


def _has_outer_joins(plan: Plan) -> bool:
    """Return whether the plan has a join other than INNER and CROSS, such as LEFT or SEMI."""
    joins = (node for node in all_nodes(plan.root) if isinstance(node, Join))
    return any(join.kind not in ("INNER", "CROSS") for join in joins)


def _with_semi_joins(plan: Plan, context: StatementContext, estimator: Estimator) -> Plan:
    """Return the plan with its joins ordered anew, SEMI joins included, and its common subplans run
    once. The settings use_semi_joins and share_common_subplans each turn off their step."""
    if not context.settings.boolean("use_semi_joins"):
        return _shared(plan, context, estimator)
    if context.settings.boolean("share_common_subplans"):
        return query_rules.shared_semi_joins(plan, estimator)
    return query_rules.use_semi_joins(plan, estimator)


def _with_bounded_rows(plan: Plan) -> Plan:
    """Return the plan with wide values computed by Projects, some rows at a time; a plan that reads no rows, or computes
    nothing but numbers, dates and times, as it is."""
    if all(isinstance(node, Project | Values | Limit) for node in all_nodes(plan.root)):
        return plan
    if all(map(_is_narrow, all_expressions(plan.root))):
        return plan
    return wide_rows.compute_wide_values_apart(plan)


def _is_narrow(part: Expression) -> bool:
    """Return whether a part of an expression, without its children, cannot be wide: a column, a short constant, or a call
    or a conversion that gives a number, a date or a time whatever the batch of its row. Most queries need
    no more, and do without the modules that look closer."""
    match part:
        case ColumnRef() | InValues():
            return True
        case Constant(value=value):
            arrow = value.type
            is_text = pa.types.is_string(arrow) or pa.types.is_binary(arrow)
            is_short = not is_text or not value.is_valid or value.as_buffer().size <= _SHORT_BYTES
            return is_short and not pa.types.is_nested(arrow)
        case Call(function=function):
            return function.volatility == "pure" and _has_few_bytes(part.type.arrow)
        case Cast():
            return _has_few_bytes(part.type.arrow)
        case _:
            return False


def _has_few_bytes(arrow: pa.DataType) -> bool:
    """Return whether all values of the type are numbers, dates or times."""
    return bool(pa.types.is_primitive(arrow) or pa.types.is_decimal(arrow))


def _shared(plan: Plan, context: StatementContext, estimator: Estimator | None = None) -> Plan:
    """Return the plan whose common subplans run once, unless the setting is off."""
    if not context.settings.boolean("share_common_subplans"):
        return plan
    return share_subplans(plan, estimator)


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
    return sql_format.to_sql(qualify(query, context.scope(context.snapshot())))


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
    """Return the context with the settings of the query's SETTINGS clause, in the session's zone."""
    settings = getattr(query, "settings", ())
    return context.with_settings(settings).in_session_zone()


def _with_result_limits(result: Result, settings: Settings) -> Result:
    """Return the result with the limits of its rows and bytes."""
    rows_max, bytes_max = settings.integer("max_result_rows"), settings.integer("max_result_bytes")
    if not rows_max and not bytes_max:
        return result
    ends = settings.text("result_overflow_mode") == "break"
    return result.through(lambda batches: _limited(batches, rows_max, bytes_max, ends))


def _limited(
    batches: Iterator[pa.RecordBatch], rows_max: int, bytes_max: int, ends: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the batches up to the one that passes a limit (0: none), which `ends` the result, or
    else raises TooManyRowsOrBytes."""
    rows = size = 0
    for batch in batches:
        rows += batch.num_rows
        size += batch.nbytes
        passed = (rows_max and rows > rows_max) or (bytes_max and size > bytes_max)
        if passed and not ends:
            limit = f"max_result_rows = {rows_max} rows" if rows_max else f"{bytes_max} bytes"
            raise TooManyRowsOrBytes(
                f"The result has more than {limit}.", hint="Add a LIMIT, or raise the setting."
            )
        yield batch
        if passed:
            return
