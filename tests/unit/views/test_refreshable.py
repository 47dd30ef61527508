"""Materialized views with REFRESH: what a refresh writes, when it is due, and that it is made once."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection
from olapdb.dml import replace_rows as replace_rows_module
from olapdb.errors import (
    BadArguments,
    HaveDependentObjects,
    NotSupportedError,
    QueryWasCancelled,
    RefreshFailed,
    SyntaxError,
    TableAlreadyExists,
    ThereIsNoColumn,
    UnknownTable,
)
from olapdb.model.changes import PutObject
from olapdb.model.schema import RefreshableView
from olapdb.runtime.refreshes import RunningRefreshes
from olapdb.sql.formatter.definition_lines import on_one_line
from olapdb.sql.parser import parse_one, parse_refresh
from olapdb.views.refresh.schedule import Schedule, checked
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views")

INNER = "(n UInt64) ENGINE = MergeTree ORDER BY n"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(tmp_path / "w") as opened:
        opened.execute("CREATE TABLE s (k UInt32, v Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("INSERT INTO s VALUES (1, 10), (2, 20)")
        opened.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
        yield opened


def view_named(connection: Connection, name: str) -> RefreshableView:
    """Return the refreshable view."""
    item = connection.database.services.catalog.snapshot().find("default", name)
    assert isinstance(item, RefreshableView)
    return item


def refreshes(connection: Connection, view: str) -> dict[str, Any]:
    """Return the view's row of system.view_refreshes."""
    return dicts(connection, f"SELECT * FROM system.view_refreshes WHERE view = '{view}'")[0]


def make_due(connection: Connection, name: str) -> None:
    """Let the view's schedule begin in 1970, as if no process had been there since."""
    origin = CommitOrigin(connection.database.services, "TEST")
    changed = PutObject(replace(view_named(connection, name), scheduled_from_ms=1))
    publish(CommitDraft([], [changed]), origin)


def refresh_due(connection: Connection) -> bool:
    """Do what the background thread does at a look at the schedules."""
    return connection.database.session("default", {}).refresh_due(lambda: True)


# --- what a refresh writes


def test_create_fills_the_view_and_a_refresh_exchanges_its_rows(connection: Connection) -> None:
    connection.execute(
        f"CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR {INNER} AS SELECT count() AS n FROM s"
    )
    assert rows(connection, "SELECT n FROM r") == [(2,)]
    connection.execute("INSERT INTO s VALUES (3, 30)")
    assert rows(connection, "SELECT n FROM r") == [(2,)]
    connection.execute("SYSTEM REFRESH VIEW r")
    assert rows(connection, "SELECT n FROM r") == [(3,)]
    found = refreshes(connection, "r")
    assert (found["status"], found["written_rows"], found["exception"]) == ("Scheduled", 1, "")


def test_append_adds_rows_and_a_refresh_without_it_removes_those_of_others(
    connection: Connection,
) -> None:
    query = "AS SELECT count() AS n FROM s"
    connection.execute(f"CREATE MATERIALIZED VIEW a REFRESH EVERY 1 YEAR APPEND TO t {query}")
    connection.execute("SYSTEM REFRESH VIEW a")
    assert rows(connection, "SELECT n FROM t") == [(2,), (2,)]
    connection.execute("CREATE TABLE u (n UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute(f"CREATE MATERIALIZED VIEW b REFRESH EVERY 1 YEAR TO u {query}")
    connection.execute("INSERT INTO u VALUES (77)")
    connection.execute("SYSTEM REFRESH VIEW b")
    assert rows(connection, "SELECT n FROM u") == [(2,)]


def test_a_refresh_is_one_commit_that_views_of_its_target_are_told_of(
    connection: Connection,
) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR (k UInt32, v Int64)"
        " ENGINE = MergeTree ORDER BY k AS SELECT k, v FROM s"
    )
    connection.execute("CREATE TABLE facts (k UInt32) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE joined (k UInt32, v Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        "CREATE MATERIALIZED VIEW m TO joined AS SELECT f.k AS k, r.v AS v FROM facts f JOIN r"
        " ON r.k = f.k"
    )
    connection.execute("INSERT INTO facts VALUES (1), (2)")
    verdict = "SELECT verdict FROM system.views WHERE name = 'm'"
    assert rows(connection, verdict) == [("covered",)]
    connection.execute("SYSTEM REFRESH VIEW r")
    assert rows(connection, verdict) == [("covered",)], "the same rows: nothing changed"
    connection.execute("ALTER TABLE s UPDATE v = 99 WHERE k = 2")
    connection.execute("SYSTEM REFRESH VIEW r")
    assert rows(connection, verdict) == [("stale",)]
    connection.execute("SYSTEM REPLAY VIEW m STALE")
    assert rows(connection, "SELECT v FROM joined ORDER BY k") == [(10,), (99,)]


def test_a_failing_refresh_keeps_the_rows_and_its_error_is_shown(connection: Connection) -> None:
    connection.execute(
        f"CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR SETTINGS refresh_retries = 1 {INNER}"
        " AS SELECT count() + throwIf(count() > 2, 'boom') AS n FROM s"
    )
    connection.execute("INSERT INTO s VALUES (3, 30)")
    for retry in (1, 0):
        with pytest.raises(RefreshFailed, match="boom"):
            connection.execute("SYSTEM REFRESH VIEW r")
        found = refreshes(connection, "r")
        assert "boom" in found["exception"]
        assert found["retry"] == retry
    with pytest.raises(RefreshFailed, match="boom"):
        connection.execute("SYSTEM WAIT VIEW r")
    assert rows(connection, "SELECT n FROM r") == [(2,)]
    connection.execute("DELETE FROM s WHERE k = 3")
    connection.execute("SYSTEM REFRESH VIEW r")
    assert refreshes(connection, "r")["exception"] == ""
    connection.execute("SYSTEM WAIT VIEW r")


def test_a_first_refresh_that_fails_leaves_no_view(connection: Connection) -> None:
    with pytest.raises(RefreshFailed, match="boom"):
        connection.execute(
            f"CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR {INNER}"
            " AS SELECT throwIf(1, 'boom') AS n FROM s"
        )
    assert rows(connection, "SELECT name FROM system.tables WHERE database = 'default'") == [
        ("s",),
        ("t",),
    ]


# --- the schedule


def ms(text: str) -> int:
    """Return a time in UTC as milliseconds since the epoch."""
    return int(datetime.datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


@pytest.mark.parametrize(
    ("clause", "now", "expected"),
    [
        ("EVERY 1 HOUR", "2024-05-06 07:08:09", "2024-05-06 08:00:00"),
        ("EVERY 1 HOUR", "2024-05-06 08:00:00", "2024-05-06 09:00:00"),
        ("EVERY 1 DAY OFFSET 2 HOUR", "2024-05-06 01:00:00", "2024-05-06 02:00:00"),
        ("EVERY 1 DAY OFFSET 2 HOUR", "2024-05-06 02:00:00", "2024-05-07 02:00:00"),
        ("EVERY 1 WEEK", "2024-05-08 00:00:00", "2024-05-13 00:00:00"),
        ("EVERY 1 MONTH", "2024-02-29 12:00:00", "2024-03-01 00:00:00"),
        ("EVERY 3 MONTH OFFSET 5 DAY 2 HOUR", "2024-01-02 00:00:00", "2024-01-06 02:00:00"),
        ("EVERY 1 YEAR", "2024-12-31 23:59:59", "2025-01-01 00:00:00"),
        ("EVERY 15 MINUTE", "1969-12-31 23:50:00", "1970-01-01 00:00:00"),
        ("AFTER 90 MINUTE", "2024-05-06 07:08:09", "2024-05-06 08:38:09"),
        ("AFTER 1 MONTH", "2024-01-31 07:00:00", "2024-02-29 07:00:00"),
        ("AFTER 1 DAY 2 HOUR", "2024-05-06 00:00:00", "2024-05-07 02:00:00"),
    ],
)
def test_the_slot_after_a_time(clause: str, now: str, expected: str) -> None:
    assert checked(parse_refresh(f"REFRESH {clause}")).slot_after(ms(now)) == ms(expected)


def test_a_due_refresh_is_made_once(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW a REFRESH EVERY 1 YEAR APPEND TO t EMPTY"
        " AS SELECT count() AS n FROM s"
    )
    connection.execute("SYSTEM STOP VIEW a")
    make_due(connection, "a")
    assert refresh_due(connection)
    assert rows(connection, "SELECT n FROM t") == [], "a stopped view is not refreshed"
    assert refreshes(connection, "a")["status"] == "Disabled"
    connection.execute("SYSTEM START VIEWS")
    for _ in range(3):
        refresh_due(connection)
    assert rows(connection, "SELECT n FROM t") == [(2,)]


def test_two_processes_that_make_a_due_refresh_at_once_make_it_once(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW a REFRESH EVERY 1 YEAR APPEND TO t EMPTY"
        " AS SELECT count() AS n FROM s"
    )
    connection.execute("SYSTEM STOP VIEW a")
    make_due(connection, "a")
    session = connection.database.session("default", {})
    other_services = replace(connection.database.services, refreshes=RunningRefreshes())
    other = replace(session.engine, services=other_services)

    def meddle(stage: str) -> None:
        if stage == "insert.staged":
            monkeypatch.setattr(replace_rows_module, "failpoint", lambda stage: None)
            type(session)(other, "default", session.settings).refresh_due(lambda: True)
            assert rows(connection, "SELECT n FROM t") == [(2,)]

    view = view_named(connection, "a")
    started = PutObject(replace(view, stopped=False))
    publish(CommitDraft([], [started]), CommitOrigin(connection.database.services, "TEST"))
    monkeypatch.setattr(replace_rows_module, "failpoint", meddle)
    session.refresh_due(lambda: True)
    assert rows(connection, "SELECT n FROM t") == [(2,)]


def test_the_background_thread_refreshes_without_a_statement(connection: Connection) -> None:
    connection.execute(
        f"CREATE MATERIALIZED VIEW r REFRESH EVERY 1 SECOND {INNER} AS SELECT count() AS n FROM s"
    )
    connection.execute("INSERT INTO s VALUES (3, 30)")
    wait_until(lambda: rows(connection, "SELECT n FROM r") == [(3,)])


def wait_until(reached: Callable[[], bool], seconds: float = 60) -> None:
    """Return when `reached` is true; fail after a long time, which no machine needs."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if reached():
            return
        pause.wait(0.05)
    raise AssertionError("It was not reached.")


def test_depends_on_waits_for_the_other_views_refresh(connection: Connection) -> None:
    connection.execute("CREATE TABLE u (n UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute(
        "CREATE MATERIALIZED VIEW a REFRESH AFTER 1 YEAR TO t EMPTY AS SELECT count() AS n FROM s"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW b REFRESH EVERY 1 YEAR DEPENDS ON a TO u AS SELECT n * 10 AS n"
        " FROM t"
    )
    found = refreshes(connection, "b")
    assert (found["status"], found["waits_for"]) == ("WaitingForDependencies", ["default.a"])
    refresh_due(connection)
    assert rows(connection, "SELECT n FROM u") == []
    connection.execute("SYSTEM REFRESH VIEW a")
    refresh_due(connection)
    assert rows(connection, "SELECT n FROM u") == [(20,)]
    with pytest.raises(HaveDependentObjects, match=r"default\.b depends on it"):
        connection.execute("DROP VIEW a")
    with pytest.raises(BadArguments, match="cannot depend on itself"):
        connection.execute("ALTER TABLE a MODIFY REFRESH AFTER 1 YEAR DEPENDS ON b")


def test_a_cancelled_refresh_keeps_the_rows(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR TO t EMPTY"
        " AS SELECT count() AS n FROM numbers(1000000000000)"
    )
    connection.execute("INSERT INTO t VALUES (7)")
    raised: list[BaseException] = []

    def run() -> None:
        with olapdb.connect(connection.database.location) as other:
            try:
                other.execute("SYSTEM REFRESH VIEW r")
            except olapdb.Error as error:
                raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: refreshes(connection, "r")["status"] == "Running")
    connection.execute("SYSTEM CANCEL VIEW r")
    thread.join(60)
    assert [type(error) for error in raised] == [QueryWasCancelled]
    assert rows(connection, "SELECT n FROM t") == [(7,)]
    assert refreshes(connection, "r")["status"] == "Scheduled"


# --- definitions


def test_show_create_gives_the_definition_that_was_written(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW a REFRESH EVERY 1 DAY OFFSET 2 HOUR RANDOMIZE FOR 10 MINUTE"
        " SETTINGS refresh_retries = 5 APPEND TO t EMPTY AS SELECT count() AS n FROM s"
        " COMMENT 'nightly'"
    )
    connection.execute("RENAME TABLE s TO source")
    text = rows(connection, "SHOW CREATE TABLE a")[0][0]
    assert on_one_line(text) == (
        "CREATE MATERIALIZED VIEW default.a REFRESH EVERY 1 DAY OFFSET 2 HOUR RANDOMIZE FOR 10"
        " MINUTE SETTINGS refresh_retries = 5 APPEND TO default.t (`n` UInt64) COMMENT 'nightly'"
        " AS SELECT count() AS n FROM default.source"
    )
    connection.execute("DROP VIEW a")
    connection.execute(text)
    assert rows(connection, "SHOW CREATE TABLE a")[0][0] == text
    listed = rows(connection, "SELECT engine, target_table FROM system.tables WHERE name = 'a'")
    assert listed == [("MaterializedView", "t")]


def test_alter_changes_the_schedule_and_the_query(connection: Connection) -> None:
    connection.execute(
        f"CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR {INNER} AS SELECT count() AS n FROM s"
    )
    connection.execute("ALTER TABLE r MODIFY REFRESH AFTER 2 DAY")
    assert refreshes(connection, "r")["refresh"] == "REFRESH AFTER 2 DAY"
    connection.execute("ALTER TABLE r MODIFY QUERY SELECT sum(k) AS n FROM s")
    assert rows(connection, "SELECT n FROM r") == [(2,)]
    connection.execute("SYSTEM REFRESH VIEW r")
    assert rows(connection, "SELECT n FROM r") == [(3,)]
    with pytest.raises(NotSupportedError, match="APPEND"):
        connection.execute("ALTER TABLE r MODIFY REFRESH AFTER 2 DAY APPEND")
    with pytest.raises(ThereIsNoColumn):
        connection.execute("ALTER TABLE r MODIFY QUERY SELECT 1 AS other")


def test_drop_takes_the_inner_table_along_and_or_replace_too(connection: Connection) -> None:
    create = f"MATERIALIZED VIEW r REFRESH EVERY 1 YEAR {INNER} AS SELECT count() AS n FROM s"
    connection.execute(f"CREATE {create}")
    connection.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {create[18:]}")
    with pytest.raises(TableAlreadyExists):
        connection.execute(f"CREATE {create}")
    connection.execute(f"CREATE OR REPLACE {create}")
    tables = "SELECT count() FROM system.tables WHERE database = 'default'"
    assert rows(connection, tables) == [(4,)]
    connection.execute("DROP VIEW r")
    assert rows(connection, tables) == [(2,)]


def test_a_dropped_database_takes_refreshable_views_along(connection: Connection) -> None:
    connection.execute("CREATE DATABASE d")
    connection.execute(
        f"CREATE MATERIALIZED VIEW d.r REFRESH EVERY 1 YEAR {INNER} AS SELECT count() AS n FROM s"
    )
    connection.execute("DROP DATABASE d")
    assert rows(connection, "SELECT count() FROM system.view_refreshes") == [(0,)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("REFRESH EVERY 0 SECOND TO t AS SELECT 1 AS n", BadArguments),
        ("REFRESH EVERY 1 HOUR OFFSET 2 HOUR TO t AS SELECT 1 AS n", BadArguments),
        ("REFRESH AFTER 1 HOUR OFFSET 2 MINUTE TO t AS SELECT 1 AS n", BadArguments),
        ("REFRESH EVERY 1 HOUR 5 MINUTE TO t AS SELECT 1 AS n", BadArguments),
        ("REFRESH EVERY 1 HOUR SETTINGS nonsense = 1 TO t AS SELECT 1 AS n", BadArguments),
        ("REFRESH EVERY 1 HOUR DEPENDS ON s TO t AS SELECT 1 AS n", BadArguments),
        ("REFRESH EVERY 1 HOUR TO t POPULATE AS SELECT 1 AS n", SyntaxError),
        ("REFRESH EVERY 1 HOUR TO missing AS SELECT 1 AS n", UnknownTable),
        ("REFRESH EVERY 1 HOUR TO t AS SELECT 1 AS m", ThereIsNoColumn),
        ("REFRESH EVERY 1 HOUR APPEND INCREMENTAL TO t AS SELECT 1 AS n", NotSupportedError),
        ("REFRESH EVERY 1 FORTNIGHT TO t AS SELECT 1 AS n", SyntaxError),
    ],
)
def test_what_create_refuses_leaves_nothing(
    connection: Connection, statement: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        connection.execute(f"CREATE MATERIALIZED VIEW r {statement}")
    assert rows(connection, "SELECT count() FROM system.tables WHERE name = 'r'") == [(0,)]


def test_a_target_has_one_writer(connection: Connection) -> None:
    query = "AS SELECT count() AS n FROM s"
    connection.execute(f"CREATE MATERIALIZED VIEW a REFRESH EVERY 1 YEAR TO t EMPTY {query}")
    with pytest.raises(BadArguments, match=r"already the target of default\.a"):
        connection.execute(f"CREATE MATERIALIZED VIEW b REFRESH EVERY 1 YEAR TO t {query}")
    with pytest.raises(HaveDependentObjects):
        connection.execute("DROP TABLE t")
    for command in ("BACKFILL", "REPLAY", "RECONCILE"):
        with pytest.raises(BadArguments, match="is refreshed"):
            connection.execute(f"SYSTEM {command} VIEW a")
    with pytest.raises(BadArguments, match=r"target of the refreshable view default\.a"):
        connection.execute("CREATE MATERIALIZED VIEW trigger TO t AS SELECT k AS n FROM s")
    connection.execute("CREATE TABLE plain (n UInt64) ENGINE = MergeTree ORDER BY n")
    connection.execute("CREATE MATERIALIZED VIEW trigger TO plain AS SELECT k AS n FROM s")
    with pytest.raises(BadArguments, match=r"already the target of default\.trigger"):
        connection.execute(f"CREATE MATERIALIZED VIEW b REFRESH EVERY 1 YEAR TO plain {query}")
    with pytest.raises(BadArguments, match="doesn't exist"):
        connection.execute("SYSTEM REFRESH VIEW trigger")


def test_the_state_survives_a_new_process(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as first:
        first.execute("CREATE TABLE s (k UInt32) ENGINE = MergeTree ORDER BY k")
        first.execute(
            f"CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR {INNER} AS SELECT count() AS n FROM s"
        )
        first.execute("SYSTEM STOP VIEWS")
        before = refreshes(first, "r")
    with olapdb.connect(tmp_path / "w") as second:
        assert refreshes(second, "r") == before
        assert before["status"] == "Disabled"


# --- what else may happen to such a view


def test_a_replacement_whose_first_refresh_fails_leaves_the_old_view(
    connection: Connection,
) -> None:
    create = f"MATERIALIZED VIEW r REFRESH EVERY 1 YEAR {INNER}"
    connection.execute(f"CREATE {create} AS SELECT count() AS n FROM s")
    tables = "SELECT count() FROM system.tables WHERE database = 'default'"
    before = rows(connection, tables)
    with pytest.raises(RefreshFailed, match="boom"):
        connection.execute(f"CREATE OR REPLACE {create} AS SELECT throwIf(1, 'boom') AS n FROM s")
    assert rows(connection, "SELECT n FROM r") == [(2,)]
    assert rows(connection, tables) == before
    connection.execute(f"CREATE OR REPLACE {create} AS SELECT sum(k) AS n FROM s")
    assert rows(connection, "SELECT n FROM r") == [(3,)]
    assert (rows(connection, tables), refreshes(connection, "r")["status"]) == (before, "Scheduled")


def test_a_replacement_may_keep_the_target(connection: Connection) -> None:
    create = "MATERIALIZED VIEW a REFRESH EVERY 1 YEAR TO t AS SELECT"
    connection.execute(f"CREATE {create} count() AS n FROM s")
    connection.execute(f"CREATE OR REPLACE {create} sum(k) AS n FROM s")
    assert rows(connection, "SELECT n FROM t") == [(3,)]


@pytest.mark.parametrize("kind", ["TABLE r ENGINE = MergeTree ORDER BY n", "VIEW r"])
def test_no_table_or_view_takes_its_name(connection: Connection, kind: str) -> None:
    connection.execute(
        f"CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR {INNER} AS SELECT count() AS n FROM s"
    )
    with pytest.raises(TableAlreadyExists):
        connection.execute(f"CREATE OR REPLACE {kind} AS SELECT 1 AS n")
    assert rows(connection, "SELECT n FROM r") == [(2,)]


def test_a_refresh_before_its_slot_serves_the_slot(connection: Connection) -> None:
    view = RefreshableView("id", "d", "v", (), "", "", "REFRESH EVERY 1 HOUR RANDOMIZE FOR 1 HOUR")
    hour = 3_600_000
    early = 0
    for at in range(1, 200):
        view = replace(view, scheduled_from_ms=at * hour + 1)
        schedule = Schedule.of(view)
        due, slot = schedule.next_ms(view), (at + 1) * hour
        early += due < slot
        served = replace(view, scheduled_from_ms=schedule.served_ms(view, due))
        assert schedule.slot_of(served) == slot + hour
    assert early > 50


def test_one_view_that_fails_does_not_keep_the_others_waiting(connection: Connection) -> None:
    for name, query in (
        ("a", "SELECT throwIf(count() > 2, 'boom') AS n FROM s"),
        ("b", "SELECT count() AS n FROM s"),
    ):
        connection.execute(
            f"CREATE MATERIALIZED VIEW {name} REFRESH EVERY 1 YEAR {INNER} AS {query}"
        )
        connection.execute(f"SYSTEM STOP VIEW {name}")
        make_due(connection, name)
    connection.execute("INSERT INTO s VALUES (3, 30)")
    connection.execute("SYSTEM START VIEWS")
    refresh_due(connection)
    assert "boom" in refreshes(connection, "a")["exception"]
    assert rows(connection, "SELECT n FROM b") == [(3,)]


def test_a_close_during_a_refresh_leaves_its_slot_due(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
        connection.execute(
            "CREATE MATERIALIZED VIEW r REFRESH EVERY 1 YEAR TO t EMPTY"
            " AS SELECT count() AS n FROM numbers(1000000000000)"
        )
        make_due(connection, "r")
        wait_until(lambda: refreshes(connection, "r")["status"] == "Running")
    with olapdb.connect(tmp_path / "w", read_only=True) as later:
        item = later.database.services.catalog.snapshot().find("default", "r")
        assert isinstance(item, RefreshableView)
        assert (item.exception, item.last_attempt_ms, item.scheduled_from_ms) == ("", 0, 1)


def test_a_replacement_keeps_the_views_that_depend_on_it(connection: Connection) -> None:
    create = f"MATERIALIZED VIEW v REFRESH EVERY 1 HOUR {INNER}"
    connection.execute(f"CREATE {create} AS SELECT count() AS n FROM s")
    connection.execute("CREATE VIEW over AS SELECT n FROM v")
    connection.execute(
        f"CREATE MATERIALIZED VIEW w REFRESH EVERY 1 HOUR DEPENDS ON v {INNER} AS SELECT n FROM v"
    )
    before = view_named(connection, "v").id
    connection.execute(f"CREATE OR REPLACE {create} AS SELECT sum(k) AS n FROM s")
    view = view_named(connection, "v")
    assert view.id == before
    assert view_named(connection, "w").depends_on == (before,)
    assert rows(connection, "SELECT * FROM over") == [(3,)]
    inner = "SELECT name FROM system.tables WHERE name LIKE '.inner_id.%' ORDER BY name"
    assert len(rows(connection, inner)) == 2  # the old one is gone, the new one has its name
    assert (f".inner_id.{before}",) in rows(connection, inner)
    with pytest.raises(BadArguments, match="depend"):  # a circle, by the id that stays
        connection.execute(
            "CREATE OR REPLACE MATERIALIZED VIEW v REFRESH EVERY 1 HOUR DEPENDS ON w "
            f"{INNER} AS SELECT 1 AS n"
        )
    connection.execute("DROP VIEW w")
    connection.execute("DROP VIEW v")
    assert rows(connection, inner) == []


def test_the_stored_definition_is_what_show_create_will_show(connection: Connection) -> None:
    text = (
        "CREATE OR REPLACE MATERIALIZED VIEW v REFRESH AFTER 1 QUARTER RANDOMIZE FOR 1 MINUTE APPEND "
        "ENGINE = MergeTree ORDER BY n AS SELECT count() AS n FROM s "
        "SETTINGS join_use_nulls = 1 COMMENT 'c'"
    )
    stored = connection.stored_query(text)
    assert rows(connection, "SELECT name FROM system.tables WHERE name = 'v'") == []
    connection.execute(text)
    ((shown,),) = rows(connection, "SHOW CREATE TABLE v")
    assert parse_one(shown) == parse_one(stored)
    assert connection.stored_query(text) == stored
