"""Reconciliation as dbt sees it: one finding for each way in which a model is not its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..relation import string_literal
from .names import Names
from .warehouse import Warehouse

FINDINGS_MAX = 200
"""More findings than this are counted, not listed, in the test's query."""


@dataclass(frozen=True)
class Finding:
    """A slice of a model that is not proven. `keys` are examples; `repair` says what to run."""

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
        """For dbt's log."""
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
    warehouse: Warehouse, names: Names, *, partition: str | None = None, engine: str = "in_process"
) -> list[Finding]:
    """Reconciles the model now; no findings mean that each slice was proven."""
    if warehouse.view(names) is None:
        return [_unfired(names)]
    rest = f"PARTITION ID {string_literal(partition)}" if partition else ""
    rows = warehouse.slow("RECONCILE", names, rest, engine=engine)
    return [_finding(names, row) for row in rows if is_drift(row)]


def is_drift(row: Mapping[str, Any]) -> bool:
    """Whether a row of SYSTEM RECONCILE VIEW is about something wrong."""
    return row["verdict"] != "equal" or bool(row["bypass_rows"]) or bool(row["gap_rows"])


def _finding(names: Names, row: Mapping[str, Any]) -> Finding:
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
    if row["bypass_rows"]:
        return "rows were written into the target directly"
    if row["gap_rows"]:
        return "rows of the source have not been seen"
    if row["verdict"] == "unverifiable":
        return "it cannot be verified"
    return "the target differs from its source"


def _repair(names: Names, row: Mapping[str, Any]) -> str:
    if row["gap_rows"] and row["verdict"] == "equal" and not row["bypass_rows"]:
        return f"dbt run --select {names.model}"
    discard = ", discard_bypass: true" if row["bypass_rows"] else ""
    return f"dbt run-operation repair --args '{{models: [{names.model}]{discard}}}'"


def _unfired(names: Names) -> Finding:
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


def findings_sql(found: Sequence[Finding]) -> str:
    """A query of one row for each finding, for dbt's test to count and store."""
    listed = list(found[:FINDINGS_MAX])
    if not listed:
        return f"select * from ({_row_sql(_EMPTY)}) where 1 = 0"
    return "\nunion all\n".join(_row_sql(f) for f in listed)


def recorded_sql(names: Names) -> str:
    """The verdicts on record that are not `equal`, without reconciling."""
    return (
        "select view as model, partition_id as partition, verdict as cause, "
        "toString(examples) as keys, missing, extra, differing from system.view_checks "
        f"where database = {string_literal(names.database)} "
        f"and view = {string_literal(names.view)} and is_current = 1 and verdict != 'equal'"
    )


def _row_sql(finding: Finding) -> str:
    values = asdict(finding)
    columns = []
    for one in fields(finding):
        value = values[one.name]
        text = string_literal(value) if isinstance(value, str) else f"toUInt64({value})"
        columns.append(f"{text} as {one.name}")
    return "select " + ", ".join(columns)


_EMPTY = Finding("", "", "", "", 0, 0, 0, 0, 0, "")
