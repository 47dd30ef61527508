"""The contract tests of dbt-tests-adapter. They need dbt's fixtures and a process of their own:

    python -m pytest tests/contract/dbt -p dbt.tests.fixtures.project -p no:warnings

Any other run ignores this folder. `-p tests.harness.wheel` before the other plugins tests the built
wheel, as `make test` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.dbt.suite.results import Results

os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "0")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-dbt-table",
        action="store_true",
        help="write docs/dbt-tests.md from what a run of all of tests/contract/dbt/suite found",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the results of the run, where the reports of all of its processes arrive."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(config), "results-of-dbt-tests")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.suffix != ".py":
        return None
    return True if not config.pluginmanager.hasplugin("dbt.tests.fixtures.project") else None


READ_ARTIFACTS = {
    "TestBaseClonePossible",
    "TestBaseCloneSameTargetAndState",
    "TestBaseEmpty",
    "TestCloneOfModel",
    "TestCloneOverALiveChain",
    "TestDocsGenReferences",
    "TestDocsGenerate",
    "TestOperations",
    "TestSameSourceAndTarget",
}
"""The classes of tests that read manifest.json, run_results.json or catalog.json."""


@pytest.fixture(scope="class", autouse=True)
def artifacts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Write artifacts for the classes that read them: it takes a third of the time of a run."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        if request.cls is not None and request.cls.__name__ not in READ_ARTIFACTS:
            monkeypatch.setenv("DBT_WRITE_JSON", "0")
        yield


@pytest.fixture(scope="class")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return the profile: a warehouse in a new folder for each test class."""
    folder = tmp_path_factory.mktemp("warehouse") / "db"
    return {"type": "olapdb", "path": str(folder), "threads": 2}


@pytest.fixture(scope="class")
def profile_user() -> None:
    """Override dbt's fixture: the warehouse has no users."""


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Put dbt's logs into a temporary folder, not into the current one."""
    folder = str(tmp_path_factory.mktemp("logs"))
    os.environ["DBT_LOG_PATH"] = folder
    yield folder
    del os.environ["DBT_LOG_PATH"]
