"""Random functions draw other numbers in each block, and the same where one expression is twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("select")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        yield opened


def one(connection: Connection, query: str) -> object:
    (row,) = connection.execute(query).fetchall()
    return row[0]


@pytest.mark.parametrize("function", ["generateUUIDv4()", "rand64()"])
def test_blocks_of_one_query_draw_apart(connection: Connection, function: str) -> None:
    rows = 300_000
    assert one(connection, f"SELECT uniqExact({function}) FROM numbers({rows})") == rows


def test_blocks_of_one_insert_and_parts_without_a_column_draw_apart(connection: Connection) -> None:
    connection.execute("SYSTEM STOP MERGES")
    connection.execute(
        "CREATE TABLE t (n UInt64, a UUID DEFAULT generateUUIDv4()) ENGINE = MergeTree ORDER BY n"
    )
    connection.execute(
        "INSERT INTO t (n) SELECT number FROM numbers(3000) SETTINGS max_insert_block_size = 1000"
    )
    connection.execute("ALTER TABLE t ADD COLUMN b UUID DEFAULT generateUUIDv4()")
    assert one(connection, "SELECT uniqExact(a) + uniqExact(b) FROM t") == 6000
    connection.execute("ALTER TABLE t MATERIALIZE COLUMN b")
    assert one(connection, "SELECT uniqExact(a) + uniqExact(b) FROM t") == 6000


def test_one_expression_is_one_value_of_a_row(connection: Connection) -> None:
    query = "SELECT countIf(a != b OR a != c) FROM (SELECT rand() AS a, a AS b, rand() AS c FROM numbers(300000))"
    assert one(connection, query) == 0
