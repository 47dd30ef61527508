"""SYSTEM BACKFILL | REPLAY | RECONCILE | ADOPT | REBUILD | … VIEW: the commands and the columns of
their results.

Most commands return frozen dataclasses, one for each chunk or slice that they worked on.
SQL shows them as a table; the Python API returns them unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.model.schema import MaterializedView, RefreshableView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.sql.nodes.administration import ViewAction
from olapdb.statements.admin import refresh
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl import rebuild
from olapdb.statements.ddl.views import chunk_executor, set_trigger
from olapdb.statements.dml.partitions import find_partition
from olapdb.types import FLOAT64, STRING, UINT64, Array, DataType, Nullable
from olapdb.views.jobs.adopt import adopt
from olapdb.views.jobs.backfill import backfill, refuse_incomplete
from olapdb.views.jobs.backfill_plan import backfill_plan
from olapdb.views.jobs.job_listing import cancel_jobs
from olapdb.views.jobs.replay import ReplaySelection, replay
from olapdb.views.jobs.replay_condition import KeyCondition
from olapdb.views.proof.ledger_check import check_ledger
from olapdb.views.proof.reconcile import PartitionChoice, reconcile, require_stored

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
"""Commands that compute chunks, on the executor that the setting `engine` selects."""


def system_view(statement: nodes.SystemView, context: StatementContext) -> Result:
    """Run the command and return its rows as a table. STOP, START and CANCEL REBUILD return an
    empty result."""
    refreshable = context.find(context.snapshot(), statement.view)
    if isinstance(refreshable, RefreshableView):
        return _refresh_command(statement, refreshable, context)
    if statement.action in ("STOP", "START"):
        context = context.with_settings(statement.settings)
        view = context.require_view(context.snapshot(), statement.view)
        set_trigger(view, statement.action == "START", context)
        return Result()
    if statement.action == "CANCEL REBUILD":
        context = context.with_settings(statement.settings)
        rebuild.cancel(context.require_view(context.snapshot(), statement.view), context)
        return Result()
    command_rows = run_command(statement, context)
    columns = _COLUMNS[_command_key(statement)]
    values: list[Sequence[object]] = [
        [_value(getattr(row, name)) for row in command_rows] for name in columns
    ]
    return from_columns(list(columns), list(columns.values()), values)


def _refresh_command(
    statement: nodes.SystemView, view: RefreshableView, context: StatementContext
) -> Result:
    """Run STOP, START or CANCEL of a refreshable view. Raise BadArguments for a command that is for
    triggers."""
    if statement.action in ("STOP", "START"):
        refresh.set_stopped(view.id, statement.action == "STOP", context)
    elif statement.action == "CANCEL" and statement.job is None:
        refresh.cancel(view, context)
    else:
        raise BadArguments(
            f"SYSTEM {statement.action} VIEW is for views that are triggers; {view.database}."
            f"{view.name} is refreshed.",
            hint="SYSTEM REFRESH VIEW computes its rows anew.",
            position=statement.position,
        )
    return Result()


def run_command(statement: nodes.SystemView, context: StatementContext) -> tuple[Any, ...]:
    """Run the command; return the rows of the function in `olapdb.views` that implements it, for
    example `backfill` for BACKFILL.

    Raises NotSupportedError for an unknown command.
    """
    kind = _command_key(statement)
    context = context.with_settings(statement.settings, takes_engine=kind in _COMPUTE_CHUNKS)
    snapshot = context.snapshot()
    view = context.require_view(snapshot, statement.view)
    match kind:
        case "BACKFILL":
            return _backfill(statement, view, context, snapshot)
        case "DRY RUN":
            return _dry_run(statement, view, context, snapshot)
        case "CANCEL":
            return _cancel(statement, view, context)
        case "REPLAY":
            return _replay(statement, view, context, snapshot)
        case "ADOPT":
            return _adopt(view, context)
        case "METADATA":
            return _reconcile_metadata(view, snapshot)
        case "RECONCILE":
            return _reconcile(statement, view, context, snapshot)
        case "REBUILD":
            return rebuild.rebuild(statement, view, context)
        case "ROLLBACK":
            return rebuild.rollback(view, context)
        case _:
            raise NotSupportedError(
                f"SYSTEM {statement.action} VIEW is not supported yet.",
                hint=f"Commands are: {', '.join(get_args(ViewAction))}.",
                position=statement.position,
            )


def _command_key(statement: nodes.SystemView) -> str:
    """Return the key of the command in `_COLUMNS`."""
    if statement.dry_run:
        return "DRY RUN"
    return "METADATA" if statement.metadata else statement.action


def _value(value: object) -> object:
    """Return a tuple as a list, which Arrow reads as an Array; other values unchanged."""
    return list(value) if isinstance(value, tuple) else value


def _partition(
    statement: nodes.SystemView, table_id: str, context: StatementContext, snapshot: Snapshot
) -> str | None:
    """Return the id of the partition of the table that the statement names; None without
    PARTITION."""
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
    """Run BACKFILL; raise BackfillIncomplete if chunks failed. DISCARD BYPASS replays the target
    first."""
    if statement.discard_bypass:
        _replay_discarding_bypass(statement, view, context)
    chunk_stream = backfill(
        context.origin(),
        view.id,
        partition=_partition(statement, view.source_id, context, snapshot),
        executor=chunk_executor(context),
        progress=context.progress,
    )
    chunks = tuple(chunk_stream)
    refuse_incomplete(view, chunks, context.query_id)
    return chunks


def _replay_discarding_bypass(
    statement: nodes.SystemView, view: MaterializedView, context: StatementContext
) -> None:
    """Run the replay that BACKFILL … DISCARD BYPASS begins with. It covers the whole target:
    BACKFILL's PARTITION names a partition of the source, so PARTITION raises BadArguments here."""
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
        executor=chunk_executor(context),
        progress=context.progress,
    )


def _dry_run(
    statement: nodes.SystemView,
    view: MaterializedView,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, ...]:
    """Return the chunks that BACKFILL … DRY RUN would compute. Raises BadArguments."""
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
    """Run CANCEL of the view's jobs, or of the one job that is named; return a row for each
    cancelled job."""
    return cancel_jobs(context.services, view, statement.job)


def _replay(
    statement: nodes.SystemView,
    view: MaterializedView,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, ...]:
    """Run REPLAY; return a row for each target partition."""
    return replay(
        context.origin(),
        view.id,
        ReplaySelection(
            _partition(statement, view.target_id, context, snapshot),
            statement.stale,
            _condition(statement, context),
        ),
        discard_bypass=statement.discard_bypass,
        executor=chunk_executor(context),
        progress=context.progress,
    )


def _condition(statement: nodes.SystemView, context: StatementContext) -> KeyCondition | None:
    """Return the condition of REPLAY … WHERE or FROM; None without either."""
    if statement.where is not None:
        return KeyCondition(statement.where, parameters=context.parameters)
    if statement.from_value is not None:
        return KeyCondition(statement.from_value, since=True, parameters=context.parameters)
    return None


def _adopt(view: MaterializedView, context: StatementContext) -> tuple[Any, ...]:
    """Run ADOPT; return a row for each partition of the target that had bypass rows."""
    return adopt(
        context.origin(), view.id, executor=chunk_executor(context), progress=context.progress
    )


def _reconcile_metadata(view: MaterializedView, snapshot: Snapshot) -> tuple[Any, ...]:
    """Run RECONCILE … METADATA: compare the ledger with the parts without reading rows."""
    require_stored(view, snapshot, "RECONCILE … METADATA")
    return check_ledger(view, snapshot)


def _reconcile(
    statement: nodes.SystemView,
    view: MaterializedView,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, ...]:
    """Run RECONCILE; return a row for each target partition that was compared."""
    choice = PartitionChoice(
        _partition(statement, view.target_id, context, snapshot),
        statement.sample,
        statement.oldest,
        statement.stale,
    )
    return reconcile(
        context.origin(),
        view.id,
        choice,
        executor=chunk_executor(context),
        progress=context.progress,
    )
