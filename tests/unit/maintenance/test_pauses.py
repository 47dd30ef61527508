"""SYSTEM STOP and START [TTL] MERGES of a table, and of all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import olapdb
from olapdb.maintenance.merge_pauses import Pauses

pytestmark = pytest.mark.feature("upkeep")

WAIT_SECONDS = 20.0


def test_of_everything_but_one() -> None:
    pauses = Pauses()
    assert not pauses.paused("a")
    pauses.set(False)
    pauses.set(True, "a")
    assert (pauses.paused("a"), pauses.paused("b")) == (False, True)
    pauses.set(False, "a")
    assert pauses.paused("a")
    pauses.set(True)
    assert not pauses.paused("a")


def test_of_one_table() -> None:
    pauses = Pauses()
    pauses.set(False, "a")
    assert (pauses.paused("a"), pauses.paused("b")) == (True, False)
    pauses.set(True, "a")
    assert not pauses.paused("a")


def _parts(connection: olapdb.Connection, table: str) -> int:
    sql = f"SELECT count() FROM system.parts WHERE table = '{table}' AND rows > 0"
    return int(connection.execute(sql).fetchone()[0])


def _becomes(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        if condition():
            return True
        threading.Event().wait(0.05)
    return False


def test_a_stopped_table_keeps_its_parts_while_another_merges() -> None:
    with olapdb.connect() as connection:
        for table in ("a", "b"):
            connection.execute(f"CREATE TABLE {table} (k UInt64) ENGINE = MergeTree ORDER BY k")
        connection.execute("SYSTEM STOP MERGES a")
        for number in range(40):
            connection.execute(f"INSERT INTO a VALUES ({number})")
            connection.execute(f"INSERT INTO b VALUES ({number})")
        assert _becomes(lambda: _parts(connection, "b") < 20)
        assert _parts(connection, "a") == 40
        connection.execute("SYSTEM START MERGES a")
        assert _becomes(lambda: _parts(connection, "a") < 20)


def test_start_of_one_table_while_all_are_stopped() -> None:
    with olapdb.connect() as connection:
        for table in ("a", "b"):
            connection.execute(f"CREATE TABLE {table} (k UInt64) ENGINE = MergeTree ORDER BY k")
        connection.execute("SYSTEM STOP MERGES")
        for number in range(40):
            connection.execute(f"INSERT INTO a VALUES ({number})")
            connection.execute(f"INSERT INTO b VALUES ({number})")
        connection.execute("SYSTEM START MERGES a")
        assert _becomes(lambda: _parts(connection, "a") < 20)
        assert _parts(connection, "b") == 40
        connection.execute("OPTIMIZE TABLE b FINAL")
        assert _parts(connection, "b") == 1, "who asks for a merge gets it"


def test_expired_rows_stay_while_ttl_merges_are_stopped() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (k UInt64, d Date) ENGINE = MergeTree ORDER BY k"
            " TTL d + INTERVAL 1 DAY SETTINGS merge_with_ttl_timeout = 0"
        )
        connection.execute("SYSTEM STOP TTL MERGES t")
        connection.execute("INSERT INTO t VALUES (1, '2020-01-01')")
        connection.execute("INSERT INTO t VALUES (2, '2099-01-01')")
        connection.execute("OPTIMIZE TABLE t FINAL")
        assert connection.execute("SELECT count() FROM t").fetchone() == (2,)
        connection.execute("SYSTEM START TTL MERGES t")
        assert _becomes(lambda: connection.execute("SELECT k FROM t").fetchall() == [(2,)])


def test_what_is_no_table_is_refused() -> None:
    with olapdb.connect() as connection:
        with pytest.raises(olapdb.Error) as raised:
            connection.execute("SYSTEM STOP MERGES nope")
        assert raised.value.name == "UNKNOWN_TABLE"
