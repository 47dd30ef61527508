"""Reconciliation for dbt: one finding for each way in which a model differs from its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..relation import string_literal
from .names import ModelNames
from .warehouse import Warehouse

FINDINGS_MAX = 200
"""The most findings that the test's query lists."""


@dataclass(frozen=True)
class Finding:
    """A slice of a model that is not proven equal to its source.

    `keys` are examples of differing keys; `repair` is the dbt command to run."""

    model: str
    partition: str
    cause: str
    keys: str
    missing: int
    extra: int
    differing: int
    bypass_rows: int
    gap_rows: int
    repair: str

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
        keys = f"; keys {self.keys}" if self.keys else ""
        return f"{self.model}, {where}: {self.cause} ({counts}){keys}. Repair: {self.repair}"


def findings(
    warehouse: Warehouse,
    names: ModelNames,
    *,
    partition: str | None = None,
    engine: str = "in_process",
) -> list[Finding]:
    """Reconcile the model, or one partition of it, now. No findings mean that each slice is proven."""
    if warehouse.view(names) is None:
        return [_missing_trigger(names)]
    rest = f"PARTITION ID {string_literal(partition)}" if partition else ""
    rows = warehouse.run_system("RECONCILE", names, rest, engine=engine)
    return [_finding(names, row) for row in rows if is_drift(row)]


def is_drift(row: Mapping[str, Any]) -> bool:
    """Return whether a row of SYSTEM RECONCILE VIEW reports a difference, bypass rows or a gap."""
    return row["verdict"] != "equal" or bool(row["bypass_rows"]) or bool(row["gap_rows"])


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
    """Return the dbt command that repairs a partition: a run if it only has a gap, else a repair."""
    if row["gap_rows"] and row["verdict"] == "equal" and not row["bypass_rows"]:
        return f"dbt run --select {names.model}"
    discard = ", discard_bypass: true" if row["bypass_rows"] else ""
    return f"dbt run-operation repair --args '{{models: [{names.model}]{discard}}}'"


def _missing_trigger(names: ModelNames) -> Finding:
    """Return the finding for a model whose trigger does not exist."""
    return Finding(
        names.model,
        "",
        f"the trigger {names.view} does not exist, so new rows are not seen",
        "",
        0,
        0,
        0,
        0,
        0,
        f"dbt run --select {names.model}",
    )


def findings_sql(reported: Sequence[Finding]) -> str:
    """Return a query with one row for each finding, for dbt's test to count and store."""
    listed = list(reported[:FINDINGS_MAX])
    if not listed:
        return f"select * from ({_row_sql(_EMPTY)}) where 1 = 0"
    return "\nunion all\n".join(_row_sql(f) for f in listed)


def recorded_sql(names: ModelNames) -> str:
    """Return a query of the recorded verdicts that are not `equal`; it reconciles nothing."""
    return (
        "select view as model, partition_id as partition, verdict as cause, "
        "toString(examples) as keys, missing, extra, differing from system.view_checks "
        f"where database = {string_literal(names.database)} "
        f"and view = {string_literal(names.view)} and is_current = 1 and verdict != 'equal'"
    )


def _row_sql(finding: Finding) -> str:
    """Return a finding as a SELECT of one row."""
    columns = []
    for name, value in asdict(finding).items():
        text = string_literal(value) if isinstance(value, str) else f"toUInt64({value})"
        columns.append(f"{text} as {name}")
    return "select " + ", ".join(columns)


_EMPTY = Finding("", "", "", "", 0, 0, 0, 0, 0, "")
