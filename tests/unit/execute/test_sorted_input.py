"""Operators that read sorted rows from disk: merging the runs leaves memory to them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("settings")

NUMBERS = "(SELECT number, intHash64(number) AS h, number AS t FROM numbers(320000))"
SORTED = f"(SELECT number, h FROM {NUMBERS} ORDER BY h LIMIT 310000)"
LIMIT_BYTES = 6_000_000


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        yield opened


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT number, sum(number) OVER (ORDER BY toDateTime(t) RANGE BETWEEN 3600 PRECEDING AND CURRENT ROW) AS s"
        f" FROM {NUMBERS}",
        f"SELECT number, sum(number) OVER (ORDER BY t % 10, t % 7, h, t % 3, t) AS s FROM {NUMBERS}",
        f"SELECT h % 100003 AS g, count() AS c, sum(number) AS s FROM {SORTED} GROUP BY g",
        f"SELECT DISTINCT h % 200003 AS g FROM {SORTED}",
        f"SELECT number, h FROM {SORTED} ORDER BY number % 1001, h",
        f"SELECT l.number, r.h FROM {SORTED} AS l JOIN {SORTED} AS r ON l.number = r.number",
    ],
)
def test_merged_runs_leave_memory(connection: Connection, sql: str) -> None:
    query = f"SELECT sum(cityHash64(*)), count() FROM ({sql})"
    expected = connection.execute(query).fetchall()
    with connection.cursor() as cursor:
        cursor.execute(f"{query} SETTINGS max_memory_usage = {LIMIT_BYTES}, max_threads = 2")
        assert cursor.fetchall() == expected
        assert cursor.statistics.memory_peak_bytes <= LIMIT_BYTES
        assert cursor.statistics.spilled_bytes > 0
