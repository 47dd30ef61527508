"""A parameter without a placeholder is an error, like a missing one."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import ProgrammingError

pytestmark = [
    pytest.mark.warehouse("CREATE TABLE t (x Int64, s String) ENGINE = MergeTree ORDER BY x"),
    pytest.mark.feature("python"),
]


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("SELECT 1", 0),
        ("SELECT ?", 1),
        ("SELECT '?', ?", 1),
        ("SELECT $2, $1", 2),
        ("SELECT x FROM t WHERE x IN (SELECT ? + 1) AND s = ?", 2),
        ("INSERT INTO t VALUES (?, ?)", 2),
        ("INSERT INTO t VALUES (?, ?), (3, 'what?'), (?, ?)", 4),
        ("INSERT INTO t VALUES (1, 'why?')", 0),
        ("INSERT INTO t SELECT ?, ?", 2),
        ("DELETE FROM t WHERE x = ?", 1),
        ("WITH c AS (SELECT ? AS n) SELECT n FROM c", 1),
        ("WITH c(n) AS (SELECT ? AS n), ? AS k SELECT n + k FROM c WHERE n > ?", 3),
        (
            "WITH RECURSIVE c AS (SELECT ? AS n UNION ALL SELECT n + ? FROM c WHERE n < ?) SELECT n FROM c",
            3,
        ),
        ("WITH c AS (SELECT ? AS n) INSERT INTO t (x) SELECT n FROM c", 1),
        ("SELECT INTERVAL ? DAY, ? + ?", 3),
    ],
)
def test_the_number_must_be_right(connection: Connection, text: str, taken: int) -> None:
    values = [1, "a"] * 3
    if "s = ?" not in text and "VALUES" not in text and "INSERT" not in text:
        values = [1] * 6
    connection.execute(text, values[:taken])
    with pytest.raises(ProgrammingError, match=f"takes {taken} parameters, {taken + 1} were given"):
        connection.execute(text, values[: taken + 1])
    if taken:
        with pytest.raises(ProgrammingError):
            connection.execute(text, values[: taken - 1])


def test_nothing_is_inserted_with_too_many(connection: Connection) -> None:
    with pytest.raises(ProgrammingError):
        connection.execute("INSERT INTO t VALUES (?, ?)", (1, "a", "b"))
    with pytest.raises(ProgrammingError):
        connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, "b", "c")])
    assert connection.execute("SELECT count() FROM t").fetchall() == [(0,)]


def test_sets_may_come_one_by_one(connection: Connection) -> None:
    connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", ((n, "a") for n in range(3)))
    assert connection.execute("SELECT count() FROM t").fetchall() == [(3,)]


def test_names_that_are_not_used_are_no_error(connection: Connection) -> None:
    found = connection.execute("SELECT :a", {"a": 1, "b": 2}).fetchall()
    assert found == [(1,)]


def test_each_of_several_statements_counts_from_the_first(connection: Connection) -> None:
    assert connection.execute("SELECT ?; SELECT ?, ?", (1, 2)).fetchall() == [(1, 2)]
    with pytest.raises(ProgrammingError, match="takes 2"):
        connection.execute("SELECT ?; SELECT ?, ?", (1, 2, 3))


def test_a_mark_behind_with_is_the_next_one(connection: Connection) -> None:
    found = connection.execute("WITH ? AS a, b AS (SELECT ? AS n) SELECT a, n, ? FROM b", [1, 2, 3])
    assert found.fetchall() == [(1, 2, 3)]
