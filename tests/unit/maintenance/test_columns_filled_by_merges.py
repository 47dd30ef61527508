"""What merges and other rewrites write for a column that the old part lacks."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("upkeep", "schema")

BEGAN = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=1)
ADD = """
    ALTER TABLE t ADD COLUMN at DateTime('UTC') DEFAULT now(), ADD COLUMN server UUID DEFAULT serverUUID(),
    ADD COLUMN up UInt64 DEFAULT uptime(), ADD COLUMN r UInt64 DEFAULT rand64()
"""


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute("CREATE TABLE t (n UInt64, d DateTime('UTC')) ENGINE = MergeTree ORDER BY n")
        opened.execute("INSERT INTO t SELECT number, now() FROM numbers(5)")
        opened.execute("INSERT INTO t SELECT number, now() - 864000 FROM numbers(5)")
        opened.execute(ADD)
        yield opened


def check_filled(connection: Connection, *, rows: int, table: str = "t") -> None:
    """Check that each row has the value that the default had when the part was rewritten."""
    query = f"SELECT at, server = serverUUID(), up < 1000000, r FROM {table} ORDER BY n, r"
    found = connection.execute(query).fetchall()
    assert len(found) == rows
    for at, same_server, just_opened, _ in found:
        assert BEGAN < at < BEGAN + datetime.timedelta(hours=1)
        assert same_server
        assert just_opened
    assert len({row[3] for row in found}) == rows
    assert connection.execute(query).fetchall() == found


def test_a_merge(connection: Connection) -> None:
    connection.execute("OPTIMIZE TABLE t FINAL")
    check_filled(connection, rows=10)


def test_a_background_merge(connection: Connection) -> None:
    connection.execute("SYSTEM START MERGES")
    connection.execute("OPTIMIZE TABLE t")
    check_filled(connection, rows=10)


def test_the_end_of_rows_by_ttl(connection: Connection) -> None:
    connection.execute("ALTER TABLE t MODIFY TTL d + INTERVAL 5 DAY")
    connection.execute("OPTIMIZE TABLE t FINAL")
    check_filled(connection, rows=5)


def test_parts_that_come_from_another_table(connection: Connection) -> None:
    """ATTACH copies the filled columns unchanged, so a view over them stays provable."""
    connection.execute("CREATE TABLE u AS t")
    connection.execute("CREATE TABLE w (n UInt64, r UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute("CREATE MATERIALIZED VIEW v TO w AS SELECT n, r FROM u")
    connection.execute("ALTER TABLE u ATTACH PARTITION tuple() FROM t")
    check_filled(connection, rows=10, table="u")
    connection.execute("SYSTEM BACKFILL VIEW v")
    connection.execute("SYSTEM RECONCILE VIEW v")
    query = "SELECT verdict FROM system.views WHERE name = 'v'"
    assert connection.execute(query).fetchone() == ("proven",)


def test_a_clone(connection: Connection) -> None:
    connection.execute("CREATE TABLE u CLONE AS t")
    check_filled(connection, rows=10, table="u")


def test_two_merges_draw_other_numbers(connection: Connection) -> None:
    connection.execute("CREATE TABLE u (n UInt64) ENGINE = MergeTree PARTITION BY n % 2 ORDER BY n")
    for _ in range(2):
        connection.execute("INSERT INTO u SELECT number FROM numbers(4)")
    connection.execute("ALTER TABLE u ADD COLUMN r UInt64 DEFAULT rand64()")
    connection.execute("OPTIMIZE TABLE u FINAL")
    assert connection.execute("SELECT uniqExact(r) FROM u").fetchone() == (8,)
