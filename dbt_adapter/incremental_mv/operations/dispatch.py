"""`dbt run-operation`: run an operation on the chosen models, print its table, fail if it failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dbt_common.events.base_types import EventLevel
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from . import actions
from .actions import Request
from .orphans import Orphan, drop_orphans, find_orphans
from .plan import Planner
from .project import ManifestProject, Model, listed
from .table import Report, table_lines

_ACTIONS: Mapping[str, Callable[[Request, Model], Report]] = {
    "status": actions.status,
    "backfill": actions.run_backfill,
    "replay": actions.replay,
    "reconcile": actions.run_reconcile,
    "adopt": actions.adopt,
    "repair": actions.repair,
}

CHANGING = frozenset({"backfill", "replay", "adopt", "rollback", "repair", "drop_orphans"})
"""The operations that change models: they take the lock of the target's runs."""

_FLAGS = ("confirm", "dry_run", "discard_bypass", "stale", "all", "full_refresh")
"""The arguments that are true or false."""


_CHOOSING = ("models", "select", "partition", "partitions", "where", "since")
"""The arguments that choose models or slices; without them an operation takes all, or the stale ones."""


def check_arguments(operation: str, options: Mapping[str, object]) -> None:
    """Raise DbtRuntimeError if an argument that is true or false is something else, since the text
    'no' would count as true; or if one that chooses is empty, since it would choose all."""
    for name in _CHOOSING:
        if _is_empty(options.get(name)):
            raise DbtRuntimeError(
                f"{operation}: {name} is empty. Leave it out, or give what it is to choose."
            )
    for name in _FLAGS:
        value = options.get(name)
        if value is not None and not isinstance(value, bool):
            raise DbtRuntimeError(f"{operation}: {name} is true or false, not {value!r}.")


def _is_empty(value: object) -> bool:
    """Return whether an argument that was given chooses nothing; the number 0 may be a partition."""
    return value is False or (isinstance(value, str | list | dict) and not value)


def run(
    operation: str,
    request: Request,
    project: ManifestProject,
    planner: Planner,
    schemas: frozenset[str],
) -> None:
    """Run an operation and log its lines.

    Each chosen model is processed, also after one that failed. Then DbtRuntimeError is raised if
    there were problems: it lists them, and dbt ends with exit code 1. `schemas` are those of this
    target, in which orphans are looked for."""
    if operation == "drop_orphans":
        _finish(operation, _drop_orphans(request, project, schemas))
        return
    options = request.options
    if operation == "rollback" and not (options.get("models") or options.get("select")):
        raise DbtRuntimeError("rollback needs the models to roll back: --args '{models: [m]}'.")
    models = project.select(options.get("models"), options.get("select"), options.get("exclude"))
    of_planner = {"plan": planner.plan, "rollback": planner.rollback}
    action = of_planner.get(operation) or _ACTIONS[operation]
    report = Report()
    for model in models:
        try:
            report.add(action(request, model))
        except DbtRuntimeError as error:
            report.problems.append(f"{model.names}: {error.msg}")
    if not models:
        report.notes.append("There are no incremental_mv models.")
    if operation in ("replay", "repair"):
        report.notes += actions.stale_readers(request, models)
    if operation in ("status", "plan"):
        orphans = find_orphans(request.warehouse, project, schemas)
        report.notes += _orphan_lines(orphans)
    _finish(operation, report)


def _orphan_lines(orphans: list[Orphan]) -> list[str]:
    """Return the table of orphans, and how to drop them; nothing without any."""
    if not orphans:
        return []
    fire = "Orphans still fire; " if any(orphan.attached for orphan in orphans) else ""
    drop = f"{fire}dbt run-operation drop_orphans --args '{{confirm: true}}' drops them."
    return [*table_lines([orphan.row() for orphan in orphans]), drop]


def _drop_orphans(request: Request, project: ManifestProject, schemas: frozenset[str]) -> Report:
    """Drop the orphans in this target's schemas and in those of `schemas`, or list them.

    They are dropped with `confirm: true` or `dry_run: false`, else listed.

    Raises DbtRuntimeError."""
    more = frozenset(listed(request.options.get("schemas")))
    orphans = find_orphans(request.warehouse, project, schemas | more)
    dry_run = request.options.get("dry_run")
    if request.flag("confirm") and dry_run:
        raise DbtRuntimeError("drop_orphans got confirm: true and dry_run: true. Give one.")
    confirmed = request.flag("confirm") or (dry_run is not None and not dry_run)
    return drop_orphans(request.warehouse, orphans, confirmed=confirmed)


def _finish(operation: str, report: Report) -> None:
    """Log the report; raise DbtRuntimeError with its problems if there are any."""
    for line in report.lines():
        fire_event(Note(msg=line), level=EventLevel.INFO)  # a logger would begin lines by its name
    if report.problems:
        problems = "\n  ".join(report.problems)
        raise DbtRuntimeError(f"{operation}: {len(report.problems)} failed.\n  {problems}")
