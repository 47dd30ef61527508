"""Under load, a second process sees no snapshot at which a view claims something false."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import olapdb
from olapdb.maintenance.check import check_database
from tests.load.busy import VIEWS, busy, prepare

pytestmark = pytest.mark.feature("concurrency")

ROOT = Path(__file__).parents[2]
CHECKS = 150
SOAK_CHECKS = 20_000


def watch(folder: str, checks: int, seed: int) -> None:
    prepare(folder)
    with busy(folder, seed) as seen:
        process = subprocess.run(
            [sys.executable, "-m", "tests.load.second", folder, str(checks)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    print(f"\n{process.stdout}{dict(seen.done)}\nrefused: {dict(seen.refused)}")
    assert process.returncode == 0, process.stdout + process.stderr[-3000:]
    assert not seen.broken, seen.broken[:3]
    assert seen.done["SYSTEM REPLAY"]
    assert seen.done["SYSTEM REBUILD"]
    assert seen.done["INSERT INTO"]
    with olapdb.connect(folder) as connection:
        unfinished = "SELECT name FROM system.views WHERE candidate != ''"
        for (view,) in connection.execute(unfinished).fetchall():
            connection.execute(f"SYSTEM CANCEL REBUILD VIEW {view}")
        for _ in range(3):
            for view in VIEWS:
                connection.execute(f"ATTACH VIEW {view}") if _is_detached(
                    connection, view
                ) else None
                connection.execute(f"SYSTEM BACKFILL VIEW {view}")
                connection.execute(f"SYSTEM REPLAY VIEW {view} STALE")
        for view in VIEWS:
            connection.execute(f"SYSTEM RECONCILE VIEW {view}")
        verdicts = connection.execute(
            "SELECT verdict FROM system.views WHERE standing != 'previous'"
        ).fetchall()
        assert {verdict for (verdict,) in verdicts} == {"proven"}
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []


def _is_detached(connection: olapdb.Connection, view: str) -> bool:
    found = connection.execute(
        f"SELECT attached FROM system.views WHERE name = '{view}'"
    ).fetchone()
    return found is not None and not found[0]


@pytest.mark.timeout(600)
def test_a_second_process_compares_at_one_snapshot(tmp_path: Path) -> None:
    watch(str(tmp_path / "warehouse"), CHECKS, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_a_second_process_compares_20_000_times(tmp_path: Path) -> None:
    checks = int(os.environ.get("OLAPDB_SOAK_CHECKS", str(SOAK_CHECKS)))
    watch(str(tmp_path / "warehouse"), checks, seed=2)
