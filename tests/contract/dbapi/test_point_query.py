"""Counts of the granules and bytes that a point query on ten million rows reads, not its
seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.result import QueryStatistics

pytestmark = pytest.mark.feature("python")

ROWS = 10_000_000
GROUP_ROWS = 65_536


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder: Path = tmp_path_factory.mktemp("points")
    with olapdb.connect(str(folder)) as connection:
        connection.execute(
            "CREATE TABLE t (month UInt8, id UInt64, v UInt32, filler String)"
            " ENGINE = MergeTree PARTITION BY month ORDER BY id"
        )
        connection.execute(
            f"INSERT INTO t SELECT intDiv(number, {ROWS // 4}) + 1, number, number % 1000,"
            f" 'some text that nobody asks for' FROM numbers({ROWS})"
        )
        connection.execute("OPTIMIZE TABLE t FINAL")
        yield connection


def read(connection: Connection, query: str) -> tuple[list[tuple[object, ...]], QueryStatistics]:
    cursor = connection.execute(query)
    return cursor.fetchall(), cursor.statistics


@pytest.mark.parametrize("key", [0, 65_535, 65_536, 2_499_999, 7_123_457])
def test_a_point_query_reads_one_place(connection: Connection, key: int) -> None:
    rows, statistics = read(connection, f"SELECT v FROM t WHERE id = {key}")
    assert rows == [(key % 1000,)]
    assert statistics.parts_read == 1
    assert statistics.granules_read <= 2
    assert statistics.rows_read <= 2 * GROUP_ROWS
    # The key and one other column: nothing of the text.
    assert statistics.bytes_read <= statistics.rows_read * (8 + 4)


def test_a_partition_that_cannot_have_it_is_not_read(connection: Connection) -> None:
    rows, statistics = read(connection, "SELECT v FROM t WHERE month = 1 AND id = 7123457")
    assert rows == []
    assert (statistics.parts_read, statistics.granules_read, statistics.rows_read) == (0, 0, 0)


def test_a_key_that_is_not_there(connection: Connection) -> None:
    rows, statistics = read(connection, f"SELECT v FROM t WHERE id = {ROWS + 1}")
    assert (rows, statistics.rows_read) == ([], 0)
