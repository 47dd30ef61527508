"""Views whose keys are bytes but not UTF-8, which ClickHouse's String allows: every operation on
their rows works, and messages show such bytes escaped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.errors import ViolatedConstraint

pytestmark = pytest.mark.feature("views", "engines")

KEY = "concat(unhex('ff'), toString(number))"


@pytest.fixture
def connection() -> Iterator[olapdb.Connection]:
    connection = olapdb.connect(":memory:")
    connection.execute(
        "CREATE TABLE source (a UInt8, b String, d Date) ENGINE = MergeTree"
        " PARTITION BY toYYYYMM(d) ORDER BY b"
    )
    connection.execute(
        "CREATE TABLE target (b String, t Array(String), d Date, n UInt64)"
        " ENGINE = SummingMergeTree PARTITION BY toYear(d) ORDER BY (b, t, d)"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO target AS"
        " SELECT b, [b] AS t, d, count() AS n FROM source GROUP BY b, t, d"
    )
    for month, start in (("01", 0), ("02", 3)):
        connection.execute(
            f"INSERT INTO source SELECT number, {KEY}, '2024-{month}-05' FROM numbers({start}, 6)"
        )
    yield connection
    connection.close()


def verdicts(connection: olapdb.Connection) -> set[str]:
    return {row[-2] for row in connection.execute("SYSTEM RECONCILE VIEW v").fetchall()}


def test_rows_are_deleted_and_changed(connection: olapdb.Connection) -> None:
    assert verdicts(connection) == {"equal"}
    connection.execute("DELETE FROM source WHERE a = 1")
    connection.execute("DELETE FROM source WHERE b = concat(unhex('ff'), '7')")
    keys = connection.execute("SELECT keys FROM system.view_invalidations").fetchall()
    assert any("\\xff1" in key for (some,) in keys for key in some), keys
    connection.execute("SYSTEM REPLAY VIEW v")
    assert verdicts(connection) == {"equal"}


def test_a_difference_is_named(connection: olapdb.Connection) -> None:
    connection.execute("DELETE FROM target WHERE b = concat(unhex('ff'), '4')")
    assert verdicts(connection).isdisjoint({"equal"})
    shown = str(connection.execute("SYSTEM RECONCILE VIEW v").fetchall())
    assert "\\xff4" in shown.replace("\\\\", "\\")


def test_what_leaves_by_retention_is_frozen_by_its_bounds(connection: olapdb.Connection) -> None:
    connection.execute("ALTER TABLE source DROP PARTITION 202401 SETTINGS retain = 1")
    connection.execute("INSERT INTO source SELECT 9, char(0xEE, 0x80, 0x80), '2024-01-06'")
    connection.execute("ALTER TABLE source DROP PARTITION 202401 SETTINGS retain = 1")
    (kept,) = connection.execute("SELECT sum(n) FROM target").fetchall()
    connection.execute("SYSTEM REPLAY VIEW v")
    assert connection.execute("SELECT sum(n) FROM target").fetchall() == [kept]
    (left,) = connection.execute("SELECT count() FROM system.view_retained").fetchone()
    assert left


def test_a_joined_table_changes(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE names (b String, name String) ENGINE = MergeTree ORDER BY b")
    connection.execute(f"INSERT INTO names SELECT {KEY}, 'old' FROM numbers(3)")
    connection.execute(
        "CREATE TABLE named (b String, name String, n UInt64) ENGINE = MergeTree ORDER BY b"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW w TO named AS SELECT source.b AS b, name, count() AS n"
        " FROM source JOIN names ON source.b = names.b GROUP BY b, name"
    )
    connection.execute("SYSTEM BACKFILL VIEW w")
    connection.execute(f"INSERT INTO names SELECT {KEY}, 'new' FROM numbers(4, 1)")
    connection.execute("ALTER TABLE names UPDATE name = 'other' WHERE b = concat(unhex('ff'), '1')")
    connection.execute("SYSTEM REPLAY VIEW w")
    found = connection.execute("SELECT hex(b), name, sum(n) FROM named GROUP BY ALL ORDER BY ALL")
    assert found.fetchall() == [
        ("FF30", "old", 1),
        ("FF31", "other", 1),
        ("FF32", "old", 1),
        ("FF34", "new", 2),
    ]


def test_a_violated_constraint_can_be_told(connection: olapdb.Connection) -> None:
    connection.execute(
        "CREATE TABLE t (b String, CONSTRAINT c CHECK length(b) < 2) ENGINE = Memory"
    )
    with pytest.raises(ViolatedConstraint, match=r"\\xff1"):
        connection.execute("INSERT INTO t SELECT concat(unhex('ff'), '1')")
    told = connection.execute("SELECT last_error_message FROM system.errors").fetchall()
    assert any("\\xff1" in message for (message,) in told)
