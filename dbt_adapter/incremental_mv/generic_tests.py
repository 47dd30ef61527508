"""The generic tests of `incremental_mv` models, and those which ask the ledger of the trigger.

`covers_source`, `no_bypass_writes`, `not_stale` and `proven_within` read system tables only, and
never a row of the model. Each returns one finding for each partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbt_common.exceptions import CompilationError

from ..relation import string_literal
from .config import ReconcilePolicy
from .names import ModelNames
from .reconcile import (
    Finding,
    backfill_command,
    findings,
    live_findings,
    missing_trigger,
    recorded_sql,
    repair_command,
)
from .source_comparison import Comparison, source_findings, tested_relation
from .warehouse import Warehouse

PERIODS = ("minute", "hour", "day", "week", "month")


def run_test(
    warehouse: Warehouse,
    test: str,
    model: object,
    arguments: Mapping[str, Any],
    policy: ReconcilePolicy,
    *,
    running: bool,
    selector: str = "",
) -> list[Finding] | str:
    """Run a test now and return its findings; if not `running`, return a query of recorded verdicts.

    `model` is what dbt passes to a generic test, `selector` its name for dbt's commands; `policy` is
    the model's for `reconciled`, where the test's own arguments do not choose what is compared. Raises CompilationError for arguments
    that the test cannot follow."""
    relation, where = tested_relation(model)
    names = replace(relation, selector=selector)
    partitions = tuple(str(p) for p in arguments.get("partitions") or ())
    if not running:
        return recorded_sql(names, partitions)
    if where and test != "reconciles_with_source":
        raise CompilationError(
            f"{test} of {names} has a where, and it judges whole partitions. Name them by the "
            "argument partitions, or use reconciles_with_source, which takes where."
        )
    if test == "reconciled":
        return _reconciled(warehouse, names, policy, partitions, arguments)
    if test == "reconciles_with_source":
        conditions = [str(c) for c in (where, arguments.get("where")) if c]
        tolerance = float(arguments.get("tolerance") or 0.0)
        condition = " AND ".join(f"({c})" for c in conditions)
        return source_findings(
            warehouse, names, Comparison(tolerance, partitions, arguments.get("sample"), condition)
        )
    return ledger_findings(test, warehouse, names, arguments)


def require_reading_only(test: str, policy: ReconcilePolicy, arguments: Mapping[str, Any]) -> None:
    """Raise CompilationError if the test would store a verdict, for a profile with read_only."""
    chosen = arguments.get("sample") is not None or arguments.get("partitions")
    if test == "reconciled" and (chosen or policy.mode in ("full", "sample")):
        raise CompilationError(
            "reconciled stores its verdict, and the profile has read_only: true. Run it with a "
            "profile that may write, or use reconciles_with_source, which stores nothing."
        )


def _reconciled(
    warehouse: Warehouse,
    names: ModelNames,
    policy: ReconcilePolicy,
    partitions: Sequence[str],
    arguments: Mapping[str, Any],
) -> list[Finding]:
    """Return the findings of `reconciled`, by the model's policy unless arguments choose slices."""
    sample = arguments.get("sample")
    if sample is None and not partitions:
        if policy.mode == "off":
            return []
        if policy.mode == "stale":
            tests = ("covers_source", "no_bypass_writes", "not_stale")
            return [f for test in tests for f in ledger_findings(test, warehouse, names, {})]
        sample = policy.sample if policy.mode == "sample" else None
    return findings(
        warehouse,
        names,
        partitions=partitions,
        sample=sample,
        tolerance=policy.tolerance,
        engine=str(arguments["engine"]),
    )


def ledger_findings(
    test: str, warehouse: Warehouse, names: ModelNames, arguments: Mapping[str, Any]
) -> list[Finding]:
    """Run one of the tests of `LEDGER_TESTS`; return its findings, none if it passes."""
    if warehouse.view(names) is None:
        return [missing_trigger(names)]
    partitions = [str(p) for p in arguments.get("partitions") or ()]
    return LEDGER_TESTS[test](warehouse, names, partitions, arguments)


def _covers_source(
    warehouse: Warehouse, names: ModelNames, partitions: Sequence[str], arguments: Mapping[str, Any]
) -> list[Finding]:
    """Return the source partitions of which the trigger has not seen more than `max_rows` rows."""
    rows = warehouse.rows(
        "SELECT partition_id, sum(rows) AS gap_rows, count() AS pieces FROM system.view_coverage "
        f"WHERE {_of_view(names)} AND status = 'gap'{_among(partitions)} "
        "GROUP BY partition_id ORDER BY partition_id"
    )
    allowed = int(arguments.get("max_rows") or 0)
    total = sum(int(row["gap_rows"]) for row in rows)
    return [
        Finding(
            names.model,
            str(row["partition_id"]),
            "rows of this partition of the source have not been seen",
            gap_rows=int(row["gap_rows"]),
            repair=backfill_command(names),
        )
        for row in rows
        if total > allowed
    ]


def _no_bypass_writes(
    warehouse: Warehouse, names: ModelNames, partitions: Sequence[str], arguments: Mapping[str, Any]
) -> list[Finding]:
    """Return the target partitions with rows that no trigger, backfill or replay wrote."""
    view = warehouse.view(names)
    assert view is not None
    rows = warehouse.rows(
        "SELECT partition_id, sum(rows) AS bypass_rows FROM system.parts "
        f"WHERE active AND is_bypass AND database = {string_literal(view.target_database)} "
        f"AND table = {string_literal(view.target)}{_among(partitions)} "
        "GROUP BY partition_id ORDER BY partition_id"
    )
    return [
        Finding(
            names.model,
            str(row["partition_id"]),
            "rows were written into the target directly",
            bypass_rows=int(row["bypass_rows"]),
            repair=f"dbt run-operation adopt --args '{{models: [{names.selected}]}}', or "
            + repair_command(names, discard_bypass=True),
        )
        for row in rows
    ]


def _not_stale(
    warehouse: Warehouse, names: ModelNames, partitions: Sequence[str], arguments: Mapping[str, Any]
) -> list[Finding]:
    """Return the target partitions that a change of an input made stale, with the statements.

    A trigger or read view that was altered is a finding too."""
    rows = warehouse.rows(
        "SELECT ifNull(partition_id, '') AS partition_id, groupUniqArray(5)(cause) AS causes, "
        "groupUniqArray(3)(statement) AS statements, sum(rows) AS changed, "
        "arraySlice(groupArrayArray(keys), 1, 5) AS keys "
        f"FROM system.view_invalidations WHERE {_of_view(names)} AND cause != 'VIEW FAILED'"
        f"{_among(partitions)} GROUP BY partition_id ORDER BY partition_id"
    )
    stale = [
        Finding(
            names.model,
            str(row["partition_id"]),
            f"stale by {', '.join(row['causes'])}: {'; '.join(filter(None, row['statements']))}",
            keys=", ".join(row["keys"]),
            repair=f"dbt run-operation replay --args '{{models: [{names.selected}]}}'",
        )
        for row in rows
    ]
    return live_findings(warehouse, names) + stale


def _proven_within(
    warehouse: Warehouse, names: ModelNames, partitions: Sequence[str], arguments: Mapping[str, Any]
) -> list[Finding]:
    """Return the target partitions without a proof that holds and is younger than the interval."""
    seconds = interval_seconds(arguments.get("interval"))
    view = warehouse.view(names)
    assert view is not None
    parts = (
        "SELECT DISTINCT partition_id FROM system.parts WHERE active AND rows > 0 "
        f"AND database = {string_literal(view.target_database)} "
        f"AND table = {string_literal(view.target)}{_among(partitions)}"
    )
    proofs = (
        "SELECT partition_id, max(checked) AS proven FROM system.view_checks "
        f"WHERE {_of_view(names)} AND is_current = 1 AND verdict IN ('equal', 'retained') "
        "GROUP BY partition_id"
    )
    rows = warehouse.rows(
        "SELECT p.partition_id AS partition_id, c.partition_id AS proof, toString(c.proven) AS proven "
        f"FROM ({parts}) AS p LEFT JOIN ({proofs}) AS c ON c.partition_id = p.partition_id "
        f"WHERE c.partition_id = '' OR c.proven IS NULL "
        f"OR dateDiff('second', c.proven, now()) > {seconds} ORDER BY p.partition_id"
    )
    return [
        Finding(
            names.model,
            str(row["partition_id"]),
            f"last proven at {row['proven']}, longer ago than the interval"
            if row["proof"]
            else "no proof of it holds: it was never compared, or has changed since",
            repair=f"dbt run-operation reconcile --args '{{models: [{names.selected}]}}'",
        )
        for row in rows
    ]


LEDGER_TESTS: Mapping[
    str, Callable[[Warehouse, ModelNames, Sequence[str], Mapping[str, Any]], list[Finding]]
] = {
    "covers_source": _covers_source,
    "no_bypass_writes": _no_bypass_writes,
    "not_stale": _not_stale,
    "proven_within": _proven_within,
}


def interval_seconds(interval: object) -> int:
    """Return the seconds of an interval: `{count: 2, period: day}` or '2 days'.

    Raises CompilationError for anything else."""
    if isinstance(interval, Mapping) and set(interval) == {"count", "period"}:
        count, period = interval["count"], str(interval["period"])
    else:
        count, _, period = str(interval or "").partition(" ")
    period = period.strip().removesuffix("s")
    if period not in PERIODS or not str(count).isdigit():
        raise CompilationError(
            "proven_within needs interval: {count: 2, period: day} or '2 days'; the period is "
            f"{', '.join(PERIODS)}. It is {interval!r}."
        )
    lengths = {"minute": 60, "hour": 3600, "day": 86400, "week": 604800, "month": 2592000}
    return int(count) * lengths[period]


def _of_view(names: ModelNames) -> str:
    """Return the condition for rows of the model's trigger in a system table."""
    return f"database = {string_literal(names.database)} AND view = {string_literal(names.view)}"


def _among(partitions: Sequence[str]) -> str:
    """Return the condition for these partition ids, "" for all."""
    if not partitions:
        return ""
    return f" AND partition_id IN ({', '.join(string_literal(p) for p in partitions)})"
