"""Joins and sets of tens of thousands of rows beside ClickHouse, by keys of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("select")

ROWS = 25_000
KEYS = {
    "numbers": "intHash64(number % 30000) AS k",
    "small numbers": "toInt8(number % 250 - 125) AS k, number % 800 AS k2",
    "near numbers": "number * 3 AS k",
    "nullable": "if(number % 4 = 0, NULL, intHash32(number)) AS k",
    "text": "concat('key ', toString(intHash64(number % 20000))) AS k",
    "nullable text": "if(number % 5 = 0, NULL, toString(number % 25000)) AS k",
    "low cardinality": "toLowCardinality(toString(number % 18000)) AS k",
    "fixed text": "toFixedString(toString(10000 + number % 30000), 5) AS k",
    "floats": "if(number % 1000 = 0, nan, (number % 30000) / 7) AS k",
    "kinds of NaN": "multiIf(number % 1000 = 0, nan, number % 999 = 0, 0 / 0, number / 7) AS k",
    "decimals": "toDecimal64((number % 30000) / 8, 3) AS k",
    "dates": "toDate('1980-01-01') + number % 20000 AS k",
    "times": "toDateTime64('2020-01-01 00:00:00', 3, 'UTC') + number % 25000 AS k",
    "tuples": "(number % 300, toString(number % 70)) AS k",
    "two keys": "intHash64(number % 9000) AS k, toString(number % 4) AS k2",
    "nullable and text": "if(number % 3 = 0, NULL, number % 7000) AS k, toString(number % 5) AS k2",
}
QUERIES = (
    "SELECT count(), sum(l.n), sum(r.n), sum(l.n * r.n) FROM {left} l {kind} JOIN {right} r ON {on}",
    "SELECT count(), sum(l.n), sum(r.n) FROM {left} l {kind} JOIN {right} r ON {on}"
    " SETTINGS join_use_nulls = 1",
)
SEMI = "SELECT count(), sum(l.n) FROM {left} l LEFT {kind} JOIN {right} r ON {on}"
SETS = (
    "SELECT count(), sum(n) FROM {left} WHERE {key} IN (SELECT {key} FROM {right})",
    "SELECT count(), sum(n) FROM {left} WHERE {key} NOT IN (SELECT {key} FROM {right})",
    "SELECT count() FROM (SELECT DISTINCT {key} FROM {left})",
    "SELECT count() FROM (SELECT {key} FROM {left} EXCEPT SELECT {key} FROM {right})",
    "SELECT count() FROM (SELECT {key} FROM {left} INTERSECT DISTINCT SELECT {key} FROM {right})",
    "SELECT count(), sum(n) FROM (SELECT n, {key} FROM {left} ORDER BY n LIMIT 1 BY {key})",
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running


@pytest.fixture(scope="module")
def cursor() -> Iterator[olapdb.Cursor]:
    with olapdb.connect() as connection, connection.cursor() as made:
        yield made


def queries(kind: str) -> Iterator[str]:
    key = "k, k2" if "k2" in KEYS[kind] else "k"
    names = {
        "left": f"(SELECT {KEYS[kind]}, number AS n FROM numbers(5000, {ROWS}))",
        "right": f"(SELECT {KEYS[kind]}, number AS n FROM numbers({ROWS}))",
        "on": " AND ".join(f"l.{one} = r.{one}" for one in key.split(", ")),
        "key": f"({key})" if "," in key else key,
    }
    for query in QUERIES:
        for join in ("INNER", "LEFT", "RIGHT", "FULL"):
            yield query.format(kind=join, **names)
    for strictness in ("SEMI", "ANTI", "ANY"):
        yield SEMI.format(kind=strictness, **names)
    for query in SETS:
        if not ("tuple" in kind and "k2" in key):
            yield query.format(**names)


@pytest.mark.parametrize("kind", sorted(KEYS))
def test_many_rows(kind: str, oracle: Oracle, cursor: olapdb.Cursor) -> None:
    for query in queries(kind):
        theirs = oracle.query(query)
        cursor.execute(query)
        ours = cursor.fetchall()
        assert [tuple(map(str, row)) for row in ours] == [
            tuple(map(str, row)) for row in theirs.rows
        ], query
