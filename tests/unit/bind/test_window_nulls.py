"""`window_use_nulls`: window functions that read a row which is not there give NULL."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("select")

CALLS = {
    "lag(n)": (0, 0, 1),
    "LEAD(n, 2)": (2, 0, 0),
    "lagInFrame(toString(n))": ("", "0", "1"),
    "leadInFrame(n)": (0, 0, 0),
    "nth_value(n, 2)": (0, 1, 1),
    "lag(toLowCardinality(toString(n)))": ("", "0", "1"),
}
MISSING = {
    "lag(n)": (None, 0, 1),
    "LEAD(n, 2)": (2, None, None),
    "lagInFrame(toString(n))": (None, "0", "1"),
    "leadInFrame(n)": (None, None, None),
    "nth_value(n, 2)": (None, 1, 1),
    "lag(toLowCardinality(toString(n)))": (None, "0", "1"),
}


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    return olapdb.connect()


def answer(connection: olapdb.Connection, call: str, setting: int) -> tuple[object, ...]:
    sql = f"SELECT {call} OVER (ORDER BY n) FROM (SELECT number AS n FROM numbers(3)) ORDER BY n"
    rows = connection.execute(f"{sql} SETTINGS window_use_nulls = {setting}").fetchall()
    return tuple(value for (value,) in rows)


@pytest.mark.parametrize("call", CALLS)
def test_null_where_no_row_is(connection: olapdb.Connection, call: str) -> None:
    assert answer(connection, call, 0) == CALLS[call]
    assert answer(connection, call, 1) == MISSING[call]


@pytest.mark.parametrize("call", ["lag(n, 1, n)", "lag([n])", "rank()", "first_value(n)"])
def test_others_are_as_they_were(connection: olapdb.Connection, call: str) -> None:
    assert answer(connection, call, 1) == answer(connection, call, 0)


def test_a_view_keeps_it(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE s (n Int64) ENGINE = MergeTree ORDER BY n")
    connection.execute(
        "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY n AS SELECT n, lag(n) OVER "
        "(ORDER BY n) AS before FROM s SETTINGS window_use_nulls = 1"
    )
    connection.execute("INSERT INTO s VALUES (1), (2)")
    assert connection.execute("SELECT * FROM v ORDER BY n").fetchall() == [(1, None), (2, 1)]
