"""Races a change of rows against retention of another partition, which freezes keys that the
change reaches."""

from __future__ import annotations

import pytest

from olapdb.model.requirements import DataVersionIs
from tests.harness.race import Race
from tests.protocol.test_names_on_engine import race

pytestmark = pytest.mark.feature("commits", "replay", "engines")

__all__ = ["race"]

TABLES = """
    CREATE TABLE events (user UInt64, kind String, amount Int64)
    ENGINE = MergeTree PARTITION BY user ORDER BY kind;
    CREATE TABLE by_kind (kind String, n UInt64, total Int64)
    ENGINE = SummingMergeTree ORDER BY kind;
    CREATE MATERIALIZED VIEW by_kind_mv TO by_kind AS
    SELECT kind, count() AS n, sum(amount) AS total FROM events GROUP BY kind;
    INSERT INTO events VALUES (1, 'a', 1), (2, 'a', 10)
"""
RETENTION = "ALTER TABLE events DROP PARTITION 1 SETTINGS retain = 1"


DELETES = (
    "DELETE FROM events WHERE user = 2",
    "ALTER TABLE events DELETE WHERE user = 2",
    "ALTER TABLE events DROP PARTITION 2",
)
CHANGES = (
    *DELETES,
    "ALTER TABLE events UPDATE amount = 11 WHERE user = 2",
    "TRUNCATE TABLE events",
)
"""For the last two, other requirements also make the race with the retention conflict."""


@pytest.mark.parametrize(
    ("statement", "fault"), [*((one, False) for one in CHANGES), *((one, True) for one in DELETES)]
)
def test_keys_that_are_frozen_meanwhile_are_known_as_stale(
    race: Race, statement: str, fault: bool
) -> None:
    for one in TABLES.split(";"):
        race.first.execute(one)
    assert race.run(statement, RETENTION, without=DataVersionIs if fault else None)
    race.second.execute("SYSTEM REPLAY VIEW by_kind_mv STALE")
    ((reason,),) = race.ask("SELECT reason FROM system.views WHERE name = 'by_kind_mv'")
    assert ("(stale)" in str(reason)) != fault, reason


TARGET_CHANGES = (
    "TRUNCATE TABLE by_kind",
    "DELETE FROM by_kind WHERE kind = 'a'",
    "ALTER TABLE by_kind DROP PARTITION ID 'all'",
)


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("statement", TARGET_CHANGES)
def test_rows_that_are_frozen_meanwhile_are_not_taken_out(
    race: Race, statement: str, fault: bool
) -> None:
    for one in TABLES.split(";"):
        race.first.execute(one)
    done = race.run(statement, RETENTION, without=DataVersionIs if fault else None)
    assert done == fault, "what is frozen could not be made again"
    assert bool(race.ask("SELECT * FROM by_kind")) != fault


@pytest.mark.parametrize("statement", TARGET_CHANGES)
def test_nothing_is_frozen_that_is_gone_meanwhile(race: Race, statement: str) -> None:
    for one in TABLES.split(";"):
        race.first.execute(one)
    assert race.run(RETENTION, statement)
    assert race.ask("SELECT retained_rows FROM system.views") == [(0,)]
