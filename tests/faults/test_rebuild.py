"""Rebuilds a lost catalog from the footers: tables and rows return, each row once."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, CannotOpenWarehouse
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.harness.child import run_module
from tests.unit.views.warehouse import add, make

pytestmark = pytest.mark.feature("crashes", "rebuild")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a warehouse with two merges and a DELETE whose old parts still exist."""
    folder = tmp_path / "warehouse"
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("CREATE DATABASE other")
        connection.execute(
            "CREATE TABLE t (d Date, a UInt32, s LowCardinality(String) DEFAULT 'x') "
            "ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY a"
        )
        connection.execute(
            "CREATE TABLE other.sums (k UInt8, n SimpleAggregateFunction(sum, UInt64), "
            "u AggregateFunction(uniq, UInt32)) ENGINE = AggregatingMergeTree ORDER BY k"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO other.sums AS"
            " SELECT a % 3 AS k, count() AS n, uniqState(a) AS u FROM t GROUP BY k"
        )
        for month in (1, 2, 3):
            connection.execute(
                f"INSERT INTO t (d, a) SELECT '2024-0{month}-01', number FROM numbers(100)"
            )
            connection.execute(
                f"INSERT INTO t (d, a) SELECT '2024-0{month}-02', number + 100 FROM numbers(100)"
            )
        connection.execute("OPTIMIZE TABLE t FINAL")
        connection.execute("DELETE FROM t WHERE a = 7")
        connection.execute("OPTIMIZE TABLE other.sums FINAL")
        (folder / "before.txt").write_text(str(content(connection)))
    return folder


def content(connection: Connection) -> list[tuple[object, ...]]:
    """Return the sums of both tables."""
    return [
        *connection.execute(
            "SELECT toYYYYMM(d) AS m, count(), sum(a), uniqExact(a), any(s) FROM t GROUP BY m ORDER BY m"
        ).fetchall(),
        *connection.execute(
            "SELECT k, sum(n), uniqMerge(u) FROM other.sums GROUP BY k ORDER BY k"
        ).fetchall(),
    ]


def lose_catalog(folder: Path) -> None:
    """Delete the catalog's files."""
    for file in folder.glob("catalog.*"):
        if file.is_file():
            file.unlink()


def test_tables_and_rows_come_back(folder: Path) -> None:
    lose_catalog(folder)
    report = olapdb.rebuild_catalog(folder)
    assert report.tables == ("default.t", "other.sums")
    assert report.rows == 3 * 199 + 3
    assert report.superseded > 0
    assert (report.unreadable, report.renamed) == ((), ())
    with olapdb.connect(str(folder)) as connection:
        assert str(content(connection)) == (folder / "before.txt").read_text()
        assert connection.execute("SELECT count() FROM system.views").fetchall() == [(0,)]
        services = connection.database.services
        problems = list(check_database(services.catalog, services.store))
        assert all("referred to by nothing" in problem for problem in problems), problems


@pytest.mark.parametrize("seconds_a_look", [1, 0, -1])
@pytest.mark.parametrize("vacuumed_before", [True, False])
def test_the_newest_row_of_a_key_stays_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds_a_look: int, vacuumed_before: bool
) -> None:
    """Check that rewritten parts with older rows do not win, however the clock was set
    meanwhile."""
    clock = itertools.count(1_800_000_000, seconds_a_look)
    monkeypatch.setattr("time.time", lambda: next(clock))
    with olapdb.connect(str(tmp_path), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (k UInt8, n UInt8) ENGINE = ReplacingMergeTree ORDER BY k"
        )
        for number in range(1, 9):
            connection.execute(f"INSERT INTO t VALUES (1, {number}), ({10 + number}, 0)")
        connection.execute("DELETE FROM t WHERE k = 18")
        connection.execute("DELETE FROM t WHERE k IN (13, 14)")
        connection.execute(
            "INSERT INTO t SELECT 1, arrayJoin([9, 10]) SETTINGS max_insert_block_size = 1"
        )
        connection.execute("ALTER TABLE t UPDATE n = n WHERE k = 11")
        if vacuumed_before:
            vacuum(replace(connection.database.services, clock_ms=lambda: 1 << 42))
        before = connection.execute("SELECT k, n FROM t FINAL ORDER BY k").fetchall()
        assert before[0] == (1, 10)
    monkeypatch.undo()
    lose_catalog(tmp_path)
    olapdb.rebuild_catalog(tmp_path)
    with olapdb.connect(str(tmp_path)) as connection:
        assert connection.execute("SELECT k, n FROM t FINAL ORDER BY k").fetchall() == before


def test_a_view_is_made_again_and_adopts_what_it_had_made(folder: Path) -> None:
    lose_catalog(folder)
    olapdb.rebuild_catalog(folder)
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        # A DELETE removed rows of t without a replay: insert them again, so that ADOPT succeeds.
        connection.execute(
            "INSERT INTO t (d, a) VALUES ('2024-01-01', 7), ('2024-02-01', 7), ('2024-03-01', 7)"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO other.sums AS"
            " SELECT a % 3 AS k, count() AS n, uniqState(a) AS u FROM t GROUP BY k"
        )
        assert connection.execute("SELECT verdict FROM system.views").fetchall() == [("bypassed",)]
        connection.execute("SYSTEM ADOPT VIEW v")
        assert connection.execute("SELECT verdict FROM system.views").fetchall() == [("proven",)]


def test_a_catalog_that_is_lost_again_has_each_row_once(tmp_path: Path) -> None:
    """Rebuild twice: vacuum does not know the files that the first rebuild left out, while the
    parts that replaced them are merged again and deleted."""
    with olapdb.connect(tmp_path) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (k Int64) ENGINE = MergeTree ORDER BY k SETTINGS inline_bytes_max = 0"
        )
        for value in (1, 2):
            connection.execute(f"INSERT INTO t VALUES ({value})")
        connection.execute("OPTIMIZE TABLE t FINAL")
    lose_catalog(tmp_path)
    assert olapdb.rebuild_catalog(tmp_path).superseded == 2
    assert len(list((tmp_path / "superseded").rglob("*.parquet"))) == 2
    with olapdb.connect(tmp_path) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("INSERT INTO t VALUES (3)")
        connection.execute("OPTIMIZE TABLE t FINAL")
        services = connection.database.services
        report = vacuum(services, lifetime_seconds=0)
        assert (report.files, report.unknown_files) == (2, ())
        assert check_database(services.catalog, services.store) == []
    lose_catalog(tmp_path)
    assert olapdb.rebuild_catalog(tmp_path).rows == 3


@pytest.mark.parametrize("seconds_a_look", [1, -1])
def test_a_rebuild_that_is_killed_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds_a_look: int
) -> None:
    """Kill the rebuild after each file that it moves away: merges of merges, deletions of
    deletions, and a replay of a replay; also with a clock that is set back."""
    origin, lost = tmp_path / "origin", tmp_path / "lost"
    count, sums = "SELECT count() FROM s", "SELECT k, sum(n) FROM t GROUP BY k ORDER BY k"
    left_over = "SELECT k FROM u"
    clock = itertools.count(1_800_000_000, seconds_a_look)
    monkeypatch.setattr("time.time", lambda: next(clock))
    with olapdb.connect(origin) as connection:
        connection.execute("SYSTEM STOP MERGES")
        files = "SETTINGS inline_bytes_max = 0"
        connection.execute(f"CREATE TABLE s (k Int64) ENGINE = MergeTree ORDER BY k {files}")
        connection.execute(
            f"CREATE TABLE t (k Int64, n UInt64) ENGINE = SummingMergeTree ORDER BY k {files}"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO t AS SELECT k, count() AS n FROM s GROUP BY k"
        )
        for values, table in (("(0), (1)", "s"), ("(9)", "s"), ("(1)", "t")):
            connection.execute(f"INSERT INTO s VALUES {values}")
            connection.execute("INSERT INTO s VALUES (2)")
            connection.execute(f"OPTIMIZE TABLE {table} FINAL")
            connection.execute("SYSTEM REPLAY VIEW v")
        connection.execute(f"CREATE TABLE u (k Int64) ENGINE = MergeTree ORDER BY k {files}")
        connection.execute("INSERT INTO u SELECT number FROM numbers(4)")
        for value in range(3):
            connection.execute(f"DELETE FROM u WHERE k = {value}")
        before = [connection.execute(query).fetchall() for query in (count, sums, left_over)]
    monkeypatch.undo()
    lose_catalog(origin)
    replace, done = os.replace, False
    for moves in range(40):
        shutil.rmtree(lost, ignore_errors=True)
        shutil.copytree(origin, lost)
        left = iter(range(moves))

        def until_killed(old: Path, new: Path) -> None:
            if next(left, None) is None:  # noqa: B023
                raise KeyboardInterrupt
            replace(old, new)

        monkeypatch.setattr("olapdb.maintenance.rebuild_catalog.os.replace", until_killed)
        try:
            olapdb.rebuild_catalog(lost)
            done = True
        except KeyboardInterrupt:
            monkeypatch.setattr("olapdb.maintenance.rebuild_catalog.os.replace", replace)
            olapdb.rebuild_catalog(lost)
        monkeypatch.setattr("olapdb.maintenance.rebuild_catalog.os.replace", replace)
        with olapdb.connect(lost) as connection:
            found = [connection.execute(query).fetchall() for query in (count, sums, left_over)]
            assert found == before
        if done:
            break
    assert done
    assert moves > 5


def test_damaged_files_are_named_and_left_out(folder: Path) -> None:
    lose_catalog(folder)
    files = sorted((folder / "data").rglob("*.parquet"), key=lambda file: file.stat().st_size)
    data = files[-1].read_bytes()
    files[-1].write_bytes(data[: len(data) // 2])
    (folder / "data" / "torn.parquet.tmp").write_bytes(b"x")
    report = olapdb.rebuild_catalog(folder)
    assert len(report.unreadable) == 1
    assert files[-1].name in report.unreadable[0]
    with olapdb.connect(str(folder)) as connection:
        assert connection.execute("SELECT count() > 0 FROM t").fetchall() == [(True,)]


def test_a_catalog_is_never_overwritten(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="has a catalog"):
        olapdb.rebuild_catalog(folder)
    with pytest.raises(CannotOpenWarehouse, match="no warehouse"):
        olapdb.rebuild_catalog(tmp_path)
    lose_catalog(folder)
    (folder / "catalog.sqlite-wal").write_bytes(b"of the old one")
    with pytest.raises(BadArguments, match="has a catalog, or the log of one"):
        olapdb.rebuild_catalog(folder)


def test_a_replay_of_small_parts_leaves_no_note(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    with olapdb.connect(folder) as connection:
        make(connection)
        add(connection, ("2024-01-01", "a", 1, 1))
        connection.execute("SYSTEM REPLAY VIEW daily_mv")
    assert list(folder.rglob("*.swap")) == []
    with olapdb.connect(folder) as connection:
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []


def test_a_merge_that_never_came_to_be_doubles_nothing(folder: Path) -> None:
    """Check a file of an uncommitted merge whose inputs another merge has replaced since."""
    in_child(folder, "INSERT INTO t (d, a) SELECT '2024-01-03', number FROM numbers(9)")
    in_child(folder, "OPTIMIZE TABLE t FINAL", kill_at=("catalog.before_commit", 1))
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("INSERT INTO t (d, a) SELECT '2024-01-04', number FROM numbers(5)")
        connection.execute("OPTIMIZE TABLE t FINAL")
        before = content(connection)
    lose_catalog(folder)
    olapdb.rebuild_catalog(folder)
    with olapdb.connect(str(folder), read_only=True) as connection:
        assert content(connection) == before


# --- replays --------------------------------------------------------------------------------------

TARGET = "(k String, p UInt8, n Int64) ENGINE = SummingMergeTree PARTITION BY p ORDER BY (k, p)"
QUERY = "SELECT k, p, sum(n) AS n FROM s GROUP BY k, p"
SUMS = "SELECT p, k, sum(n) FROM sums GROUP BY p, k ORDER BY p, k"


@pytest.fixture
def replayed(tmp_path: Path) -> Path:
    """Create a view whose target has two partitions, of two blocks each; the source has three."""
    folder = tmp_path / "warehouse"
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE s (d UInt8, k String, p UInt8, n Int64) ENGINE = MergeTree"
            " PARTITION BY d ORDER BY k"
        )
        connection.execute(f"CREATE TABLE sums {TARGET}")
        connection.execute(f"CREATE MATERIALIZED VIEW v TO sums AS {QUERY}")
        for n in (1, 10):
            connection.execute(
                "INSERT INTO s SELECT number % 3, toString(number % 7), number % 2,"
                f" {n} + number FROM numbers(100)"
            )
        connection.execute("DELETE FROM s WHERE n = 11")
    return folder


def in_child(folder: Path, *statements: str, kill_at: tuple[str, int] | None = None) -> None:
    """Run the statements in a process of its own, which kills itself at the stage."""
    done = run_module("tests.faults.killed_statements", folder, json.dumps([statements, kill_at]))
    assert done.returncode == (-signal.SIGKILL if kill_at else 0), done.stderr[-2000:]


def rebuilt(folder: Path, query: str) -> list[tuple[object, ...]]:
    """Lose and rebuild the catalog; return the rows of the query."""
    lose_catalog(folder)
    report = olapdb.rebuild_catalog(folder)
    assert (report.unreadable, report.renamed) == ((), ())
    with olapdb.connect(str(folder), read_only=True) as connection:
        return connection.execute(query).fetchall()


def shown(folder: Path, query: str) -> list[tuple[object, ...]]:
    """Return the rows of the query."""
    with olapdb.connect(str(folder), read_only=True) as connection:
        return connection.execute(query).fetchall()


def vacuumed(folder: Path, lifetime_seconds: int) -> list[str]:
    """Vacuum and check the database; return the names of the remaining replay manifests."""
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        services = connection.database.services
        vacuum(services, lifetime_seconds=lifetime_seconds)
        assert check_database(services.catalog, services.store) == []
    return sorted(path.name for path in (folder / "data").rglob("*.swap"))


REPLAYS = {
    "stale": ("SYSTEM REPLAY VIEW v STALE",),
    "all": ("SYSTEM REPLAY VIEW v",),
    "one partition": ("SYSTEM REPLAY VIEW v PARTITION 0",),
    "two at once": ("SYSTEM REPLAY VIEW v", "SYSTEM REPLAY VIEW v"),
    "of merged parts": ("OPTIMIZE TABLE sums FINAL", "SYSTEM REPLAY VIEW v"),
    "merged since": ("SYSTEM REPLAY VIEW v", "OPTIMIZE TABLE sums FINAL"),
    "and rows that came since": (
        "SYSTEM REPLAY VIEW v",
        "INSERT INTO s VALUES (0, 'new', 0, 5)",
        "OPTIMIZE TABLE sums FINAL",
        "SYSTEM REPLAY VIEW v",
    ),
    "beside a row by hand": ("INSERT INTO sums VALUES ('hand', 0, 3)", "SYSTEM REPLAY VIEW v"),
    "without the row by hand": (
        "INSERT INTO sums VALUES ('hand', 0, 3)",
        "SYSTEM REPLAY VIEW v DISCARD BYPASS",
    ),
}


@pytest.mark.parametrize("what", REPLAYS)
def test_replayed_rows_are_there_once(replayed: Path, what: str) -> None:
    in_child(replayed, *REPLAYS[what])
    before = shown(replayed, SUMS)
    assert rebuilt(replayed, SUMS) == before


def test_notes_of_replays_go_with_what_they_tell_of(replayed: Path) -> None:
    in_child(replayed, "SYSTEM REPLAY VIEW v")
    before = shown(replayed, SUMS)
    assert len(vacuumed(replayed, 3_600)) == 1, "what it replaced is still there"
    assert vacuumed(replayed, 0) == []
    assert rebuilt(replayed, SUMS) == before


def test_a_living_process_gathers_no_notes(replayed: Path) -> None:
    with olapdb.connect(str(replayed)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("SYSTEM REPLAY VIEW v SETTINGS inline_bytes_max = 0")
        services = connection.database.services
        (note,) = (replayed / "data").rglob("*.swap")
        vacuum(services, lifetime_seconds=0)
        assert note.exists(), "its replay may be just about to commit"
        an_hour_ago = time.time() - 3_700
        os.utime(note, (an_hour_ago, an_hour_ago))
        vacuum(services, lifetime_seconds=0)
        assert not note.exists()


@pytest.mark.parametrize(
    ("stage", "count"),
    [("replay.begun", 1), ("store.renamed", 2), ("replay.chunk_computed", 1), ("store.renamed", 7)],
)
def test_a_replay_that_was_killed_doubles_nothing(replayed: Path, stage: str, count: int) -> None:
    before = shown(replayed, SUMS)
    in_child(replayed, "SYSTEM REPLAY VIEW v", kill_at=(stage, count))
    crashed = replayed.with_name("crashed")
    shutil.copytree(replayed, crashed)
    assert rebuilt(crashed, SUMS) == before
    assert vacuumed(replayed, 0) == []
    assert rebuilt(replayed, SUMS) == before


@pytest.mark.parametrize("after", [(), ("INSERT INTO s VALUES (0, '1', 1, 5)",)])
def test_a_replay_killed_before_its_commit_gives_way(
    replayed: Path, after: tuple[str, ...]
) -> None:
    """Check a complete manifest whose replay was killed; another statement has replaced the same
    parts since."""
    in_child(replayed, "SYSTEM REPLAY VIEW v", kill_at=("replay.noted", 1))
    in_child(replayed, *after, "OPTIMIZE TABLE sums FINAL", "SYSTEM REPLAY VIEW v STALE")
    before = shown(replayed, SUMS)
    assert rebuilt(replayed, SUMS) == before


def test_a_replay_half_vacuumed_gives_way(replayed: Path) -> None:
    """Check a rebuild after vacuum has begun to delete the files of an uncommitted replay."""
    before = shown(replayed, SUMS)
    in_child(replayed, "SYSTEM REPLAY VIEW v", kill_at=("replay.noted", 1))
    (note,) = (replayed / "data").rglob("*.swap")
    slices = json.loads(note.read_text())["slices"]
    assert len(slices) == 2
    assert len(slices[0]["new"]) == 3
    for slice_ in slices:
        (replayed / slice_["new"][0]).unlink()
    assert rebuilt(replayed, SUMS) == before
