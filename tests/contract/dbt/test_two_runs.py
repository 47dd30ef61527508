"""Two runs of one target: the second waits for the first, or is refused with who holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.olapdb.run_lock import RunLock
from dbt_common.exceptions import DbtRuntimeError

pytestmark = pytest.mark.feature("dbt", "concurrency")

TIMEOUT_SECONDS = 120
BLOCKING = """
import sys, time
from pathlib import Path
from dbt.cli.main import dbtRunner

folder, *arguments = sys.argv[1:]
started = Path(folder, "started")

def block(event):
    if event.info.name == "LogStartLine" and not started.exists():
        started.touch()
        while True:
            time.sleep(1)

sys.exit(0 if dbtRunner(callbacks=[block]).invoke(arguments).success else 1)
"""
"""A run of dbt that stops at the first node that it starts, until it is killed."""


class Runs:
    """Runs of one project in processes of their own."""

    def __init__(self, project: Path, folder: Path) -> None:
        self._project, self._folder = project, folder
        self._number = 0
        self.first: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        """Start a run, and return it when it has begun with its first model."""
        command = [sys.executable, "-c", BLOCKING, str(self._folder), *self._arguments("run")]
        self.first = subprocess.Popen(command, cwd=self._folder, env=self._environment())
        self.wait_for(lambda: (self._folder / "started").exists())
        return self.first

    def second(self, *command: str, wait: int = 0) -> subprocess.Popen[str]:
        """Start another run, whose profile waits so many seconds."""
        arguments = [sys.executable, "-m", "dbt.cli.main", *self._arguments(*command, wait=wait)]
        return subprocess.Popen(
            arguments,
            cwd=self._folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @staticmethod
    def wait_for(condition: Any) -> None:
        """Wait until the condition holds; fail after TIMEOUT_SECONDS."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _arguments(self, *command: str, wait: int = 0) -> list[str]:
        """Return the arguments of a dbt command, with folders for its logs and profile."""
        self._number += 1
        folder = self._folder / f"run{self._number}"
        folder.mkdir()
        target = {
            "type": "olapdb",
            "path": str(self._folder / "warehouse"),
            "schema": "shop",
            "threads": 2,
            "wait_for_run": wait,
        }
        profile = {"shop": {"target": "dev", "outputs": {"dev": target}}}
        (folder / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        folders = ["--project-dir", str(self._project), "--profiles-dir", str(folder)]
        paths = ["--log-path", str(folder), "--target-path", str(folder / "target")]
        return [*command, *folders, *paths]

    @staticmethod
    def _environment() -> dict[str, str]:
        return {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "0"}


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    """Write a project of two tables and a test, and its runs."""
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    config = {"name": "shop", "profile": "shop", "models": {"shop": {"+materialized": "table"}}}
    (project / "dbt_project.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    for name in ("a", "b"):
        (project / "models" / f"{name}.sql").write_text("select 1 as x", encoding="utf-8")
    runs = Runs(project, tmp_path)
    yield runs
    if runs.first is not None:
        runs.first.kill()
        runs.first.wait()


def test_a_second_run_is_refused_or_waits_and_a_killed_run_holds_nothing(runs: Runs) -> None:
    first = runs.start()
    refused, waiting = runs.second("run"), runs.second("build", wait=TIMEOUT_SECONDS)
    repair, status = (runs.second("run-operation", name) for name in ("repair", "status"))
    shown = runs.second("show", "--inline", "select 41 + 1 as answer")
    output = refused.communicate(timeout=TIMEOUT_SECONDS)[0]
    assert refused.returncode != 0
    assert "Another dbt run works on the schema shop" in output
    assert f"`dbt run`, process {first.pid} on " in output
    output = shown.communicate(timeout=TIMEOUT_SECONDS)[0]
    assert shown.returncode == 0, output
    assert "42" in output
    assert (
        "Another dbt run works on the schema shop" in repair.communicate(timeout=TIMEOUT_SECONDS)[0]
    )
    assert repair.returncode != 0
    output = status.communicate(timeout=TIMEOUT_SECONDS)[0]
    assert status.returncode == 0, output
    assert waiting.stdout is not None
    seen = ""
    while "Waiting for another run of shop: `dbt run`" not in seen:
        line = waiting.stdout.readline()
        assert line, seen
        seen += line
    assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    output = waiting.communicate(timeout=TIMEOUT_SECONDS)[0]
    assert waiting.returncode == 0, output


def test_targets_are_locked_apart(tmp_path: Path) -> None:
    locks = [RunLock(str(tmp_path), schema) for schema in ("dev", "prod", "a/b", "dev")]
    for lock in locks[:3]:
        lock.acquire("dbt run", 0)
        lock.acquire("dbt run", 0)  # the same run
    with pytest.raises(DbtRuntimeError, match="`dbt run`, process"):
        locks[3].acquire("dbt build", 0)
    locks[0].release()
    locks[3].acquire("dbt build", 0)
    for lock in locks:
        lock.release()
