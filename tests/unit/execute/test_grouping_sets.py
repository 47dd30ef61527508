"""Grouping sets where ClickHouse cannot be the oracle (else tests/oracle/features/grouping_sets.sql)."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("select")


def test_a_condition_on_a_rolled_up_key_stays_above_the_groups() -> None:
    """A row of a smaller set shows the key's default, so the condition is about groups, not rows."""
    connection = olapdb.connect()
    connection.execute("CREATE TABLE gs (a String, b UInt8, v Int32) ENGINE = MergeTree ORDER BY a")
    connection.execute(
        "INSERT INTO gs VALUES ('x', 1, 10), ('x', 2, 20), ('y', 1, 30), ('', 0, 40)"
    )
    query = "SELECT b, s FROM (SELECT a, b, sum(v) AS s FROM gs GROUP BY ROLLUP(a, b)) WHERE b = 0"
    assert sorted(connection.execute(query).fetchall()) == [
        (0, 30),
        (0, 30),
        (0, 40),
        (0, 40),
        (0, 100),
    ]
    connection.close()


def test_a_merging_target_refuses_them() -> None:
    connection = olapdb.connect()
    connection.execute("CREATE TABLE s (k String, v UInt32) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE t (k String, v UInt64) ENGINE = SummingMergeTree ORDER BY k")
    with pytest.raises(olapdb.Error, match="GROUPING SETS"):
        connection.execute(
            "CREATE MATERIALIZED VIEW m TO t AS SELECT k, sum(v) AS v FROM s GROUP BY ROLLUP(k)"
        )
    connection.close()
