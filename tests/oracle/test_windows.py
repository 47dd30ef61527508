"""Window functions beside ClickHouse: names, types, values and errors agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from tests.harness.answers import answer_of, oracle_answer, statements_of
from tests.harness.oracle import Oracle

SETUP = (
    "CREATE TABLE windowed (id UInt32, g String, v Int32, f Float64, n Nullable(Int16), d Date, t DateTime,"
    " s String) ENGINE = MergeTree ORDER BY id",
    "INSERT INTO windowed VALUES"
    " (1, 'a', 5, 1.5, 1, '2024-01-01', '2024-01-01 00:00:00', 'x'),"
    " (2, 'a', 3, 2.5, NULL, '2024-01-02', '2024-01-01 00:00:10', 'y'),"
    " (3, 'a', 5, -1, 3, '2024-01-04', '2024-01-01 00:01:00', 'z'),"
    " (4, 'b', 7, 0, NULL, '2024-01-01', '2024-01-01 00:00:05', 'x'),"
    " (5, 'b', 7, 10, 5, '2024-01-08', '2024-01-01 00:00:06', 'q'),"
    " (6, 'c', -2, 3, 6, '2024-02-01', '2024-01-02 00:00:00', 'r'),"
    " (7, 'a', 9, nan, 7, '2024-01-05', '2024-01-01 00:01:05', 's'),"
    " (8, 'b', 1, 2, 8, '2024-01-03', '2024-01-01 00:00:07', '')",
)
QUERIES = statements_of(Path(__file__).with_name("windows.sql"))


@pytest.fixture(scope="module")
def engines(oracle: Oracle) -> Iterator[tuple[olapdb.Connection, Oracle]]:
    connection = olapdb.connect()
    for statement in SETUP:
        connection.execute(statement)
        oracle.execute(statement)
    yield connection, oracle
    connection.close()
    oracle.execute("DROP TABLE windowed")


@pytest.mark.parametrize("query", QUERIES)
def test_same_answer(query: str, engines: tuple[olapdb.Connection, Oracle]) -> None:
    connection, oracle = engines
    assert answer_of(connection, query) == oracle_answer(oracle, query)
