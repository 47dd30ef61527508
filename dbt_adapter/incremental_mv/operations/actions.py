"""The operations on one model: status, backfill, replay, reconcile, adopt, rollback and repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from olapdb.errors import Error
from olapdb.sql.parser import parse_expression

from ...relation import string_literal
from ..live import read_view_problem, restore_read_view, trigger_problem
from ..names import ModelNames, selector_of
from ..progress import backfill
from ..reconcile import empty_partition, findings, is_drift
from ..warehouse import Health, Warehouse, comment_body
from .project import Model, listed
from .table import Report


@dataclass(frozen=True)
class Request:
    """A request to an operation: the warehouse it works on, and its `--args` by name."""

    warehouse: Warehouse
    engine: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def flag(self, name: str) -> bool:
        """Return a true-or-false argument; False if it is not given."""
        return bool(self.options.get(name))

    def partitions(self) -> list[str]:
        """Return the ids of the partitions that are asked for; empty means all."""
        chosen = self.options.get("partitions")
        if chosen is None:
            chosen = self.options.get("partition")
        return listed([str(chosen)] if isinstance(chosen, str | int) else chosen)


def status(request: Request, model: Model) -> Report:
    """Report the health of the model, and the dbt command that mends it."""
    health = request.warehouse.health(model.names)
    if health is None:
        command = f"dbt run --select {model.names.selected}"
        return Report([{"model": str(model.names), "verdict": "not built", "next": command}])
    altered = read_view_problem(request.warehouse, model.names)
    command = f"dbt run --select {model.names.selected}"
    if not altered and (altered := trigger_problem(request.warehouse, model.names)):
        command += " --full-refresh"
    row = {
        "model": str(model.names),
        "verdict": "altered" if altered else health.verdict,
        "gap rows": health.gap_rows,
        "bypass rows": health.bypass_rows,
        "stale slices": health.stale_slices,
        "next": command if altered else _next(model, health),
    }
    reason = altered or health.reason
    return Report([row], [f"{model.names}: {reason}"] if reason else [])


def _next(model: Model, health: Health) -> str:
    """Return the dbt command that comes next for a model in this health, "" for none."""
    match health.verdict:
        case "partial" if health.attached:
            return _command("backfill", model)
        case "partial":  # a run attaches the trigger
            return f"dbt run --select {model.names.selected}"
        case "stale":
            return _command("replay", model)
        case "bypassed":
            return _command("adopt", model)
        case "covered":
            return _command("reconcile", model)
        case "broken":
            return f"dbt run --select {model.names.selected} --full-refresh"
    return health.mend


def _command(operation: str, model: Model, *arguments: str) -> str:
    """Return the `dbt run-operation` command of an operation on the model."""
    listed_arguments = ", ".join((f"models: [{model.names.selected}]", *arguments))
    return f"dbt run-operation {operation} --args '{{{listed_arguments}}}'"


def run_backfill(request: Request, model: Model) -> Report:
    """Publish the gap of the model chunk by chunk, and report what was done."""
    _require_built(request, model)
    done = backfill(request.warehouse, model.names, request.engine, title=str(model.names))
    row = {
        "model": str(model.names),
        "did": "backfilled" if done.chunks else "no gap",
        "chunks": done.chunks,
        "source rows": done.source_rows,
        "target rows": done.target_rows,
    }
    return Report([row])


def replay(request: Request, model: Model) -> Report:
    """Recompute slices of the model and swap them in; report each partition.

    The arguments choose the slices: `partition`, `partitions`, `where`, `since`, `all`, or
    `stale`, the default."""
    _require_built(request, model)
    report = Report()
    for clause in _replay_clauses(request):
        if request.flag("discard_bypass"):
            clause = f"{clause} DISCARD BYPASS".strip()
        rows = request.warehouse.run_system("REPLAY", model.names, clause, engine=request.engine)
        report.rows += _replay_rows(model.names, rows)
        report.notes += [
            empty_partition(request.warehouse, model.names, str(row["partition"]))
            for row in rows
            if request.partitions() and not row["rows_before"] and not row["rows_after"]
        ]
    if not report.rows:
        report.rows.append({"model": str(model.names), "did": "nothing to replay"})
    return report


def _replay_clauses(request: Request) -> list[str]:
    """Return the clauses of SYSTEM REPLAY VIEW, one for each statement to run.

    Raises DbtRuntimeError if the arguments choose slices in more than one way, or `where` is more
    than one expression."""
    options = request.options
    chosen = [
        name
        for name in ("partition", "partitions", "where", "since", "all", "stale")
        if options.get(name) is not None and options[name] is not False
    ]
    if len(chosen) > 1:
        raise DbtRuntimeError(
            f"replay got {' and '.join(chosen)}. Give one of partition, partitions, where, since, "
            "all and stale (the default)."
        )
    match chosen:
        case ["partition" | "partitions"]:
            return [f"PARTITION ID {string_literal(p)}" for p in request.partitions()]
        case ["where"]:
            return [f"WHERE ({_condition(str(options['where']))}\n)"]  # a comment may end it
        case ["since"]:
            return [f"FROM {string_literal(str(options['since']))}"]
        case ["all"]:
            return [""]
    return ["STALE"]


def _condition(where: str) -> str:
    """Return the text of a condition. Raises DbtRuntimeError unless it is one expression, so that no
    other statement comes with it."""
    try:
        parse_expression(where)
    except Error as error:
        raise DbtRuntimeError(f"replay: where is no condition: {error}") from error
    return where


def _replay_rows(names: ModelNames, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Return a row of the printed table for each partition of a replay's report."""
    return [
        {
            "model": str(names),
            "partition": row["partition"],
            "did": row["status"],
            "source rows": row["source_rows"],
            "rows before": row["rows_before"],
            "rows after": row["rows_after"],
            "bypass rows": row["bypass_rows"],
        }
        for row in rows
    ]


def run_reconcile(request: Request, model: Model) -> Report:
    """Recompute the model from its source and report each difference, or that it is equal.

    A difference is a problem: it makes the operation fail."""
    listed_findings = findings(
        request.warehouse, model.names, partitions=request.partitions(), engine=request.engine
    )
    if not listed_findings:
        return Report([{"model": str(model.names), "verdict": "equal to its source"}])
    rows: list[Mapping[str, object]] = [
        {
            "model": str(model.names),
            "verdict": "differs",
            "partition": finding.partition,
            "missing": finding.missing,
            "extra": finding.extra,
            "differing": finding.differing,
            "bypass rows": finding.bypass_rows,
            "gap rows": finding.gap_rows,
            "cause": finding.cause,
        }
        for finding in listed_findings
    ]
    problem = f"{model.names} differs from its source: {listed_findings[0].line()}"
    more = len(listed_findings) - 1
    return Report(rows, [], [problem + (f" (and {more} more)" if more else "")])


def adopt(request: Request, model: Model) -> Report:
    """Make rows that were written into the target directly the model's own, if they are right."""
    _require_built(request, model)
    rows = request.warehouse.run_system("ADOPT", model.names, engine=request.engine)
    if not rows:
        return Report([{"model": str(model.names), "did": "nothing to adopt"}])
    named = ("partition", "verdict", "keys_compared", "bypass_rows", "gap_rows")
    return Report(
        [
            {"model": str(model.names), "did": "adopted"}
            | {name.replace("_", " "): row[name] for name in named if name in row}
            for row in rows
        ]
    )


def rollback(request: Request, model: Model) -> Report:
    """Bring back the version that the last rebuild replaced, with its read view; note the triggers
    over the model that are stale now, and the command that mends each."""
    _require_built(request, model)
    rows = request.warehouse.run_system("ROLLBACK", model.names)
    restored = restore_read_view(request.warehouse, model.names)
    return Report(
        [
            {
                "model": str(model.names),
                "did": "rolled back",
                "kept": row["replaced"],
                "verdict": row["verdict"],
                "read view": "replaced" if restored else "unchanged",
            }
            for row in rows
        ],
        [note for row in rows for note in _stale_readers(request, model, row)],
    )


def _stale_readers(request: Request, model: Model, row: Mapping[str, Any]) -> list[str]:
    """Return a note for each trigger that reads the version of a rollback's row, or the one that it
    put away, and is stale or reads what no longer has the name."""
    names = model.names
    notes = []
    for reader in _readers(request, names, [names.target, row["kept_target"].partition(".")[2]]):
        moved = reader["reads"] == names.target
        if moved and not reader["stale"]:
            continue
        state = (
            "reads this version now, and is stale" if moved else f"still reads {reader['reads']}"
        )
        notes.append(f"{reader['database']}.{reader['name']} {state}. Next: {_mend(reader)}")
    return notes


def stale_readers(request: Request, models: Iterable[Model]) -> list[str]:
    """Return a note for each trigger that is stale and reads one of the models, unless it belongs to
    one of them: replaying a model makes those over it stale."""
    models = list(models)
    own = {(model.names.database, model.names.view) for model in models}
    notes = {
        f"{reader['database']}.{reader['name']} reads {model.names}, and is stale. "
        f"Next: {_mend(reader)}": None
        for model in models
        for reader in _readers(request, model.names, [model.names.target])
        if reader["stale"] and (reader["database"], reader["name"]) not in own
    }
    return list(notes)


def _readers(request: Request, names: ModelNames, targets: Iterable[str]) -> list[dict[str, Any]]:
    """Return the triggers that read one of the tables of the model's database: their names, comment,
    `mend`, the table that each `reads`, and its number of `stale` slices."""
    listed_targets = ", ".join(map(string_literal, targets))
    return request.warehouse.rows(
        "SELECT v.database AS database, v.name AS name, v.comment AS comment, v.mend AS mend, "
        "d.depends_on AS reads, v.stale_slices AS stale FROM system.view_dependencies AS d "
        "INNER JOIN system.views AS v ON v.database = d.database AND v.name = d.view "
        f"WHERE d.depends_on_database = {string_literal(names.database)} "
        f"AND d.depends_on IN ({listed_targets}) "
        "AND d.kind IN ('source', 'dimension') AND v.standing = '' ORDER BY database, name"
    )


def _mend(reader: Mapping[str, Any]) -> str:
    """Return the command that mends a trigger of `_readers`: dbt's if it belongs to a model."""
    unique_id = str(comment_body(reader["comment"]).get("model", ""))
    return f"dbt run --select {selector_of(unique_id)}+" if unique_id else reader["mend"]


def repair(request: Request, model: Model) -> Report:
    """Replay stale and differing slices, backfill gaps and restore the read view; report all.

    Slices with rows that were written into the target directly are only replayed with
    `discard_bypass`."""
    _require_built(request, model)
    warehouse, report = request.warehouse, Report()
    if restore_read_view(warehouse, model.names):
        report.rows.append({"model": str(model.names), "did": "read view replaced"})
    health = warehouse.health(model.names)
    if health is not None and health.stale_slices:
        rest = "STALE DISCARD BYPASS" if request.flag("discard_bypass") else "STALE"
        rows = warehouse.run_system("REPLAY", model.names, rest, engine=request.engine)
        report.rows += _replay_rows(model.names, rows)
    if health is not None and health.gap_parts:
        report.add(run_backfill(request, model))
    for row in warehouse.run_system("RECONCILE", model.names, engine=request.engine):
        if is_drift(row):
            report.add(_repair_slice(request, model, row))
    if not report.rows and not report.notes:
        report.rows.append({"model": str(model.names), "did": "nothing to repair"})
    return report


def _repair_slice(request: Request, model: Model, row: Mapping[str, Any]) -> Report:
    """Replay one differing slice, and report the result.

    It stays if it has bypass rows that may not be discarded, or if it cannot be verified."""
    partition, bypass = str(row["partition"]), int(row["bypass_rows"])
    if bypass and not request.flag("discard_bypass"):
        note = (
            f"{model.names}, partition {partition}: {bypass} rows were written into the target "
            "directly and are left; discard_bypass: true removes them."
        )
        return Report([], [note])
    if row["verdict"] == "unverifiable":
        return Report([], [f"{model.names}, partition {partition}: cannot be verified; left."])
    rest = f"PARTITION ID {string_literal(partition)}"
    if bypass:
        rest += " DISCARD BYPASS"
    rows = request.warehouse.run_system("REPLAY", model.names, rest, engine=request.engine)
    return Report(list(_replay_rows(model.names, rows)))


def _require_built(request: Request, model: Model) -> None:
    """Raise DbtRuntimeError if the model has no trigger."""
    if request.warehouse.view(model.names) is None:
        raise DbtRuntimeError(
            f"{model.names} is not built: its trigger {model.names.view} does not exist. "
            f"Run dbt run --select {model.names.selected} first."
        )
