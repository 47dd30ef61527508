"""A view's SELECT on one block: the block function.

The trigger of an INSERT, a backfill chunk, a replay, a reconciliation and the search for slices
that a DELETE made stale all call `fire`; so they cannot disagree.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from olapdb.functions.base import Environment
from olapdb.ingest.block import BlockMaker
from olapdb.ingest.key_uniqueness import gives_each_key_once
from olapdb.ingest.view_guardrails import ViewLimits, over_memory
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.optimize import optimize
from olapdb.plan.nodes import Plan
from olapdb.result import QueryStatistics
from olapdb.runtime.cache import Cache
from olapdb.sql.parser import parse_query
from olapdb.storage.store import Store


@dataclass(frozen=True)
class TriggerContext:
    """What a trigger runs in. `settings` are those of the statement that fires it (limits only:
    what changes the view's meaning is frozen in the view)."""

    snapshot: Snapshot
    store: Store
    cache: Cache
    settings: Mapping[str, object] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    cancelled: threading.Event = field(default_factory=threading.Event)

    @staticmethod
    def of(origin: CommitOrigin, snapshot: Snapshot) -> TriggerContext:
        """Return the context of what the origin's statement runs at the snapshot."""
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
        """Raises QueryWasCancelled once somebody has ended the statement; asked between parts."""
        if self.cancelled.is_set():
            raise QueryWasCancelled("The statement was cancelled; nothing was changed.")


@dataclass(frozen=True)
class BoundView:
    """A view ready to run: its plan, and how its columns become a block of its target.

    `unique`: no two rows of such a block have the same sorting key; `plain`: see `run_simple`."""

    view: MaterializedView
    target: Table
    plan: Plan
    maker: BlockMaker
    unique: bool = False
    plain: bool = False

    def unchecked(self) -> BoundView:
        """The view without the CHECKs of its target, for a recomputation: these are asked of rows
        that come in, and rows that came in before a CHECK was added are the view's all the same."""
        if not self.maker.defaults.constraints:
            return self
        defaults = replace(self.maker.defaults, constraints=())
        return replace(self, maker=replace(self.maker, defaults=defaults))


NO_LIMITS = ViewLimits()
LIMITS = ("max_memory_usage", "max_execution_time", "max_threads")


def bound_view(view: MaterializedView, around: TriggerContext) -> BoundView:
    """Bound once for each definition and each version of what it reads and writes.

    Raises UnknownTable where its target or a table that it reads is gone, and the binder's
    errors where the definition no longer fits them.
    """
    key = ("view", view.id, view.version, view.query, _versions(view, around.snapshot))
    return around.cache.get_or_make(key, lambda: _bind(view, around))


def fire(
    bound: BoundView,
    block: pa.Table,
    around: TriggerContext,
    *,
    parts: Mapping[str, Sequence[Part]] | None = None,
    limits: ViewLimits | None = None,
    statistics: QueryStatistics | None = None,
    codes: SharedCodes | None = None,
) -> pa.Table:
    """The block of the target that the view makes of a block of its source.

    Every occurrence of the source is the block; other tables are read at the snapshot, `parts` of
    them where given.  Errors name the view: "while pushing to view db.v".  `limits` cap its memory;
    `statistics`, where given, hear what it held; `codes` are those of the block, for all its views.
    """
    view, limits = bound.view, limits or NO_LIMITS
    environment = _environment(view, around.environment)
    context = ExecutionContext(
        snapshot=around.snapshot,
        store=around.store,
        settings=_settings(view, around),
        environment=environment,
        blocks={view.source_id: block},
        parts=dict(parts or {}),
        cancelled=around.cancelled,
        statistics=statistics or QueryStatistics(),
        codes=codes,
    )
    cap_bytes = limits.memory_cap_bytes
    if cap_bytes and not 0 < context.memory.limit_bytes <= cap_bytes:
        context.memory.limit_bytes = cap_bytes
    try:
        if bound.plain and block.num_rows <= tuning.PLAIN_ROWS_MAX:
            rows = run_simple(bound.plan, context)
        else:
            rows = run(bound.plan, context).read_all()
        arrays = [single_chunk(column) for column in rows.columns]
        return bound.maker.make(arrays, rows.num_rows, environment)
    except MemoryLimitExceeded as error:
        if context.memory.limit_bytes == cap_bytes:
            raise over_memory(view, limits, error) from error
        raise pushing_to(view, error) from error
    except Error as error:
        raise pushing_to(view, error) from error


def pushing_to(view: MaterializedView, error: Error) -> Error:
    """The same error, saying which view failed."""
    message = f"{error.message} (while pushing to view {view.database}.{view.name})"
    return type(error)(message, hint=error.hint, position=error.position)


def _versions(view: MaterializedView, snapshot: Snapshot) -> tuple[tuple[str, int], ...]:
    found = (snapshot.by_id(one) for one in (*view.references, view.source_id, view.target_id))
    return tuple((item.id, item.version) for item in found if item is not None)


def _bind(view: MaterializedView, around: TriggerContext) -> BoundView:
    target = target_of(around.snapshot, view)
    environment = _environment(view, around.environment)
    scope = BindScope(
        snapshot=around.snapshot,
        database=view.database,
        settings=Settings(dict(view.settings)),
        environment=environment,
    )
    plan = optimize(bind_query(parse_query(view.query), scope))
    known = {name for name in plan.names if target.column(name) is not None}
    if not known:
        raise InternalError(f"View {view.database}.{view.name} has no column of its target.")
    plan = replace(plan, output=tuple(o for o in plan.output if o[1] in known))
    defaults = DefaultColumns.of(target, around.snapshot, environment, around.cache)
    maker = BlockMaker(target, plan.names, plan.types, defaults)
    return BoundView(view, target, plan, maker, gives_each_key_once(plan, target), is_simple(plan))


def _environment(view: MaterializedView, environment: Environment) -> Environment:
    return replace(environment, zone=view.zone, database=view.database)


def _settings(view: MaterializedView, around: TriggerContext) -> Mapping[str, object]:
    limits = {n: around.settings[n] for n in LIMITS if n in around.settings}
    return {**dict(view.settings), **limits}
