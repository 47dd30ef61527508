"""SIGKILL of dbt at any statement or commit, while another process inserts: the next run completes it.

Nothing is lost, doubled or left behind, whatever the run was: the first one, a rerun that replays,
a full refresh, a changed definition, a changed seed, a snapshot.

    OLAPDB_KILL_STRIDE=7 pytest tests/faults/test_kill_dbt.py -m soak      every 7th point only
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

import olapdb
from tests.faults import dbt_shop
from tests.faults.kill_dbt import STATEMENT, run_dbt, writing

pytestmark = pytest.mark.feature("crashes", "dbt")
pytest.importorskip("dbt.cli.main")

COMMITS = ("catalog.before_commit", "catalog.committed")
NEVER = 10**9
STRIDE = int(os.environ.get("OLAPDB_KILL_STRIDE", "1"))
QUICK = [
    ("first", COMMITS[1], 3),
    ("rerun", COMMITS[0], 1),
    ("refresh", STATEMENT, 60),
    ("change", COMMITS[1], 6),
    ("seed", STATEMENT, 8),
    ("snapshot", STATEMENT, 12),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder where every run of this module takes place.

    dbt keeps what it has parsed only as long as the warehouse has the same path, and parsing takes
    longer than a run."""
    return tmp_path_factory.mktemp("shop") / "project"


@pytest.fixture(scope="module")
def templates(project: Path) -> dict[bool, Path]:
    """Return a parsed project before its first run (False), and one after it (True)."""
    fresh, live = project.with_name("fresh"), project.with_name("live")
    project.mkdir()
    dbt_shop.write_project(project)
    for template, command in ((fresh, "parse"), (live, "build")):
        assert run_dbt(project, STATEMENT, NEVER, [command]) == 0, printed(project)
        shutil.copytree(project, template)
    return {False: fresh, True: live}


def printed(project: Path) -> str:
    """Return the end of what the last run printed."""
    return (project / "printed").read_text()[-3_000:]


def killed_and_completed(template: Path, project: Path, work: str, stage: str, count: int) -> bool:
    """Kill a run in a copy of the template, let the next one complete it, and check all; return
    whether it was killed."""
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(template, project)
    dbt_shop.prepare(project, work)
    with olapdb.connect(str(project / "db")) as connection:
        (before,) = connection.execute("SELECT count() FROM raw.orders").fetchall()
    with writing(project):
        died = run_dbt(project, stage, count, dbt_shop.ARGUMENTS[work])
        assert died in (0, -signal.SIGKILL), printed(project)
        assert run_dbt(project, STATEMENT, NEVER, ["build"]) == 0, printed(project)
    acknowledged = (project / "acknowledged").read_text().splitlines()
    with olapdb.connect(str(project / "db")) as connection:
        (after,) = connection.execute("SELECT count() FROM raw.orders").fetchall()
        assert after[0] == before[0] + len(acknowledged)
        dbt_shop.check(connection, work)
    return died != 0


@pytest.mark.parametrize(("work", "stage", "count"), QUICK)
def test_the_next_run_completes_a_killed_one(
    templates: dict[bool, Path], project: Path, work: str, stage: str, count: int
) -> None:
    assert killed_and_completed(templates[work != "first"], project, work, stage, count)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("stage", [STATEMENT, *COMMITS])
@pytest.mark.parametrize("work", dbt_shop.ARGUMENTS)
def test_killed_at_every_point(
    templates: dict[bool, Path], project: Path, work: str, stage: str
) -> None:
    count = 1  # the project stays as it is where an assertion fails
    while killed_and_completed(templates[work != "first"], project, work, stage, count):
        count += STRIDE
    assert count > 1  # a seed and a snapshot are one commit each
