"""A backfill reads text keys as dictionaries where parts store them so; its rows equal the
trigger's and the query's."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb

pytestmark = pytest.mark.feature("views", "engines")

ROWS = 150_000
"""More than one row group and one piece; far too many for an inline part."""
VIEWS = {
    "text": "SELECT s AS a, '' AS b, count() AS n, sum(x) AS t FROM source GROUP BY s",
    "two": "SELECT s AS a, ifNull(h, 'none') AS b, count() AS n, sum(x) AS t FROM source GROUP BY a, b",
    "low": "SELECT l AS a, s AS b, count() AS n, sum(x) AS t FROM source GROUP BY l, s",
    "also read": "SELECT s AS a, max(s) AS b, count() AS n, sum(length(s)) AS t FROM source GROUP BY s",
    "filtered": "SELECT s AS a, l AS b, count() AS n, sum(x) AS t FROM source WHERE s != 's3' GROUP BY s, l",
    "counted": "SELECT s AS a, l AS b, uniqExact(x) AS n, sum(x) AS t FROM source GROUP BY s, l",
    "joined": "SELECT s AS a, name AS b, count() AS n, sum(x) AS t FROM source"
    " JOIN names ON source.s = names.s GROUP BY a, b",
    "within": "SELECT a, b, sum(m) AS n, sum(u) AS t FROM (SELECT s AS a, l AS b, count() AS m,"
    " sum(x) AS u FROM source GROUP BY s, l) GROUP BY a, b",
}


def insert(connection: olapdb.Connection, start: int, rows: int) -> None:
    connection.execute(
        "INSERT INTO source SELECT 's' || toString(number % 7), if(number % 5 = 0, NULL,"
        " 'n' || toString(number % 3)), 'l' || toString(intDiv(number, 50000)), number"
        f" FROM numbers({start}, {rows})"
    )


@pytest.mark.parametrize("name", list(VIEWS))
def test_backfill_of_text_keys(tmp_path: Path, name: str) -> None:
    connection = olapdb.connect(tmp_path / "warehouse")
    connection.execute(
        "CREATE TABLE source (s String, h Nullable(String), l LowCardinality(String), x UInt64)"
        " ENGINE = MergeTree ORDER BY x"
    )
    connection.execute("CREATE TABLE names (s String, name String) ENGINE = MergeTree ORDER BY s")
    connection.execute("INSERT INTO names VALUES ('s1', 'one'), ('s2', 'two')")
    insert(connection, 0, ROWS)
    insert(connection, ROWS, 10)  # an inline part, whose columns have no dictionaries
    connection.execute("ALTER TABLE source MODIFY COLUMN s LowCardinality(String)")
    insert(connection, 2 * ROWS, ROWS)
    query = VIEWS[name]
    # Each key is in one chunk only, so a finished value may be stored.
    connection.execute(
        "CREATE TABLE target (a String, b String, n UInt64, t UInt64) ENGINE = MergeTree ORDER BY a"
    )
    connection.execute(f"CREATE MATERIALIZED VIEW v TO target AS {query}")
    connection.execute("SYSTEM BACKFILL VIEW v")
    got = connection.execute("SELECT * FROM target ORDER BY ALL").fetchall()
    assert got == connection.execute(f"SELECT * FROM ({query}) ORDER BY ALL").fetchall()
    assert got
    connection.execute("CREATE TABLE fired AS target")
    connection.execute("CREATE TABLE again AS source")
    connection.execute(f"CREATE MATERIALIZED VIEW w TO fired AS {query.replace('source', 'again')}")
    connection.execute("INSERT INTO again SELECT * FROM source")
    assert connection.execute("SELECT * FROM fired ORDER BY ALL").fetchall() == got
    connection.close()
