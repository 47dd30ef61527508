"""SIGKILL of dbt at any commit of a run, while another process inserts: the next run completes it.

Nothing is lost, doubled or left behind, whatever the run was: the first one, a rerun that replays,
a full refresh, a changed definition."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database

pytestmark = pytest.mark.feature("crashes", "dbt")
pytest.importorskip("dbt.cli.main")

ROOT = Path(__file__).parents[2]
HOURLY = """
{{ config(on_definition_change='rebuild') }}
select shop, toStartOfHour(at) as hour, count() as sold, sum(amount) as amount
from {{ source('raw', 'orders') }} group by shop, hour
"""
DAILY = """
select shop, toDate(hour) as day, sum(sold) as sold, sum(amount) as amount
from {{ ref('hourly') }} group by shop, day
"""
FILES = {
    "dbt_project.yml": "name: shop\nversion: 1.0.0\nprofile: shop\n"
    "models: {shop: {+materialized: incremental_mv}}\n"
    "flags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: olapdb, schema: dev, threads: 1,"
    " path: \"{{ env_var('SHOP_WAREHOUSE') }}\"}}}\n",
    "models/hourly.sql": HOURLY,
    "models/daily.sql": DAILY,
    "models/sources.yml": "sources: [{name: raw, schema: raw, tables: [{name: orders}]}]\n",
}
PARTS = {f"{model}{part}" for model in ("hourly", "daily") for part in ("", "__mv", "__target")}
ARGUMENTS = {
    "first": ["run"],
    "rerun": ["run"],
    "refresh": ["run", "--full-refresh"],
    "change": ["run"],
}
STAGES = ("catalog.before_commit", "catalog.committed")
QUICK = [("first", STAGES[1], 3), ("rerun", STAGES[0], 1), ("refresh", STAGES[1], 5)]
QUICK += [("change", STAGES[1], 6)]


def environment(project: Path) -> dict[str, str]:
    """Return the environment of a process that works on the project's warehouse."""
    folders = {"SHOP_WAREHOUSE": str(project / "db"), "DBT_LOG_PATH": str(project / "logs")}
    return {**os.environ, **folders, "DBT_TARGET_PATH": str(project / "target")}


def run(
    project: Path, stage: str, count: int, arguments: list[str]
) -> subprocess.CompletedProcess[str]:
    """Run dbt; it dies at the `count`-th time at the stage."""
    command = [sys.executable, "-m", "tests.faults.kill_dbt", str(project), stage, str(count)]
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
        env=environment(project),
    )


@contextmanager
def writing(project: Path) -> Iterator[list[str]]:
    """Run the writer; the list has its acknowledged INSERTs when the context ends."""
    acknowledged: list[str] = []
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.kill_dbt", str(project), "writer"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(project),
    )
    try:
        assert writer.stdout is not None
        acknowledged.append(writer.stdout.readline())
        yield acknowledged
    finally:
        (project / "stop").touch()
        output, errors = writer.communicate(timeout=120)
        acknowledged += output.splitlines()
        assert writer.returncode == 0, errors[-3000:]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Return a project before its first run (False), and one after it (True)."""
    fresh = tmp_path_factory.mktemp("fresh")
    for name, text in FILES.items():
        (fresh / name).parent.mkdir(exist_ok=True)
        (fresh / name).write_text(text)
    with olapdb.connect(str(fresh / "db")) as connection:
        connection.execute("CREATE DATABASE raw")
        connection.execute(
            "CREATE TABLE raw.orders (at DateTime, shop String, amount Int64) ENGINE = MergeTree"
            " PARTITION BY toYYYYMM(at) ORDER BY at"
        )
        for month in (1, 2, 3):
            connection.execute(
                f"INSERT INTO raw.orders SELECT toDateTime('2024-0{month}-01 00:00:00')"
                " + number * 5000, concat('s', toString(number % 3)), number FROM numbers(40)"
            )
    live = tmp_path_factory.mktemp("live")
    shutil.copytree(fresh, live, dirs_exist_ok=True)
    done = run(live, "catalog.before_commit", 10**9, ["run"])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return {False: fresh, True: live}


def prepare(project: Path, work: str) -> int:
    """Make the situation in which dbt runs; return the factor of the amounts afterwards."""
    if work == "rerun":
        with olapdb.connect(str(project / "db")) as connection:
            connection.execute("DELETE FROM raw.orders WHERE at < '2024-01-01 10:00:00'")
    if work != "change":
        return 1
    changed = HOURLY.replace("sum(amount)", "sum(2 * amount)")
    (project / "models" / "hourly.sql").write_text(changed)
    return 2


def killed_and_completed(project: Path, work: str, stage: str, count: int) -> bool:
    """Kill a run, let the next one complete it, and check all; return whether it was killed."""
    factor = prepare(project, work)
    with olapdb.connect(str(project / "db")) as connection:
        (before,) = connection.execute("SELECT count() FROM raw.orders").fetchall()
    with writing(project) as acknowledged:
        died = run(project, stage, count, ARGUMENTS[work])
        completed = run(project, stage, 10**9, ["run"])
    assert died.returncode in (0, -signal.SIGKILL), died.stdout[-3000:]
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]
    with olapdb.connect(str(project / "db")) as connection:
        (after,) = connection.execute("SELECT count() FROM raw.orders").fetchall()
        assert after[0] == before[0] + len(acknowledged)
        check(connection, factor)
    return died.returncode != 0


def check(connection: Connection, factor: int) -> None:
    """Assert that both models equal their source, are trusted, and that nothing is left behind."""
    for model, key in (("hourly", "toStartOfHour(at)"), ("daily", "toDate(at)")):
        live = connection.execute(f"SELECT * FROM dev.{model} ORDER BY 1, 2").fetchall()
        truth = f"SELECT shop, {key}, count(), sum({factor} * amount) FROM raw.orders"
        assert live == connection.execute(f"{truth} GROUP BY 1, 2 ORDER BY 1, 2").fetchall(), model
        compared = connection.execute(f"SYSTEM RECONCILE VIEW dev.{model}__mv").fetch_arrow_table()
        assert set(compared["verdict"].to_pylist()) == {"equal"}
    names = connection.execute("SELECT name FROM system.tables WHERE database = 'dev'").fetchall()
    kept = {name for (name,) in names} - PARTS
    assert len(names) == len(kept) + len(PARTS)
    standing = "SELECT name, target_table FROM system.views WHERE standing = 'previous'"
    previous = {name for row in connection.execute(standing).fetchall() for name in row}
    assert kept == previous
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


@pytest.mark.parametrize(("work", "stage", "count"), QUICK)
def test_the_next_run_completes_a_killed_one(
    templates: dict[bool, Path], tmp_path: Path, work: str, stage: str, count: int
) -> None:
    project = tmp_path / "project"
    shutil.copytree(templates[work != "first"], project)
    assert killed_and_completed(project, work, stage, count)


@pytest.mark.soak
@pytest.mark.parametrize("work", ARGUMENTS)
@pytest.mark.parametrize("stage", STAGES)
def test_killed_at_every_commit(
    templates: dict[bool, Path], tmp_path: Path, work: str, stage: str
) -> None:
    count = 0
    killed = True
    while killed:
        count += 1
        project = tmp_path / f"project_{count}"
        shutil.copytree(templates[work != "first"], project)
        killed = killed_and_completed(project, work, stage, count)
        shutil.rmtree(project)
    assert count > 3
