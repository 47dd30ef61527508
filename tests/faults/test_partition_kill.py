"""SIGKILL at every stage of partition commands: the command happened as a whole, or not at all.

After each kill the warehouse is sound. Vacuum deletes every unneeded file and none that a table
shares with another. The statements that system.views suggests repair the views.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.faults.partition_child import STATEMENTS, prepare
from tests.harness.child import run_module
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("crashes", "changes")

BEFORE = {"s": 6 + 3, "o": 1000, "wide": 10_000, "detached": 1, "k": None, "t": 100 + 6 + 3}
AFTER = {
    "drop": {"s": 3},
    "retain": {"s": 3},
    "detach": {"s": 3, "detached": 4},
    "attach": {"s": 6 + 3 + 50, "detached": 0},
    "attach from": {"s": 6 + 3 + 10_000},
    "replace": {"s": 1000 + 3},
    "insert replace": {"s": 1000 + 3, "t": 100 + 6 + 3 + 1000},
    "create or replace": {"s": 1000, "t": 100 + 6 + 3 + 1000, "detached": 0},
    "move": {"s": 3, "o": 1000 + 6},
    "clone": {"k": 6 + 3},
    "drop of a target": {"t": 100 + 3},
    "ttl": {"s": 1 + 3 + 3},
    "replay beside retained rows": {},
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partitions") / "warehouse"
    prepare(str(folder))
    return folder


AROUND_THE_COMMIT = frozenset(
    (
        "store.renamed",
        "insert.staged",
        "attach.part_staged",
        "move.rows_asked",
        "delete.before_commit",
        "replay.before_commit",
        "catalog.before_commit",
        "catalog.committed",
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("operation", sorted(STATEMENTS))
def test_killed_around_the_commit(template: Path, tmp_path: Path, operation: str) -> None:
    kill(template, tmp_path, operation, AROUND_THE_COMMIT)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("operation", sorted(STATEMENTS))
def test_killed_at_every_stage(template: Path, tmp_path: Path, operation: str) -> None:
    kill(template, tmp_path, operation, None)


def kill(template: Path, tmp_path: Path, operation: str, chosen: frozenset[str] | None) -> None:
    """Kill the operation at the last time that it reaches each chosen stage (None: each stage)."""
    reached = Counter(run(copied(template, tmp_path / "dry"), operation).stdout.split())
    happened = Counter[bool]()
    for stage, count in reached.items():
        if chosen is not None and stage not in chosen:
            continue
        folder = copied(template, tmp_path / stage)
        child = run(folder, operation, stage, count)
        assert child.returncode == -signal.SIGKILL, f"{stage}: {child.stderr[-2000:]}"
        happened[verify(folder, operation, "done" in child.stdout, stage)] += 1
        shutil.rmtree(folder)
    if AFTER[operation]:
        assert set(happened) == {True, False}, "kills fell on both sides of the commit"


def verify(folder: Path, operation: str, acknowledged: bool, where: str) -> bool:
    """Open the warehouse after the kill, check and repair it; return whether the operation
    happened."""
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        services = connection.database.services
        for _ in range(2):
            vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == [], where
        found = state(connection)
        after = {**BEFORE, **AFTER[operation]}
        assert found in (BEFORE, after), where
        happened = found == after
        assert happened or not acknowledged, where
        repair(connection, where)
        vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == [], where
        return happened


def state(connection: Connection) -> dict[str, object]:
    """Return the sum of n in each table, and the number of detached rows."""
    tables = {name for (name,) in rows(connection, "SELECT name FROM system.tables")}
    found: dict[str, object] = {
        name: rows(connection, f"SELECT sum(n) FROM {name}")[0][0] if name in tables else None
        for name in ("s", "o", "wide", "k", "t")
    }
    found["detached"] = rows(connection, "SELECT sum(rows) FROM system.detached_parts")[0][0]
    return found


def repair(connection: Connection, where: str) -> None:
    """Mend both views, and require the output for live rows and the retained rows in their
    targets."""
    for view in ("v", "w", "w"):
        for _ in range(2):
            (status,) = dicts(connection, f"SELECT * FROM system.views WHERE name = '{view}'")
            if status["verdict"] in ("stale", "partial"):
                connection.execute(str(status["mend"]))
    retained = rows(
        connection, "SELECT sum(rows) FROM system.view_retained WHERE partition_id = '202401'"
    )[0][0]
    left = {None: 0, 0: 0, 3: 6, 1: 2}[retained]
    live = rows(connection, "SELECT sum(n) FROM s")[0][0]
    for table in ("t", "u"):
        assert rows(connection, f"SELECT sum(n) FROM {table}") == [(live + left + 100,)], where
    for view in ("v", "w"):
        made = dicts(connection, f"SYSTEM RECONCILE VIEW {view}")
        assert {r["verdict"] for r in made} <= {"equal", "retained"}, where


def run(
    folder: Path, operation: str, stage: str = "-", count: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run the operation in a process that dies at the stage."""
    return run_module("tests.faults.partition_child", folder, operation, stage, count)


def copied(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder)
    return folder
