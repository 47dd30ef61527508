"""Skip indexes over tuples: which granules they exclude, and that answers are as without them."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.dbapi import Connection

pytestmark = pytest.mark.feature("engines")

TABLE = """CREATE TABLE t (x Int32, y Int32, s String, f Float64, n Nullable(Int8),
    INDEX bounds (f, abs(y - 150)) TYPE minmax GRANULARITY 1, INDEX values (x % 7, concat('v', s)) TYPE set(0) GRANULARITY 1,
    INDEX filters (y, reverse(s)) TYPE bloom_filter GRANULARITY 2, INDEX null tuple(n) TYPE minmax GRANULARITY 1)
    ENGINE = MergeTree ORDER BY tuple() SETTINGS index_granularity = 10, inline_bytes_max = 0"""
ROWS = """INSERT INTO t SELECT number, number * 3, 's' || toString(intDiv(number, 10)),
    if(number = 25, nan, number), if(number > 60, NULL, 1) FROM numbers(100)"""


@pytest.fixture
def connection() -> Connection:
    """Return a connection with the table of 10 granules in one part file."""
    connection = olapdb.connect(":memory:")
    for statement in (TABLE, ROWS):
        connection.cursor().execute(statement)
    return connection


def granules(connection: Connection, condition: str, index: str) -> str:
    """Return the granules that the index leaves, as EXPLAIN shows them."""
    cursor = connection.cursor()
    cursor.execute(f"EXPLAIN indexes = 1 SELECT x FROM t WHERE {condition}")
    lines = [row[0].strip() for row in cursor.fetchall()]
    at = lines.index(f"Name: {index}")
    return next(line for line in lines[at:] if line.startswith("Granules: "))


@pytest.mark.parametrize(
    ("condition", "index", "left"),
    [
        ("abs(y - 150) > 140", "bounds", "Granules: 2/10"),
        ("x % 7 = 9", "values", "Granules: 0/10"),
        ("reverse(s) = '3s'", "filters", "Granules: 2/10"),
        ("n IS NULL", "null", "Granules: 4/4"),
    ],
)
def test_each_element_is_judged(
    connection: Connection, condition: str, index: str, left: str
) -> None:
    assert granules(connection, condition, index) == left


@pytest.mark.parametrize(
    "condition",
    [
        *("f != f", "NOT (f < 90) AND y > 5", "y = 78 AND f > 0", "n IS NULL AND y < 200", "n = 1"),
        *("(x % 7, s) IN ((3, 's1'), (1, 's9'))", "s LIKE '%5' AND x % 7 = 2", "s = 's4' OR y = 0"),
    ],
)
def test_answers_are_those_without_indexes(connection: Connection, condition: str) -> None:
    answers = []
    for used in (1, 0):
        cursor = connection.cursor()
        sql = f"SELECT x FROM t WHERE {condition} ORDER BY x SETTINGS use_skip_indexes = {used}"
        cursor.execute(sql)
        answers.append(cursor.fetchall())
    assert answers[0] == answers[1]
    assert answers[0]
