"""Window functions in views see the inserted block, not the table."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import ViewNotProvable

pytestmark = pytest.mark.feature("views", "select")

QUERY = "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM s"


@pytest.fixture
def connection() -> olapdb.Connection:
    made = olapdb.connect()
    made.execute("CREATE TABLE s (k UInt8, v UInt32) ENGINE = MergeTree ORDER BY k")
    return made


def test_a_merging_target_refuses_them(connection: olapdb.Connection) -> None:
    connection.execute(
        "CREATE TABLE t (k UInt8, v UInt32, r SimpleAggregateFunction(max, UInt64))"
        " ENGINE = AggregatingMergeTree ORDER BY (k, v)"
    )
    with pytest.raises(ViewNotProvable, match="window function"):
        connection.execute(f"CREATE MATERIALIZED VIEW m TO t AS {QUERY}")


def test_a_plain_target_is_marked_and_counts_per_block(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (k UInt8, v UInt32, r UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute(f"CREATE MATERIALIZED VIEW m TO t AS {QUERY}")
    connection.execute("INSERT INTO s VALUES (1, 10), (1, 20)")
    connection.execute("INSERT INTO s VALUES (1, 30)")
    assert connection.execute("SELECT v, r FROM t ORDER BY v").fetchall() == [
        (10, 1),
        (20, 2),
        (30, 1),
    ]
    ((verdict, reason),) = connection.execute("SELECT verdict, reason FROM system.views").fetchall()
    assert verdict == "unproven"
    assert "window function" in reason


def test_a_window_over_a_subquery_is_marked_too(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (k UInt8, n UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        "CREATE MATERIALIZED VIEW m TO t AS"
        " SELECT k, count() OVER (PARTITION BY k) AS n FROM (SELECT * FROM s WHERE v > 0)"
    )
    connection.execute("INSERT INTO s VALUES (1, 10), (1, 20), (2, 0)")
    assert connection.execute("SELECT k, n FROM t").fetchall() == [(1, 2), (1, 2)]
    ((reason,),) = connection.execute("SELECT reason FROM system.views").fetchall()
    assert "window function" in reason
