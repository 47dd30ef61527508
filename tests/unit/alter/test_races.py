"""ALTER and UPDATE race with other statements, which run whole just before the commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.maintenance.check import check_database
from tests.harness.race import Race
from tests.unit.views.warehouse import DIRECT, READ, VIEW, add, make, rows

pytestmark = pytest.mark.feature("schema", "concurrency")

INSERT = "INSERT INTO events (day, kind, user, amount) VALUES ('2024-01-01', 'a', 9, 100)"


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        first.execute("SYSTEM STOP MERGES")
        second.execute("SYSTEM STOP MERGES")
        make(first)
        add(first, ("2024-01-01", "a", 1, 10), ("2024-02-01", "b", 2, 20))
        yield Race(first, second)
        services = first.database.services
        assert check_database(services.catalog, services.store) == []


def assert_views_right(race: Race, direct: str = DIRECT) -> None:
    race.second.execute("SYSTEM BACKFILL VIEW daily_mv")
    race.second.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert race.ask(READ) == race.ask(direct)


def test_an_insert_begins_again_with_the_new_column(race: Race) -> None:
    assert race.run(INSERT, "ALTER TABLE events ADD COLUMN fee Int64 DEFAULT amount * 2")
    assert race.ask("SELECT fee FROM events ORDER BY user") == [(20,), (40,), (200,)]
    assert_views_right(race)


def test_an_insert_begins_again_without_the_dropped_column(race: Race) -> None:
    race.first.execute("ALTER TABLE events ADD COLUMN fee Int64")
    assert not race.run(
        "INSERT INTO events (day, kind, user, amount, fee) VALUES ('2024-01-01', 'a', 9, 1, 1)",
        "ALTER TABLE events DROP COLUMN fee",
    ), "it names a column that is gone"
    assert race.ask("SELECT count() FROM events") == [(2,)]
    assert_views_right(race)


def test_an_insert_meets_a_rename(race: Race) -> None:
    assert race.run(
        "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 100)",
        "ALTER TABLE events RENAME COLUMN amount TO cents",
    )
    assert race.ask("SELECT sum(cents) FROM events") == [(130,)]
    assert_views_right(race, DIRECT.replace("amount", "cents"))


def test_an_insert_is_checked_by_a_constraint_that_came_meanwhile(race: Race) -> None:
    assert not race.run(INSERT, "ALTER TABLE events ADD CONSTRAINT small CHECK amount < 50")
    assert race.ask("SELECT count() FROM events") == [(2,)]


def test_a_conversion_is_tried_on_rows_that_came_meanwhile(race: Race) -> None:
    race.first.execute("ALTER TABLE events ADD COLUMN code String DEFAULT '5'")
    alter = "ALTER TABLE events MODIFY COLUMN code UInt8"
    bad = "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 1, 'x')"
    assert not race.run(alter, bad), "'x' is no number"
    assert race.ask("SELECT DISTINCT code FROM events ORDER BY code") == [("5",), ("x",)]
    race.first.execute("ALTER TABLE events DELETE WHERE code = 'x'")
    assert race.run(alter, "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 1, '7')")
    assert race.ask("SELECT DISTINCT code FROM events ORDER BY code") == [(5,), (7,)]


def test_nulls_that_came_meanwhile_are_replaced(race: Race) -> None:
    race.first.execute("ALTER TABLE events ADD COLUMN n Nullable(Int64)")
    assert race.run(
        "ALTER TABLE events MODIFY COLUMN n Int64 DEFAULT 3",
        "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 1, NULL), ('2024-01-01', 'a', 10, 1, 4)",
    )
    assert race.ask("SELECT n FROM events ORDER BY user") == [(3,), (3,), (3,), (4,)]
    race.second.execute("OPTIMIZE TABLE events FINAL")
    assert race.ask("SELECT n FROM events ORDER BY user") == [(3,), (3,), (3,), (4,)]


def test_two_alters_both_hold(race: Race) -> None:
    assert race.run(
        "ALTER TABLE events ADD COLUMN a UInt8", "ALTER TABLE events ADD COLUMN b UInt8"
    )
    names = race.ask("SELECT name FROM system.columns WHERE table = 'events' ORDER BY position")
    assert [name for (name,) in names][-2:] == ["b", "a"]
    race.second.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 9, 100, 1, 2)")
    assert race.ask("SELECT b, a FROM events WHERE user = 9") == [(1, 2)]


def test_an_alter_follows_its_table_under_another_name(race: Race) -> None:
    assert not race.run(
        "ALTER TABLE events ADD COLUMN a UInt8", "RENAME TABLE events TO events1"
    ), "there is no table of this name any more"
    race.second.execute("INSERT INTO events1 VALUES ('2024-01-01', 'a', 9, 100)")


def test_a_column_that_a_new_view_needs_is_not_dropped(race: Race) -> None:
    race.first.execute("DROP VIEW daily_mv")
    race.first.execute("TRUNCATE TABLE daily")
    assert not race.run("ALTER TABLE events DROP COLUMN amount", VIEW)
    assert race.ask("SELECT count() FROM system.views") == [(1,)]
    race.second.execute(INSERT)
    assert_views_right(race)


def test_a_view_of_a_column_that_is_dropped_is_not_created(race: Race) -> None:
    race.first.execute("DROP VIEW daily_mv")
    assert not race.run(VIEW, "ALTER TABLE events DROP COLUMN amount")
    assert race.ask("SELECT count() FROM system.views") == [(0,)]


def test_a_merge_of_before_an_alter_is_none(race: Race) -> None:
    add(race.first, ("2024-01-01", "a", 3, 30))
    race.run(
        "OPTIMIZE TABLE events FINAL", "ALTER TABLE events ADD COLUMN fee Int64 DEFAULT amount"
    )
    assert race.ask("SELECT fee FROM events ORDER BY user") == [(10,), (20,), (30,)]


def test_an_update_that_meets_an_insert_leaves_its_rows(race: Race) -> None:
    assert race.run("ALTER TABLE events UPDATE amount = 0 WHERE kind = 'a'", INSERT)
    assert race.ask("SELECT amount FROM events ORDER BY user") == [(0,), (20,), (100,)]
    assert_views_right(race)


@pytest.mark.parametrize(
    ("meanwhile", "left"),
    [
        ("OPTIMIZE TABLE events FINAL", [(11,), (20,), (31,)]),
        ("ALTER TABLE events UPDATE amount = amount * 2 WHERE 1", [(21,), (40,), (61,)]),
        ("DELETE FROM events WHERE user = 1", [(20,), (31,)]),
        ("ALTER TABLE events DROP PARTITION 202401", [(20,)]),
        ("TRUNCATE TABLE events", []),
        ("ALTER TABLE events ADD COLUMN x UInt8", [(11,), (20,), (31,)]),
    ],
)
def test_an_update_begins_again(race: Race, meanwhile: str, left: list[tuple[int]]) -> None:
    add(race.first, ("2024-01-01", "a", 3, 30))
    assert race.run("UPDATE events SET amount = amount + 1 WHERE kind = 'a'", meanwhile)
    assert race.ask("SELECT amount FROM events ORDER BY user") == left
    assert_views_right(race)


@pytest.mark.parametrize("work", ["BACKFILL VIEW daily_mv", "REPLAY VIEW daily_mv"])
@pytest.mark.parametrize(
    "meanwhile",
    [
        "ALTER TABLE events UPDATE amount = amount + 1 WHERE 1",
        "ALTER TABLE events ADD COLUMN x UInt8",
        "ALTER TABLE events DROP COLUMN note",
        "ALTER TABLE events RENAME COLUMN note TO remark",
        "OPTIMIZE TABLE events FINAL DEDUPLICATE",
    ],
)
def test_rows_of_before_are_not_published(race: Race, work: str, meanwhile: str) -> None:
    race.first.execute("ALTER TABLE events ADD COLUMN note String")
    race.first.execute("DETACH VIEW daily_mv")
    for _ in range(2):
        race.first.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 9, 100, 'x')")
    race.first.execute("ATTACH VIEW daily_mv")
    race.run(f"SYSTEM {work}", meanwhile)
    assert_views_right(race)


def test_an_update_of_rows_that_a_backfill_brings_meanwhile(race: Race) -> None:
    race.first.execute("DETACH VIEW daily_mv")
    add(race.first, ("2024-01-01", "a", 3, 30))
    race.first.execute("ATTACH VIEW daily_mv")
    assert race.run(
        "ALTER TABLE events UPDATE amount = 1 WHERE user = 3", "SYSTEM BACKFILL VIEW daily_mv"
    )
    assert rows(race.second, "SELECT count() FROM system.view_invalidations") == [(1,)]
    assert_views_right(race)


def test_an_update_of_rows_that_a_new_view_brings_meanwhile(race: Race) -> None:
    race.first.execute("DROP VIEW daily_mv")
    race.first.execute("TRUNCATE TABLE daily")
    assert race.run(
        "UPDATE events SET amount = 1 WHERE user = 1", VIEW, "SYSTEM BACKFILL VIEW daily_mv"
    )
    assert rows(race.second, "SELECT count() FROM system.view_invalidations") == [(1,)]
    assert_views_right(race)
