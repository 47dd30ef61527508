"""What a run does about stored rows that differ from the model; `plan` foretells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .column_changes import column_changes
from .config import RunSettings
from .differences import Differences
from .model_definition import ModelDefinition
from .names import ModelNames
from .warehouse import ModelState, Warehouse


@dataclass(frozen=True)
class Change:
    """The step that leads from the live definition to the model's.

    FAIL has a `problem`, the message. IGNORE keeps the live definition, ALTER changes settings of
    the target, MODIFY QUERY leaves all rows stale, and REBUILD makes another version. A target that
    several triggers write has one version: REPLAY recomputes the rows of all of them."""

    step: Literal["FAIL", "IGNORE", "ALTER", "MODIFY QUERY", "REBUILD", "REPLAY"]
    problem: str = ""


def decide_change(
    warehouse: Warehouse,
    names: ModelNames,
    definition: ModelDefinition,
    state: ModelState,
    differences: Differences,
    settings: RunSettings,
) -> Change:
    """Return the step that --full-refresh, on_schema_change and on_definition_change choose; the
    first of these that applies decides."""
    change = _decide(warehouse, names, definition, state, differences, settings)
    if change.step != "REBUILD":
        return change
    others = warehouse.other_writers(names)
    return _in_shared_target(names, differences, others) if others else change


def _in_shared_target(names: ModelNames, differences: Differences, others: list[str]) -> Change:
    """Return the step that takes the place of a rebuild where other triggers write the target."""
    if differences.settings:
        return Change("ALTER")
    if differences.target or differences.moved or differences.follows:
        dropped = "; ".join(f"DROP VIEW {name}" for name in others)
        problem = (
            f"{names.target} is written by {', '.join(others)} too, so {names} cannot get another "
            f"one. {differences.sentences()} Drop the other triggers and the rows that they leave: "
            f"{dropped}; SYSTEM REPLAY VIEW {names.database}.{names.view} DISCARD BYPASS. Then "
            "rebuild this model by --full-refresh, and run the models of the others."
        )
        return Change("FAIL", problem)
    return Change("MODIFY QUERY" if differences.query else "REPLAY")


def _decide(
    warehouse: Warehouse,
    names: ModelNames,
    definition: ModelDefinition,
    state: ModelState,
    differences: Differences,
    settings: RunSettings,
) -> Change:
    """Return the step for a target that the model alone writes. A change that the settings forbid gives FAIL;
    nothing is raised."""
    if settings.full_refresh or differences.follows:
        return Change("REBUILD")
    policy = settings.on_definition_change
    if settings.on_schema_change not in ("", "ignore"):
        changes = column_changes(warehouse, names, definition, state)
        if changes and settings.on_schema_change == "fail":
            problem = (
                f"{names}: {changes.sentence()} on_schema_change is 'fail'. Run dbt with "
                "--full-refresh, or set on_schema_change='append_new_columns' or "
                "'sync_all_columns', which rebuild the model."
            )
            return Change("FAIL", problem)
        drops = bool(changes.removed or changes.retyped)
        if (
            changes
            and changes.alone
            and (settings.on_schema_change != "append_new_columns" or not drops)
        ):
            policy = "rebuild"
    return _by_policy(names, differences, policy)


def _by_policy(names: ModelNames, differences: Differences, policy: str) -> Change:
    """Return the step that the value `policy` of on_definition_change chooses for the differences."""
    if policy == "ignore":
        return Change("IGNORE")
    if policy == "fail":
        problem = (
            f"The definition of {names} has changed since its target was built, so that its old "
            f"rows would not mean the same as new ones. {differences.sentences()} Run dbt with "
            "--full-refresh to rebuild it, or set on_definition_change='rebuild' (or 'replay', "
            "which keeps the target) in its config."
        )
        return Change("FAIL", problem)
    if differences.settings:
        return Change("ALTER")
    if policy == "rebuild":
        return Change("REBUILD")
    if differences.target or differences.moved:
        problem = (
            f"on_definition_change='replay' keeps the target of {names} and its source. "
            f"{differences.sentences()} Run dbt with --full-refresh, or set "
            "on_definition_change='rebuild'."
        )
        return Change("FAIL", problem)
    return Change("MODIFY QUERY")
