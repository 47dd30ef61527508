"""Rows that leave a view's target (rule 5): the view's gap where a backfill can bring them back
exactly, stale where it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import DIRECT, READ, add, dicts, make, rows, verdict


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened)
        yield opened


def gaps(connection: Connection) -> list[tuple[object, ...]]:
    return rows(
        connection,
        "SELECT partition_id, rows FROM system.view_coverage WHERE status = 'gap' ORDER BY 1",
    )


def stale(connection: Connection) -> list[tuple[object, ...]]:
    return rows(connection, "SELECT partition_id, cause FROM system.view_invalidations ORDER BY 1")


def sound(connection: Connection) -> None:
    assert rows(connection, READ) == rows(connection, DIRECT)
    sound_ledger(connection)
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")} <= {"equal"}


def sound_ledger(connection: Connection) -> None:
    problems = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv METADATA")
    assert [p for p in problems if p["problems"]] == []


def test_a_dropped_partition_is_a_gap(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    add(connection, ("2024-02-01", "a", 1, 1))
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert gaps(connection) == [("202401", 2)]
    assert stale(connection) == []
    assert verdict(connection) == "partial"
    add(connection, ("2024-01-03", "a", 1, 1))  # goes on being seen
    assert gaps(connection) == [("202401", 2)]
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert gaps(connection) == []
    sound(connection)


def test_after_merges_too(connection: Connection) -> None:
    for day in range(1, 5):
        add(connection, (f"2024-01-0{day}", "a", 1, 1))
        add(connection, (f"2024-02-0{day}", "a", 1, 1))
    connection.execute("OPTIMIZE TABLE events FINAL")
    connection.execute("OPTIMIZE TABLE daily FINAL")
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert gaps(connection) == [("202401", 4)]
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


def test_a_block_of_two_months_is_a_gap_by_partition(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-02-01", "b", 2, 2))
    add(connection, ("2024-01-02", "a", 1, 1))
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert gaps(connection) == [("202401", 2)]
    assert stale(connection) == []
    sound_ledger(connection)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


def test_a_part_that_reached_two_partitions_is_stale_not_a_gap(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE weeks (week Date, n UInt64) ENGINE = SummingMergeTree PARTITION BY week"
        " ORDER BY week"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW weeks_mv TO weeks AS SELECT toMonday(day) AS week, count() AS n"
        " FROM events GROUP BY week"
    )
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-08", "b", 2, 2))
    add(connection, ("2024-01-02", "a", 1, 1))
    select = "SELECT week, sum(n) FROM weeks GROUP BY week ORDER BY week"
    before = rows(connection, select)
    for order in (("BACKFILL VIEW weeks_mv", "REPLAY VIEW weeks_mv STALE"),
                  ("REPLAY VIEW weeks_mv STALE", "BACKFILL VIEW weeks_mv")):  # fmt: skip
        connection.execute("ALTER TABLE weeks DROP PARTITION '2024-01-01'")
        assert stale(connection) == [("20240101", "TARGET CHANGED")]
        for operation in order:
            connection.execute(f"SYSTEM {operation}")
        assert rows(connection, select) == before
        assert verdict(connection, "weeks_mv") == "covered"


def test_a_source_partition_that_reaches_every_partition_of_the_target(
    connection: Connection,
) -> None:
    """The target is partitioned by what the source is not: nothing can be a gap."""
    connection.execute(
        "CREATE TABLE kinds (kind String, n SimpleAggregateFunction(sum, UInt64))"
        " ENGINE = AggregatingMergeTree PARTITION BY kind ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW kinds_mv TO kinds AS SELECT kind, count() AS n FROM events"
        " GROUP BY kind"
    )
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    add(connection, ("2024-01-03", "a", 1, 1))
    connection.execute("ALTER TABLE kinds DROP PARTITION 'a'")
    # The second block reached 'a' only.
    assert rows(
        connection,
        "SELECT rows FROM system.view_coverage WHERE view = 'kinds_mv' AND status = 'gap'",
    ) == [(1,)]
    assert verdict(connection, "kinds_mv") == "stale"
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    connection.execute("SYSTEM BACKFILL VIEW kinds_mv")
    assert rows(connection, "SELECT kind, sum(n) FROM kinds GROUP BY kind ORDER BY kind") == [
        ("a", 2), ("b", 1),
    ]  # fmt: skip


def test_deleted_rows_make_their_slice_stale(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    connection.execute("DELETE FROM daily WHERE kind = 'a'")
    assert stale(connection) == [("202401", "TARGET CHANGED")]
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    sound(connection)


def test_a_delete_that_empties_a_partition_is_a_gap(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    connection.execute("DELETE FROM daily WHERE 1")
    assert (gaps(connection), stale(connection)) == ([("202401", 2)], [])
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


def test_bypass_rows_may_be_deleted_without_a_word(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute("INSERT INTO daily (day, kind, events) VALUES ('2024-01-01', 'hand', 5)")
    connection.execute("DELETE FROM daily WHERE kind = 'hand'")
    assert (gaps(connection), stale(connection)) == ([], [])
    sound(connection)


def test_views_further_down_are_stale(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE months (m UInt32, n UInt64) ENGINE = SummingMergeTree ORDER BY m"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW months_mv TO months AS SELECT toYYYYMM(day) AS m,"
        " sum(daily.events) AS n FROM daily GROUP BY m"
    )
    add(connection, ("2024-01-01", "a", 1, 1))
    add(connection, ("2024-02-01", "a", 1, 1))
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert verdict(connection, "months_mv") == "stale"
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")  # fires months_mv
    connection.execute("SYSTEM REPLAY VIEW months_mv STALE")
    assert rows(connection, "SELECT m, sum(n) FROM months GROUP BY m ORDER BY m") == [
        (202401, 1), (202402, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("statement", [
    "ALTER TABLE daily DETACH PARTITION 202401",
    "ALTER TABLE daily REPLACE PARTITION 202401 FROM other SETTINGS"
    " allow_replace_partition_from_empty_source = 1",
    "ALTER TABLE daily MOVE PARTITION 202401 TO TABLE other",
])  # fmt: skip
def test_other_ways_for_a_partition_to_leave(connection: Connection, statement: str) -> None:
    connection.execute("CREATE TABLE other AS daily")
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute(statement)
    assert gaps(connection) == [("202401", 1)]
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


def test_what_is_attached_to_a_target_is_bypass(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute("ALTER TABLE daily DETACH PARTITION 202401")
    connection.execute("ALTER TABLE daily ATTACH PARTITION 202401")
    assert verdict(connection) == "bypassed"
    assert gaps(connection) == [("202401", 1)]
    connection.execute("SYSTEM ADOPT VIEW daily_mv")  # it is what the view missed
    assert verdict(connection) == "proven"
    sound(connection)


def test_two_views_into_one_target(connection: Connection) -> None:
    connection.execute("CREATE TABLE more AS events")
    connection.execute(
        "CREATE MATERIALIZED VIEW more_mv TO daily AS SELECT day, kind, count() AS events,"
        " sum(amount) AS total, uniqExactState(user) AS users, avgState(amount) AS mean FROM more"
        " GROUP BY day, kind"
    )
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute(
        "INSERT INTO more VALUES ('2024-01-01', 'a', 2, 5), ('2024-02-01', 'a', 2, 5)"
    )
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert verdict(connection, "daily_mv") == "partial"
    assert verdict(connection, "more_mv") == "partial"
    connection.execute("SYSTEM BACKFILL VIEW more_mv")
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert rows(connection, "SELECT day, sum(events) FROM daily GROUP BY day ORDER BY day") == rows(
        connection,
        "SELECT day, count() FROM (SELECT day FROM events UNION ALL SELECT day FROM more)"
        " GROUP BY day ORDER BY day",
    )


def test_rows_of_a_null_source_are_gone(connection: Connection) -> None:
    connection.execute("CREATE TABLE stream (day Date) ENGINE = Null")
    connection.execute(
        "CREATE TABLE days (day Date, n UInt64) ENGINE = SummingMergeTree PARTITION BY day ORDER BY day"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW days_mv TO days AS SELECT day, count() AS n FROM stream GROUP BY day"
    )
    connection.execute("INSERT INTO stream VALUES ('2024-01-01')")
    connection.execute("ALTER TABLE days DROP PARTITION '2024-01-01'")
    assert rows(connection, "SELECT * FROM days") == []
    assert verdict(connection, "days_mv") == "unproven"


def test_a_stale_slice_that_is_dropped_is_a_gap_and_no_more_stale(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    connection.execute("DELETE FROM events WHERE kind = 'b'")
    assert verdict(connection) == "stale"
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert (gaps(connection), stale(connection)) == ([("202401", 1)], [])
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)
