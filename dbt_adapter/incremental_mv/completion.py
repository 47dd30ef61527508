"""What a run of an `incremental_mv` model completes: gaps, stale slices, the read view."""

from __future__ import annotations

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError

from ..relation import string_literal
from .backfill_scope import scope_partitions
from .differences import Differences, compare
from .live import reading_error
from .model_run import ModelRun
from .progress import backfill
from .warehouse import Health

logger = AdapterLogger("olapdb")


def attach_trigger(run: ModelRun) -> None:
    """Attach the trigger; rows inserted while it was detached are its gap."""
    run.warehouse.run_system("START", run.names)
    run.warn(f"{run.names.view} is attached again.")


def detach_triggers(run: ModelRun) -> list[str]:
    """Detach the trigger, and the versions that rebuilds of it have replaced; return the names of those that were
    attached. The candidate of a rebuild that goes on stays."""
    names = run.names
    rows = run.warehouse.rows(
        "SELECT name FROM system.views WHERE attached AND standing != 'candidate' "
        f"AND database = {string_literal(names.database)} AND (name = {string_literal(names.view)} "
        f"OR version_of = {string_literal(f'{names.database}.{names.view}')})"
    )
    attached = [str(row["name"]) for row in rows]
    for name in attached:
        run.warehouse.run(f"SYSTEM STOP VIEW {run.warehouse.sql_name(names, name)}")
    return attached


def fill_gaps(run: ModelRun, health: Health | None) -> None:
    """Backfill the gaps, chunk by chunk, unless the config or a limited ref leaves them.

    If a chunk fails in a first run, the trigger is stopped, so that INSERTs do not fail on the
    same rows; the next run attaches it again."""
    if health is None or not health.gap_parts:
        return
    left = f"{health.gap_rows} source rows are not backfilled"
    if run.limited:
        run.warn(
            f"{left}, since refs are limited (--empty or --sample); the next dbt run without "
            "that does it."
        )
        return
    if not run.settings.backfill.enabled:
        view = run.warehouse.sql_name(run.names, run.names.view)
        run.warn(f"{left} (backfill: none). SYSTEM BACKFILL VIEW {view} does it.")
        return
    _backfill(run)
    if not run.progress.chunks:
        run.warn(f"{left}: they are outside of the bounds of backfill in its config.")


def fill_first_gap(run: ModelRun) -> None:
    """Backfill a trigger that was just created: a new model without limits has no health to ask for."""
    scope = run.settings.backfill
    if run.limited or scope.is_bounded or not scope.enabled:
        fill_gaps(run, run.health())
    else:
        _backfill(run)


def is_filled_at_once(run: ModelRun) -> bool:
    """Return whether the statement that creates the trigger can backfill it, too: with the whole
    source, in this process."""
    scope, settings = run.settings.backfill, run.settings
    whole = scope.enabled and not scope.is_bounded and not run.limited
    here = settings.backfill_engine == "in_process" and not scope.parallel
    return whole and here and settings.attach_triggers


def create_filled(run: ModelRun, statement: str) -> None:
    """Run the statement that creates the model and backfills it; record its chunks and rows in the
    run's steps. If a chunk fails, stop the trigger; see `fill_gaps`."""
    try:
        run.warehouse.run_watched(statement, run.progress)
    except DbtDatabaseError:
        if run.warehouse.view(run.names) is not None:
            _stop_failed(run)
        raise
    run.steps.append("CREATE")
    _note(run)


def _backfill(run: ModelRun) -> None:
    """Run the backfill; record its chunks and rows in the run's steps. See `fill_gaps` for a chunk
    that fails."""
    try:
        run.progress = backfill(
            run.warehouse,
            run.names,
            run.settings.backfill_engine,
            title=str(run.names),
            partitions=_partitions(run),
            threads=run.settings.backfill.parallel,
        )
    except DbtDatabaseError:
        if run.steps[:1] == ["CREATE"] and run.settings.attach_triggers:
            _stop_failed(run)
        raise
    _note(run)


def _stop_failed(run: ModelRun) -> None:
    """Stop a new trigger that failed on rows of its source."""
    run.warehouse.run_system("STOP", run.names)
    run.warn(
        f"{run.names.view} is stopped, so that no INSERT fails on it. The next run "
        "attaches it and backfills what it missed."
    )


def _note(run: ModelRun) -> None:
    """Add the chunks of a backfill to the steps and rows of the run."""
    if not run.progress.chunks:
        return
    rows = run.progress.target_rows
    step = f"{run.progress.chunks} chunks, {rows} rows"
    if run.steps[:1] == ["CREATE"]:
        run.steps[0] += f" {step}"
    else:
        run.steps.append(f"BACKFILL {step}")
    run.rows += rows


def _partitions(run: ModelRun) -> list[str] | None:
    """Return the partitions of the source to backfill, None for all."""
    scope = run.settings.backfill
    if not scope.is_bounded:
        return None
    return scope_partitions(run.warehouse, run.names, run.definition.trigger, scope)


def replay_stale(run: ModelRun, health: Health | None) -> None:
    """Recompute the slices that a change of the inputs or of the query made stale."""
    if health is None or not health.stale_slices:
        return
    replay(run, "STALE")


def replay(run: ModelRun, slices: str = "") -> None:
    """Recompute slices of the target, all if `slices` is ""."""
    replayed = run.system("REPLAY", slices)
    rows = sum(row["rows_after"] for row in replayed)
    run.steps.append(f"REPLAY {len(replayed)} partitions, {rows} rows")
    run.rows += rows


def require_readable(run: ModelRun, consequence: str) -> None:
    """Raise DbtDatabaseError, which says the `consequence`, if a computed column of the model fails on
    the stored rows, so that every reader would get its error."""
    definition, names = run.definition, run.names
    error = reading_error(run.warehouse, definition.read_query(names), definition.column_kinds)
    if error:
        raise DbtDatabaseError(
            f"{names} cannot be read, since a column fails on the stored rows: {error} {consequence}"
        )


def restore_live(run: ModelRun, differences: Differences) -> None:
    """Put back what was altered by hand, bring the read view to the model, record the definition."""
    warehouse, names = run.warehouse, run.names
    changed = bool(run.steps)
    if changed:
        state = warehouse.model_state(names)
        differences = compare(warehouse, names, run.definition, state)
    if differences.by_hand:
        run.warn(f"{names.target} was altered by hand, and is put back: {differences.by_hand}.")
        target = warehouse.sql_name(names, names.target)
        warehouse.run(f"ALTER TABLE {target} {differences.by_hand}")
        run.steps.append("ALTER TARGET")
    if differences.read_view:
        require_readable(run, "The read view stays as it was. Mend the expression.")
        if not differences.model_changed and not changed:
            run.warn("its read view was changed or dropped by hand, and is put back.")
        else:
            logger.info(f"{names}: the read view {run.relation} reads the model's columns now.")
        warehouse.run(run.definition.create_read_view(names))
        run.steps.append("READ VIEW")
    if differences.recorded:
        view = warehouse.sql_name(names, names.view)
        comment = run.definition.comment_literal
        warehouse.run(f"ALTER TABLE {view} MODIFY COMMENT {comment}")


def say_what_is_left(run: ModelRun, health: Health | None) -> None:
    """Warn of what this run leaves, with the statement that repairs it."""
    if health is None:
        return
    repair = f" {health.mend} repairs it." if health.mend else ""
    if health.bypass_rows:
        run.warn(
            f"{health.bypass_rows} rows of {run.names.target} were written by hand and are "
            f"left.{repair}"
        )
    elif health.verdict in ("unverifiable", "broken"):
        run.warn(f"is {health.verdict}: {health.reason}{repair}")
