"""Statements with a FORMAT and settings of formats: their text, or their error, is ClickHouse's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("formats")

_SETUP = (
    "CREATE TABLE counted (a UInt32, b String) ENGINE = MergeTree ORDER BY a",
    "INSERT INTO counted SELECT number, toString(number) FROM numbers(10)",
)
_BEFORE_LIMIT = (
    "SELECT number FROM numbers(10) LIMIT 3",
    "SELECT a FROM counted LIMIT 3",
    "SELECT a FROM counted WHERE a % 2 = 0 LIMIT 3",
    "SELECT a FROM counted ORDER BY a LIMIT 3 OFFSET 2",
    "SELECT a FROM counted ORDER BY b DESC LIMIT 3",
    "SELECT a FROM counted ORDER BY a OFFSET 8",
    "SELECT a % 3 AS k, count() AS c FROM counted GROUP BY k ORDER BY c, k LIMIT 2",
    "SELECT a % 3 AS k, count() FROM counted GROUP BY k WITH TOTALS ORDER BY k LIMIT 2",
    "SELECT DISTINCT a % 3 AS k FROM counted ORDER BY k LIMIT 2",
    "SELECT a FROM (SELECT a FROM counted ORDER BY a LIMIT 3)",
    "SELECT a FROM counted ORDER BY a LIMIT 2 UNION ALL SELECT 1",
    "SELECT a, row_number() OVER (ORDER BY a) AS r FROM counted ORDER BY a LIMIT 2",
    "SELECT count() FROM counted",
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        for statement in _SETUP:
            oracle.execute(statement)
        yield oracle


@pytest.fixture(scope="module")
def connection() -> Iterator[olapdb.Connection]:
    with olapdb.connect() as connection:
        for statement in _SETUP:
            connection.execute(statement)
        yield connection


def _expected(oracle: Oracle, sql: str) -> bytes | str:
    """Return ClickHouse's text of a statement, or the name of its error."""
    try:
        return oracle.text(sql, "TSVWithNamesAndTypes")
    except OracleError as error:
        return error.name


def _answer(connection: olapdb.Connection, sql: str) -> bytes | str:
    """Return olapdb's text of a statement, or the name of its error."""
    try:
        cursor = connection.execute(sql)
        return (
            cursor.fetch_text() if " FORMAT " in sql else cursor.fetch_text("TSVWithNamesAndTypes")
        )
    except olapdb.Error as error:
        return error.name


@pytest.mark.parametrize("output_format", ["JSON", "JSONCompact", "JSONColumnsWithMetadata", "XML"])
def test_rows_before_limit(
    output_format: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    for query in _BEFORE_LIMIT:
        sql = f"{query} FORMAT {output_format} SETTINGS output_format_write_statistics = 0"
        assert _answer(connection, sql) == _expected(oracle, sql), query
