"""SYSTEM BACKFILL | REPLAY | RECONCILE | ADOPT | STOP | START VIEW: what each does, and its columns.

Every command gives rows that say what was done, chunk by chunk or slice by slice: frozen
dataclasses, which SQL shows as a table and Python hands on as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl import rebuild
from olapdb.statements.ddl.views import attach, executor_of
from olapdb.statements.dml.partitions import find_partition
from olapdb.types import FLOAT64, STRING, UINT64, Array, DataType, Nullable
from olapdb.views.jobs.adopt import adopt
from olapdb.views.jobs.backfill import backfill, backfill_plan, refuse_incomplete
from olapdb.views.jobs.job_listing import cancel_jobs
from olapdb.views.jobs.replay import replay
from olapdb.views.jobs.replay_condition import KeyCondition
from olapdb.views.proof.ledger_check import check_ledger
from olapdb.views.proof.reconcile import reconcile, require_stored

if TYPE_CHECKING:
    from olapdb.views.jobs.replay_condition import KeyCondition

_TEXTS = Array(STRING)
_MAYBE_NUMBER = Nullable(UINT64)

_COLUMNS: Mapping[str, Mapping[str, DataType]] = {
    "BACKFILL": {
        "chunk": UINT64,
        "partition": STRING,
        "parts": UINT64,
        "rows": UINT64,
        "target_rows": UINT64,
        "status": STRING,
        "commit": _MAYBE_NUMBER,
        "elapsed_ms": FLOAT64,
        "error": STRING,
    },
    "DRY RUN": {
        "chunk": UINT64,
        "partition": STRING,
        "parts": UINT64,
        "rows": UINT64,
        "bytes": UINT64,
        "first_block": UINT64,
        "last_block": UINT64,
    },
    "CANCEL": {"job": STRING, "kind": STRING, "state": STRING, "query_id": STRING},
    "ADOPT": {
        "partition": STRING,
        "parts": UINT64,
        "rows": UINT64,
        "keys_compared": UINT64,
        "source_rows": UINT64,
        "commit": _MAYBE_NUMBER,
    },
    "REPLAY": {
        "partition": STRING,
        "source_rows": UINT64,
        "rows_before": UINT64,
        "rows_after": UINT64,
        "bypass_rows": UINT64,
        "status": STRING,
        "commit": _MAYBE_NUMBER,
        "retained_rows": UINT64,
    },
    "METADATA": {
        "table": STRING,
        "partition": STRING,
        "parts": UINT64,
        "rows": UINT64,
        "gap_rows": UINT64,
        "booked_rows": UINT64,
        "problems": _TEXTS,
        "verdict": STRING,
    },
    "RECONCILE": {
        "partition": STRING,
        "snapshot": UINT64,
        "keys_compared": UINT64,
        "missing": UINT64,
        "extra": UINT64,
        "differing": UINT64,
        "largest_difference": FLOAT64,
        "examples": _TEXTS,
        "bypass_rows": UINT64,
        "gap_rows": UINT64,
        "causes": _TEXTS,
        "verdict": STRING,
        "retained_rows": UINT64,
    },
    "REBUILD": {
        "step": STRING,
        "view": STRING,
        "target": STRING,
        "partition": STRING,
        "rows": UINT64,
        "status": STRING,
        "commit": _MAYBE_NUMBER,
    },
    "ROLLBACK": {
        "view": STRING,
        "replaced": STRING,
        "target": STRING,
        "kept_target": STRING,
        "verdict": STRING,
        "mend": STRING,
        "commit": UINT64,
    },
}

_COMPUTE_CHUNKS = ("BACKFILL", "REPLAY", "RECONCILE", "ADOPT", "REBUILD")
"""Commands that compute chunks, where the setting `engine` says."""


def system_view(statement: nodes.SystemView, context: StatementContext) -> Result:
    """The rows of the command as a table; STOP and START give none."""
    if statement.action in ("STOP", "START"):
        context = context.with_settings(statement.settings)
        view = context.require_view(context.snapshot(), statement.view)
        attach(view, statement.action == "START", context)
        return Result()
    if statement.action == "CANCEL REBUILD":
        context = context.with_settings(statement.settings)
        rebuild.cancel(context.require_view(context.snapshot(), statement.view), context)
        return Result()
    found = rows_of(statement, context)
    columns = _COLUMNS[_kind(statement)]
    values: list[Sequence[object]] = [[_value(getattr(r, n)) for r in found] for n in columns]
    return from_columns(list(columns), list(columns.values()), values)


def rows_of(statement: nodes.SystemView, context: StatementContext) -> tuple[Any, ...]:
    """Runs the command; its rows are those that the function of its name in `olapdb.views` gives."""
    kind = _kind(statement)
    context = context.with_settings(statement.settings, takes_engine=kind in _COMPUTE_CHUNKS)
    snapshot = context.snapshot()
    view = context.require_view(snapshot, statement.view)
    match kind:
        case "BACKFILL":
            return _backfill(statement, view, context, snapshot)
        case "DRY RUN":
            return _plan(statement, view, context, snapshot)
        case "CANCEL":
            return _cancel(statement, view, context)
        case "REPLAY":
            return _replay(statement, view, context, snapshot)
        case "ADOPT":
            return _adopt(view, context)
        case "METADATA":
            return _ledger(view, snapshot)
        case "RECONCILE":
            return _reconcile(statement, view, context, snapshot)
        case "REBUILD":
            return rebuild.rebuild(statement, view, context)
        case "ROLLBACK":
            return rebuild.rollback(view, context)
        case _:
            raise NotSupportedError(
                f"SYSTEM {statement.action} VIEW is not supported yet.",
                hint="BACKFILL, REPLAY, RECONCILE, ADOPT, REBUILD, ROLLBACK, CANCEL, STOP and START are.",
                position=statement.position,
            )


def _kind(statement: nodes.SystemView) -> str:
    if statement.dry_run:
        return "DRY RUN"
    return "METADATA" if statement.metadata else statement.action


def _value(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _partition(
    statement: nodes.SystemView, table_id: str, context: StatementContext, snapshot: Snapshot
) -> str | None:
    if statement.partition is None:
        return None
    table = snapshot.by_id(table_id)
    assert isinstance(table, Table)
    return find_partition(statement.partition, table, context, snapshot)


def _backfill(
    statement: nodes.SystemView,
    view: MaterializedView,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, ...]:

    if statement.discard_bypass:
        _discard_first(statement, view, context)
    rows = backfill(
        context.origin(),
        view.id,
        partition=_partition(statement, view.source_id, context, snapshot),
        executor=executor_of(context),
        progress=context.progress,
    )
    done = tuple(rows)
    refuse_incomplete(view, done, context.query_id)
    return done


def _discard_first(
    statement: nodes.SystemView, view: MaterializedView, context: StatementContext
) -> None:
    """The replay that BACKFILL … DISCARD BYPASS begins with: of all of the target, since a
    partition in BACKFILL is one of the source."""

    if statement.partition is not None:
        raise BadArguments(
            "BACKFILL … DISCARD BYPASS is about all of the target, and takes no PARTITION.",
            hint="SYSTEM REPLAY VIEW … PARTITION p DISCARD BYPASS removes the rows by hand of one"
            " partition of the target; SYSTEM BACKFILL VIEW … PARTITION p then fills one of the"
            " source.",
            position=statement.position,
        )
    replay(
        context.origin(),
        view.id,
        discard_bypass=True,
        executor=executor_of(context),
        progress=context.progress,
    )


def _plan(
    statement: nodes.SystemView,
    view: MaterializedView,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, ...]:

    if statement.discard_bypass:
        raise BadArguments(
            "DRY RUN names the chunks of the gap, and discards nothing.",
            hint="Leave DISCARD BYPASS out.",
            position=statement.position,
        )
    partition = _partition(statement, view.source_id, context, snapshot)
    return backfill_plan(snapshot, view, partition=partition, settings=context.settings)


def _cancel(
    statement: nodes.SystemView, view: MaterializedView, context: StatementContext
) -> tuple[Any, ...]:

    return cancel_jobs(context.services, view, statement.job)


def _replay(
    statement: nodes.SystemView,
    view: MaterializedView,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, ...]:

    return replay(
        context.origin(),
        view.id,
        partition=_partition(statement, view.target_id, context, snapshot),
        stale=statement.stale,
        condition=_condition(statement, context),
        discard_bypass=statement.discard_bypass,
        executor=executor_of(context),
        progress=context.progress,
    )


def _condition(statement: nodes.SystemView, context: StatementContext) -> KeyCondition | None:

    if statement.where is not None:
        return KeyCondition(statement.where, parameters=context.parameters)
    if statement.from_value is not None:
        return KeyCondition(statement.from_value, since=True, parameters=context.parameters)
    return None


def _adopt(view: MaterializedView, context: StatementContext) -> tuple[Any, ...]:

    return adopt(
        context.origin(), view.id, executor=executor_of(context), progress=context.progress
    )


def _ledger(view: MaterializedView, snapshot: Snapshot) -> tuple[Any, ...]:

    require_stored(view, snapshot, "RECONCILE … METADATA")
    return check_ledger(view, snapshot)


def _reconcile(
    statement: nodes.SystemView,
    view: MaterializedView,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, ...]:

    return reconcile(
        context.origin(),
        view.id,
        partition=_partition(statement, view.target_id, context, snapshot),
        sample=statement.sample,
        oldest=statement.oldest,
        stale=statement.stale,
        executor=executor_of(context),
        progress=context.progress,
    )
