"""system.view_invalidations lists each invalidated key once, and counts it once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import add, make, rows

pytestmark = pytest.mark.feature("views", "replay", "engines")

MARKS = "SELECT partition_id, rows, keys FROM system.view_invalidations"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened)
        add(opened, ("2024-01-01", "a", 1, 1), ("2024-01-01", "a", 2, 2), ("2024-01-02", "b", 3, 3))
        yield opened


def test_an_update_removes_and_adds_rows_of_the_same_keys(connection: Connection) -> None:
    connection.execute("ALTER TABLE events UPDATE amount = 7 WHERE 1")
    assert rows(connection, MARKS) == [("202401", 2, ["(2024-01-01, a)", "(2024-01-02, b)"])]


def test_an_update_that_moves_rows_reaches_both_keys(connection: Connection) -> None:
    connection.execute("ALTER TABLE events UPDATE user = 9 WHERE kind = 'b'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    connection.execute(
        "CREATE TABLE users (user UInt64, n UInt64) ENGINE = SummingMergeTree ORDER BY user"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW users_mv TO users AS"
        " SELECT user, count() AS n FROM events GROUP BY user"
    )
    connection.execute("SYSTEM BACKFILL VIEW users_mv")
    connection.execute("ALTER TABLE events UPDATE user = 10 WHERE kind = 'b'")
    assert rows(connection, f"{MARKS} WHERE view = 'users_mv'") == [("all", 2, ["9", "10"])]


def test_parts_that_hold_the_same_key_name_it_once(connection: Connection) -> None:
    add(connection, ("2024-01-02", "b", 4, 4))
    connection.execute("DELETE FROM events WHERE kind = 'b'")
    assert rows(connection, f"{MARKS.replace('rows, ', '')}") == [("202401", ["(2024-01-02, b)"])]


def test_a_target_that_keeps_equal_rows(connection: Connection) -> None:
    """Without a GROUP BY, one key has several rows."""
    connection.execute(
        "CREATE TABLE copies (kind String, user UInt64) ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW copies_mv TO copies AS SELECT kind, user FROM events"
    )
    add(connection, ("2024-01-01", "z", 1, 1), ("2024-01-01", "z", 2, 1))
    connection.execute("ALTER TABLE events UPDATE user = user + 1 WHERE kind = 'z'")
    assert rows(connection, f"{MARKS} WHERE view = 'copies_mv'") == [("all", 1, ["z"])]
