"""`dbt run-operation plan`: what the next `dbt run` will do to each model, without doing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from olapdb.bind.analysis import source_of
from olapdb.sql import nodes
from olapdb.sql.parser import parse_query

from ...column import OlapdbColumn
from ...constraints import Contract
from ...relation import string_literal
from ..change import decide_change
from ..compile import compile_model
from ..config import RunSettings
from ..definition_change import modify_statement, rebuild_statement
from ..differences import compare
from ..first_run import first_statements
from ..live import read_view_problem, trigger_problem
from ..model_definition import ModelDefinition
from ..model_run import ModelRun
from ..model_sql import is_limited
from ..shared_target import refuse_other_target, rows_left_by_a_trigger
from ..warehouse import Warehouse
from . import actions
from .actions import Request
from .project import ManifestProject, Model
from .table import Report

SettingsOf = Callable[[Mapping[str, Any]], RunSettings]
"""Returns the settings of the next run of a model from its manifest node."""

AFTER_INPUTS = ("NO CHANGE", "READ VIEW", "ALTER TARGET")
"""The steps of a model that a rebuild or replay of what it reads makes a REPLAY."""

REPLAY_IF_CHANGED = "REPLAY IF CHANGED"
REPLAYS = ("MODIFY QUERY", "REPLAY", REPLAY_IF_CHANGED)
"""The steps after which a model may hold other rows, by partition."""


class Planner:
    """The next run of each model, from the repository's SQL and the warehouse as it is now."""

    def __init__(self, project: ManifestProject, settings_of: SettingsOf) -> None:
        self._project = project
        self._settings_of = settings_of
        self._planned: dict[str, tuple[str, str]] = {}
        """The name and the step of each model that was planned, by unique id."""

    def plan(self, request: Request, model: Model) -> Report:
        """Report what the next run does to the model: step, chunks, rows, DDL, and what it leaves."""
        warehouse = request.warehouse
        missing = self._unbuilt_inputs(warehouse, model)
        if missing:
            because = f"reads {', '.join(missing)}, not built yet"
            return Report([_row(model, "CREATE", 0, 0, because)])
        settings = self._settings_of(model.node)
        sql = self._project.compiled(model)
        definition = compile_model(warehouse, model.names, sql, settings.model)
        step, because = _step(warehouse, model, definition, settings)
        if broken := _broken_contract(warehouse, model, sql):
            step, because = "FAIL", broken
        if step in AFTER_INPUTS:
            step, because = self._after_inputs(model, step, because)
        self._planned[model.unique_id] = (str(model.names), step)
        report = Report()
        if step in ("CREATE", "REBUILD", "MODIFY QUERY"):
            chunks, rows = _source_size(warehouse, model, definition)
            run = ModelRun(warehouse, model.names, settings, definition, is_limited(sql))
            report.notes += _ddl(run, step)
        elif step == "BACKFILL":
            chunks, rows = _gap(request, model)
        else:
            chunks, rows = 0, 0
        report.rows.append(_row(model, step, chunks, rows, because))
        report.notes += _left_over(warehouse, model)
        return report

    def rollback(self, request: Request, model: Model) -> Report:
        """Roll the model back, and note whether the repository has the version that came back."""
        report = actions.rollback(request, model)
        report.notes.insert(0, f"{model.names}: {self._compared(request.warehouse, model)}")
        return report

    def _compared(self, warehouse: Warehouse, model: Model) -> str:
        """Return whether the repository has the definition that is live, for a note.

        A model that does not compile is a reason to roll back, so it is reported, not raised."""
        try:
            sql, settings = self._project.compiled(model), self._settings_of(model.node)
            definition = compile_model(warehouse, model.names, sql, settings.model)
            state = warehouse.model_state(model.names)
            is_other = compare(warehouse, model.names, definition, state).stored
        except DbtRuntimeError as error:
            return f"the repository's model fails, so that its next dbt run changes nothing: {error.msg}"
        if not is_other:
            return "the repository has the definition of this version."
        return (
            "the repository still has another definition. Revert it, or the next dbt run of "
            f"{model.name} meets a changed definition again."
        )

    def _after_inputs(self, model: Model, step: str, because: str) -> tuple[str, str]:
        """Return the step of a model after those of the models that it reads: the same run rebuilds
        or replays these first."""
        inputs = (self._planned.get(unique_id) for unique_id in self._project.read_by(model))
        steps: dict[str, list[str]] = {}
        for name, planned in sorted(pair for pair in inputs if pair is not None):
            steps.setdefault(planned, []).append(name)
        rebuilt = [*steps.get("REBUILD", ()), *steps.get("RESUME", ())]
        if rebuilt:
            return "REPLAY", f"reads {', '.join(rebuilt)}, rebuilt before; REBUILD if types change"
        replayed = [name for action in REPLAYS for name in steps.get(action, ())]
        if replayed:
            because = f"reads {', '.join(replayed)}, replayed before: what changes there"
            return REPLAY_IF_CHANGED, because
        return step, because

    def _unbuilt_inputs(self, warehouse: Warehouse, model: Model) -> list[str]:
        """Return the relations of the project that the model reads and that do not exist yet."""
        missing = []
        for unique_id in (model.node.get("depends_on") or {}).get("nodes", []):
            below = self._project.relation_of(unique_id)
            if below is not None:
                schema, name = below
                if warehouse.table(nodes.TableName(name, schema), schema) is None:
                    missing.append(f"{schema}.{name}")
        return missing


def _row(model: Model, step: str, chunks: int, rows: int, because: str) -> dict[str, object]:
    """Return the row of the printed table for one model."""
    return {
        "model": str(model.names),
        "next run": step,
        "chunks": chunks,
        "source rows": rows,
        "because": because,
    }


def _step(
    warehouse: Warehouse, model: Model, definition: ModelDefinition, settings: RunSettings
) -> tuple[str, str]:
    """Return (the next run's step, why); decided by the same comparison as the run's."""
    names = model.names
    state, health = warehouse.model_state(names), warehouse.health(names)
    if state.view is None or health is None:
        problem = rows_left_by_a_trigger(warehouse, names)
        if problem and not settings.full_refresh:
            return "FAIL", problem
        return "CREATE", "not built yet" if state.target is None else "it has no trigger"
    if not state.view.model:
        return "FAIL", f"{names.view} is a view that dbt did not make"
    if state.view.target != names.target:
        error = refuse_other_target(names, state.view.target, state.view.shares)
        return "FAIL", str(error.msg)
    differences = compare(warehouse, names, definition, state)
    candidate = warehouse.version(health.candidate) if health.candidate else None
    if candidate is not None and candidate.digest == definition.digest:
        return "RESUME", f"the rebuild {health.candidate} is not finished"
    if settings.full_refresh or differences.stored:
        change = decide_change(warehouse, names, definition, state, differences, settings)
        because = "full refresh" if settings.full_refresh else differences.sentences()
        return change.step, change.problem or because
    if health.gap_parts and settings.backfill.enabled:
        return "BACKFILL", f"{health.gap_rows} rows of its source are not seen"
    if health.stale_slices:
        return "REPLAY", f"{health.stale_slices} slices are stale"
    if differences.by_hand:
        return "ALTER TARGET", f"{names.target} was altered by hand: {differences.by_hand}"
    if differences.read_view:
        return "READ VIEW", "its read view is missing or was altered"
    return "NO CHANGE", "" if candidate is None else f"{health.candidate} is cancelled"


def _broken_contract(warehouse: Warehouse, model: Model, sql: str) -> str:
    """Return the names and types in which the query differs from an enforced contract, or ""."""
    if not model.node["config"]["contract"]["enforced"]:
        return ""
    described = [OlapdbColumn(name, str(dtype)) for name, dtype in warehouse.describe(sql)]
    promised, returned = Contract.of(model.node).compare(described)
    promises, returns = ({c["name"]: c["data_type"] for c in side} for side in (promised, returned))
    differing = [
        f"{name} is {returns.get(name, 'not there')}, {promises.get(name, 'not there')} in the contract"
        for name in dict.fromkeys((*promises, *returns))
        if promises.get(name) != returns.get(name)
    ]
    return f"its contract fails: {'; '.join(differing)}" if differing else ""


def _gap(request: Request, model: Model) -> tuple[int, int]:
    """Return the chunks of a backfill of the model now, and their rows."""
    rows = request.warehouse.run_system("BACKFILL", model.names, "DRY RUN")
    return len(rows), sum(int(row["rows"]) for row in rows)


def _source_size(
    warehouse: Warehouse, model: Model, definition: ModelDefinition
) -> tuple[int, int]:
    """Return the partitions and rows of the source: a first backfill has a chunk for each."""
    query = parse_query(definition.trigger)
    source = source_of(query) if isinstance(query, nodes.Select) else None
    if source is None:
        return 0, 0
    rows = warehouse.rows(
        "SELECT uniqExactIf(partition_id, rows > 0) AS chunks, sum(rows) AS total FROM system.parts "
        f"WHERE active AND database = {string_literal(source.database or model.names.database)} "
        f"AND table = {string_literal(source.name)}"
    )
    return int(rows[0]["chunks"]), int(rows[0]["total"])


def _ddl(run: ModelRun, step: str) -> list[str]:
    """Return the statements that the step runs, without the comment by which runs know the model."""
    state = run.warehouse.model_state(run.names)
    if step == "CREATE":
        statements = first_statements(run, state)
    elif step == "REBUILD":
        statements = [rebuild_statement(run, state)]
    else:
        statements = [modify_statement(run)]
    comment = f" COMMENT {run.definition.comment_literal}"
    return [f"{run.names}:", *(f"  {statement.replace(comment, '')};" for statement in statements)]


def _left_over(warehouse: Warehouse, model: Model) -> list[str]:
    """Return a line for each thing about the model that a run does not mend by itself."""
    names = model.names
    health = warehouse.health(names)
    if health is None:
        return []
    problems = [trigger_problem(warehouse, names), read_view_problem(warehouse, names)]
    if health.bypass_rows:
        problems.append(
            f"{health.bypass_rows} rows were written into the target directly; "
            f"dbt run-operation adopt --args '{{models: [{model.names.selected}]}}' checks them"
        )
    return [f"{names}: {problem}" for problem in problems if problem]
