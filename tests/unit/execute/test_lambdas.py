"""Lambdas where ClickHouse cannot be the oracle (else tests/oracle/features/lambdas.sql)."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("select", "functions")


def test_a_body_is_evaluated_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long arrays reach the body in pieces, and the result does not change."""
    connection = olapdb.connect()
    query = (
        "SELECT number, arraySum(x -> x * number, range(number % 7)),"
        " arrayFilter(x -> x % 2 = number % 2, range(number % 9)) FROM numbers(100) ORDER BY number"
    )
    whole = connection.execute(query).fetchall()
    monkeypatch.setattr("olapdb.functions.arrays.lambdas.ELEMENTS_MAX", 5)
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
