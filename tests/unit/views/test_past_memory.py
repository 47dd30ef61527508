"""Views whose groups, joins or sorted rows memory does not take: an INSERT, REPLAY and BACKFILL make the rows of the query."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import MemoryLimitExceeded

pytestmark = pytest.mark.feature("views")

INSERT = "INSERT INTO src SELECT number, number % 77, toString(number) FROM numbers(100000)"
LIMIT = "SET max_memory_usage = 2000000"
VIEWS = {
    "many groups": (
        "k",
        "SELECT intHash64(a) % 300007 AS k, count() AS n, sum(b) AS t FROM src GROUP BY k",
    ),
    "distinct values of one group": (
        "k",
        "SELECT a % 3 AS k, uniqExact(s) AS u, quantileExact(a) AS q, sumDistinct(a) AS d FROM src GROUP BY k",
    ),
    "one group": (
        "u",
        "SELECT uniqExact(s) AS u, quantilesExact(0.1, 0.9)(a) AS q, topK(3)(s) AS t FROM src",
    ),
    "a join": ("a", "SELECT src.a AS a, dim.name AS name FROM src JOIN dim ON src.a = dim.a"),
    "groups of a join": (
        "name",
        "SELECT dim.name AS name, count() AS n FROM src LEFT JOIN dim ON src.a = dim.a GROUP BY name",
    ),
    "a window": ("a", "SELECT a, sum(b) OVER (PARTITION BY b ORDER BY a) AS w FROM src"),
    "a set": ("a", "SELECT a, s FROM src WHERE a IN (SELECT a FROM dim)"),
    "LIMIT BY": ("a", "SELECT a, s FROM src ORDER BY s LIMIT 1 BY s"),
}


def prepare(connection: Connection) -> None:
    """Create the source, and a table to join."""
    connection.execute(
        "CREATE TABLE src (a UInt64, b UInt64, s String) ENGINE = MergeTree ORDER BY a"
    )
    connection.execute("CREATE TABLE dim (a UInt64, name String) ENGINE = MergeTree ORDER BY a")
    connection.execute(
        "INSERT INTO dim SELECT number * 2, concat('n', toString(number)) FROM numbers(80000)"
    )


@pytest.mark.parametrize(("key", "query"), VIEWS.values(), ids=VIEWS)
def test_jobs_of_views_past_memory(key: str, query: str) -> None:
    with olapdb.connect() as connection:
        prepare(connection)
        connection.execute(INSERT)
        expected = connection.execute(f"SELECT * FROM ({query}) ORDER BY ALL").fetchall()
        connection.execute(
            f"CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY {key} AS {query}"
        )
        for command in ("SYSTEM BACKFILL VIEW v", INSERT, "SYSTEM REPLAY VIEW v"):
            if command == INSERT:
                connection.execute("TRUNCATE TABLE src")
                connection.execute("TRUNCATE TABLE v")
            connection.execute(LIMIT)
            connection.execute(command)
            connection.execute("SET max_memory_usage = 0")
            assert connection.execute("SELECT * FROM v ORDER BY ALL").fetchall() == expected


@pytest.mark.parametrize(
    "value",
    ["sumDistinct(a / 7)", "deltaSumDistinct(a)", "uniqExact(toString(a)) + sum(1 / (a + 1))"],
)
def test_a_result_that_memory_would_decide_is_refused(value: str) -> None:
    """A view's rows must not depend on the memory that an INSERT had: last bits of sums, and the order of values."""
    with olapdb.connect() as connection:
        prepare(connection)
        connection.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY tuple() AS "
            f"SELECT {value} AS d FROM src"
        )
        connection.execute("SET max_memory_usage = 500000")
        with pytest.raises(MemoryLimitExceeded):
            connection.execute(INSERT)
        assert connection.execute("SELECT count() FROM src").fetchall() == [(0,)]
