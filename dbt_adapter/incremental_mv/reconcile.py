"""Reconciliation for dbt: one finding for each way in which a model differs from its source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from ..relation import string_literal
from .live import read_view_problem, reading_problem, trigger_problem
from .names import ModelNames
from .warehouse import Warehouse

logger = AdapterLogger("olapdb")

FINDINGS_MAX = 200
"""The most findings that the test's query lists; more are counted in its last row."""


@dataclass(frozen=True)
class Finding:
    """A slice of a model that is not proven equal to its source.

    `keys` are examples of differing keys; `repair` is the dbt command to run. `slices` is 1, or the
    number of findings that a row stands for."""

    model: str
    partition: str
    cause: str
    keys: str = ""
    missing: int = 0
    extra: int = 0
    differing: int = 0
    bypass_rows: int = 0
    gap_rows: int = 0
    repair: str = ""
    slices: int = 1

    def line(self) -> str:
        """Return the finding as one line for dbt's log."""
        where = f"partition {self.partition}" if self.partition else "all partitions"
        counts = ", ".join(
            f"{number} {name}"
            for number, name in (
                (self.missing, "keys missing"),
                (self.extra, "keys extra"),
                (self.differing, "keys differing"),
                (self.bypass_rows, "bypass rows"),
                (self.gap_rows, "source rows not seen"),
            )
            if number
        )
        text = f"{self.model}, {where}: {self.cause}"
        text += f" ({counts})" if counts else ""
        text += f"; keys {self.keys}" if self.keys else ""
        return f"{text.rstrip('.')}. Repair: {self.repair}" if self.repair else text


def findings(
    warehouse: Warehouse,
    names: ModelNames,
    *,
    partitions: Sequence[str] = (),
    sample: int | None = None,
    tolerance: float = 0.0,
    engine: str = "in_process",
) -> list[Finding]:
    """Reconcile the model, or some partitions of it, now. No findings mean that each slice is proven.

    Trigger and read view are compared with those that the model's last run made, so what users read
    is what was proven. `sample` is a number of partitions, drawn at random.
    A partition of whose keys at most the share `tolerance` differs is a warning in the log.

    Raises CompilationError."""
    if warehouse.view(names) is None:
        return [missing_trigger(names)]
    if sample is not None and partitions:
        raise CompilationError("reconciled takes partitions or sample, not both.")
    altered = live_findings(warehouse, names)
    if not altered and not partitions and sample is None:
        altered = reading_findings(warehouse, names)
    clauses = [f"PARTITION ID {string_literal(p)}" for p in partitions]
    if sample is not None:
        clauses = [f"SAMPLE {positive(sample, 'sample')}"]
    rows = [
        row
        for clause in clauses or [""]
        for row in warehouse.run_system("RECONCILE", names, clause, engine=engine)
    ]
    for row in rows if partitions else ():
        if not row["keys_compared"] and not is_drift(row):
            logger.warning(empty_partition(warehouse, names, str(row["partition"])))
    differing = [row for row in rows if is_drift(row)]
    for row in differing:
        if _is_tolerated(row, tolerance):
            logger.warning(f"Within the tolerance of {tolerance}: {_finding(names, row).line()}")
    return altered + [_finding(names, r) for r in differing if not _is_tolerated(r, tolerance)]


def empty_partition(warehouse: Warehouse, names: ModelNames, partition: str) -> str:
    """Return the sentence for a partition that was named and is neither in the target nor made by
    the source, perhaps since its id is written otherwise."""
    view = warehouse.view(names)
    assert view is not None
    rows = warehouse.rows(
        "SELECT DISTINCT partition_id FROM system.parts WHERE active AND rows > 0 "
        f"AND database = {string_literal(view.target_database)} "
        f"AND table = {string_literal(view.target)} "
        "ORDER BY partition_id LIMIT 6"
    )
    ids = [str(row["partition_id"]) for row in rows]
    listed = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
    return (
        f"{names} has no partition {partition}, and the source has no rows of it. "
        f"The ids of its partitions are {listed or 'none yet'}."
    )


def _is_tolerated(row: Mapping[str, Any], tolerance: float) -> bool:
    """Return whether values of at most this share of the keys differ, and nothing else is wrong."""
    if row["verdict"] != "different" or row["bypass_rows"] or row["gap_rows"]:
        return False
    wrong = int(row["missing"]) + int(row["extra"]) + int(row["differing"])
    return wrong <= tolerance * int(row["keys_compared"])


def positive(value: object, name: str) -> int:
    """Return an argument of a test that is a whole number above 0; else raise CompilationError."""
    if isinstance(value, bool) or not str(value).isdigit() or int(str(value)) < 1:
        raise CompilationError(f"{name} is a whole number of partitions above 0, not {value!r}.")
    return int(str(value))


def live_findings(warehouse: Warehouse, names: ModelNames) -> list[Finding]:
    """Return a finding for a read view, and one for a trigger, that was altered by hand."""
    altered = read_view_problem(warehouse, names)
    of_read_view = (
        [Finding(names.model, "", altered, repair=repair_command(names))] if altered else []
    )
    return [*trigger_findings(warehouse, names), *of_read_view]


def reading_findings(warehouse: Warehouse, names: ModelNames) -> list[Finding]:
    """Return a finding if the model's expressions fail on the stored rows, so that nobody can read it."""
    problem = reading_problem(warehouse, names)
    return [Finding(names.model, "", problem)] if problem else []


def trigger_findings(warehouse: Warehouse, names: ModelNames) -> list[Finding]:
    """Return a finding if the trigger does not compute the model, or reads another table than it
    was made for."""
    problem = trigger_problem(warehouse, names)
    repair = f"dbt run --select {names.selected} --full-refresh"
    return [Finding(names.model, "", problem, repair=repair)] if problem else []


def is_drift(row: Mapping[str, Any]) -> bool:
    """Return whether a row of SYSTEM RECONCILE VIEW reports a difference, bypass rows or a gap.

    A retained partition is none: its rows left by TTL or retention, and what is left was compared."""
    return (
        row["verdict"] not in ("equal", "retained")
        or bool(row["bypass_rows"])
        or bool(row["gap_rows"])
    )


def _finding(names: ModelNames, row: Mapping[str, Any]) -> Finding:
    """Return the finding of one row of the reconciliation report."""
    causes = list(row["causes"] or [])
    if not causes:
        causes = [_cause(row)]
    return Finding(
        model=names.model,
        partition=str(row["partition"]),
        cause="; ".join(causes),
        keys=", ".join(row["examples"] or []),
        missing=int(row["missing"]),
        extra=int(row["extra"]),
        differing=int(row["differing"]),
        bypass_rows=int(row["bypass_rows"]),
        gap_rows=int(row["gap_rows"]),
        repair=_repair(names, row),
    )


def _cause(row: Mapping[str, Any]) -> str:
    """Return why a partition differs, for a row in which the engine names no cause."""
    if row["bypass_rows"]:
        return "rows were written into the target directly"
    if row["gap_rows"]:
        return "rows of the source have not been seen"
    if row["verdict"] == "unverifiable":
        return "it cannot be verified"
    return "the target differs from its source"


def _repair(names: ModelNames, row: Mapping[str, Any]) -> str:
    """Return the dbt command that repairs a partition: a backfill if it only has a gap, else a
    repair. Return "" for one that cannot be verified, unless bypass rows are the cause."""
    if row["gap_rows"] and row["verdict"] in ("equal", "retained") and not row["bypass_rows"]:
        return backfill_command(names)
    if row["verdict"] == "unverifiable" and not row["bypass_rows"]:
        return ""  # no replay makes it provable; the cause says what does
    return repair_command(names, discard_bypass=bool(row["bypass_rows"]))


def backfill_command(names: ModelNames) -> str:
    """Return the dbt command that fills the gaps of the model. A run does not where the config
    `backfill` leaves them."""
    return f"dbt run-operation backfill --args '{{models: [{names.selected}]}}'"


def repair_command(names: ModelNames, *, discard_bypass: bool = False) -> str:
    """Return the dbt command that repairs the model."""
    discard = ", discard_bypass: true" if discard_bypass else ""
    return f"dbt run-operation repair --args '{{models: [{names.selected}]{discard}}}'"


def missing_trigger(names: ModelNames) -> Finding:
    """Return the finding for a model whose trigger does not exist."""
    return Finding(
        names.model,
        "",
        f"the trigger {names.view} does not exist, so new rows are not seen",
        repair=f"dbt run --select {names.selected}",
    )


def bounded(reported: Sequence[Finding]) -> list[Finding]:
    """Return at most FINDINGS_MAX findings; the last stands for all beyond, with their sums."""
    if len(reported) <= FINDINGS_MAX:
        return list(reported)
    listed, beyond = reported[: FINDINGS_MAX - 1], reported[FINDINGS_MAX - 1 :]
    rest = replace(
        beyond[0],
        partition="",
        cause=f"and {len(beyond)} more partitions",
        keys="",
        missing=sum(f.missing for f in beyond),
        extra=sum(f.extra for f in beyond),
        differing=sum(f.differing for f in beyond),
        bypass_rows=sum(f.bypass_rows for f in beyond),
        gap_rows=sum(f.gap_rows for f in beyond),
        slices=len(beyond),
    )
    return [*listed, rest]


def findings_sql(reported: Sequence[Finding]) -> str:
    """Return a query with one row for each finding, for dbt's test to count and store."""
    listed = bounded(reported)
    if not listed:
        return f"select * from ({_row_sql(Finding('', '', ''))}) where 1 = 0"
    return "\nunion all\n".join(_row_sql(f) for f in listed)


def recorded_sql(names: ModelNames, partitions: Collection[str] = ()) -> str:
    """Return a query of the recorded verdicts that are not `equal`; it reconciles nothing.

    Its columns are those of `findings_sql`."""
    chosen = ""
    if partitions:
        chosen = f" and partition_id in ({', '.join(string_literal(p) for p in partitions)})"
    return (
        f"select {string_literal(names.model)} as model, partition_id as partition, "
        "verdict as cause, arrayStringConcat(examples, ', ') as keys, "
        "missing, extra, differing, toUInt64(0) as bypass_rows, toUInt64(0) as gap_rows, "
        f"{string_literal(repair_command(names))} as repair, toUInt64(1) as slices "
        "from system.view_checks "
        f"where database = {string_literal(names.database)} "
        f"and view = {string_literal(names.view)} and is_current = 1 and verdict != 'equal'{chosen}"
    )


def _row_sql(finding: Finding) -> str:
    """Return a finding as a SELECT of one row."""
    columns = []
    for name, value in asdict(finding).items():
        text = string_literal(value) if isinstance(value, str) else f"toUInt64({value})"
        columns.append(f"{text} as {name}")
    return "select " + ", ".join(columns)
