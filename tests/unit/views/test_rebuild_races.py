"""SYSTEM REBUILD VIEW under concurrent commits: new rows reach both versions or stop the swap."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BypassRows, Error, HaveDependentObjects, UnknownTable
from olapdb.maintenance.check import check_database
from olapdb.model.changes import Commit, Committed
from olapdb.model.requirements import NoBypass, NoDependents, NoGap, NothingStale, NoViewSince
from tests.harness.race import Race
from tests.unit.views.rebuilding import (
    NEW,
    REBUILD,
    at,
    connection,
    new_is_there,
    old_is_there,
    tables,
)
from tests.unit.views.warehouse import add, make, rows, verdict

pytestmark = pytest.mark.feature("views", "rebuild", "concurrency")

__all__ = ["connection"]


MEANWHILE = {
    "insert": "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 9), ('2024-05-01', 'e', 9, 1)",
    "delete": "DELETE FROM events WHERE user = 1",
    "truncate": "TRUNCATE TABLE events",
    "drop partition": "ALTER TABLE events DROP PARTITION 202401",
    "replay": "SYSTEM REPLAY VIEW daily_mv",
    "stop and start": "SYSTEM STOP VIEW daily_mv__v2; INSERT INTO events VALUES"
    " ('2024-01-01', 'a', 9, 9); SYSTEM START VIEW daily_mv__v2",
    "merge": "OPTIMIZE TABLE events FINAL; OPTIMIZE TABLE daily__v2 FINAL",
    "rename": "RENAME TABLE events TO events1, events1 TO events",
    "comment": "ALTER TABLE daily MODIFY COMMENT 'x'",
    "modify": f"ALTER TABLE daily_mv__v2 MODIFY QUERY {NEW.replace('2 * amount', 'amount + amount')}",
}
STAGES = ["rebuild.started", "rebuild.backfilled", "rebuild.reconciled", "rebuild.before_swap"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("what", sorted(MEANWHILE))
def test_what_comes_in_meanwhile_is_in_both(tmp_path: Path, stage: str, what: str) -> None:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        first.execute("SYSTEM STOP MERGES")
        make(first)
        add(first, ("2024-01-01", "a", 1, 5), ("2024-02-01", "b", 2, 6))

        def meanwhile() -> None:
            for statement in MEANWHILE[what].split("; "):
                second.execute(statement)

        with at(stage, meanwhile):
            first.execute(REBUILD)
        new_is_there(first)
        assert verdict(first) in ("covered", "proven")
        first.execute("SYSTEM ROLLBACK VIEW daily_mv")
        if verdict(first) == "stale":
            first.execute("SYSTEM REPLAY VIEW daily_mv STALE")
        old_is_there(first)
        services = first.database.services
        assert check_database(services.catalog, services.store) == []


REFUSING = {
    "a row by hand in the old target": (
        "INSERT INTO daily (day, kind, total) VALUES ('2024-01-01', 'q', 1)",
        BypassRows,
    ),
    "a row by hand in the new target": (
        "INSERT INTO daily__v2 (day, kind, total) VALUES ('2024-01-01', 'q', 1)",
        BypassRows,
    ),
    "a plain view": ("CREATE VIEW users AS SELECT users FROM daily", HaveDependentObjects),
    "cancelled": ("SYSTEM CANCEL REBUILD VIEW daily_mv", UnknownTable),
    "dropped": ("DROP VIEW daily_mv", UnknownTable),
}


@pytest.mark.parametrize("what", sorted(REFUSING))
def test_what_would_be_lost_stops_the_swap(connection: Connection, what: str) -> None:
    connection.execute("CREATE TABLE sums (total Int64) ENGINE = SummingMergeTree ORDER BY tuple()")
    statement, error = REFUSING[what]

    def meanwhile() -> None:
        with olapdb.connect(connection.database.location) as other:
            other.execute(statement)

    with at("rebuild.before_swap", meanwhile), pytest.raises(error):
        connection.execute(REBUILD)
    assert rows(connection, "SELECT sum(total) FROM daily WHERE kind != 'q'") == [(11,)]


@pytest.mark.parametrize("target", ["daily", "daily__v2"])
def test_a_view_that_is_created_on_a_target_meanwhile_follows(
    connection: Connection, target: str
) -> None:
    connection.execute("CREATE TABLE sums (total Int64) ENGINE = SummingMergeTree ORDER BY tuple()")

    def meanwhile() -> None:
        with olapdb.connect(connection.database.location) as other:
            other.execute(
                f"CREATE MATERIALIZED VIEW down TO sums AS SELECT sum(total) AS total FROM {target}"
            )
            other.execute("SYSTEM BACKFILL VIEW down")

    with at("rebuild.before_swap", meanwhile):
        connection.execute(REBUILD)
    assert verdict(connection, "down") == ("stale" if target == "daily" else "covered")
    connection.execute("SYSTEM REPLAY VIEW down STALE")
    add(connection, ("2024-01-01", "a", 1, 7))
    assert rows(connection, "SELECT sum(total) FROM sums") == [(36,)]


@pytest.mark.parametrize("stage", STAGES)
def test_a_rollback_meanwhile(connection: Connection, stage: str) -> None:
    """The new version replaces the one that has the name by then; the other old version is
    dropped."""
    connection.execute(REBUILD)

    def roll_back() -> None:
        with olapdb.connect(connection.database.location) as other:
            other.execute("SYSTEM ROLLBACK VIEW daily_mv")
            old_is_there(other)

    with at(stage, roll_back):
        connection.execute("SYSTEM REBUILD VIEW daily_mv")
    new_is_there(connection)
    assert tables(connection) == ["daily", "daily__v1", "daily_mv", "daily_mv__v1", "events"]
    connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
    old_is_there(connection)


def test_a_drop_that_meets_the_swap_drops_what_has_the_name(connection: Connection) -> None:
    location = connection.database.location
    with olapdb.connect(location) as second:
        assert Race(connection, second).run("DROP VIEW daily_mv", REBUILD)
    assert tables(connection) == ["daily", "events"]


@pytest.mark.parametrize("stage", ["backfill.before_commit", "rows.chunk_computed", *STAGES])
def test_cancelled_while_it_runs(connection: Connection, stage: str) -> None:
    def cancel() -> None:
        with olapdb.connect(connection.database.location) as other:
            other.execute("SYSTEM CANCEL REBUILD VIEW daily_mv")

    with at(stage, cancel), pytest.raises(UnknownTable, match="the rebuild was cancelled"):
        connection.execute(REBUILD)
    assert tables(connection) == ["daily", "daily_mv", "events"]
    old_is_there(connection)


def test_two_rebuilds_at_once_are_one(connection: Connection) -> None:
    outcomes: list[str] = []

    def build() -> None:
        with olapdb.connect(connection.database.location) as other:
            try:
                other.execute(REBUILD)
                outcomes.append("done")
            except UnknownTable:  # the other rebuild committed first
                outcomes.append("finished by another")

    both = [threading.Thread(target=build) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(60)
    assert "done" in outcomes
    assert len(outcomes) == 2
    new_is_there(connection)
    assert tables(connection) == ["daily", "daily__v1", "daily_mv", "daily_mv__v1", "events"]


def test_readers_see_one_version_and_inserts_go_on(connection: Connection) -> None:
    """One thread inserts and one reads. Every read sees one whole version, and never fewer rows
    than the read before it."""
    location, stop = connection.database.location, threading.Event()
    problems: list[str] = []
    inserted = [0]

    def write() -> None:
        with olapdb.connect(location) as own:
            while not stop.is_set():
                add(own, ("2024-01-01", "w", 1, 1), ("2024-02-02", "w", 1, 1))
                inserted[0] += 2

    def read() -> None:
        with olapdb.connect(location) as own:
            seen = 0
            while not stop.is_set():
                query = "SELECT sum(events), sum(total) FROM daily WHERE kind = 'w'"
                count, total = rows(own, query)[0]
                if total not in (count, 2 * count) or count < seen:
                    problems.append(f"{count} rows, total {total}, after {seen}")
                seen = count

    threads = [threading.Thread(target=one) for one in (write, read)]
    for thread in threads:
        thread.start()
    try:
        connection.execute(REBUILD)
        connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
        connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert problems == []
    assert rows(connection, "SELECT count() FROM events WHERE kind = 'w'") == [(inserted[0],)]
    new_is_there(connection)


DIMENSION = """
    SELECT e.day, e.kind, count() AS events, sum(e.amount * d.factor) AS total
    FROM events AS e LEFT JOIN factors AS d USING (kind) GROUP BY e.day, e.kind
"""
LEFT_OUT: dict[str, tuple[tuple[type, ...], str]] = {
    "missed": (
        (NoGap,),
        "CREATE TABLE more AS events; INSERT INTO more VALUES ('2024-05-01', 'e', 1, 1);"
        " ALTER TABLE events ATTACH PARTITION 202405 FROM more",
    ),
    "stale": ((NothingStale,), "INSERT INTO factors VALUES ('b', 2)"),
    "bypass": ((NoBypass,), "INSERT INTO daily (day, kind, total) VALUES ('2024-01-01', 'q', 1)"),
    "dependents": (
        (NoDependents, NoViewSince),  # NoViewSince keeps out dependents that are created later
        "CREATE MATERIALIZED VIEW down TO sums AS SELECT sum(total) AS total FROM daily",
    ),
    "plain view": ((NoViewSince,), "CREATE VIEW users AS SELECT users FROM daily"),
}


@pytest.mark.parametrize("left_out", sorted(LEFT_OUT))
@pytest.mark.parametrize("kept", [True, False])
def test_the_swap_without_a_requirement_does_harm(
    connection: Connection, left_out: str, kept: bool
) -> None:
    guards, statements = LEFT_OUT[left_out]
    connection.execute("CREATE TABLE sums (total Int64) ENGINE = SummingMergeTree ORDER BY tuple()")
    connection.execute(
        "CREATE TABLE factors (kind String, factor Int64) ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute("INSERT INTO factors VALUES ('a', 1)")
    catalog = connection.database.services.catalog
    apply = catalog.apply

    def careless(commit: Commit) -> Committed:
        if commit.kind == "REBUILD VIEW" and not kept:
            left = tuple(
                requirement
                for requirement in commit.requirements
                if not isinstance(requirement, guards)
            )
            commit = replace(commit, requirements=left)
        return apply(commit)

    def meanwhile() -> None:
        for statement in statements.split("; "):
            connection.execute(statement)

    catalog.apply = careless  # type: ignore[method-assign]
    try:
        with at("rebuild.before_swap", meanwhile):
            connection.execute(f"SYSTEM REBUILD VIEW daily_mv AS {DIMENSION}")
        swapped = True
    except Error:
        swapped = False
    finally:
        del catalog.apply
    harm = swapped and _harm(connection)
    assert harm is not kept


def _harm(connection: Connection) -> bool:
    """Return whether the swap left an untrusted view, rows in the old version only, a view that
    raises, or a view that still reads the old version."""
    try:
        connection.execute("SELECT * FROM users")
        broken = False
    except UnknownTable:
        broken = False
    except Error:
        broken = True
    followers = rows(
        connection, "SELECT target_table FROM system.views WHERE source_table = 'daily__v1'"
    )
    unseen = rows(connection, "SELECT count() FROM daily__v1 WHERE kind = 'q'")
    return (
        verdict(connection) not in ("covered", "proven")
        or broken
        or bool(followers)
        or unseen != [(0,)]
    )
