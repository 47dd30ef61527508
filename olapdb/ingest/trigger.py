"""A view's SELECT on one block: the block function.

The trigger of an INSERT, a backfill chunk, a replay, a reconciliation and the search for slices
that a DELETE made stale all call `fire`, so that they cannot disagree.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache

import pyarrow as pa

from olapdb.bind import BindScope, bind_query
from olapdb.commit.origin import CommitOrigin
from olapdb.compute.batches import single_chunk
from olapdb.compute.shared_group_codes import SharedCodes
from olapdb.config import Settings, tuning
from olapdb.engine.column_defaults import DefaultColumns
from olapdb.errors import Error, InternalError, MemoryLimitExceeded, QueryWasCancelled
from olapdb.execute import ExecutionContext, run
from olapdb.execute.run import is_simple, run_simple
from olapdb.execute.small_plan import SmallPlan, small_plan, takes
from olapdb.functions.base import Environment
from olapdb.ingest.block import BlockMaker
from olapdb.ingest.key_uniqueness import gives_each_key_once
from olapdb.ingest.view_guardrails import ViewLimits, memory_limit_error
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.optimize import optimize
from olapdb.plan.nodes import Plan
from olapdb.records import dataclass
from olapdb.result import QueryStatistics
from olapdb.runtime.cache import Cache
from olapdb.sql.parser import parse_query
from olapdb.storage.store import Store


@dataclass(frozen=True)
class TriggerContext:
    """The snapshot, store, cache and settings with which triggers run.

    `settings` are those of the statement that fires them.  Only its limits count: settings that
    change the view's meaning are frozen in the view.
    """

    snapshot: Snapshot
    store: Store
    cache: Cache
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    cancelled: threading.Event = field(default_factory=threading.Event)

    @staticmethod
    def of(origin: CommitOrigin, snapshot: Snapshot) -> TriggerContext:
        """Return the context for the origin's statement at the snapshot."""
        services = origin.services
        return TriggerContext(
            snapshot,
            services.store,
            services.cache,
            origin.settings,
            origin.environment,
            origin.cancelled,
        )

    def refuse_cancelled(self) -> None:
        """Raise QueryWasCancelled if the statement was cancelled; called between parts."""
        if self.cancelled.is_set():
            raise QueryWasCancelled("The statement was cancelled; nothing was changed.")


@dataclass(frozen=True)
class BoundView:
    """A view ready to run: its plan, and the maker of blocks of its target.

    `unique`: no two rows of such a block have the same sorting key; `plain`: see `run_simple`; `small`
    runs the plan on small blocks, where it can."""

    view: MaterializedView
    target: Table
    plan: Plan
    maker: BlockMaker
    unique: bool = False
    plain: bool = False
    small: SmallPlan | None = None

    def unchecked(self) -> BoundView:
        """Return the view without the CHECKs of its target, for a recomputation.

        A CHECK holds for rows that are inserted after it was added; older rows stay valid."""
        if not self.maker.defaults.constraints:
            return self
        defaults = replace(self.maker.defaults, constraints=())
        return replace(self, maker=replace(self.maker, defaults=defaults))


NO_LIMITS = ViewLimits()
LIMIT_SETTINGS = ("max_memory_usage", "max_execution_time", "max_threads")


def bound_view(view: MaterializedView, context: TriggerContext) -> BoundView:
    """Return the view ready to run, from the cache or bound now.

    It is bound once for each definition of it and each version of the tables that it reads and
    writes.  Raises UnknownTable if its target or a table that it reads was dropped, and the
    binder's errors where the definition no longer fits them.
    """
    key = ("view", view.id, view.version, view.query, _versions(view, context.snapshot))
    return context.cache.get_or_make(key, lambda: _bind(view, context))


def fire(
    bound: BoundView,
    block: pa.Table,
    context: TriggerContext,
    *,
    parts: Mapping[str, Sequence[Part]] | None = None,
    limits: ViewLimits | None = None,
    statistics: QueryStatistics | None = None,
    codes: SharedCodes | None = None,
) -> pa.Table:
    """Run the view on a block of its source; return the resulting block of its target.

    Every occurrence of the source reads the block; other tables are read at the snapshot, and for
    tables in `parts` only these parts.  `limits` cap the view's memory, and `statistics` receives
    what it read and held.  `codes` are the group codes that the views of one block share.  Errors
    name the view: "while pushing to view db.v".
    """
    view, limits = bound.view, limits or NO_LIMITS
    environment = _environment(view, context.environment)
    execution = ExecutionContext(
        snapshot=context.snapshot,
        store=context.store,
        settings=_settings(view, context),
        environment=environment,
        blocks={view.source_id: block},
        parts=dict(parts or {}),
        cancelled=context.cancelled,
        statistics=statistics or QueryStatistics(),
        codes=codes,
    )
    cap_bytes = limits.memory_cap_bytes
    if cap_bytes and not 0 < execution.memory.limit_bytes <= cap_bytes:
        execution.memory.limit_bytes = cap_bytes
    try:
        return bound.maker.make(*_computed(bound, block, execution), environment)
    except MemoryLimitExceeded as error:
        if execution.memory.limit_bytes == cap_bytes:
            raise memory_limit_error(view, limits, error) from error
        raise error_in_view(view, error) from error
    except Error as error:
        raise error_in_view(view, error) from error


def _computed(
    bound: BoundView, block: pa.Table, execution: ExecutionContext
) -> tuple[list[pa.Array], int]:
    """Return the columns of the view's query over the block, and the number of their rows."""
    small = bound.small if block.num_rows <= tuning.SMALL_BLOCK_ROWS_MAX else None
    if small is not None and takes(block, execution):
        return small.run(block, execution)
    if bound.plain and block.num_rows <= tuning.PLAIN_ROWS_MAX:
        rows = run_simple(bound.plan, execution)
    else:
        rows = run(bound.plan, execution).read_all()
    return [single_chunk(column) for column in rows.columns], rows.num_rows


def error_in_view(view: MaterializedView, error: Error) -> Error:
    """Return the error with a message that names the view that failed."""
    message = f"{error.message} (while pushing to view {view.database}.{view.name})"
    return type(error)(message, hint=error.hint, position=error.position)


def _versions(view: MaterializedView, snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    """Return (id, version) of the source, the target and each table that the view reads; objects
    that were dropped are left out."""
    items = (
        snapshot.by_id(object_id)
        for object_id in (*view.references, view.source_id, view.target_id)
    )
    return tuple((item.id, item.version) for item in items if item is not None)


def _bind(view: MaterializedView, context: TriggerContext) -> BoundView:
    """Return the view's query bound at the snapshot, with the maker of its target's blocks.

    Output columns that the target lacks are dropped. Raises InternalError if none remains.
    """
    target = target_of(context.snapshot, view)
    environment = _environment(view, context.environment)
    scope = BindScope(
        snapshot=context.snapshot,
        database=view.database,
        settings=Settings(dict(view.settings)),
        environment=environment,
    )
    plan = optimize(bind_query(parse_query(view.query), scope))
    names = {name for name in plan.names if target.column(name) is not None}
    if not names:
        raise InternalError(f"View {view.database}.{view.name} has no column of its target.")
    plan = replace(plan, output=tuple(o for o in plan.output if o[1] in names))
    defaults = DefaultColumns.of(target, context.snapshot, environment, context.cache)
    maker = BlockMaker(target, plan.names, plan.types, defaults)
    unique = gives_each_key_once(plan, target)
    return BoundView(view, target, plan, maker, unique, is_simple(plan), small_plan(plan))


def _environment(view: MaterializedView, environment: Environment) -> Environment:
    """Return the environment with the view's zone and database."""
    if (environment.zone, environment.database) == (view.zone, view.database):
        return environment
    return replace(environment, zone=view.zone, database=view.database)


def _settings(view: MaterializedView, context: TriggerContext) -> Settings:
    """Return the view's own settings; the limits (LIMIT_SETTINGS) that the statement has set
    replace the view's."""
    limits = tuple((n, context.settings[n]) for n in LIMIT_SETTINGS if n in context.settings)
    return _parsed((*view.settings, *limits))


@lru_cache(maxsize=1_024)
def _parsed(changed: tuple[tuple[str, object], ...]) -> Settings:
    """Parse settings; hundreds of views of one INSERT have the same."""
    return Settings(dict(changed))
