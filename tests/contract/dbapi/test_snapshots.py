"""SETTINGS snapshot = n reads the past as long as its parts are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, SnapshotTooOld, UnknownTable
from olapdb.maintenance.vacuum import vacuum

pytestmark = pytest.mark.feature("python", "commits")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect(":memory:") as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        yield connection


def ask(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def newest(connection: Connection) -> int:
    return ask(connection, "SELECT max(number) FROM system.snapshots")[0][0]


def test_rows_as_they_were(connection: Connection) -> None:
    before = newest(connection)
    connection.execute("INSERT INTO t VALUES (3)")
    connection.execute("DELETE FROM t WHERE a = 1")
    assert ask(connection, "SELECT a FROM t ORDER BY a") == [(2,), (3,)]
    assert ask(connection, f"SELECT a FROM t ORDER BY a SETTINGS snapshot = {before}") == [
        (1,),
        (2,),
    ]
    parts = f"SELECT sum(rows) FROM system.parts WHERE table = 't' SETTINGS snapshot = {before}"
    assert ask(connection, parts) == [(2,)]


def test_rows_are_brought_back(connection: Connection) -> None:
    before = newest(connection)
    connection.execute("TRUNCATE TABLE t")
    connection.execute(f"INSERT INTO t SELECT a FROM t SETTINGS snapshot = {before}")
    assert ask(connection, "SELECT a FROM t ORDER BY a") == [(1,), (2,)]


def test_a_table_that_was_dropped_is_read(connection: Connection) -> None:
    before = newest(connection)
    connection.execute("DROP TABLE t")
    assert ask(connection, f"SELECT count() FROM t SETTINGS snapshot = {before}") == [(2,)]
    with pytest.raises(UnknownTable):
        connection.execute("SELECT count() FROM t SETTINGS snapshot = 1")


def test_a_session_stays_in_the_past_and_writes_nothing_there(connection: Connection) -> None:
    before = newest(connection)
    connection.execute("CREATE TABLE u (a UInt8) ENGINE = MergeTree ORDER BY a")
    connection.execute(f"SET snapshot = {before}")
    assert ask(connection, "SHOW TABLES") == [("t",)]
    for statement in (
        "INSERT INTO t VALUES (9)",
        "DELETE FROM t WHERE a = 1",
        "DROP TABLE t",
        "CREATE TABLE w (a UInt8) ENGINE = MergeTree ORDER BY a",
    ):
        with pytest.raises(BadArguments, match="present"):
            connection.execute(statement)
    connection.execute("SET snapshot = 0")
    assert ask(connection, "SELECT count() FROM t") == [(2,)]


def test_what_cannot_be_read(connection: Connection) -> None:
    before = newest(connection)
    with pytest.raises(BadArguments, match="no snapshot"):
        connection.execute("SELECT 1 FROM t SETTINGS snapshot = 999")
    connection.execute("DELETE FROM t WHERE a = 1")
    vacuum(connection.database.services, lifetime_seconds=0)
    with pytest.raises(SnapshotTooOld):
        connection.execute(f"SELECT * FROM t SETTINGS snapshot = {before}")
    with pytest.raises(BadArguments, match="snapshot"):
        connection.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY a AS SELECT a FROM t"
            f" SETTINGS snapshot = {before}"
        )
