"""A run that finds another definition live: ALTER, MODIFY QUERY, REPLAY or SYSTEM REBUILD VIEW."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from .change import decide_change
from .completion import detach_triggers, replay, require_readable
from .differences import Differences, compare
from .model_run import ModelRun
from .warehouse import Health, ModelState

logger = AdapterLogger("olapdb")


def settle_candidate(run: ModelRun, health: Health, differences: Differences) -> bool:
    """Return whether an unfinished rebuild leads to the definition; cancel another one."""
    if not health.candidate:
        return False
    candidate = run.warehouse.version(health.candidate)
    if candidate is None:
        return False
    if candidate.digest == run.definition.digest:
        return True
    run.system("CANCEL REBUILD")
    run.warn(f"an unfinished rebuild of another definition, {health.candidate}, is dropped.")
    if not differences.stored and not run.settings.full_refresh:
        run.steps.append("CANCEL REBUILD")
    return False


def apply_change(run: ModelRun, state: ModelState, differences: Differences) -> bool:
    """Bring stored rows to the definition as on_definition_change says; return whether the live
    definition is the model's afterwards. Raises CompilationError."""
    change = decide_change(
        run.warehouse, run.names, run.definition, state, differences, run.settings
    )
    if change.step in ("FAIL", "IGNORE"):
        _note_configuration_change(run)
    match change.step:
        case "FAIL":
            raise CompilationError(change.problem)
        case "IGNORE":
            run.warn(
                f"keeps its live definition (on_definition_change='ignore'). "
                f"{differences.sentences()}"
            )
            run.steps.append("IGNORED CHANGE")
            return False
        case "ALTER":
            _alter(run, differences)
        case "MODIFY QUERY":
            _modify(run)
        case "REPLAY":
            replay(run)
        case "REBUILD" if differences.stored:
            rebuild(run, state, "REBUILD")
        case "REBUILD":
            _rebuild_same(run)
    return True


def _note_configuration_change(run: ModelRun) -> None:
    """Log the sentence with which dbt's materialized views say that a change is not applied."""
    choice = run.settings.on_configuration_change
    if choice:
        logger.warning(
            "Configuration changes were identified and `on_configuration_change` was set to "
            f"`{choice}` for `{run.relation}`"
        )


def _alter(run: ModelRun, differences: Differences) -> None:
    """Change the settings of the target in place; no row depends on them."""
    logger.debug(f"Applying ALTER to: {run.relation}")
    target = run.warehouse.sql_name(run.names, run.names.target)
    run.warehouse.run(f"ALTER TABLE {target} {differences.settings}")
    run.steps.append("ALTER SETTINGS")


def _modify(run: ModelRun) -> None:
    """Give the trigger the model's query. All that it made is stale from that commit on."""
    run.warehouse.run(modify_statement(run))
    run.steps.append("MODIFY QUERY")


def modify_statement(run: ModelRun) -> str:
    """Return the statement that gives the trigger the model's query."""
    view = run.warehouse.sql_name(run.names, run.names.view)
    return f"ALTER TABLE {view} MODIFY QUERY {run.definition.trigger}"


def rebuild_statement(run: ModelRun, state: ModelState) -> str:
    """Return the SYSTEM REBUILD VIEW of a run that finds `state`, for `plan`, which does not run it."""
    view = run.warehouse.sql_name(run.names, run.names.view)
    is_other = compare(run.warehouse, run.names, run.definition, state).stored
    clauses = run.definition.rebuild(run.names, with_read_view=_reads(state)) if is_other else ""
    return f"SYSTEM REBUILD VIEW {view} {clauses}".rstrip()


def rebuild(run: ModelRun, state: ModelState, step: str) -> None:
    """Build the definition beside the live version, and swap it in when it is proven."""
    with_read_view = _reads(state)
    clauses = run.definition.rebuild(run.names, with_read_view=with_read_view)
    _run_rebuild(run, step, clauses)
    if with_read_view:
        logger.info(f"{run.names}: the read view {run.relation} reads the new version now.")
        models = f"{{models: [{run.names.selected}]}}"
        require_readable(
            run,
            "The rebuild is done. Mend the expression, or bring the previous version back: dbt "
            f"run-operation rollback --args '{models}'",
        )


def _reads(state: ModelState) -> bool:
    """Return whether a plain view of the model's name exists, which changes with the swap."""
    return state.read_view is not None and state.read_view.engine == "View"


def _rebuild_same(run: ModelRun) -> None:
    """Build the live definition anew, and swap it in when it is proven (--full-refresh)."""
    _run_rebuild(run, "REBUILD", "")


@contextmanager
def _attached_meanwhile(run: ModelRun) -> Iterator[None]:
    """Attach a trigger that the profile keeps detached, since SYSTEM REBUILD VIEW is of those that fire; detach it, and
    the version that it replaced, when the rebuild has ended."""
    if run.settings.attach_triggers:
        yield
        return
    run.system("START")
    try:
        yield
    finally:
        detach_triggers(run)


def _run_rebuild(run: ModelRun, step: str, clauses: str) -> None:
    """Run SYSTEM REBUILD VIEW; log its chunks, and the views that read the target."""
    logger.debug(f"Applying REPLACE to: {run.relation}")
    with _attached_meanwhile(run):
        rows = run.system("REBUILD", clauses)
    chunks = [row for row in rows if row["step"] == "backfill"]
    made = sum(row["rows"] for row in chunks)
    run.steps.append(f"{step} {len(chunks)} chunks, {made} rows" if chunks else step)
    run.rows += made
    for row in rows:
        if row["step"] == "downstream":
            logger.warning(f"{run.names} was rebuilt: {row['view']} {row['status'].rstrip('.')}.")
