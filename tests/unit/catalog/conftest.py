"""Fixtures that run each test on a catalog in memory and on one in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from olapdb.catalog.sqlite.catalog import SqliteCatalog


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "file"])
def catalog(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> Iterator[SqliteCatalog]:
    path = ":memory:" if request.param == "memory" else tmp_path / "catalog.sqlite"
    opened = SqliteCatalog(path, clock_ms=clock)
    yield opened
    opened.close()


@pytest.fixture
def lease(catalog: SqliteCatalog) -> str:
    return catalog.open_lease("test")
