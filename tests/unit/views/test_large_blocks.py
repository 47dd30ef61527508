"""A large block is written while its views fire, and views share the work that they have in
common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.config import tuning
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error, ThrowIfNonZero, TooManyParts
from olapdb.ingest import block_writer
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("views")

TARGET = (
    "(day Date, kind String, n SimpleAggregateFunction(sum, UInt64), worst "
    "SimpleAggregateFunction(max, Int64), mean AggregateFunction(avg, Float64)) "
    "ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(day) ORDER BY (day, kind)"
)
QUERY = (
    "SELECT day, kind, count() AS n, max(v) AS worst, avgState(v / 3) AS mean FROM s "
    "{where} GROUP BY day, kind"
)
ROWS = (
    "INSERT INTO s SELECT toDate('2024-01-01') + number % 40, ['a', 'b', 'c'][1 + number % 3],"
    " number * 7 % 1000 FROM numbers(5000)"
)


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setattr(tuning, "BESIDE_ROWS_MIN", 1_000)
    with olapdb.connect(str(tmp_path)) as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute("SET inline_bytes_max = 0")
        opened.execute(
            "CREATE TABLE s (day Date, kind String, v Int64) ENGINE = MergeTree "
            "PARTITION BY toYYYYMM(day) ORDER BY v"
        )
        yield opened


def views(connection: Connection, *wheres: str) -> None:
    for at, where in enumerate(wheres):
        connection.execute(f"CREATE TABLE t{at} {TARGET}")
        query = QUERY.format(where=where)
        connection.execute(f"CREATE MATERIALIZED VIEW v{at} TO t{at} AS {query}")


def files(connection: Connection) -> set[str]:
    return {one.path for one in connection.database.services.store.list("data")}


def test_siblings_make_the_same_with_and_without(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    views(connection, "", "", "WHERE v % 2 = 0", "WHERE kind != 'b'")
    connection.execute(ROWS)
    read = [rows(connection, f"SELECT * FROM t{at} ORDER BY day, kind") for at in range(4)]
    monkeypatch.setattr(tuning, "BESIDE_ROWS_MIN", 1 << 40)
    monkeypatch.setattr(tuning, "SHARED_CODES_ROWS_MIN", 1 << 40)
    for at in range(4):
        connection.execute(f"TRUNCATE TABLE t{at}")
    connection.execute("TRUNCATE TABLE s")
    connection.execute(ROWS)
    again = [rows(connection, f"SELECT * FROM t{at} ORDER BY day, kind") for at in range(4)]
    assert read == again
    assert read[0] == read[1]
    assert rows(connection, "SELECT count() FROM s") == [(5000,)]


def test_a_view_that_fails_leaves_nothing(connection: Connection) -> None:
    views(connection, "", "WHERE throwIf(v = 7, 'boom') = 0")
    with pytest.raises(ThrowIfNonZero, match="boom"):
        connection.execute(ROWS)
    assert rows(connection, "SELECT count() FROM s") == [(0,)]
    assert files(connection) == set()


def test_rows_that_cannot_be_written_leave_nothing(connection: Connection) -> None:
    views(connection, "")
    connection.execute("SET max_partitions_per_insert_block = 1")
    with pytest.raises(TooManyParts):
        connection.execute(ROWS)
    connection.execute("SET max_partitions_per_insert_block = 100")
    assert files(connection) == set()


def test_a_disk_that_fails_leaves_nothing(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write of the source's second file fails; no file stays behind."""
    views(connection, "")
    write, seen = block_writer.write_part, []

    def failing(store, table, *arguments, **named):  # type: ignore[no-untyped-def]
        if table.name == "s":
            seen.append(table)
            if len(seen) == 2:
                raise Error("The disk is full.")
        return write(store, table, *arguments, **named)

    monkeypatch.setattr(block_writer, "write_part", failing)
    with pytest.raises(Error, match="full"):
        connection.execute(ROWS)
    assert files(connection) == set()
    monkeypatch.setattr(block_writer, "write_part", write)
    connection.execute(ROWS)
    assert rows(connection, "SELECT sum(n) FROM t0") == [(5000,)]
