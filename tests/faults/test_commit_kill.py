"""SIGKILL at every stage of an INSERT with views, a merge, a DELETE and a vacuum.

After each kill the warehouse opens and holds all of the operation or nothing of it (all, where it
was acknowledged). Its views equal their source, and a vacuum leaves no unneeded file.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import olapdb
from olapdb.database import Database
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.faults.commit_child import prepare
from tests.harness.child import run_module

pytestmark = pytest.mark.feature("crashes", "commits")


BEFORE = {"a": 10, "b": 4}
AFTER = {
    "insert": {"a": 10, "b": 4, "x": 100, "y": 200},
    "merge": BEFORE,
    "delete": {"a": 10},
    "vacuum": BEFORE,
}
SEEN_BY_VIEWS = {**AFTER, "delete": BEFORE}
"""The rows in the targets. A DELETE does not change them: it makes their slices stale."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kill") / "warehouse"
    prepare(str(folder))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("operation", sorted(AFTER))
def test_killed_at_every_stage(template: Path, tmp_path: Path, operation: str) -> None:
    stages = _run(_copy(template, tmp_path / "dry"), operation).stdout.split()
    assert stages[0] == "done" or "done" in stages
    reached = Counter(stage for stage in stages if stage != "done")
    assert reached, "the operation reaches stages"
    happened = Counter[bool]()
    for stage, count in reached.items():
        for occurrence in {1, count}:
            folder = _copy(template, tmp_path / f"{stage}-{occurrence}")
            child = _run(folder, operation, stage, occurrence)
            assert child.returncode == -signal.SIGKILL, f"{stage} #{occurrence}: {child.stderr}"
            acknowledged = "done" in child.stdout
            happened[_verify(folder, operation, acknowledged, f"{stage} #{occurrence}")] += 1
            shutil.rmtree(folder)
    if operation in ("insert", "delete"):
        assert set(happened) == {True, False}, "kills fell on both sides of the commit"


def _verify(folder: Path, operation: str, acknowledged: bool, where: str) -> bool:
    """Open and check the warehouse; return whether the operation happened, and fail where it did
    in part."""
    connection = olapdb.connect(str(folder))
    database = Database.open(str(folder))
    connection.cursor().execute("SYSTEM STOP MERGES")
    services = database.services
    try:
        vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == [], where
        source = _answer(connection, "SELECT k, sum(n) FROM s GROUP BY k")
        assert source in (BEFORE, AFTER[operation]), where
        happened = source == AFTER[operation]
        assert happened or not acknowledged, where
        seen = SEEN_BY_VIEWS[operation] if happened else BEFORE
        assert _answer(connection, "SELECT k, sum(n) FROM t GROUP BY k") == seen, where
        assert _answer(connection, "SELECT 1, sum(n) FROM u") == {1: sum(seen.values())}, where
        assert vacuum(services, lifetime_seconds=0).files == 0, "a second recovery changes nothing"
        connection.cursor().execute("INSERT INTO s VALUES ('2024-03-01', 'later', 1)")
        assert _answer(connection, "SELECT k, sum(n) FROM t WHERE k = 'later' GROUP BY k") == {
            "later": 1
        }
        return happened
    finally:
        database.release()
        connection.close()


def _answer(connection: object, text: str) -> dict[object, object]:
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute(text)
    return dict(cursor.fetchall())


def _copy(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder)
    return folder


def _run(
    folder: Path, operation: str, stage: str = "-", count: int = 1
) -> subprocess.CompletedProcess[str]:
    return run_module("tests.faults.commit_child", folder, operation, stage, count)
