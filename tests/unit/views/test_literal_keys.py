"""A literal in a target's key lets several views share one table, each marking its own rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ViewNotProvable
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views", "engines")

READ = "SELECT channel, day, n FROM daily FINAL ORDER BY channel, day"
COUNTED = """
    SELECT * FROM (
        SELECT 'web' AS channel, day, count() AS n FROM web GROUP BY day
        UNION ALL SELECT 'app' AS channel, day, count() AS n FROM app GROUP BY day
    ) ORDER BY channel, day
"""


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        for table in ("web", "app"):
            opened.execute(
                f"CREATE TABLE {table} (day Date, v Int64) ENGINE = MergeTree"
                " PARTITION BY toYYYYMM(day) ORDER BY day"
            )
            opened.execute(f"INSERT INTO {table} VALUES ('2024-01-01', 1), ('2024-02-01', 1)")
        opened.execute(
            "CREATE TABLE daily (channel String, day Date, n UInt64) ENGINE = SummingMergeTree"
            " PARTITION BY toYYYYMM(day) ORDER BY (channel, day)"
        )
        opened.execute(  # Whether the query groups by the literal does not matter.
            "CREATE MATERIALIZED VIEW web_mv TO daily AS"
            " SELECT 'web' AS channel, day, count() AS n FROM web GROUP BY channel, day"
        )
        opened.execute(
            "CREATE MATERIALIZED VIEW app_mv TO daily AS"
            " SELECT concat('a', 'pp') AS channel, day, count() AS n FROM app GROUP BY day"
        )
        yield opened


def verdicts(connection: Connection) -> set[str]:
    return {row["verdict"] for row in dicts(connection, "SELECT verdict FROM system.views")}


def test_triggers_backfill_replay_and_retention(connection: Connection) -> None:
    for table in ("web", "app"):
        connection.execute(f"INSERT INTO {table} VALUES ('2024-01-01', 2), ('2024-03-01', 2)")
        connection.execute(f"SYSTEM BACKFILL VIEW {table}_mv")
    assert rows(connection, READ) == rows(connection, COUNTED)
    for view in ("web_mv", "app_mv"):
        connection.execute(f"SYSTEM RECONCILE VIEW {view}")
    assert verdicts(connection) == {"proven"}

    connection.execute("ALTER TABLE web DELETE WHERE day = '2024-03-01'")
    connection.execute("SYSTEM REPLAY VIEW web_mv STALE")
    replayed = dicts(
        connection, "SYSTEM REPLAY VIEW web_mv WHERE channel = 'app' AND day = '2024-01-01'"
    )
    assert [row["partition"] for row in replayed] == ["202401"]
    assert rows(connection, READ) == rows(connection, COUNTED)

    before = rows(connection, READ)
    connection.execute("ALTER TABLE web DROP PARTITION 202401 SETTINGS retain = 1")
    connection.execute("SYSTEM REPLAY VIEW web_mv")
    assert rows(connection, READ) == before


def test_a_total_has_a_literal_key_and_nothing_else(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE totals (k String, n UInt64) ENGINE = SummingMergeTree ORDER BY k"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW total TO totals AS SELECT 'all' AS k, count() AS n FROM web WHERE v > 1"
    )
    connection.execute("SYSTEM BACKFILL VIEW total")
    connection.execute("INSERT INTO web VALUES ('2024-01-01', 1), ('2024-01-01', 2)")
    assert rows(connection, "SELECT * FROM totals FINAL") == [("all", 1)]
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW total")} == {"equal"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'web' AS channel, count() AS n FROM web",  # day is missing
        # grouped by v, which the target lacks
        "SELECT 'web' AS channel, day, count() AS n FROM web GROUP BY day, v",
        "SELECT 'web' AS channel, day, 5 AS n FROM web GROUP BY day",  # 5 does not add up
    ],
)
def test_what_a_literal_does_not_excuse(connection: Connection, query: str) -> None:
    with pytest.raises(ViewNotProvable):
        connection.execute(f"CREATE MATERIALIZED VIEW refused TO daily AS {query}")
