"""ROLLUP, CUBE and GROUPING SETS beside ClickHouse: names, types, values and errors agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from tests.harness.answers import answer_of, oracle_answer, statements_of
from tests.harness.oracle import Oracle

SETUP = (
    "CREATE TABLE gs (a String, b UInt8, c Nullable(Int16), v Int32, d Date)"
    " ENGINE = MergeTree ORDER BY a",
    "INSERT INTO gs VALUES ('x', 1, NULL, 10, '2024-01-01'), ('x', 2, 5, 20, '2024-01-02'),"
    " ('y', 1, 5, 30, '2024-01-01'), ('', 0, NULL, 40, '2024-01-03')",
    "CREATE TABLE gse (a String, v Int32) ENGINE = MergeTree ORDER BY a",
)
QUERIES = statements_of(Path(__file__).with_name("grouping_sets.sql"))


@pytest.fixture(scope="module")
def engines(oracle: Oracle) -> Iterator[tuple[olapdb.Connection, Oracle]]:
    connection = olapdb.connect()
    for statement in SETUP:
        connection.execute(statement)
        oracle.execute(statement)
    yield connection, oracle
    connection.close()
    for name in ("gs", "gse"):
        oracle.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize("query", QUERIES)
def test_same_answer(query: str, engines: tuple[olapdb.Connection, Oracle]) -> None:
    connection, oracle = engines
    assert answer_of(connection, query) == oracle_answer(oracle, query)


def test_a_condition_on_a_rolled_up_key_stays_above_the_groups() -> None:
    """A row of a smaller set shows the key's default, so the condition is about groups, not rows."""
    connection = olapdb.connect()
    for statement in SETUP:
        connection.execute(statement)
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
