"""One run of an `incremental_mv` model: create it, bring it to its definition, complete it.

The engine guarantees each step: a first run creates target, trigger and read view, a changed
definition is SYSTEM REBUILD VIEW (or MODIFY QUERY), a gap SYSTEM BACKFILL VIEW, stale slices SYSTEM
REPLAY VIEW. Each run compares what is live with the model and does what is missing, so the next run
completes a killed one. An unfinished rebuild goes on if it leads to the model's definition, and is
cancelled if not.
"""

from __future__ import annotations

from dbt_common.exceptions import CompilationError

from .backfill_scope import scope_partitions
from .compile import compile_model
from .completion import (
    attach_trigger,
    detach_triggers,
    fill_gaps,
    replay_stale,
    restore_live,
    say_what_is_left,
)
from .config import RunSettings
from .definition_change import apply_change, rebuild, settle_candidate
from .differences import compare
from .first_run import create_model
from .model_run import ModelRun, Outcome
from .model_sql import is_limited
from .names import ModelNames
from .shared_target import refuse_other_target
from .warehouse import ModelState, Warehouse


def run(warehouse: Warehouse, names: ModelNames, sql: str, settings: RunSettings) -> Outcome:
    """Bring the model up to date; see the module's docstring.

    Raises CompilationError if the definition has changed and may not be rebuilt, DbtDatabaseError if
    the engine refuses a statement or a chunk fails."""
    definition = compile_model(warehouse, names, sql, settings.model)
    if settings.backfill.is_bounded:  # refuses wrong bounds before anything is created
        scope_partitions(warehouse, names, definition.trigger, settings.backfill)
    limited = is_limited(sql)  # after compile_model, which explains SQL that does not parse
    return _bring_up_to_date(ModelRun(warehouse, names, settings, definition, limited))


def _bring_up_to_date(run: ModelRun) -> Outcome:
    """Create the model, or bring it to its definition and complete it; return what was done.

    Raises CompilationError if the trigger's name belongs to a view that dbt did not create, or
    if the definition changed and may not be rebuilt."""
    state = run.warehouse.model_state(run.names)
    view = state.view
    if view is not None and not view.model:
        raise CompilationError(
            f"{view.database}.{view.name} is a materialized view that dbt did not make. "
            "Drop or rename it, or rename the model."
        )
    if view is None and run.limited and run.warehouse.has_rows(run.names, state):
        run.warn(
            "has rows and no trigger, as a clone has, and is left as it is, since refs are limited "
            "(--empty or --sample)."
        )
        return run.outcome()
    if view is None:
        create_model(run, state)
        return run.outcome()
    if view.target != run.names.target:
        raise refuse_other_target(run.names, view.target, view.shares)
    if run.limited:
        run.warn("is left as it is, since refs are limited (--empty or --sample).")
        return run.outcome()
    _bring_to_definition(run, state)
    return run.outcome()


def _bring_to_definition(run: ModelRun, state: ModelState) -> None:
    """Bring an existing model to its definition, then fill gaps and replay stale slices."""
    health = run.health()
    assert health is not None
    differences = compare(run.warehouse, run.names, run.definition, state)
    if not run.settings.attach_triggers:  # a killed rebuild may have left what it replaced attached
        for name in detach_triggers(run):
            run.warn(f"{name} is detached.")
    elif not health.attached:
        attach_trigger(run)
    resumed = settle_candidate(run, health, differences)
    keeps = True
    if resumed:
        rebuild(run, state, "RESUME")
    elif run.settings.full_refresh or differences.stored:
        keeps = apply_change(run, state, differences)
    health = run.health() if run.steps else health
    fill_gaps(run, health)
    replay_stale(run, health)
    if keeps:
        restore_live(run, differences)
    say_what_is_left(run, run.health() if run.steps else health)
