"""Correlated subqueries where ClickHouse has no answer, or another one; what they refuse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb import errors

pytestmark = pytest.mark.feature("select", "provability")


@pytest.fixture
def cursor() -> Iterator[olapdb.Cursor]:
    connection = olapdb.connect()
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (k Int32, n Nullable(Int32)) ENGINE = MergeTree ORDER BY k")
    cursor.execute("INSERT INTO t VALUES (1, 1), (2, NULL), (3, 3), (4, 9)")
    cursor.execute(
        "CREATE TABLE u (k Int32, n Nullable(Int32), v Int64) ENGINE = MergeTree ORDER BY k"
    )
    cursor.execute("INSERT INTO u VALUES (1, 1, 10), (1, 1, 11), (3, NULL, 30), (5, 9, 50)")
    yield cursor
    connection.close()


ANSWERS = {
    "a count of no rows is 0": (
        "SELECT k, (SELECT count() FROM u WHERE u.k = t.k) FROM t ORDER BY k",
        [(1, 2), (2, 0), (3, 1), (4, 0)],
    ),
    "also where each outer value needs a pass of its own": (
        "SELECT k, (SELECT count() FROM u WHERE u.k < t.k) FROM t ORDER BY k",
        [(1, 0), (2, 2), (3, 2), (4, 3)],
    ),
    "a count beside a sum is NULL with it": (
        "SELECT k, (SELECT count() + sum(v) FROM u WHERE u.k = t.k) FROM t ORDER BY k",
        [(1, 23), (2, None), (3, 31), (4, None)],
    ),
    "HAVING may ask for no rows": (
        "SELECT k FROM t WHERE (SELECT count() FROM u WHERE u.k = t.k HAVING count() = 0) = 0 "
        "ORDER BY k",
        [(2,), (4,)],
    ),
    "NULL as an outer value": (
        "SELECT k, (SELECT count() FROM u WHERE isNull(u.n) = isNull(t.n)) FROM t ORDER BY k",
        [(1, 3), (2, 1), (3, 3), (4, 3)],
    ),
    "IN": ("SELECT k FROM t WHERE n IN (SELECT n FROM u WHERE u.k = t.k)", [(1,)]),
    "NOT IN drops NULL": (
        "SELECT k FROM t WHERE n NOT IN (SELECT n FROM u WHERE u.k = t.k) ORDER BY k",
        [(3,), (4,)],
    ),
    "IN as a value": (
        "SELECT k, n IN (SELECT n FROM u WHERE u.k = t.k), k NOT IN (SELECT v - 9 FROM u WHERE "
        "u.k <= t.k) FROM t ORDER BY k",
        [(1, 1, 0), (2, None, 0), (3, 0, 1), (4, 0, 1)],
    ),
    "IN of tuples": (
        "SELECT k FROM t WHERE (k, k * 10) IN (SELECT k, v FROM u WHERE u.k = t.k) ORDER BY k",
        [(1,), (3,)],
    ),
    "the first row of each": (
        "SELECT k, (SELECT v FROM u WHERE u.k = t.k ORDER BY v DESC LIMIT 1) FROM t ORDER BY k",
        [(1, 11), (2, None), (3, 30), (4, None)],
    ),
    "several columns": (
        "SELECT k, (SELECT min(v), max(v) FROM u WHERE u.k = t.k) FROM t WHERE k < 3 ORDER BY k",
        [(1, (10, 11)), (2, (0, 0))],
    ),
    "a window function within": (
        "SELECT k, (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY v) AS r FROM u "
        "WHERE u.k >= t.k)) AS x FROM t ORDER BY k",
        [(1, 4), (2, 2), (3, 2), (4, 1)],
    ),
    "DISTINCT within": (
        "SELECT k, (SELECT count() FROM (SELECT DISTINCT n FROM u WHERE u.k <= t.k)) FROM t "
        "ORDER BY k",
        [(1, 1), (2, 1), (3, 2), (4, 2)],
    ),
    "UNION ALL within": (
        "SELECT k, (SELECT max(v) FROM (SELECT v FROM u WHERE u.k = t.k UNION ALL SELECT toInt64(k) "
        "FROM u WHERE u.k = t.k + 1)) FROM t ORDER BY k",
        [(1, 11), (2, 3), (3, 30), (4, 5)],
    ),
    "under an aggregate": ("SELECT sum((SELECT max(v) FROM u WHERE u.k = t.k)) FROM t", [(41,)]),
    "in ORDER BY": (
        "SELECT k FROM t ORDER BY (SELECT max(v) FROM u WHERE u.k = t.k) DESC, k",
        [(3,), (1,), (2,), (4,)],
    ),
    "over an aggregate": (
        "SELECT k % 2 AS b, min(k) AS m FROM t GROUP BY b "
        "HAVING (SELECT max(v) FROM u WHERE u.k < m) > 5",
        [(0, 2)],
    ),
    "a condition on the outer row alone": (
        "SELECT k, (SELECT max(v) FROM u WHERE t.n IS NULL) FROM t ORDER BY k",
        [(1, None), (2, 50), (3, None), (4, None)],
    ),
    "a condition that NULL as an outer value does not decide": (
        "SELECT k, (SELECT max(v) FROM u WHERE u.k < t.k OR u.n = t.n) FROM t ORDER BY k",
        [(1, 11), (2, 11), (3, 11), (4, 50)],
    ),
    "a LEFT JOIN within": (
        "SELECT k, (SELECT count() FROM u LEFT JOIN t AS w ON w.k = u.k AND w.k = o.k "
        "WHERE u.v > o.k * 10 AND w.k < 3) FROM t AS o ORDER BY k",
        [(1, 3), (2, 2), (3, 1), (4, 1)],
    ),
}


@pytest.mark.parametrize("optimizer", [1, 0])
@pytest.mark.parametrize(("query", "rows"), ANSWERS.values(), ids=ANSWERS.keys())
def test_answers(
    cursor: olapdb.Cursor, query: str, rows: list[tuple[object, ...]], optimizer: int
) -> None:
    cursor.execute(f"{query} SETTINGS optimizer = {optimizer}")
    assert cursor.fetchall() == rows


def test_several_rows_are_no_value(cursor: olapdb.Cursor) -> None:
    with pytest.raises(errors.Error, match="more than one row"):
        cursor.execute("SELECT k, (SELECT v FROM u WHERE u.k = t.k) FROM t")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT 1 FROM t JOIN u ON u.v > (SELECT avg(v) FROM u AS w WHERE w.k = t.k)", "WHERE"),
        ("SELECT k FROM t PREWHERE k < (SELECT max(v) FROM u WHERE u.k = t.k)", "PREWHERE"),
        ("SELECT arrayMap(x -> (SELECT max(v) FROM u WHERE u.k = x), [k]) FROM t", "'x'"),
        (
            "SELECT (SELECT max(v) FROM u FULL JOIN t AS w ON w.k = u.k WHERE u.k = t.k "
            "AND (SELECT count() FROM u AS y FULL JOIN (SELECT t.k AS k) AS z ON y.k = z.k) > 1) "
            "FROM t",
            "FULL",
        ),
    ],
)
def test_what_is_refused(cursor: olapdb.Cursor, query: str, reason: str) -> None:
    with pytest.raises(errors.NotSupportedError, match=reason):
        cursor.execute(query)


def test_deleting_by_a_correlated_subquery(cursor: olapdb.Cursor) -> None:
    cursor.execute("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)")
    cursor.execute("SELECT k FROM t ORDER BY k")
    assert cursor.fetchall() == [(1,), (3,)]


def test_a_plain_view_may_have_one(cursor: olapdb.Cursor) -> None:
    cursor.execute("CREATE VIEW w AS SELECT k, (SELECT max(v) FROM u WHERE u.k = t.k) AS m FROM t")
    cursor.execute("SELECT k, m FROM w WHERE m > 10 ORDER BY k")
    assert cursor.fetchall() == [(1, 11), (3, 30)]


def test_a_materialized_view_may_not(cursor: olapdb.Cursor) -> None:
    with pytest.raises(errors.QueryNotSupportedInMaterializedView, match="correlated"):
        cursor.execute(
            "CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY k AS "
            "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)"
        )
