"""The story of `events` and `events_by_country_hourly`: a materialized view is an INSERT trigger.

A million rows become five rollup rows. In ClickHouse two things fail silently: a row written
straight into the target, and a view created after the data. Here system.views names each one, with
the statement that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BypassRows, HaveDependentObjects
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("views")

EVENTS = """CREATE TABLE {database}events
(ts DateTime, country LowCardinality(String), user_id UInt64, path String, duration_ms UInt32)
ENGINE = MergeTree PARTITION BY toYYYYMM(ts) ORDER BY (country, ts)"""

ROLLUP = """CREATE TABLE {database}events_by_country_hourly
(hour DateTime, country LowCardinality(String), events UInt64)
ENGINE = SummingMergeTree ORDER BY (hour, country)"""

VIEW = """CREATE MATERIALIZED VIEW events_by_country_mv
TO events_by_country_hourly AS
SELECT toStartOfHour(ts) AS hour,
       country,
       count() AS events
FROM events
GROUP BY hour, country;"""

INCOMING_BLOCK = """INSERT INTO {database}events
SELECT toDateTime('{hour}') + number % 3600 AS ts,
       ['DE', 'FR', 'IN', 'JP', 'US'][intHash64(number) % 5 + 1] AS country,
       number % 10007 AS user_id,
       concat('/p/', toString(number % 100)) AS path,
       number % 977 AS duration_ms
FROM numbers({rows})"""

DASHBOARD = """SELECT hour, country, sum(events) FROM {database}events_by_country_hourly
GROUP BY hour, country ORDER BY hour, country"""

SCAN = """SELECT toStartOfHour(ts) AS hour, country, count() FROM {database}events
GROUP BY hour, country ORDER BY hour, country"""


def _rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query.format(database="")).fetchall()


def _insert(connection: Connection, hour: str, rows: int = 1_000_000) -> None:
    connection.execute(INCOMING_BLOCK.format(database="", hour=hour, rows=rows))


def _shown(connection: Connection, statement: str) -> list[dict[str, object]]:
    cursor = connection.execute(statement)
    names = [c[0] for c in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _view(connection: Connection) -> dict[str, object]:
    (view,) = _shown(connection, "SELECT * FROM system.views WHERE name = 'events_by_country_mv'")
    return view


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(tmp_path / "warehouse") as opened:
        opened.execute(EVENTS.format(database=""))
        opened.execute(ROLLUP.format(database=""))
        yield opened


# --- a million rows in, five rollup rows ----------------------------------------------------------


def test_a_million_rows_in_and_five_rollup_rows(connection: Connection, oracle: Oracle) -> None:
    connection.execute(VIEW)
    _insert(connection, "2024-03-01 10:00:00")

    parts = "SELECT sum(rows) FROM system.parts WHERE table = '{table}'"
    assert _rows(connection, parts.format(table="events")) == [(1_000_000,)]
    assert _rows(connection, parts.format(table="events_by_country_hourly")) == [(5,)]
    dashboard = connection.execute(DASHBOARD.format(database=""))
    rollup = dashboard.fetchall()
    assert rollup == _rows(connection, SCAN)
    assert sum(row[2] for row in rollup) == 1_000_000
    assert dashboard.statistics.rows_read == 5

    # The same statements in ClickHouse.
    for statement in (EVENTS, ROLLUP):
        oracle.execute(statement.format(database="rollup_story_"))
    names = ("events_by_country_hourly", "FROM events")
    view = VIEW.replace(names[0], f"rollup_story_{names[0]}")
    oracle.execute(view.replace(names[1], "FROM rollup_story_events").rstrip(";"))
    oracle.execute(
        INCOMING_BLOCK.format(database="rollup_story_", hour="2024-03-01 10:00:00", rows=1_000_000)
    )
    theirs = oracle.query(DASHBOARD.format(database="rollup_story_")).rows
    assert [(str(hour), country, str(events)) for hour, country, events in rollup] == theirs

    # And the proof, which ClickHouse does not offer.
    (verdict,) = _shown(connection, "SYSTEM RECONCILE VIEW events_by_country_mv")
    assert (verdict["verdict"], verdict["keys_compared"]) == ("equal", 5)
    assert _view(connection)["verdict"] == "proven"


def test_the_trigger_sees_the_incoming_block_only(connection: Connection) -> None:
    """A second INSERT appends its own rows to the target, merges add them up, the answer stays
    right."""
    connection.execute("SYSTEM STOP MERGES")
    connection.execute(VIEW)
    _insert(connection, "2024-03-01 10:00:00", 100_000)
    _insert(connection, "2024-03-01 10:00:00", 50_000)

    unmerged = "SELECT count(), sum(events) FROM events_by_country_hourly"
    assert _rows(connection, unmerged) == [(10, 150_000)]
    dashboard = _rows(connection, DASHBOARD)
    assert dashboard == _rows(connection, SCAN)
    assert (
        _rows(connection, "SELECT * FROM events_by_country_hourly FINAL ORDER BY hour, country")
        == dashboard
    )
    connection.execute("SYSTEM START MERGES")
    connection.execute("OPTIMIZE TABLE events_by_country_hourly FINAL")
    assert _rows(connection, unmerged) == [(5, 150_000)]
    assert _rows(connection, DASHBOARD) == dashboard
    assert _view(connection)["verdict"] == "covered"


def test_source_and_rollup_land_together_or_not_at_all(connection: Connection) -> None:
    connection.execute(VIEW)
    connection.execute(
        """CREATE TABLE checked (country String, events UInt64) ENGINE = SummingMergeTree
           ORDER BY country"""
    )
    connection.execute(
        """CREATE MATERIALIZED VIEW fails_mv TO checked AS
           SELECT country, sum(throwIf(duration_ms = 976, 'a slow one')) AS events
           FROM events GROUP BY country"""
    )
    with pytest.raises(olapdb.Error, match="a slow one") as failed:
        _insert(connection, "2024-03-01 10:00:00", 10_000)
    assert "fails_mv" in str(failed.value)
    for table in ("events", "events_by_country_hourly", "checked"):
        assert _rows(connection, f"SELECT count() FROM {table}") == [(0,)]


# --- the direct write -----------------------------------------------------------------------------


def test_a_direct_write_into_the_target_is_shown_and_discarded(connection: Connection) -> None:
    connection.execute(VIEW)
    _insert(connection, "2024-03-01 10:00:00")
    connection.execute(
        "INSERT INTO events_by_country_hourly VALUES ('2024-03-01 10:00:00', 'DE', 777), "
        "('2024-03-01 11:00:00', 'BR', 12)"
    )
    # The trigger never fired, and the rollup holds rows that the source cannot explain.
    assert _rows(connection, DASHBOARD) != _rows(connection, SCAN)

    view = _view(connection)
    assert (view["verdict"], view["bypass_rows"]) == ("bypassed", 2)
    assert view["reason"] == (
        "2 rows of the target (in all) were made by no view. DISCARD BYPASS removes them."
    )
    assert _rows(
        connection,
        "SELECT is_bypass, sum(rows) FROM system.parts "
        "WHERE table = 'events_by_country_hourly' GROUP BY is_bypass ORDER BY is_bypass",
    ) == [(0, 5), (1, 2)]

    # RECONCILE reports which keys are wrong, and by how much.
    (found,) = _shown(connection, "SYSTEM RECONCILE VIEW events_by_country_mv")
    assert (found["verdict"], found["bypass_rows"], found["gap_rows"]) == ("different", 2, 0)
    assert (found["missing"], found["extra"], found["differing"]) == (0, 1, 1)
    assert found["largest_difference"] == 777
    assert set(found["examples"]) == {  # type: ignore[call-overload]
        "extra (2024-03-01 11:00:00, BR)",
        "differing (2024-03-01 10:00:00, DE)",
    }
    assert found["causes"] == ["2 rows that no view made"]

    # ADOPT refuses the rows and a merge keeps them apart; only DISCARD BYPASS removes them.
    with pytest.raises(BypassRows, match="BR"):
        connection.execute("SYSTEM ADOPT VIEW events_by_country_mv")
    connection.execute("OPTIMIZE TABLE events_by_country_hourly FINAL")
    assert _view(connection)["bypass_rows"] == 2

    mend = str(_view(connection)["mend"])
    assert mend == "SYSTEM REPLAY VIEW default.events_by_country_mv DISCARD BYPASS"
    (replayed,) = _shown(connection, mend)
    assert (replayed["status"], replayed["bypass_rows"]) == ("bypass discarded", 2)
    assert _rows(connection, DASHBOARD) == _rows(connection, SCAN)
    connection.execute("SYSTEM RECONCILE VIEW events_by_country_mv")
    assert _view(connection)["verdict"] == "proven"


# --- the late view --------------------------------------------------------------------------------


def test_a_late_view_shows_what_it_missed_and_a_backfill_fills_it(connection: Connection) -> None:
    _insert(connection, "2024-02-01 10:00:00", 600_000)
    _insert(connection, "2024-03-01 10:00:00", 400_000)
    connection.execute(VIEW)
    _insert(connection, "2024-03-01 12:00:00", 100_000)

    # Only the last INSERT fired the trigger; the rest is a gap, listed by partition.
    assert _rows(connection, "SELECT sum(events) FROM events_by_country_hourly") == [(100_000,)]
    view = _view(connection)
    assert (view["verdict"], view["gap_rows"]) == ("partial", 1_000_000)
    assert view["reason"] == "It has not seen 1000000 rows."
    assert _rows(
        connection,
        "SELECT partition_id, status, rows FROM system.view_coverage "
        "WHERE view = 'events_by_country_mv' ORDER BY partition_id, status",
    ) == [("202402", "gap", 600_000), ("202403", "covered", 100_000), ("202403", "gap", 400_000)]

    chunks = _shown(connection, str(view["mend"]))
    assert {(c["partition"], c["rows"], c["status"]) for c in chunks} == {
        ("202402", 600_000, "published"),
        ("202403", 400_000, "published"),
    }
    assert _rows(connection, DASHBOARD) == _rows(connection, SCAN)
    assert _shown(connection, "SYSTEM BACKFILL VIEW events_by_country_mv") == []  # no row twice
    connection.execute("SYSTEM RECONCILE VIEW events_by_country_mv")
    assert _view(connection)["verdict"] == "proven"


def test_a_late_view_filled_by_hand_is_adopted(connection: Connection) -> None:
    """The story's way: INSERT INTO target SELECT … FROM source WHERE ts < cutoff."""
    _insert(connection, "2024-03-01 10:00:00", 300_000)
    connection.execute(VIEW)
    _insert(connection, "2024-03-01 12:00:00", 100_000)
    connection.execute(
        """INSERT INTO events_by_country_hourly
           SELECT toStartOfHour(ts) AS hour, country, count() AS events
           FROM events WHERE ts < toDateTime('2024-03-01 12:00:00') GROUP BY hour, country"""
    )
    view = _view(connection)
    assert (view["bypass_rows"], view["gap_rows"]) == (5, 300_000)
    connection.execute("SYSTEM ADOPT VIEW events_by_country_mv")
    view = _view(connection)
    assert (view["verdict"], view["bypass_rows"], view["gap_rows"]) == ("proven", 0, 0)
    assert _rows(connection, DASHBOARD) == _rows(connection, SCAN)


@pytest.mark.parametrize("populate", ["before AS", "with TO"])
def test_populate_loses_nothing(connection: Connection, populate: str) -> None:
    """create_mv(…, populate=True): in ClickHouse rows can be lost meanwhile, or it is an error."""
    _insert(connection, "2024-03-01 10:00:00", 100_000)
    select = VIEW[VIEW.index("SELECT") :]
    if populate == "with TO":
        head = "events_by_country_mv TO events_by_country_hourly POPULATE"
        target = "events_by_country_hourly"
    else:
        head = "events_by_country_mv ENGINE = SummingMergeTree ORDER BY (hour, country) POPULATE"
        target = "events_by_country_mv"
    connection.execute(f"CREATE MATERIALIZED VIEW {head} AS {select}")
    _insert(connection, "2024-03-01 11:00:00", 100_000)
    assert _rows(
        connection,
        f"SELECT hour, country, sum(events) FROM {target} GROUP BY hour, country "
        "ORDER BY hour, country",
    ) == _rows(connection, SCAN)
    assert _view(connection)["verdict"] == "covered"


def test_what_the_view_needs_is_not_dropped_under_it(connection: Connection) -> None:
    connection.execute(VIEW)
    for table in ("events", "events_by_country_hourly"):
        with pytest.raises(HaveDependentObjects, match="events_by_country_mv") as refused:
            connection.execute(f"DROP TABLE {table}")
        assert "DROP VIEW default.events_by_country_mv first" in refused.value.hint
    connection.execute("DROP VIEW events_by_country_mv")
    connection.execute("DROP TABLE events")
    assert _rows(connection, "SELECT count() FROM events_by_country_hourly") == [(0,)]
