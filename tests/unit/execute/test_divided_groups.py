"""GROUP BY of many keys: rows are divided by their keys, and what memory does not take is grouped as others are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.native.library import library
from olapdb.observation import Counts, counting

pytestmark = pytest.mark.feature("aggregates", "settings")

ROWS = 400_000
FAR = "intHash64(number)"
QUERIES = {
    "numbers": "SELECT far, small, count(), sum(n), avg(small), max(n) FROM t GROUP BY far, small",
    "texts": "SELECT text, far, any(n), uniqExact(small), min(text) FROM t GROUP BY text, far",
    "NULL": "SELECT maybe, far, count(maybe), sum(maybe) FROM t GROUP BY maybe, far",
    "repeats": "SELECT intHash64(n % 60000) AS k, small, groupArray(n), count() FROM t GROUP BY k, small",
    "totals": "SELECT far, count() FROM t GROUP BY far WITH TOTALS",
    "sets": "SELECT far, small, count() FROM t GROUP BY GROUPING SETS ((far), (small), ())",
}
CHECK = "SELECT count(), sum(cityHash64(*)) FROM ({query})"


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t ENGINE = MergeTree ORDER BY n AS SELECT number AS n, intHash64(number) AS far,"
            " number % 7 AS small, toString(number % 150000) AS text, if(n % 3 = 0, NULL, n) AS maybe"
            f" FROM numbers({ROWS})"
        )
        yield connection


def answer(connection: Connection, query: str, settings: str = "") -> list[tuple[object, ...]]:
    return connection.execute(f"{CHECK.format(query=query)} {settings}").fetchall()


@pytest.mark.parametrize("name", QUERIES)
def test_memory_does_not_change_answers(name: str, connection: Connection) -> None:
    query = QUERIES[name]
    expected = answer(connection, query)
    for memory_bytes in (60_000_000, 50_000_000, 30_000_000, 14_000_000):
        few = f"SETTINGS max_memory_usage = {memory_bytes}, max_threads = 2"
        assert answer(connection, query, few) == expected


@pytest.mark.skipif(library() is None, reason="Kernels are counted.")
def test_rows_are_numbered_once(connection: Connection) -> None:
    """Rows with keys of their own are numbered once, in a few ranges of divisions, and no partials are merged."""
    counts = Counts()
    query = (
        "SELECT far, small, count() AS c FROM t GROUP BY far, small ORDER BY c DESC, far LIMIT 3"
    )
    with counting(counts):
        connection.execute(f"{query} SETTINGS max_threads = 1").fetchall()
    assert 1 <= counts.kernels["number_divided"] <= 4
    assert counts.kernels["join_divisions"] == 2 * counts.kernels["number_divided"]
