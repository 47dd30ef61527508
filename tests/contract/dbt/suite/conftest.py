"""The suite of dbt-tests-adapter: expected failures, translation of set-up, the table of results."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dbt.tests.adapter.hooks
import dbt.tests.adapter.simple_seed
import pandas  # noqa: F401 - pyarrow imports it at the first timestamp, which ends the process if time is frozen
import pytest

from tests.contract.dbt.suite import translation
from tests.contract.dbt.suite.results import note_base_class


@pytest.fixture(scope="class", autouse=True)
def translated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Translate the set-up of a class that has `rules`."""
    rules = getattr(request.cls, "rules", ())
    with pytest.MonkeyPatch.context() as monkeypatch:
        if rules:
            translation.patch(monkeypatch, request.cls, rules)
        yield


@pytest.fixture(scope="class")
def test_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the data files of dbt-tests-adapter, which some classes delete."""
    folder = tmp_path_factory.mktemp("data")
    for package, pattern in (
        (dbt.tests.adapter.hooks, "data/*.sql"),
        (dbt.tests.adapter.simple_seed, "*.csv"),
    ):
        for file in Path(package.__path__[0]).glob(pattern):
            shutil.copy(file, folder)
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that fail still, so that one that passes turns the run red."""
    for item in items:
        base = note_base_class(item)
        if base is not None:
            reason = base.failure_of(item.name)
            if reason:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
