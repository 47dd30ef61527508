"""dbt's own tests. They need its fixtures and a process of their own:

    pytest tests/contract/dbt -p dbt.tests.fixtures.project -p no:warnings

In any other run this folder is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "0")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.suffix != ".py":
        return None
    return True if not config.pluginmanager.hasplugin("dbt.tests.fixtures.project") else None


@pytest.fixture(scope="class")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """A warehouse in a new folder for each class."""
    folder = tmp_path_factory.mktemp("warehouse") / "db"
    return {"type": "olapdb", "path": str(folder), "threads": 2}


@pytest.fixture(scope="class")
def profile_user() -> None:
    """There are no users."""


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Not in the folder of whoever runs the tests."""
    folder = str(tmp_path_factory.mktemp("logs"))
    os.environ["DBT_LOG_PATH"] = folder
    yield folder
    del os.environ["DBT_LOG_PATH"]
