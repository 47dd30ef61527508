"""Partition statements race with other statements, which run whole just before the commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.changes import Commit, Committed
from tests.harness.race import Race
from tests.unit.views.warehouse import DIRECT, READ, VIEW, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("changes", "concurrency")

COPY = (
    "CREATE TABLE other (day Date, kind String, user UInt64, amount Int64)"
    " ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (day, kind)"
)


class PartitionRace(Race):
    def repaired(self) -> None:
        """Run the mends that system.views names; require a view equal to its source and a sound
        ledger."""
        for _ in range(3):
            (status,) = dicts(self.second, "SELECT * FROM system.views WHERE name = 'daily_mv'")
            if status["verdict"] in ("stale", "partial"):
                self.second.execute(str(status["mend"]))
        assert verdict(self.second) in ("covered", "proven")
        assert rows(self.second, READ) == rows(self.second, DIRECT)
        problems = dicts(self.second, "SYSTEM RECONCILE VIEW daily_mv METADATA")
        assert [p for p in problems if p["problems"]] == []
        services = self.second.database.services
        assert check_database(services.catalog, services.store) == []


@pytest.fixture
def race(tmp_path: Path) -> Iterator[PartitionRace]:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        first.execute("SYSTEM STOP MERGES")
        make(first)
        first.execute(COPY)
        for day in (1, 2, 3):
            add(first, (f"2024-01-0{day}", "a", day, 1), (f"2024-02-0{day}", "b", day, 1))
        first.execute("INSERT INTO other VALUES ('2024-01-09', 'o', 9, 9)")
        yield PartitionRace(first, second)


LEAVES = (
    "ALTER TABLE events DROP PARTITION 202401",
    "ALTER TABLE events DETACH PARTITION 202401",
    "ALTER TABLE events REPLACE PARTITION 202401 FROM other",
    "ALTER TABLE events MOVE PARTITION 202401 TO TABLE other",
    "ALTER TABLE daily DROP PARTITION 202401",
    "ALTER TABLE daily DETACH PARTITION 202401",
    "DELETE FROM daily WHERE day = '2024-01-01'",
    "ALTER TABLE events ATTACH PARTITION 202401 FROM other",
    "TRUNCATE ALL TABLES FROM default",
)
MEANWHILE = (
    "INSERT INTO events VALUES ('2024-01-05', 'a', 5, 5)",
    "OPTIMIZE TABLE events FINAL",
    "OPTIMIZE TABLE daily FINAL",
    "DELETE FROM events WHERE user = 2",
    "SYSTEM REPLAY VIEW daily_mv",
    "ALTER TABLE events DROP PARTITION 202401",
    "ALTER TABLE daily DROP PARTITION 202401",
    "TRUNCATE TABLE daily",
    "TRUNCATE TABLE other",
    "DROP TABLE other",
)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("statement", LEAVES)
def test_any_two(race: PartitionRace, statement: str, meanwhile: str) -> None:
    race.run(statement, meanwhile)
    race.repaired()


@pytest.mark.parametrize("statement", LEAVES[:4])
def test_a_backfill_in_between(race: PartitionRace, statement: str) -> None:
    """The view had not seen the rows when the statement looked."""
    race.first.execute("DROP VIEW daily_mv")
    race.first.execute("TRUNCATE TABLE daily")
    race.first.execute(VIEW)
    assert race.run(statement, "SYSTEM BACKFILL VIEW daily_mv")
    race.repaired()


@pytest.mark.parametrize("statement", LEAVES[:4])
def test_a_view_that_is_created_and_filled_in_between(race: PartitionRace, statement: str) -> None:
    race.first.execute("DROP VIEW daily_mv")
    race.first.execute("TRUNCATE TABLE daily")
    race.run(statement, VIEW, "SYSTEM BACKFILL VIEW daily_mv")
    race.repaired()


@pytest.mark.parametrize(
    ("job", "prepare"),
    [
        ("SYSTEM BACKFILL VIEW daily_mv", "ALTER TABLE daily DROP PARTITION 202401"),
        ("SYSTEM REPLAY VIEW daily_mv", ""),
        ("OPTIMIZE TABLE events FINAL", ""),
        ("OPTIMIZE TABLE daily FINAL", ""),
    ],
)
@pytest.mark.parametrize("statement", LEAVES)
def test_while_a_job_is_about_to_publish(
    race: PartitionRace, job: str, prepare: str, statement: str
) -> None:
    if prepare:
        race.first.execute(prepare)
    race.run(job, statement)
    race.repaired()


def test_the_view_is_dropped_while_its_target_loses_rows(race: PartitionRace) -> None:
    assert race.run("ALTER TABLE daily DROP PARTITION 202401", "DROP VIEW daily_mv")
    assert rows(race.second, "SELECT count() FROM daily WHERE day < '2024-02-01'") == [(0,)]


def test_what_is_attached_must_still_be_there(race: PartitionRace) -> None:
    race.first.execute("ALTER TABLE events DETACH PARTITION 202401")
    race.run(
        "ALTER TABLE events ATTACH PARTITION 202401", "ALTER TABLE events ATTACH PARTITION 202401"
    )
    assert rows(race.second, "SELECT count() FROM events") == [(6,)]
    race.repaired()


def test_retention_and_replay(race: PartitionRace) -> None:
    before = rows(race.first, READ)
    race.run(
        "SYSTEM REPLAY VIEW daily_mv",
        "ALTER TABLE events DROP PARTITION 202401 SETTINGS retain = 1",
    )
    assert rows(race.second, READ) == before
    assert verdict(race.second) == "retained"


def test_replay_and_retention(race: PartitionRace) -> None:
    before = rows(race.first, READ)
    race.run(
        "ALTER TABLE events DROP PARTITION 202401 SETTINGS retain = 1",
        "SYSTEM REPLAY VIEW daily_mv",
    )
    assert rows(race.second, READ) == before
    assert verdict(race.second) == "retained"


def test_giving_up_does_not_forget_what_left_meanwhile(race: PartitionRace) -> None:
    race.first.execute("ALTER TABLE events DROP PARTITION 202401 SETTINGS retain = 1")
    race.run(
        "SYSTEM REPLAY VIEW daily_mv PARTITION 202401 SETTINGS discard_retained = 1",
        "ALTER TABLE events DROP PARTITION 202402 SETTINGS retain = 1",
    )
    kept = rows(race.second, "SELECT target_partition_id FROM system.view_retained")
    assert kept == [("202402",)]
    assert rows(race.second, "SELECT count() FROM daily WHERE day >= '2024-02-01'") == [(3,)]


def test_vacuum_while_parts_are_shared(race: PartitionRace) -> None:
    race.first.execute("SET inline_bytes_max = 0")
    race.first.execute("INSERT INTO other VALUES ('2024-03-09', 'o', 9, 9)")
    catalog = race.first.database.services.catalog
    apply = catalog.apply

    def meddled(commit: Commit) -> Committed:
        del catalog.apply
        race.second.execute("ALTER TABLE other DROP PARTITION 202403")
        vacuum(race.second.database.services, lifetime_seconds=0)
        assert catalog.apply == apply
        return apply(commit)

    catalog.apply = meddled  # type: ignore[method-assign]
    race.first.execute("ALTER TABLE events ATTACH PARTITION 202403 FROM other")
    assert rows(race.second, "SELECT count() FROM events") == [(6,)]
    race.repaired()


def test_a_merge_joins_what_becomes_a_gap_with_what_does_not(race: PartitionRace) -> None:
    """Otherwise the merged source part would be covered in half: neither gap nor seen."""
    race.first.execute(
        "CREATE TABLE weeks (week Date, n UInt64) ENGINE = SummingMergeTree PARTITION BY week"
        " ORDER BY week"
    )
    race.first.execute("TRUNCATE TABLE events")
    race.first.execute(
        "CREATE MATERIALIZED VIEW weeks_mv TO weeks AS SELECT toMonday(day) AS week, count() AS n"
        " FROM events GROUP BY week"
    )
    add(race.first, ("2024-01-01", "a", 1, 1))
    add(race.first, ("2024-01-02", "a", 1, 1), ("2024-01-08", "b", 2, 2))
    select = "SELECT week, sum(n) FROM weeks GROUP BY week ORDER BY week"
    before = rows(race.first, select)
    race.run("ALTER TABLE weeks DROP PARTITION '2024-01-01'", "OPTIMIZE TABLE events FINAL")
    for _ in range(3):
        (status,) = dicts(race.second, "SELECT * FROM system.views WHERE name = 'weeks_mv'")
        if status["verdict"] in ("stale", "partial"):
            race.second.execute(str(status["mend"]))
    problems = dicts(race.second, "SYSTEM RECONCILE VIEW weeks_mv METADATA")
    assert [p for p in problems if p["problems"]] == []
    assert rows(race.second, select) == before
