"""raw_events to events_agg: a published pipeline of hourly aggregates with TTL and monthly
partitions.

The published target is a plain MergeTree with finished sums: every block adds its own groups. Its
schema v2 is deployed blue-green while events arrive. Then typical failures of production happen: a
target partition is dropped, a view is detached for a while, a part is damaged on disk, old events
expire. system.views names each one, with the statement that mends it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ChecksumDoesntMatch, RetainedRows
from olapdb.maintenance.check import check_database
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views")

RAW = """
    CREATE TABLE analytics.raw_events
    (`timestamp` DateTime, `user_id` UInt64, `event_type` LowCardinality(String), `duration_ms` UInt64)
    ENGINE = MergeTree PARTITION BY toYYYYMM(timestamp) ORDER BY (timestamp, user_id)
    TTL timestamp + INTERVAL 20 YEAR
"""
TARGET = """
    CREATE TABLE IF NOT EXISTS analytics.events_agg
    (
        `event_date` Date,
        `event_hour` DateTime,
        `user_id` UInt64,
        `event_type` LowCardinality(String),
        `count` UInt64,
        `sum_duration_ms` UInt64
    )
    ENGINE = MergeTree()
    PARTITION BY toYYYYMM(event_date)
    ORDER BY (event_date, event_hour, event_type, user_id)
    TTL event_date + INTERVAL 30 YEAR
"""
VIEW = """
    CREATE MATERIALIZED VIEW IF NOT EXISTS analytics.mv_events_agg
    TO analytics.events_agg
    AS
    SELECT
        toDate(timestamp) AS event_date,
        toStartOfHour(timestamp) AS event_hour,
        user_id,
        event_type,
        count() AS count,
        sum(duration_ms) AS sum_duration_ms
    FROM analytics.raw_events
    GROUP BY event_date, event_hour, event_type, user_id
"""
DEPLOY_V2 = """
    SYSTEM REBUILD VIEW analytics.mv_events_agg
    ENGINE = SummingMergeTree ORDER BY (event_date, event_hour, event_type, user_id)
    AS SELECT
        toDate(timestamp) AS event_date,
        toStartOfHour(timestamp) AS event_hour,
        user_id,
        event_type,
        count() AS count,
        sum(duration_ms) AS sum_duration_ms,
        countIf(duration_ms > 900) AS slow
    FROM analytics.raw_events
    GROUP BY event_date, event_hour, event_type, user_id
"""
EVENTS = """
    INSERT INTO analytics.raw_events SETTINGS inline_bytes_max = 0
    SELECT toDateTime('2026-01-01 00:00:00') + number * 777, number % 50,
           ['click', 'view', 'buy'][1 + number % 3], number % 997
    FROM numbers({}, {})
"""
COUNTS = "SELECT toYYYYMM({}) AS month, {} AS events, {} AS duration FROM {} GROUP BY month ORDER BY month"
IN_SOURCE = COUNTS.format("timestamp", "count()", "sum(duration_ms)", "analytics.raw_events")
IN_TARGET = COUNTS.format(
    "event_date", "sum(count)", "sum(sum_duration_ms)", "analytics.events_agg"
)
CHECKSUM_OF_SOURCE = """
    SELECT sum(CRC32(concat(toString(h), ' ', toString(user_id), ' ', event_type, ' ', toString(n), ' ',
                            toString(d)))) FROM (
        SELECT toStartOfHour(timestamp) AS h, user_id, event_type, count() AS n, sum(duration_ms) AS d
        FROM analytics.raw_events GROUP BY h, user_id, event_type)
"""
CHECKSUM_OF_TARGET = """
    SELECT sum(CRC32(concat(toString(h), ' ', toString(user_id), ' ', event_type, ' ', toString(n), ' ',
                            toString(d)))) FROM (
        SELECT event_hour AS h, user_id, event_type, sum(count) AS n, sum(sum_duration_ms) AS d
        FROM analytics.events_agg GROUP BY h, user_id, event_type)
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(str(tmp_path)) as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute("CREATE DATABASE analytics")
        for statement in (RAW, TARGET, VIEW, EVENTS.format(0, 6_000), EVENTS.format(6_000, 6_000)):
            opened.execute(statement)
        yield opened


@pytest.fixture
def v2(connection: Connection) -> Connection:
    connection.execute(DEPLOY_V2)
    connection.execute("DROP VIEW analytics.mv_events_agg__v1")
    return connection


def status(connection: Connection, name: str = "mv_events_agg") -> dict[str, Any]:
    return dicts(connection, f"SELECT * FROM system.views WHERE name = '{name}'")[0]


def assert_true(connection: Connection) -> None:
    """Require equal row counts and checksums of source and target, a proven view and a sound
    ledger."""
    assert rows(connection, IN_TARGET) == rows(connection, IN_SOURCE)
    assert rows(connection, CHECKSUM_OF_TARGET) == rows(connection, CHECKSUM_OF_SOURCE)
    reconciled = dicts(connection, "SYSTEM RECONCILE VIEW analytics.mv_events_agg")
    assert {r["verdict"] for r in reconciled} == {"equal"}
    assert status(connection)["verdict"] == "proven"
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def test_as_published_it_adds_up_and_cannot_be_proven(connection: Connection) -> None:
    assert rows(connection, IN_TARGET) == rows(connection, IN_SOURCE)
    view = status(connection)
    assert view["verdict"] == "unproven"
    assert "each block adds its own groups, which nothing joins" in view["reason"]


def test_schema_v2_is_deployed_under_load(connection: Connection) -> None:
    stop = threading.Event()
    inserted, slowest_ms = [12_000], [0.0]

    def ingest() -> None:
        import time

        with olapdb.connect(connection.database.location) as own:
            while not stop.is_set():
                started = time.perf_counter()
                own.execute(EVENTS.format(inserted[0], 100))
                slowest_ms[0] = max(slowest_ms[0], (time.perf_counter() - started) * 1000)
                inserted[0] += 100

    ingestion = threading.Thread(target=ingest)
    ingestion.start()
    try:
        steps = dicts(connection, DEPLOY_V2)
    finally:
        stop.set()
        ingestion.join(60)
    print(f"{inserted[0] - 12_000} events came in meanwhile; slowest INSERT {slowest_ms[0]:.0f} ms")
    assert steps[-1]["step"] == "swap"
    assert inserted[0] > 12_000
    assert rows(connection, "SELECT count() FROM analytics.raw_events") == [(inserted[0],)]
    assert rows(connection, "SELECT sum(slow) FROM analytics.events_agg") == rows(
        connection, "SELECT countIf(duration_ms > 900) FROM analytics.raw_events"
    )
    assert_true(connection)
    # Both versions have every event, so the old one can be restored at any time.
    connection.execute(EVENTS.format(inserted[0], 100))
    connection.execute("SYSTEM ROLLBACK VIEW analytics.mv_events_agg")
    assert rows(connection, IN_TARGET) == rows(connection, IN_SOURCE)
    connection.execute("SYSTEM ROLLBACK VIEW analytics.mv_events_agg")
    assert_true(connection)
    connection.execute("DROP VIEW analytics.mv_events_agg__v1")
    connection.execute(EVENTS.format(inserted[0] + 100, 100))
    assert_true(connection)


def test_a_deployment_of_a_wrong_query_changes_nothing(connection: Connection) -> None:
    before = rows(connection, "SELECT * FROM analytics.events_agg ORDER BY ALL")
    with pytest.raises(olapdb.Error) as refused:
        connection.execute(DEPLOY_V2.replace("sum(duration_ms)", "avg(duration_ms)"))
    assert refused.value.hint  # type: ignore[attr-defined]
    with pytest.raises(olapdb.Error, match="stopped"):
        connection.execute(
            DEPLOY_V2.replace("countIf(duration_ms > 900)", "sum(throwIf(duration_ms = 996))")
        )
    assert rows(connection, "SELECT * FROM analytics.events_agg ORDER BY ALL") == before
    connection.execute("SYSTEM CANCEL REBUILD VIEW analytics.mv_events_agg")
    connection.execute(DEPLOY_V2)
    assert_true(connection)


def test_a_partition_of_the_target_is_dropped(v2: Connection) -> None:
    lost = rows(v2, "SELECT count() FROM analytics.raw_events WHERE toYYYYMM(timestamp) = 202602")
    v2.execute("ALTER TABLE analytics.events_agg DROP PARTITION 202602")
    view = status(v2)
    assert (view["verdict"], view["gap_rows"]) == ("partial", lost[0][0])
    covered = "SELECT partition_id, status FROM system.view_coverage ORDER BY partition_id"
    assert ("202602", "gap") in rows(v2, covered)
    assert view["mend"] == "SYSTEM BACKFILL VIEW analytics.mv_events_agg"
    v2.execute(view["mend"])
    assert_true(v2)


def test_a_view_is_detached_for_a_while(v2: Connection) -> None:
    v2.execute("DETACH VIEW analytics.mv_events_agg")
    v2.execute(EVENTS.format(12_000, 500))
    v2.execute("ATTACH VIEW analytics.mv_events_agg")
    v2.execute(EVENTS.format(12_500, 500))
    view = status(v2)
    assert (view["verdict"], view["gap_rows"]) == ("partial", 500)
    v2.execute(view["mend"])
    assert_true(v2)


def test_a_part_of_the_target_rots_on_disk(v2: Connection, tmp_path: Path) -> None:
    v2.execute("OPTIMIZE TABLE analytics.events_agg FINAL SETTINGS inline_bytes_max = 0")
    asked = "SELECT name, path FROM system.parts WHERE table = 'events_agg' AND partition_id = '202603' AND active"
    ((name, path),) = rows(v2, asked)
    flip(Path(path) if Path(path).is_absolute() else tmp_path / path)
    with olapdb.connect(str(tmp_path)) as fresh:
        found = dicts(fresh, "CHECK TABLE analytics.events_agg")
        assert [r["part_path"] for r in found if not r["is_passed"]] == [name]
        with pytest.raises(ChecksumDoesntMatch, match=Path(path).name):
            fresh.execute("SELECT sum(count) FROM analytics.events_agg").fetchall()
        others = "SELECT sum(count) FROM analytics.events_agg WHERE event_date < '2026-03-01'"
        assert rows(fresh, others)[0][0] > 0
        fresh.execute("ALTER TABLE analytics.events_agg DROP PARTITION 202603")
        view = status(fresh)
        assert view["verdict"] == "partial"
        fresh.execute(view["mend"])
        assert_true(fresh)


def flip(path: Path) -> None:
    """Flip one byte amid the rows of the file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)


def test_old_events_expire_and_what_was_made_of_them_stays(v2: Connection) -> None:
    v2.execute(
        "INSERT INTO analytics.raw_events SELECT toDateTime('2001-03-01 00:00:00') + number, 1,"
        " 'click', 10 FROM numbers(1000)"
    )
    assert rows(v2, IN_TARGET)[0] == (200103, 1000, 10_000)
    v2.execute("ALTER TABLE analytics.raw_events MATERIALIZE TTL")
    assert rows(v2, IN_SOURCE)[0][0] == 202601
    assert rows(v2, IN_TARGET)[0] == (200103, 1000, 10_000)
    v2.execute("SYSTEM REPLAY VIEW analytics.mv_events_agg STALE")
    v2.execute("SYSTEM RECONCILE VIEW analytics.mv_events_agg")
    assert rows(v2, IN_TARGET)[0] == (200103, 1000, 10_000)
    assert status(v2)["verdict"] == "retained"
    with pytest.raises(RetainedRows):  # a new version could not be built from deleted events
        v2.execute("SYSTEM REBUILD VIEW analytics.mv_events_agg")
    # MODIFY QUERY applies to the events that exist, and keeps the results of the deleted ones.
    select = DEPLOY_V2[DEPLOY_V2.index("AS SELECT") + 3 :]
    v2.execute(
        f"ALTER TABLE analytics.mv_events_agg MODIFY QUERY {select.replace('> 900', '> 100')}"
    )
    v2.execute("SYSTEM REPLAY VIEW analytics.mv_events_agg STALE")
    assert rows(v2, IN_TARGET) == [(200103, 1000, 10_000), *rows(v2, IN_SOURCE)]
    slow = "SELECT sum(slow) FROM analytics.events_agg"
    assert rows(v2, slow) == rows(v2, "SELECT countIf(duration_ms > 100) FROM analytics.raw_events")
    v2.execute("SYSTEM REBUILD VIEW analytics.mv_events_agg SETTINGS discard_retained = 1")
    assert_true(v2)
    v2.execute("SYSTEM ROLLBACK VIEW analytics.mv_events_agg")
    assert rows(v2, IN_TARGET)[0] == (200103, 1000, 10_000)
