"""ADOPT makes backfills by hand the view's own, but only once a comparison proves them right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BypassRows, ViewNotProvable
from olapdb.maintenance.check import check_database
from tests.unit.views.warehouse import DIRECT, QUERY, READ, VIEW, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("views", "reconcile")

OLD = QUERY.replace("FROM events", "FROM events WHERE day < '2024-03-01'")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        make(opened, view=False)
        for month in (1, 2):
            add(opened, *((f"2024-0{month}-0{d}", "ab"[d % 2], d, d * 10) for d in (1, 2, 3)))
        yield opened
        services = opened.database.services
        assert check_database(services.catalog, services.store) == []


def adopted(connection: Connection) -> list[tuple[str, int, int]]:
    done = dicts(connection, "SYSTEM ADOPT VIEW daily_mv")
    return [(r["partition"], r["rows"], r["source_rows"]) for r in done]


def test_a_backfill_by_hand(connection: Connection) -> None:
    connection.execute(VIEW)
    add(connection, ("2024-03-01", "a", 1, 10), ("2024-01-01", "b", 7, 70))
    # A backfill by hand of everything older than the view, which here is two months.
    connection.execute(
        "INSERT INTO daily "
        + QUERY.replace("FROM events", "FROM events WHERE user < 7 AND day < '2024-03-01'")
    )
    assert verdict(connection) == "bypassed"
    assert rows(connection, READ) == rows(connection, DIRECT)

    assert adopted(connection) == [("202401", 3, 6), ("202402", 3, 6)]
    assert verdict(connection) == "proven"
    assert dicts(connection, "SYSTEM BACKFILL VIEW daily_mv") == []
    assert adopted(connection) == [], "there is nothing left to adopt"

    add(connection, ("2024-02-02", "a", 1, 10))
    connection.execute("OPTIMIZE TABLE daily FINAL")
    connection.execute("OPTIMIZE TABLE events FINAL")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert rows(connection, "SELECT sum(is_bypass) FROM system.parts WHERE table = 'daily'") == [
        (0,)
    ]
    connection.execute("DELETE FROM events WHERE day = '2024-01-02'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_the_cutoff_in_the_view(connection: Connection) -> None:
    """A view that filters by a cutoff date never produces the older rows that were inserted by
    hand, so it cannot adopt them. The view without the cutoff can."""
    cut = QUERY.replace("FROM events", "FROM events WHERE day >= '2024-03-01'")
    connection.execute(f"CREATE MATERIALIZED VIEW daily_mv TO daily AS {cut}")
    add(connection, ("2024-03-01", "a", 1, 10))
    connection.execute(f"INSERT INTO daily {OLD}")
    with pytest.raises(BypassRows) as refused:
        adopted(connection)
    assert "partition 202401" in str(refused.value)
    assert "3 extra" in str(refused.value)
    assert "without that condition" in str(refused.value.hint)
    assert verdict(connection) == "bypassed"

    connection.execute("DROP VIEW daily_mv")
    connection.execute(VIEW)
    assert adopted(connection) == [("202401", 3, 7), ("202402", 3, 7), ("202403", 1, 7)]
    assert verdict(connection) == "proven"
    add(connection, ("2024-01-01", "a", 9, 90), ("2024-03-01", "a", 9, 90))
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_a_gap_that_is_filled_in_part(connection: Connection) -> None:
    connection.execute(VIEW)
    january = QUERY.replace("FROM events", "FROM events WHERE day < '2024-02-01'")
    connection.execute(f"INSERT INTO daily {january}")
    with pytest.raises(BypassRows) as refused:
        adopted(connection)
    assert "partition 202402" in str(refused.value)
    assert "3 missing" in str(refused.value)
    assert "202402" in str(refused.value.hint)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv PARTITION 202402")
    assert adopted(connection) == [("202401", 3, 3)]
    assert verdict(connection) == "proven"


def test_rows_that_are_there_twice_are_not_adopted(connection: Connection) -> None:
    connection.execute(VIEW)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute(f"INSERT INTO daily {OLD}")
    before = rows(connection, "SELECT max(number) FROM system.snapshots")
    with pytest.raises(BypassRows) as refused:
        adopted(connection)
    assert "3 differing" in str(refused.value)
    assert "So does another partition" in str(refused.value)
    assert "DISCARD BYPASS" in str(refused.value.hint)
    assert "BACKFILL" not in str(refused.value.hint), "there is no gap"
    assert rows(connection, "SELECT max(number) FROM system.snapshots") == before


def mend(connection: Connection) -> str:
    return str(rows(connection, "SELECT mend FROM system.views WHERE name = 'daily_mv'")[0][0])


def test_what_cannot_be_adopted_is_mended_otherwise(connection: Connection) -> None:
    """system.views names ADOPT while it may help, and stops once ADOPT was refused."""
    connection.execute(VIEW)
    connection.execute("INSERT INTO daily " + OLD)
    connection.execute("INSERT INTO daily " + OLD)
    assert mend(connection) == "SYSTEM ADOPT VIEW default.daily_mv"
    with pytest.raises(BypassRows):
        connection.execute(mend(connection))
    discard = "SYSTEM BACKFILL VIEW default.daily_mv DISCARD BYPASS"
    assert mend(connection) == discard
    (found,) = dicts(connection, "SELECT * FROM system.view_checks WHERE mode = 'ADOPT'")
    assert (found["verdict"], found["is_current"], found["differing"]) == ("different", 1, 6)
    assert "6 differing" in str(rows(connection, "SELECT reason FROM system.views")[0][0])

    # rows from triggers do not make the bypass rows right
    add(connection, ("2024-03-01", "a", 1, 10))
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert (mend(connection), verdict(connection)) == (discard, "bypassed")
    connection.execute("INSERT INTO daily " + OLD)
    assert mend(connection) == "SYSTEM ADOPT VIEW default.daily_mv", "other rows by hand"
    with pytest.raises(BypassRows):
        connection.execute(mend(connection))
    connection.execute(mend(connection))
    assert verdict(connection) == "covered"
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_several_parts_and_source_rows_that_leave_no_trace(connection: Connection) -> None:
    """Rows were added by hand in several INSERTs; a filter empties one source partition."""
    kept = QUERY.replace("FROM events", "FROM events WHERE amount < 1000")
    add(connection, ("2024-05-01", "a", 1, 5000))
    connection.execute("SYSTEM STOP MERGES")
    connection.execute(f"CREATE MATERIALIZED VIEW daily_mv TO daily AS {kept}")
    for day in ("2024-01-01", "2024-01-02", "2024-01-03"):
        connection.execute(
            "INSERT INTO daily " + QUERY.replace("FROM events", f"FROM events WHERE day = '{day}'")
        )
    connection.execute(f"INSERT INTO daily {OLD.replace('WHERE', 'WHERE toMonth(day) = 2 AND')}")
    done = dicts(connection, "SYSTEM ADOPT VIEW daily_mv")
    assert [(r["partition"], r["parts"], r["rows"]) for r in done] == [
        ("202401", 3, 3),
        ("202402", 1, 3),
    ]
    assert verdict(connection) == "proven"
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert verdict(connection) == "proven"


def test_a_late_insert_is_no_part_of_the_comparison(connection: Connection) -> None:
    """Rows that triggers add during the comparison belong to the view and are not adopted."""
    connection.execute(VIEW)
    connection.execute(f"INSERT INTO daily {OLD}")
    once = iter([True])

    def meddle(event: object) -> None:
        if next(once, False):
            add(connection, ("2024-01-01", "a", 9, 90))

    done = connection.views["daily_mv"].adopt(progress=meddle)
    assert [(r.partition, r.rows) for r in done] == [("202401", 3), ("202402", 3)]
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert {r.verdict for r in connection.views["daily_mv"].reconcile()} == {"equal"}


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM events WHERE day = '2024-01-01'",
        "SYSTEM BACKFILL VIEW daily_mv",
        "SYSTEM REPLAY VIEW daily_mv DISCARD BYPASS",
        "TRUNCATE TABLE daily",
    ],
)
def test_what_changed_meanwhile_is_compared_anew(connection: Connection, change: str) -> None:
    connection.execute(VIEW)
    connection.execute(f"INSERT INTO daily {OLD}")
    once = iter([True])

    def meddle(event: object) -> None:
        if next(once, False):
            connection.execute(change)

    before = {"TRUNCATE TABLE daily", "SYSTEM REPLAY VIEW daily_mv DISCARD BYPASS"}
    if change in before:
        assert connection.views["daily_mv"].adopt(progress=meddle) == ()
    else:
        with pytest.raises(BypassRows):
            connection.views["daily_mv"].adopt(progress=meddle)
    assert verdict(connection) != "proven"


def test_a_replay_that_is_under_way_keeps_what_was_adopted(connection: Connection) -> None:
    connection.execute(VIEW)
    connection.execute(f"INSERT INTO daily {OLD}")
    add(connection, ("2024-01-01", "a", 9, 90))
    once = iter([True])

    def meddle(event: object) -> None:
        if next(once, False):
            connection.execute("SYSTEM ADOPT VIEW daily_mv")

    connection.views["daily_mv"].replay(progress=meddle)
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert {r.verdict for r in connection.views["daily_mv"].check_ledger()} == {"covered"}


def test_what_a_dropped_view_made_is_bypass_and_stays_apart(connection: Connection) -> None:
    connection.execute(VIEW)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute("DROP VIEW daily_mv")
    connection.execute(VIEW)
    add(connection, ("2024-01-01", "b", 9, 90))
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert verdict(connection) == "bypassed"
    bypass = "SELECT sum(rows) FROM system.parts WHERE table = 'daily' AND is_bypass"
    assert rows(connection, bypass) == [(6,)]
    assert adopted(connection) == [("202401", 3, 6), ("202402", 3, 6)]
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_views_on_the_target_are_not_disturbed(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE monthly (month UInt32, events SimpleAggregateFunction(sum, UInt64))"
        " ENGINE = AggregatingMergeTree ORDER BY month"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW monthly_mv TO monthly AS"
        " SELECT toYYYYMM(day) AS month, sum(events) AS events FROM daily GROUP BY month"
    )
    connection.execute(VIEW)
    connection.execute(f"INSERT INTO daily {OLD}")
    connection.execute("SYSTEM RECONCILE VIEW monthly_mv")
    assert verdict(connection, "monthly_mv") == "proven"
    adopted(connection)
    assert verdict(connection, "monthly_mv") == "proven", "it reads the same rows as before"
    assert dicts(connection, "SYSTEM RECONCILE VIEW monthly_mv")[0]["verdict"] == "equal"
    assert rows(
        connection, "SELECT month, sum(events) FROM monthly GROUP BY month ORDER BY month"
    ) == [(202401, 3), (202402, 3)]


def test_a_null_source_cannot_be_compared(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE void (day Date, kind String, user UInt64, amount Int64) ENGINE = Null"
    )
    connection.execute(VIEW.replace("FROM events", "FROM void"))
    connection.execute(f"INSERT INTO daily {OLD}")
    with pytest.raises(ViewNotProvable, match="keeps no rows"):
        adopted(connection)
