"""Functions that take a lambda, beside ClickHouse: names, types, values and errors agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from tests.harness.answers import answer_of, oracle_answer, statements_of
from tests.harness.oracle import Oracle

SETUP = (
    "CREATE TABLE lambda_rows (id UInt32, a Array(Int32), b Array(Int32), s Array(String),"
    " n Array(Nullable(Int16)), t Array(Tuple(x Int8, y String)), m Map(String, UInt32), k UInt8,"
    " f Array(Float64)) ENGINE = MergeTree ORDER BY id",
    "INSERT INTO lambda_rows VALUES"
    " (1, [1, 2, 3], [4, 5, 6], ['x', 'yy', ''], [1, NULL, 3], [(1, 'a'), (2, 'b')],"
    " {'p': 1, 'q': 2}, 1, [1.5, nan, -2]),"
    " (2, [], [], [], [], [], {}, 2, []),"
    " (3, [5, -1, 5, 5], [0, 0, 1, 1], ['b', 'a', 'c', 'a'], [NULL, NULL], [(3, 'z')],"
    " {'r': 7, 'a': 0, 'z': 3}, 1, [nan, nan, 3, inf])",
)
QUERIES = statements_of(Path(__file__).with_name("lambdas.sql"))


@pytest.fixture(scope="module")
def engines(oracle: Oracle) -> Iterator[tuple[olapdb.Connection, Oracle]]:
    connection = olapdb.connect()
    for statement in SETUP:
        connection.execute(statement)
        oracle.execute(statement)
    yield connection, oracle
    connection.close()
    oracle.execute("DROP TABLE lambda_rows")


@pytest.mark.parametrize("query", QUERIES)
def test_same_answer(query: str, engines: tuple[olapdb.Connection, Oracle]) -> None:
    connection, oracle = engines
    assert answer_of(connection, query) == oracle_answer(oracle, query)


def test_a_body_is_evaluated_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long arrays reach the body piece by piece, and the answer is that of one piece."""
    connection = olapdb.connect()
    query = (
        "SELECT number, arraySum(x -> x * number, range(number % 7)),"
        " arrayFilter(x -> x % 2 = number % 2, range(number % 9)) FROM numbers(100) ORDER BY number"
    )
    whole = connection.execute(query).fetchall()
    monkeypatch.setattr("olapdb.functions.lambdas.ELEMENTS_MAX", 5)
    assert connection.execute(query).fetchall() == whole
    connection.close()


def test_explain_shows_the_lambda() -> None:
    connection = olapdb.connect()
    rows = connection.execute(
        "EXPLAIN SELECT arrayMap(x -> x + number, [1]) FROM numbers(2)"
    ).fetchall()
    assert any("arrayMap(x -> x + number, [1])" in row[0] for row in rows)
    connection.close()


def test_a_view_with_a_lambda_is_kept_and_proven() -> None:
    connection = olapdb.connect()
    for statement in (
        "CREATE TABLE e (k UInt8, tags Array(String)) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE t (k UInt8, n UInt64) ENGINE = SummingMergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW v TO t AS SELECT k,"
        " sum(arrayCount(x -> startsWith(x, 'a'), tags)) AS n FROM e GROUP BY k",
        "INSERT INTO e VALUES (1, ['a', 'b']), (1, ['ab']), (2, [])",
        "INSERT INTO e VALUES (1, ['aa'])",
        "SYSTEM RECONCILE VIEW v",
    ):
        connection.execute(statement)
    assert connection.execute("SELECT verdict FROM system.views").fetchall() == [("proven",)]
    assert connection.execute("SELECT * FROM t FINAL WHERE n > 0").fetchall() == [(1, 3)]
    connection.close()
