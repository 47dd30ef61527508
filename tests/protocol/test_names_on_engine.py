"""Races statements about names against each other (rule 10: views refer to ids, not names).

Names are not in the model; here one statement is stopped just before its commit, and another one
runs whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite.apply_changes import CommitApplier
from olapdb.errors import Error
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.requirements import NoDependents, NoViewSince, PartsOfPartitionAre, RevisionIs
from olapdb.runtime.failpoints import watching
from tests.harness.race import Race
from tests.unit.views.warehouse import VIEW, add, make

pytestmark = pytest.mark.feature("commits", "engines")


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    """Return a race of two connections to one warehouse, without merges."""
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        first.execute("SYSTEM STOP MERGES")
        yield Race(first, second)


def test_a_rename_does_not_bring_back_a_dropped_view(race: Race) -> None:
    make(race.first)
    race.run("RENAME TABLE events TO events1", "DROP VIEW daily_mv")
    assert race.ask("SELECT name FROM system.views") == []


def test_a_rename_does_not_attach_a_detached_view(race: Race) -> None:
    make(race.first)
    renamed = race.run("RENAME TABLE events TO events1", "DETACH VIEW daily_mv")
    race.second.execute(
        f"INSERT INTO {'events1' if renamed else 'events'} VALUES ('2024-01-01', 'a', 1, 1)"
    )
    assert race.ask("SELECT count() FROM daily") == [(0,)]


@pytest.mark.parametrize("statement", ["DETACH VIEW daily_mv", "ATTACH VIEW daily_mv"])
def test_a_view_follows_its_source_whatever_is_done_to_it(race: Race, statement: str) -> None:
    make(race.first)
    if statement.startswith("ATTACH"):
        race.first.execute("DETACH VIEW daily_mv")
    race.run(statement, "RENAME TABLE events TO events1")
    race.second.execute("ATTACH VIEW daily_mv")
    race.second.execute("INSERT INTO events1 VALUES ('2024-01-01', 'a', 1, 1)")
    assert race.ask("SELECT count() FROM daily") == [(1,)]


def test_a_view_that_is_created_while_its_source_is_renamed(race: Race) -> None:
    make(race.first, view=False)
    renamed = race.run("RENAME TABLE events TO events1", VIEW)
    race.second.execute(
        f"INSERT INTO {'events1' if renamed else 'events'} VALUES ('2024-01-01', 'a', 1, 1)"
    )
    assert race.ask("SELECT count() FROM daily") == [(1,)]


@pytest.mark.parametrize("table", ["events", "daily"])
def test_a_table_that_a_new_view_needs_is_not_dropped(race: Race, table: str) -> None:
    make(race.first, view=False)
    dropped = race.run(f"DROP TABLE {table}", VIEW)
    assert not dropped
    assert race.ask("SELECT verdict FROM system.views") == [("covered",)]


def test_an_inner_table_that_a_new_view_needs_is_not_dropped(race: Race) -> None:
    make(race.first, view=False)
    race.first.execute(
        "CREATE MATERIALIZED VIEW kinds ENGINE = SummingMergeTree ORDER BY kind"
        " AS SELECT kind, count() AS n FROM events GROUP BY kind"
    )
    inner = race.ask("SELECT name FROM system.tables WHERE name LIKE '.inner%'")[0][0]
    race.first.execute("CREATE TABLE u (kind String, n UInt64) ENGINE = MergeTree ORDER BY kind")
    dropped = race.run(
        "DROP VIEW kinds",
        f"CREATE MATERIALIZED VIEW w TO u AS SELECT kind, sum(n) AS n FROM `{inner}` GROUP BY kind",
    )
    assert not dropped


def test_a_view_that_is_created_while_its_source_is_dropped(race: Race) -> None:
    make(race.first, view=False)
    assert not race.run(VIEW, "DROP TABLE events")
    assert race.ask("SELECT count() FROM system.views") == [(0,)]


def test_a_view_is_created_over_the_renamed_source(race: Race) -> None:
    """Check that the statement fails and creates nothing, since its name is gone."""
    make(race.first, view=False)
    assert not race.run(VIEW, "RENAME TABLE events TO events1")
    assert race.ask("SELECT count() FROM system.views") == [(0,)]


def test_rows_that_come_while_a_view_is_dropped(race: Race) -> None:
    make(race.first)
    add(race.first, ("2024-01-01", "a", 1, 1))
    race.run("INSERT INTO events VALUES ('2024-01-02', 'a', 1, 1)", "DROP VIEW daily_mv")
    assert race.ask("SELECT count() FROM events") == [(2,)]
    assert race.ask("SELECT count() FROM daily") == [(1,)]


def test_a_view_that_is_created_while_its_source_is_exchanged(race: Race) -> None:
    """Check that the view stays on its table, which has the other name afterwards."""
    make(race.first, view=False)
    race.first.execute("CREATE TABLE other AS events")
    assert race.run("EXCHANGE TABLES events AND other", VIEW)
    race.second.execute("INSERT INTO other VALUES ('2024-01-01', 'a', 1, 1)")
    race.second.execute("INSERT INTO events VALUES ('2024-01-02', 'a', 1, 1)")
    assert race.ask("SELECT day::String FROM daily") == [("2024-01-01",)]


def test_a_view_is_created_over_the_exchanged_source(race: Race) -> None:
    """Check that the retried statement finds the table that has the name now."""
    make(race.first, view=False)
    race.first.execute("CREATE TABLE other AS events")
    assert race.run(VIEW, "EXCHANGE TABLES events AND other")
    race.second.execute("INSERT INTO other VALUES ('2024-01-01', 'a', 1, 1)")
    race.second.execute("INSERT INTO events VALUES ('2024-01-02', 'a', 1, 1)")
    assert race.ask("SELECT day::String FROM daily") == [("2024-01-02",)]


@pytest.mark.parametrize(
    "statement", ["RENAME TABLE events TO events1", "EXCHANGE TABLES events AND daily"]
)
def test_a_plain_view_that_is_created_while_its_table_is_renamed(
    race: Race, statement: str
) -> None:
    make(race.first, view=False)
    add(race.first, ("2024-01-01", "a", 7, 1))
    assert race.run(statement, "CREATE VIEW users AS SELECT user FROM events")
    assert race.ask("SELECT user FROM users") == [(7,)]


def test_a_plain_view_is_created_over_the_renamed_table(race: Race) -> None:
    make(race.first, view=False)
    assert not race.run(
        "CREATE VIEW users AS SELECT user FROM events", "RENAME TABLE events TO events1"
    )
    assert race.ask("EXISTS VIEW users") == [(0,)]


def test_a_view_reads_a_plain_view_that_is_replaced(race: Race) -> None:
    """Check that the materialized view uses the definition of the plain view that it was checked
    with."""
    make(race.first, view=False)
    race.first.execute(
        "CREATE TABLE kinds (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
    )
    race.first.execute("CREATE VIEW heavy AS SELECT kind, weight FROM kinds")
    view = """
        CREATE MATERIALIZED VIEW mv TO joined AS SELECT day, weight FROM events
        LEFT JOIN heavy ON events.kind = heavy.kind
    """
    race.first.execute(
        "CREATE TABLE joined (day Date, weight Int64) ENGINE = MergeTree ORDER BY day"
    )
    replaced = "CREATE OR REPLACE VIEW heavy AS SELECT kind, 2 * weight AS weight FROM kinds"
    assert race.run(view, replaced)
    race.second.execute("INSERT INTO kinds VALUES ('a', 5)")
    race.second.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 1, 1)")
    assert race.ask("SELECT weight FROM joined") == [(10,)]
    assert race.run(replaced.replace("2 *", "3 *")), "the materialized view follows it"
    race.second.execute("INSERT INTO events VALUES ('2024-01-02', 'a', 1, 1)")
    assert race.ask("SELECT weight FROM joined ORDER BY day") == [(10,), (15,)]
    assert race.ask("SELECT count() > 0 FROM system.view_invalidations") == [(1,)]
    assert not race.run("DROP VIEW heavy")


@pytest.mark.parametrize(
    "made", ["CREATE TABLE shop.t (x Int8) ENGINE = Memory", "CREATE VIEW shop.t AS SELECT 1 AS x"]
)
def test_a_database_is_dropped_with_what_is_created_in_it(race: Race, made: str) -> None:
    race.first.execute("CREATE DATABASE shop")
    assert race.run("DROP DATABASE shop", made)
    assert race.ask("SELECT name FROM system.databases WHERE name = 'shop'") == []
    assert race.ask("SELECT count() FROM system.tables WHERE database = 'shop'") == [(0,)]


def test_a_database_that_a_new_view_needs_is_not_dropped(race: Race) -> None:
    race.first.execute("CREATE DATABASE shop")
    race.first.execute("CREATE TABLE shop.s (x Int8) ENGINE = MergeTree ORDER BY x")
    race.first.execute("CREATE TABLE t (x Int8) ENGINE = MergeTree ORDER BY x")
    view = "CREATE MATERIALIZED VIEW mv TO t AS SELECT x FROM shop.s"
    assert not race.run("DROP DATABASE shop", view)
    race.second.execute("INSERT INTO shop.s VALUES (1)")
    assert race.ask("SELECT x FROM t") == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE shop.t (x Int8) ENGINE = Memory",
        "CREATE VIEW shop.t AS SELECT 1 AS x",
        "RENAME TABLE t TO shop.t",
    ],
)
def test_nothing_is_created_in_a_database_that_is_dropped(race: Race, statement: str) -> None:
    race.first.execute("CREATE DATABASE shop")
    race.first.execute("CREATE TABLE t (x Int8) ENGINE = Memory")
    assert not race.run(statement, "DROP DATABASE shop")
    assert race.ask("SELECT name FROM system.tables WHERE database = 'default'") == [("t",)]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE shop.t (x Int8) ENGINE = Memory",
        "CREATE VIEW default.v AS SELECT x FROM shop.s",
        "CREATE MATERIALIZED VIEW default.v TO shop.s2 AS SELECT x FROM shop.s",
    ],
)
def test_what_is_created_while_its_database_is_renamed(race: Race, made: str) -> None:
    race.first.execute("CREATE DATABASE shop")
    for name in ("s", "s2"):
        race.first.execute(f"CREATE TABLE shop.{name} (x Int8) ENGINE = MergeTree ORDER BY x")
    assert race.run("RENAME DATABASE shop TO store", made)
    race.second.execute("INSERT INTO store.s VALUES (1)")
    if "TABLE" in made:
        assert race.ask("SELECT count() FROM store.t") == [(0,)]
    elif "MATERIALIZED" in made:
        assert race.ask("SELECT x FROM store.s2") == [(1,)]
    else:
        assert race.ask("SELECT x FROM v") == [(1,)]


def test_a_comment_does_not_take_a_new_name_back(race: Race) -> None:
    """Check that the statement fails, since the name is gone, or comments the table that has it
    now."""
    make(race.first)
    commented = race.run(
        "ALTER TABLE events MODIFY COMMENT 'clicks'", "RENAME TABLE events TO events1"
    )
    assert not commented
    assert race.ask(
        "SELECT name, comment FROM system.tables WHERE database = 'default' AND name LIKE 'events%'"
    ) == [("events1", "")]


def test_a_rename_keeps_a_new_comment(race: Race) -> None:
    make(race.first)
    assert race.run("RENAME TABLE events TO events1", "ALTER TABLE events MODIFY COMMENT 'clicks'")
    assert race.ask(
        "SELECT name, comment FROM system.tables WHERE database = 'default' AND name LIKE 'events%'"
    ) == [("events1", "clicks")]


def test_a_table_is_not_dropped_under_a_name_that_nobody_said(race: Race) -> None:
    make(race.first, view=False)
    assert not race.run("DROP TABLE events", "RENAME TABLE events TO events1")
    assert race.ask("EXISTS TABLE events1") == [(1,)]


def test_two_renames_of_one_table(race: Race) -> None:
    make(race.first)
    assert not race.run("RENAME TABLE events TO a", "RENAME TABLE events TO b")
    assert race.ask(
        "SELECT name FROM system.tables WHERE database = 'default' AND name IN ('a', 'b', 'events')"
    ) == [("b",)]


def test_rows_that_come_while_their_table_is_renamed(race: Race) -> None:
    """Check that the INSERT commits into the table under its new name, without firing again."""
    make(race.first)
    assert race.run(
        "INSERT INTO events VALUES ('2024-01-01', 'a', 1, 1)", "RENAME TABLE events TO events1"
    )
    assert race.ask("SELECT count() FROM events1") == [(1,)]
    assert race.ask("SELECT count() FROM daily") == [(1,)]


def test_rows_that_come_while_their_table_is_replaced(race: Race) -> None:
    """Check that the rows are acknowledged and exist, or are refused."""
    race.first.execute("CREATE TABLE t (x Int8) ENGINE = MergeTree ORDER BY x")
    landed = race.run(
        "INSERT INTO t VALUES (1)",
        "CREATE OR REPLACE TABLE t (x Int8) ENGINE = MergeTree ORDER BY x",
    )
    assert race.ask("SELECT count() FROM t") == [(int(landed),)]


def test_a_table_is_replaced_while_a_view_of_it_is_created(race: Race) -> None:
    make(race.first, view=False)
    table = "CREATE OR REPLACE TABLE events (day Date) ENGINE = MergeTree ORDER BY day"
    assert not race.run(table, VIEW)
    assert race.ask("SELECT verdict FROM system.views") == [("covered",)]


def test_a_renamed_table_is_not_read_under_its_old_name(race: Race) -> None:
    """Check that a plan cached by its text is not used once the text means another table."""
    race.first.execute("CREATE TABLE t (x Int8) ENGINE = MergeTree ORDER BY x")
    race.first.execute("CREATE TABLE u (x Int8) ENGINE = MergeTree ORDER BY x")
    race.first.execute("INSERT INTO t VALUES (1)")
    assert race.ask("SELECT x FROM t") == [(1,)]
    race.first.execute("EXCHANGE TABLES t AND u")
    assert race.ask("SELECT x FROM t") == []
    assert race.ask("SELECT x FROM u") == [(1,)]
    race.first.execute("RENAME TABLE t TO w, u TO t")
    assert race.ask("SELECT x FROM t") == [(1,)]


def test_a_rename_is_no_change_of_the_schema(race: Race) -> None:
    """Check that parts from before and after the rename have one schema, and merge."""
    race.first.execute(
        "CREATE TABLE t (x Int8, y Int8 DEFAULT x + 1) ENGINE = MergeTree ORDER BY x"
    )
    race.first.execute("INSERT INTO t (x) VALUES (1)")
    race.first.execute("RENAME TABLE t TO u")
    race.first.execute("INSERT INTO u (x) VALUES (2)")
    race.first.execute("OPTIMIZE TABLE u FINAL")
    assert race.ask("SELECT count() FROM system.parts WHERE table = 'u' AND active") == [(1,)]
    assert race.ask("SELECT x, y FROM u ORDER BY x") == [(1, 2), (2, 3)]


def test_pairs_are_renamed_one_after_the_other(race: Race) -> None:
    for name, value in (("a", 1), ("b", 2)):
        race.first.execute(f"CREATE TABLE {name} (x Int8) ENGINE = MergeTree ORDER BY x")
        race.first.execute(f"INSERT INTO {name} VALUES ({value})")
    race.first.execute("CREATE VIEW v AS SELECT x FROM a")
    race.first.execute("RENAME TABLE a TO c, b TO a, c TO b")
    assert race.ask("SELECT (SELECT x FROM a), (SELECT x FROM b), (SELECT x FROM v)") == [(2, 1, 1)]


# --- each guard, left out


def test_without_revisions_a_table_is_dropped_under_another_name(race: Race) -> None:
    make(race.first, view=False)
    renamed = "RENAME TABLE events TO events1"
    assert race.run("DROP TABLE events", renamed, without=RevisionIs)
    assert race.ask("EXISTS TABLE events1") == [(0,)]


def test_without_dependents_a_view_loses_its_source(race: Race) -> None:
    make(race.first, view=False)
    assert race.run("DROP TABLE events", VIEW, without=NoDependents)
    assert race.ask("SELECT verdict FROM system.views") == [("broken",)]


def test_without_views_since_a_view_keeps_an_old_name(race: Race) -> None:
    make(race.first, view=False)
    race.run("RENAME TABLE events TO events1", VIEW, without=NoViewSince)
    ((query,),) = race.ask("SELECT as_select FROM system.tables WHERE name = 'daily_mv'")
    assert "events1" not in str(query)


def test_without_the_check_of_a_put_a_dropped_view_is_back(
    race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(race.first)
    monkeypatch.setattr(CommitApplier, "_check_revision", lambda *_: None)
    assert race.run("DETACH VIEW daily_mv", "DROP VIEW daily_mv", without=RevisionIs)
    assert race.ask("SELECT name FROM system.views") == [("daily_mv",)]


# --- UNDROP


def drop_filled(race: Race) -> None:
    """Drop a table that has rows."""
    race.first.execute(
        "CREATE TABLE t (x Int8) ENGINE = MergeTree ORDER BY x SETTINGS inline_bytes_max = 0"
    )
    race.first.execute("INSERT INTO t VALUES (1)")
    race.first.execute("INSERT INTO t VALUES (2)")
    race.first.execute("DROP TABLE t")


@pytest.mark.parametrize("meanwhile", ["UNDROP TABLE t", "CREATE TABLE t (y Int8) ENGINE = Memory"])
def test_a_table_does_not_come_back_under_a_name_that_was_taken(race: Race, meanwhile: str) -> None:
    drop_filled(race)
    assert not race.run("UNDROP TABLE t", meanwhile)
    assert race.ask("SELECT count() FROM system.tables WHERE name = 't'") == [(1,)]


def test_a_table_that_comes_back_is_not_hidden_by_a_new_one(race: Race) -> None:
    drop_filled(race)
    assert not race.run("CREATE TABLE t (y Int8) ENGINE = Memory", "UNDROP TABLE t")
    assert race.ask("SELECT x FROM t ORDER BY x") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("stage", "there"),
    [("vacuum.marked", True), ("vacuum.forgotten", False), ("vacuum.file_deleted", False)],
)
def test_a_table_comes_back_whole_or_not_while_vacuum_runs(
    race: Race, stage: str, there: bool
) -> None:
    """Check that vacuum looks at the dropped table again when it deletes it; after that UNDROP
    fails."""
    drop_filled(race)
    waiting = [stage]
    undropped: list[bool] = []

    def reached(now: str) -> None:
        if [now] == waiting:
            waiting.clear()
            try:
                race.second.execute("UNDROP TABLE t")
            except Error:
                undropped.append(False)
            else:
                undropped.append(True)

    with watching(reached):
        vacuum(race.first.database.services, lifetime_seconds=0)
    assert undropped == [there]
    if there:
        assert race.ask("SELECT x FROM t ORDER BY x") == [(1,), (2,)]
    services = race.first.database.services
    assert check_database(services.catalog, services.store) == []


def test_a_merge_that_began_before_the_table_was_dropped(race: Race) -> None:
    """Check that the merge commits after UNDROP, since the parts are the same."""
    race.first.execute("CREATE TABLE t (x Int8) ENGINE = MergeTree ORDER BY x")
    for value in (1, 2):
        race.first.execute(f"INSERT INTO t VALUES ({value})")
    assert race.run("OPTIMIZE TABLE t FINAL", "DROP TABLE t", "UNDROP TABLE t")
    assert race.ask("SELECT x FROM t ORDER BY x") == [(1,), (2,)]
    services = race.first.database.services
    assert check_database(services.catalog, services.store) == []


def test_a_plain_view_that_is_made_again_stays_what_it_was(race: Race) -> None:
    """Check that a materialized view stays valid while the plain view keeps its definition."""
    make(race.first, view=False)
    race.first.execute(
        "CREATE TABLE kinds (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
    )
    race.first.execute("CREATE VIEW heavy AS SELECT kind, weight FROM kinds")
    race.first.execute(
        "CREATE TABLE joined (day Date, weight Int64) ENGINE = MergeTree ORDER BY day"
    )
    race.first.execute(
        "CREATE MATERIALIZED VIEW mv TO joined AS SELECT day, weight FROM events"
        " LEFT JOIN heavy ON events.kind = heavy.kind"
    )
    again = "CREATE OR REPLACE VIEW heavy AS SELECT kind, weight FROM kinds COMMENT 'by hand'"
    assert race.run(again)
    assert race.ask("SELECT count() FROM system.view_invalidations") == [(0,)]
    race.second.execute("INSERT INTO kinds VALUES ('a', 5)")
    race.second.execute("INSERT INTO events VALUES ('2024-01-01', 'a', 1, 1)")
    assert race.ask("SELECT weight FROM joined") == [(5,)]
    assert race.ask("SELECT comment FROM system.tables WHERE name = 'heavy'") == [("by hand",)]


def test_a_table_that_gets_rows_is_not_dropped_as_empty(race: Race) -> None:
    race.first.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
    assert not race.run("DROP TABLE IF EMPTY t", "INSERT INTO t VALUES (1)")
    assert race.ask("SELECT k FROM t") == [(1,)]


def test_without_parts_a_table_with_rows_is_dropped_as_empty(race: Race) -> None:
    race.first.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
    assert race.run(
        "DROP TABLE IF EMPTY t", "INSERT INTO t VALUES (1)", without=PartsOfPartitionAre
    )


def test_a_database_is_not_emptied_under_a_new_view(race: Race) -> None:
    race.first.execute("CREATE DATABASE d")
    race.first.execute("CREATE TABLE d.s (k UInt64) ENGINE = MergeTree ORDER BY k")
    race.first.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
    view = "CREATE MATERIALIZED VIEW v TO t AS SELECT k FROM d.s"
    assert not race.run("TRUNCATE DATABASE d", view)
    race.second.execute("INSERT INTO d.s VALUES (1)")
    assert race.ask("SELECT k FROM t") == [(1,)]
