"""A view to rebuild, its new definition, and assertions that say which version is in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from olapdb.runtime.failpoints import watching
from tests.unit.views.warehouse import add, make, rows

NEW = """
    SELECT day, kind, count() AS events, sum(2 * amount) AS total, max(amount) AS top
    FROM events GROUP BY day, kind
"""
REBUILD = f"SYSTEM REBUILD VIEW daily_mv AS {NEW}"
TOTALS = "SELECT day, kind, sum(events), sum(total) FROM {} GROUP BY day, kind ORDER BY day, kind"
TRUTH = """
    SELECT day, kind, count(), sum({} * amount) FROM events GROUP BY day, kind ORDER BY day, kind
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(str(tmp_path)) as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened)
        add(opened, ("2024-01-01", "a", 1, 5), ("2024-02-01", "b", 2, 6))
        yield opened
        services = opened.database.services
        assert check_database(services.catalog, services.store) == []


def tables(connection: Connection) -> list[str]:
    return [name for (name,) in rows(connection, "SHOW TABLES")]


def old_is_there(connection: Connection) -> None:
    assert rows(connection, TOTALS.format("daily")) == rows(connection, TRUTH.format(1))


def new_is_there(connection: Connection) -> None:
    assert rows(connection, TOTALS.format("daily")) == rows(connection, TRUTH.format(2))


@contextmanager
def at(stage: str, run: Callable[[], None]) -> Iterator[None]:
    """Call `run` once, when the failpoint `stage` is first reached."""
    waiting = [run]

    def told(reached: str) -> None:
        if reached == stage and waiting:
            waiting.pop()()

    with watching(told):
        yield
