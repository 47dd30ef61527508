"""The operations `dbt run-operation repair | backfill | reconcile | status`, and the test generator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from ..relation import string_literal
from .names import ModelNames
from .reconcile import findings, is_drift
from .runner import backfill
from .warehouse import Warehouse

MATERIALIZATION = "incremental_mv"
TEST_NAME = "reconciled"
TEST_MACRO = "olapdb_reconciled"


def choose(
    nodes: Iterable[Mapping[str, Any]], models: Sequence[str] | str | None
) -> list[ModelNames]:
    """Return the names of the `incremental_mv` models to work on, each after those it is chained on.

    `models` are names, aliases or unique ids; without any, all models are chosen. Raises
    DbtRuntimeError for a name that is no such model."""
    by_id = {n["unique_id"]: n for n in nodes}
    candidates = {i: n for i, n in by_id.items() if _is_model(n)}
    requested = [models] if isinstance(models, str) else list(models or [])
    for name in requested:
        if not any(name in (n["name"], n["unique_id"], n["alias"]) for n in candidates.values()):
            names = ", ".join(sorted(n["name"] for n in candidates.values())) or "none"
            raise DbtRuntimeError(f"{name} is no incremental_mv model; there are: {names}.")
    chosen = [
        n
        for n in _dependency_order(candidates, by_id)
        if not requested or any(r in (n["name"], n["unique_id"], n["alias"]) for r in requested)
    ]
    return [ModelNames(n["schema"], n["alias"]) for n in chosen]


def _is_model(node: Mapping[str, Any]) -> bool:
    """Return whether a manifest node is a model of this materialization."""
    config = node.get("config") or {}
    return node.get("resource_type") == "model" and config.get("materialized") == MATERIALIZATION


def _dependency_order(
    candidates: Mapping[str, Mapping[str, Any]], by_id: Mapping[str, Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the candidates, each after the nodes that it depends on."""
    seen: set[str] = set()

    def visit(unique_id: str) -> Iterator[Mapping[str, Any]]:
        """Yield the candidates that this node depends on, then the node if it is one."""
        if unique_id in seen or unique_id not in by_id:
            return
        seen.add(unique_id)
        for below in (by_id[unique_id].get("depends_on") or {}).get("nodes", []):
            yield from visit(below)
        if unique_id in candidates:
            yield candidates[unique_id]

    for unique_id in sorted(candidates):
        yield from visit(unique_id)


def run(
    operation: str, warehouse: Warehouse, models: Sequence[ModelNames], options: Mapping[str, Any]
) -> list[str]:
    """Run an operation on the models; return its lines, or one line if there are no models.

    `operation` is a key of `_OPERATIONS`."""
    lines: list[str] = []
    for names in models:
        lines += _OPERATIONS[operation](warehouse, names, options)
    return lines or ["There are no incremental_mv models."]


def _status(warehouse: Warehouse, names: ModelNames, options: Mapping[str, Any]) -> list[str]:
    """Return the line of a model's health, or that it is not built."""
    health = warehouse.health(names)
    if health is None:
        return [f"{names}: not built; dbt run --select {names.model}"]
    reason = f" ({health.reason})" if health.reason else ""
    mend = f"; mend: {health.mend}" if health.mend else ""
    return [
        f"{names}: {health.verdict}{reason}; gap {health.gap_rows} rows, bypass "
        f"{health.bypass_rows} rows, stale slices {health.stale_slices}{mend}"
    ]


def _backfill(warehouse: Warehouse, names: ModelNames, options: Mapping[str, Any]) -> list[str]:
    """Publish the gap of a model, chunk by chunk; return one line of what was done.

    Returns the status if the view does not exist."""
    if warehouse.view(names) is None:
        return _status(warehouse, names, options)
    chunks, rows = backfill(warehouse, names, str(options["engine"]), title=str(names))
    return [f"{names}: {chunks} chunks published, {rows} rows" if chunks else f"{names}: no gap"]


def _reconcile(warehouse: Warehouse, names: ModelNames, options: Mapping[str, Any]) -> list[str]:
    """Return one line for each partition that differs, or that the model is equal."""
    lines = [f.line() for f in findings(warehouse, names, engine=str(options["engine"]))]
    return lines or [f"{names}: equal to its source"]


def _repair(warehouse: Warehouse, names: ModelNames, options: Mapping[str, Any]) -> list[str]:
    """Replay stale and differing slices and backfill gaps; return lines of what was done.

    Slices with rows that were written into the target directly are only replayed with
    `discard_bypass`."""
    if warehouse.view(names) is None:
        return _status(warehouse, names, options)
    engine, discard = str(options["engine"]), bool(options.get("discard_bypass"))
    lines: list[str] = []
    health = warehouse.health(names)
    if health is not None and health.stale_slices:
        rest = "STALE DISCARD BYPASS" if discard else "STALE"
        lines += _replay_lines(names, warehouse.run_system("REPLAY", names, rest, engine=engine))
    if health is not None and health.gap_parts:
        lines += _backfill(warehouse, names, options)
    for row in warehouse.run_system("RECONCILE", names, engine=engine):
        if is_drift(row):
            lines += _repair_slice(warehouse, names, row, engine=engine, discard=discard)
    return lines or [f"{names}: nothing to repair"]


def _repair_slice(
    warehouse: Warehouse, names: ModelNames, row: Mapping[str, Any], *, engine: str, discard: bool
) -> list[str]:
    """Replay one differing slice; return a line of the result.

    It stays if it has bypass rows and `discard` is false, or if it cannot be verified."""
    partition, bypass = str(row["partition"]), int(row["bypass_rows"])
    if bypass and not discard:
        return [
            f"{names}, partition {partition}: {bypass} rows were written into the target directly "
            "and are left; discard_bypass: true removes them."
        ]
    if row["verdict"] == "unverifiable":
        return [f"{names}, partition {partition}: cannot be verified, and is left."]
    rest = f"PARTITION ID {string_literal(partition)}"
    if bypass:
        rest += " DISCARD BYPASS"
    return _replay_lines(names, warehouse.run_system("REPLAY", names, rest, engine=engine))


def _replay_lines(names: ModelNames, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line for each partition of the replay's report."""
    return [
        f"{names}, partition {r['partition']}: {r['status']}, {r['source_rows']} source rows, "
        f"{r['rows_before']} -> {r['rows_after']} rows"
        + (f", {r['bypass_rows']} bypass rows" if r["bypass_rows"] else "")
        for r in rows
    ]


_OPERATIONS: Mapping[str, Callable[[Warehouse, ModelNames, Mapping[str, Any]], list[str]]] = {
    "status": _status,
    "backfill": _backfill,
    "reconcile": _reconcile,
    "repair": _repair,
}


# --- tests


def untested(nodes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the `incremental_mv` models that no test reconciles."""
    listed = list(nodes)
    tests = [n for n in listed if n.get("resource_type") == "test"]
    tested = {model for test in tests for model in _reconciled_models(test)}
    models = [n for n in listed if _is_model(n)]
    return [n for n in models if n["unique_id"] not in tested]


def _reconciled_models(test: Mapping[str, Any]) -> list[str]:
    """Return the unique ids of the models that a dbt test reconciles."""
    metadata = test.get("test_metadata") or {}
    by_macro = TEST_MACRO in str(test.get("raw_code", ""))
    if metadata.get("name") != TEST_NAME and not by_macro:
        return []
    return list((test.get("depends_on") or {}).get("nodes", []))


def write_tests(nodes: Iterable[Mapping[str, Any]], root: str, folder: str) -> list[str]:
    """Write a singular test for each untested model; return the paths, relative to `root`."""
    written: list[str] = []
    for node in untested(nodes):
        path = Path(root) / folder / f"reconciled_{node['name']}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{{{{ {TEST_MACRO}(ref('{node['name']}')) }}}}\n", encoding="utf-8")
        written.append(str(path.relative_to(root)))
    return written
