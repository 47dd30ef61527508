"""The setting session_timezone: what is stored stays in the warehouse's zone."""

from __future__ import annotations

import datetime

import pytest

import olapdb

pytestmark = pytest.mark.feature("settings")

TOKYO = "SET session_timezone = 'Asia/Tokyo'"
VISITS = """CREATE TABLE visits (id UInt32, n UInt8, ts DateTime, day Date MATERIALIZED toDate(ts),
    CONSTRAINT early CHECK toHour(ts) < 23,
    PROJECTION days (SELECT toDate(ts), count() GROUP BY toDate(ts)))
    ENGINE = MergeTree PARTITION BY toYYYYMM(ts) ORDER BY (toDate(ts), id)"""
DAYS = "SELECT toDate(ts), count() FROM visits GROUP BY toDate(ts) ORDER BY 1"


@pytest.fixture
def cursor() -> olapdb.Cursor:
    """Return a cursor of a warehouse with 20 rows, inserted in the zone of Tokyo: the first at
    05:00 UTC on January 31."""
    cursor = olapdb.connect().cursor()
    cursor.execute(TOKYO)
    cursor.execute(VISITS)
    cursor.execute(
        "INSERT INTO visits SELECT number, 0, toDateTime('2024-01-31 14:00:00') + number * 3600"
        " FROM numbers(17)"
    )
    return cursor


def answer(cursor: olapdb.Cursor, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query."""
    cursor.execute(sql)
    return cursor.fetchall()


def test_projections_and_keys_are_of_the_warehouse(cursor: olapdb.Cursor) -> None:
    january, february = datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)
    assert answer(cursor, DAYS) == [(january, 10), (february, 7)]
    assert answer(cursor, "SELECT count() FROM visits WHERE toYYYYMM(ts) = 202402") == [(7,)]
    assert answer(cursor, "SELECT DISTINCT _partition_id FROM visits") == [("202401",)]
    cursor.execute("SET session_timezone = ''")
    assert answer(cursor, DAYS) == [(january, 17)]
    assert answer(cursor, "SELECT DISTINCT day FROM visits") == [(january,)]


def test_a_constraint_is_checked_in_the_zone_of_the_warehouse(cursor: olapdb.Cursor) -> None:
    cursor.execute("INSERT INTO visits (id, ts) VALUES (20, '2024-02-01 23:30:00')")
    with pytest.raises(olapdb.Error) as raised:
        cursor.execute("INSERT INTO visits (id, ts) VALUES (20, '2024-02-02 08:30:00')")
    assert raised.value.name == "VIOLATED_CONSTRAINT"


def test_python_reads_and_writes_times_of_the_session(cursor: olapdb.Cursor) -> None:
    noon = datetime.datetime(2024, 2, 1, 12)
    cursor.execute("INSERT INTO visits (id, ts) VALUES (?, ?)", (30, noon))
    assert answer(
        cursor,
        "SELECT ts, [ts], ts = ? FROM visits WHERE id = 30".replace("?", "'2024-02-01 12:00:00'"),
    ) == [(noon, [noon], 1)]
    cursor.execute("SET session_timezone = ''")
    earlier = noon - datetime.timedelta(hours=9)
    assert answer(cursor, "SELECT ts FROM visits WHERE id = 30") == [(earlier,)]


def test_a_table_is_made_of_the_rows_that_the_query_shows(cursor: olapdb.Cursor) -> None:
    cursor.execute(
        "CREATE TABLE days ENGINE = MergeTree ORDER BY d AS SELECT toDate(ts) AS d FROM visits"
    )
    found = answer(cursor, "SELECT d, count() FROM days GROUP BY d ORDER BY d")
    assert [count for _, count in found] == [10, 7]


def test_conditions_on_a_time_exclude_parts(cursor: olapdb.Cursor) -> None:
    cursor.execute("INSERT INTO visits (id, ts) VALUES (40, '2024-05-01 00:00:00')")
    plan = answer(
        cursor, "EXPLAIN indexes = 1 SELECT id FROM visits WHERE ts >= '2024-04-30 12:00:00'"
    )
    assert any("Parts: 1/2" in str(line) for (line,) in plan)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM visits WHERE ts = '2024-01-31 14:00:00'",
        "ALTER TABLE visits DELETE WHERE ts = '2024-01-31 14:00:00'",
        "ALTER TABLE visits UPDATE n = 1 WHERE ts = '2024-01-31 14:00:00'",
        "UPDATE visits SET n = 1 WHERE ts = '2024-01-31 14:00:00'",
        "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY d AS SELECT toDate(ts) AS d FROM visits",
    ],
)
def test_what_changes_rows_is_refused(cursor: olapdb.Cursor, sql: str) -> None:
    with pytest.raises(olapdb.NotSupportedError, match="session_timezone"):
        cursor.execute(sql)
    cursor.execute("SET session_timezone = 'UTC'")
    cursor.execute(sql)


def test_a_view_computes_in_the_zone_of_the_warehouse(cursor: olapdb.Cursor) -> None:
    cursor.execute("SET session_timezone = ''")
    cursor.execute(
        "CREATE MATERIALIZED VIEW v ENGINE = SummingMergeTree ORDER BY d"
        " AS SELECT toDate(ts) AS d, count() AS c FROM visits GROUP BY d"
    )
    cursor.execute(TOKYO)
    cursor.execute("INSERT INTO visits (id, ts) VALUES (50, '2024-02-02 05:00:00')")
    assert answer(cursor, "SELECT d, c FROM v") == [(datetime.date(2024, 2, 1), 1)]
    cursor.execute("SYSTEM BACKFILL VIEW v")
    cursor.execute("SYSTEM RECONCILE VIEW v")
    cursor.execute("SET session_timezone = ''")
    assert answer(cursor, "SELECT sum(c) FROM v") == [(18,)]
    assert answer(cursor, "SELECT count() FROM visits") == [(18,)]


def test_an_unknown_zone_is_an_error(cursor: olapdb.Cursor) -> None:
    with pytest.raises(olapdb.Error) as raised:
        cursor.execute("SET session_timezone = 'Mars/Olympus'")
    assert raised.value.name == "BAD_ARGUMENTS"
    assert answer(cursor, "SELECT timezone(), serverTimezone()") == [("Asia/Tokyo", "UTC")]
