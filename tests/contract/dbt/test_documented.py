"""The first model of docs/dbt.md works as it is written there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

pytestmark = pytest.mark.feature("dbt")

PAGE = (Path(__file__).parents[3] / "docs/dbt.md").read_text()


def block(language: str, start: str) -> str:
    """Return the page's first block of a language that contains `start`."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    return next(text for text in blocks if start in text)


class TestTheFirstModel:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
        """Return the page's profile, with a folder of the test."""
        target = yaml.safe_load(block("yaml", "profiles.yml"))["shop"]["outputs"]["dev"]
        return {**target, "path": str(tmp_path_factory.mktemp("first") / target["path"])}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "daily_delay.sql": block("sql", "models/daily_delay.sql"),
            "models.yml": block("yaml", "models/models.yml"),
        }

    def test_it_is_made_and_proven(self, project: Any, dbt_profile_target: Any) -> None:
        folder = Path(dbt_profile_target["path"]).parent
        loads = block("python", "CREATE DATABASE raw")
        subprocess.run([sys.executable, "-c", loads], cwd=folder, check=True, env=os.environ)
        results, log = run_dbt_and_capture(["build"])
        assert [str(r.status) for r in results] == ["success", "pass"]
        assert "CREATE 1 chunks, 1 rows" in log
        more = "connection.execute(\"INSERT INTO raw.flights VALUES ('BB', '2024-02-01', 1)\")"
        opened = "import olapdb\nconnection = olapdb.connect('warehouse')\n"
        subprocess.run([sys.executable, "-c", opened + more], cwd=folder, check=True)
        _, log = run_dbt_and_capture(["build"])
        assert "NO CHANGE" in log
        command = re.search(r'`dbt show --inline "([^"]*)"`', PAGE)
        assert command is not None
        _, log = run_dbt_and_capture(["show", "--inline", command[1]])
        assert "| AA" in log
        assert "| BB" in log
        _, log = run_dbt_and_capture(["run-operation", "status"])
        assert "proven" in log

    def test_the_macro_of_docs_runs(self, project: Any) -> None:
        write_file("select 1 as n", project.project_root, "models", "other.sql")
        run_dbt(["run-operation", "plan"])
