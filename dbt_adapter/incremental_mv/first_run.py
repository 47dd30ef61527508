"""The first run of an `incremental_mv` model: target, trigger, backfill, read view."""

from __future__ import annotations

from dbt_common.exceptions import CompilationError, DbtDatabaseError

from .completion import create_filled, fill_first_gap, is_filled_at_once, require_readable
from .differences import target_fits
from .model_run import ModelRun
from .shared_target import rows_left_by_a_trigger
from .warehouse import ModelState


def create_model(run: ModelRun, state: ModelState) -> None:
    """Create what is missing of target, trigger and read view, and backfill: in one statement where
    that is possible. The read view comes last, so that no reader misses rows.

    If the engine refuses the trigger, nothing stays that this or a killed run has created."""
    warehouse, names, definition = run.warehouse, run.names, run.definition
    has_target, kept_rows = _settle_target(run, state)
    at_once = not kept_rows and state.read_view is None and is_filled_at_once(run)
    statement = definition.create_model(names, new_target=not has_target, filled=at_once)
    try:
        if at_once:
            create_filled(run, statement)
            _require_readable(run)
            return
        warehouse.run(statement)
    except DbtDatabaseError:
        if has_target and not kept_rows and not names.shares and warehouse.view(names) is None:
            warehouse.run(f"DROP TABLE {warehouse.sql_name(names, names.target)}")
        raise
    run.steps.append("CREATE")
    if not run.settings.attach_triggers:
        run.system("STOP")
    if kept_rows:
        run.warn(f"had no trigger; the rows of {names.target} are made anew.")
        run.system("REPLAY", "DISCARD BYPASS")
    fill_first_gap(run)
    if state.read_view is not None and state.read_view.engine == "MaterializedView":
        warehouse.run(f"DROP VIEW {run.relation}")  # refreshed on a schedule until now
    require_readable(run, NOT_READABLE)
    warehouse.run(definition.create_read_view(names))


NOT_READABLE = "Its rows are stored, and it has no read view until the expression is mended."


def _require_readable(run: ModelRun) -> None:
    """Drop the read view that was just made, and raise DbtDatabaseError, if nobody can read it."""
    try:
        require_readable(run, NOT_READABLE)
    except DbtDatabaseError:
        run.warehouse.run(f"DROP VIEW {run.relation}")
        raise


def first_statements(run: ModelRun, state: ModelState) -> list[str]:
    """Return the statements that create the model, for `plan`, which runs none of them."""
    definition, names = run.definition, run.names
    has_target, kept_rows = _kept_target(run, state)
    at_once = not kept_rows and state.read_view is None and is_filled_at_once(run)
    statement = definition.create_model(names, new_target=not has_target, filled=at_once)
    return [statement] if at_once else [statement, definition.create_read_view(names)]


def _kept_target(run: ModelRun, state: ModelState) -> tuple[bool, bool]:
    """Return (whether an existing target is kept, whether its rows have to be made anew)."""
    warehouse, names, target = run.warehouse, run.names, state.target
    if _is_shared(run, state):
        return True, bool(rows_left_by_a_trigger(warehouse, names))
    if target is None or not target_fits(names, run.definition, target):
        return False, False
    return True, warehouse.has_rows(names, state)


def _is_shared(run: ModelRun, state: ModelState) -> bool:
    """Return whether other models write the target, too."""
    if run.names.shares:
        return True
    return state.target is not None and bool(run.warehouse.other_writers(run.names))


def _settle_target(run: ModelRun, state: ModelState) -> tuple[bool, bool]:
    """Keep a target without a trigger, or drop it; return whether there is one, and whether its rows
    have to be made anew.

    A killed first run leaves an empty target, a trigger dropped by hand one with rows. Unless under
    --full-refresh, raises CompilationError for rows in a table of another shape, and for rows that
    no trigger made in a target that other models write too."""
    warehouse = run.warehouse
    if _is_shared(run, state):
        return True, _settle_shared(run)
    kept, kept_rows = _kept_target(run, state)
    if state.target is not None and not kept:
        if not run.settings.full_refresh and warehouse.has_rows(run.names, state):
            raise CompilationError(
                f"{run.names.database}.{run.names.target} has rows, but no trigger "
                f"{run.names.view}, and other columns or keys than {run.names} makes. Run "
                "dbt with --full-refresh to drop it, or rename it or the model."
            )
        warehouse.run(f"DROP TABLE {warehouse.sql_name(run.names, run.names.target)}")
    return kept, kept_rows


def _settle_shared(run: ModelRun) -> bool:
    """Return whether a target that other triggers write has rows that no trigger made.

    Raises CompilationError."""
    problem = rows_left_by_a_trigger(run.warehouse, run.names)
    if problem and not run.settings.full_refresh:
        raise CompilationError(problem)
    return bool(problem)
