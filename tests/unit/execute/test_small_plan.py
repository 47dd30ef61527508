"""Views over one small block: the functions over one batch give what the operators give."""

from __future__ import annotations

from unittest.mock import patch

import pytest

import olapdb
from olapdb.config import tuning
from olapdb.errors import MemoryLimitExceeded

pytestmark = pytest.mark.feature("views")

SOURCE = (
    "CREATE TABLE s (k Nullable(Int32), name LowCardinality(String), x Int64, f Float64,"
    " a Array(UInt8)) ENGINE = MergeTree ORDER BY x"
)
ROWS = (
    "INSERT INTO s VALUES (1, 'a', 10, 0.5, [1, 2]), (NULL, 'b', -3, 1.5, []),"
    " (1, 'a', 7, 2.5, [3]), (2, '', 0, 0, [4, 4, 4])",
    "INSERT INTO s VALUES (5, 'c', 100, 1, [9])",
)
QUERIES = (
    "SELECT k, x + 1 AS y FROM s",
    "SELECT 1 AS one FROM s",
    "SELECT name, x FROM s WHERE x > 0 AND k = 1",
    "SELECT x FROM s WHERE x > 1000",
    "SELECT count() AS n FROM s WHERE x > 1000",
    "SELECT count() AS n, sum(x) AS total, max(f) AS top FROM s",
    "SELECT k, count() AS n, sum(x * 2) AS total, sum(x * 2 + 1) AS other FROM s GROUP BY k",
    "SELECT name, k, groupArray(x) AS all_x, any(f) AS one_f FROM s GROUP BY name, k",
    "SELECT length(a) AS size, uniqExact(name) AS names FROM s WHERE name != 'c' GROUP BY size",
    "SELECT 7 AS seven, count() AS n FROM s WHERE x > 1000 GROUP BY seven",
    "SELECT k % 2 AS odd, avg(f) AS mean, sumIf(x, f > 1) AS some FROM s GROUP BY odd",
    "SELECT n, count() AS times FROM (SELECT x % 3 AS n FROM s WHERE x >= 0) GROUP BY n",
    "SELECT y, toString(y) AS text FROM (SELECT x * 2 AS y FROM s) WHERE y > 5",
)


def answers(query: str, most_rows: int) -> list[tuple[object, ...]]:
    """Return the rows of a view's target, with small blocks of at most so many rows."""
    with patch.object(tuning, "SMALL_BLOCK_ROWS_MAX", most_rows), olapdb.connect() as connection:
        connection.execute(SOURCE)
        connection.execute(
            f"CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY tuple() AS {query}"
        )
        for text in ROWS:
            connection.execute(text)
        return sorted(connection.execute("SELECT * FROM v").fetchall(), key=repr)


@pytest.mark.parametrize("query", QUERIES)
def test_small_blocks_give_what_the_operators_give(query: str) -> None:
    assert answers(query, 1_000) == answers(query, -1)


@pytest.mark.parametrize("most_rows", [1_000, -1], ids=["small", "operators"])
def test_the_limit_of_memory_holds_for_small_blocks(most_rows: int) -> None:
    with patch.object(tuning, "SMALL_BLOCK_ROWS_MAX", most_rows), olapdb.connect() as connection:
        connection.execute(SOURCE)
        connection.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY tuple() AS"
            " SELECT groupArray(repeat('x', 60000)) AS texts FROM s"
        )
        with pytest.raises(MemoryLimitExceeded):
            connection.execute(
                ROWS[0].replace("INTO s", "INTO s SETTINGS max_memory_usage = 100000")
            )
        assert connection.execute("SELECT count() FROM s").fetchall() == [(0,)]
