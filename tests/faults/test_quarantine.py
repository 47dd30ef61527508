"""Quarantines a part that cannot be read: the rest is readable, and views show what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ChecksumDoesntMatch, Error, NoSuchDataPart, SyntaxError
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.faults.operations import untruths
from tests.harness.race import Race
from tests.unit.views.warehouse import DIRECT, READ, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("crashes", "upkeep")

JANUARY = [("2024-01-01", "a", 1, 10), ("2024-01-02", "b", 2, 20)]
FEBRUARY = [("2024-02-01", "a", 1, 30)]
BOTH_MONTHS = [("2024-01-03", "a", 5, 1), ("2024-02-03", "b", 6, 2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def connection(folder: Path) -> Iterator[Connection]:
    """Create events (by month) -> daily (by month) -> totals, every part a file."""
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        make(connection)
        connection.execute(
            "CREATE TABLE totals (kind String, total SimpleAggregateFunction(sum, Int64))"
            " ENGINE = AggregatingMergeTree ORDER BY kind"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW totals_mv TO totals AS"
            " SELECT kind, sum(total) AS total FROM daily GROUP BY kind"
        )
        add(connection, *JANUARY)
        add(connection, *FEBRUARY)
        yield connection


def damage(folder: Path, connection: Connection, table: str, partition: str) -> tuple[str, bytes]:
    """Flip a byte of the partition's only file; return the part's name and the original bytes."""
    ((name, path),) = rows(
        connection,
        f"SELECT name, path FROM system.parts WHERE table = '{table}'"
        f" AND partition_id = '{partition}' AND active AND rows > 0",
    )
    file = folder / str(path)
    before = file.read_bytes()
    data = bytearray(before)
    data[len(data) // 3] ^= 0xFF
    file.write_bytes(bytes(data))
    connection.database.services.store.cache.forget(str(path))
    return str(name), before


def sound(connection: Connection) -> None:
    """Require that the database has no problems."""
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


def stale(connection: Connection, view: str) -> list[tuple[object, ...]]:
    """Return the partition and cause of the view's invalidations."""
    return rows(
        connection,
        "SELECT partition_id, cause FROM system.view_invalidations"
        f" WHERE view = '{view}' ORDER BY partition_id",
    )


def test_a_part_of_the_source(connection: Connection, folder: Path) -> None:
    name, before = damage(folder, connection, "events", "202402")
    with pytest.raises(ChecksumDoesntMatch) as caught:
        rows(connection, DIRECT)
    part = caught.value.hint.split("'")[1]
    assert "SYSTEM QUARANTINE PART" in caught.value.hint
    (done,) = dicts(connection, f"SYSTEM QUARANTINE PART '{part}' ON events")
    assert (done["part"], done["partition"], done["rows"]) == (name, "202402", 1)
    assert rows(connection, "SELECT count() FROM events") == [(2,)]
    sound(connection)
    (aside,) = dicts(connection, "SELECT * FROM system.detached_parts")
    assert (aside["name"], aside["reason"], aside["rows"]) == (name, "broken", 1)
    # By the ledger, only this slice was reached by the part.
    assert stale(connection, "daily_mv") == [("202402", "QUARANTINE PART")]
    assert (verdict(connection), verdict(connection, "totals_mv")) == ("stale", "covered")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    connection.execute("SYSTEM REPLAY VIEW totals_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert rows(connection, "SELECT sum(total) FROM totals") == [(30,)]
    vacuum(connection.database.services, lifetime_seconds=0)
    sound(connection)
    # The file is there still; restored, the part comes back as a new block, which is a gap.
    (folder / str(aside["path"])).write_bytes(before)
    connection.execute("ALTER TABLE events ATTACH PARTITION 202402")
    assert rows(connection, "SELECT count() FROM system.detached_parts") == [(0,)]
    assert verdict(connection) == "partial"
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert rows(connection, "SELECT sum(total) FROM totals") == [(60,)]
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    assert verdict(connection) == "proven"
    sound(connection)


def test_a_part_that_reached_two_slices(connection: Connection, folder: Path) -> None:
    """Check that the recorded blocks give both slices, though the target is partitioned
    differently."""
    connection.execute(
        "CREATE TABLE kinds (kind String, n SimpleAggregateFunction(sum, UInt64))"
        " ENGINE = AggregatingMergeTree PARTITION BY kind ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW kinds_mv TO kinds AS"
        " SELECT kind, count() AS n FROM events WHERE amount < 1000 GROUP BY kind"
    )
    add(connection, ("2024-03-01", "a", 1, 1), ("2024-03-01", "c", 1, 1))
    add(connection, ("2024-04-01", "b", 1, 1))
    name, _ = damage(folder, connection, "events", "202403")
    slices = dict(rows(connection, "SELECT kind, any(_partition_id) FROM kinds GROUP BY kind"))
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON events")
    assert {p for p, _ in stale(connection, "kinds_mv")} == {slices["a"], slices["c"]}
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    assert rows(connection, "SELECT kind, sum(n) FROM kinds GROUP BY kind ORDER BY kind") == [
        ("b", 1)
    ]
    sound(connection)


def test_a_part_that_nothing_was_made_of(connection: Connection, folder: Path) -> None:
    """Check that no slice is stale when the view's filter dropped all rows of the part."""
    connection.execute(
        "CREATE MATERIALIZED VIEW none_mv ENGINE = MergeTree ORDER BY kind AS"
        " SELECT kind, amount FROM events WHERE amount > 1000"
    )
    add(connection, ("2024-03-01", "a", 1, 1))
    name, _ = damage(folder, connection, "events", "202403")
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON events")
    assert stale(connection, "none_mv") == []
    assert stale(connection, "daily_mv") == [("202403", "QUARANTINE PART")]


def test_a_part_of_the_target_is_a_gap(connection: Connection, folder: Path) -> None:
    name, _ = damage(folder, connection, "daily", "202401")
    with pytest.raises(ChecksumDoesntMatch, match="202401"):
        rows(connection, READ)
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON daily")
    assert rows(connection, "SELECT sum(total) FROM daily") == [(30,)]
    assert (verdict(connection), verdict(connection, "totals_mv")) == ("partial", "stale")
    (found,) = dicts(connection, "SELECT * FROM system.views WHERE name = 'daily_mv'")
    assert found["gap_rows"] == 2
    connection.execute(found["mend"])
    connection.execute("SYSTEM REPLAY VIEW totals_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert rows(connection, "SELECT sum(total) FROM totals") == [(60,)]
    for view in ("daily_mv", "totals_mv"):
        connection.execute(f"SYSTEM RECONCILE VIEW {view}")
        assert verdict(connection, view) == "proven"
    connection.execute(
        "ALTER TABLE daily DROP DETACHED PARTITION ALL SETTINGS allow_drop_detached = 1"
    )
    vacuum(connection.database.services, lifetime_seconds=0)
    sound(connection)


def test_a_part_of_the_target_whose_block_reached_other_slices(
    connection: Connection, folder: Path
) -> None:
    """Check that the block becomes no gap, or the other slice would get its rows twice."""
    connection.execute("TRUNCATE TABLE events")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    connection.execute("CREATE TABLE plain (day Date, n Int64) ENGINE = MergeTree ORDER BY day")
    connection.execute(
        "CREATE TABLE sums (day Date, n Int64) ENGINE = SummingMergeTree"
        " PARTITION BY toYYYYMM(day) ORDER BY day"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW sums_mv TO sums AS SELECT day, sum(plain.n) AS n FROM plain GROUP BY day"
    )
    connection.execute("INSERT INTO plain VALUES ('2024-01-01', 1), ('2024-02-01', 2)")
    name, _ = damage(folder, connection, "sums", "202401")
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON sums")
    assert stale(connection, "sums_mv") == [("202401", "TARGET CHANGED")]
    connection.execute("SYSTEM REPLAY VIEW sums_mv STALE")
    assert rows(connection, "SELECT sum(n) FROM sums") == [(3,)]
    connection.execute("SYSTEM RECONCILE VIEW sums_mv")
    assert verdict(connection, "sums_mv") == "proven"


def test_source_and_target_are_both_damaged(connection: Connection, folder: Path) -> None:
    source, _ = damage(folder, connection, "events", "202401")
    target, _ = damage(folder, connection, "daily", "202401")
    connection.execute(f"SYSTEM QUARANTINE PART '{target}' ON daily")
    connection.execute(f"SYSTEM QUARANTINE PART '{source}' ON events")
    for view in ("daily_mv", "totals_mv"):
        connection.execute(f"SYSTEM REPLAY VIEW {view}")
        connection.execute(f"SYSTEM RECONCILE VIEW {view}")
        assert verdict(connection, view) == "proven"
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert rows(connection, "SELECT sum(total) FROM totals") == [(30,)]


def test_a_part_of_a_dimension(connection: Connection, folder: Path) -> None:
    connection.execute(
        "CREATE TABLE weights (kind String, w Int64) ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute("INSERT INTO weights VALUES ('a', 2), ('b', 3)")
    connection.execute(
        "CREATE TABLE weighed (kind String, n Int64) ENGINE = SummingMergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW weighed_mv TO weighed AS SELECT kind, sum(amount * w) AS n"
        " FROM events JOIN weights USING kind GROUP BY kind"
    )
    connection.execute("SYSTEM BACKFILL VIEW weighed_mv")
    name, _ = damage(folder, connection, "weights", "all")
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON weights")
    assert stale(connection, "weighed_mv") == [(None, "DIMENSION CHANGE")]


def test_a_missing_file(connection: Connection, folder: Path) -> None:
    ((name, path),) = rows(
        connection,
        "SELECT name, path FROM system.parts WHERE table = 'events' AND partition_id = '202401'",
    )
    (folder / str(path)).unlink()
    with pytest.raises(Error, match="does not exist") as caught:
        rows(connection, DIRECT)
    assert "SYSTEM QUARANTINE PART" in caught.value.hint
    damaged = [r for r in dicts(connection, "CHECK TABLE events") if not r["is_passed"]]
    assert [r["part_path"] for r in damaged] == [name]
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON events")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_refusals(connection: Connection) -> None:
    with pytest.raises(NoSuchDataPart, match=r"has no part x") as caught:
        connection.execute("SYSTEM QUARANTINE PART 'x' ON events")
    assert "CHECK TABLE default.events" in caught.value.hint
    with pytest.raises(Error, match=r"daily_mv writes to default\.daily"):
        connection.execute("SYSTEM QUARANTINE PART 'x' ON daily_mv")
    with pytest.raises(SyntaxError):
        connection.execute("SYSTEM QUARANTINE PART 'x'")
    connection.execute("CREATE TABLE lines (a UInt8) ENGINE = Log")
    with pytest.raises(NoSuchDataPart):
        connection.execute("SYSTEM QUARANTINE PART 'x' ON lines")
    connection.execute("CREATE TABLE nothing (a UInt8) ENGINE = Null")
    with pytest.raises(Error, match="stores nothing"):
        connection.execute("SYSTEM QUARANTINE PART 'x' ON nothing")


def test_merges_and_inserts_meanwhile(connection: Connection, folder: Path) -> None:
    """Check that OPTIMIZE fails on the part before its quarantine, and merges the others after
    it."""
    name, _ = damage(folder, connection, "events", "202402")
    add(connection, *BOTH_MONTHS)
    with pytest.raises(ChecksumDoesntMatch):
        connection.execute("OPTIMIZE TABLE events FINAL")
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON events")
    connection.execute("OPTIMIZE TABLE events FINAL")
    assert stale(connection, "daily_mv") == [("202402", "QUARANTINE PART")]
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)


QUARANTINE = "SYSTEM QUARANTINE PART '202402_2_2_0' ON events"


def test_a_backup_goes_on_and_keeps_the_sound_file(
    connection: Connection, folder: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    connection.execute(f"SYSTEM BACKUP TO '{backup}'")
    name, before = damage(folder, connection, "events", "202402")
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON events")
    ((path,),) = rows(connection, "SELECT path FROM system.detached_parts")
    connection.execute(f"SYSTEM BACKUP TO '{backup}'")
    assert (backup / path).read_bytes() == before, "kept, though newer backups cannot read it"
    (done,) = dicts(connection, f"SYSTEM BACKUP TO '{tmp_path / 'another'}'")
    assert done["files"] == done["files_copied"]
    assert not (tmp_path / "another" / path).exists()
    with olapdb.connect(str(tmp_path / "restored")) as again:
        again.execute(f"SYSTEM RESTORE FROM '{backup}'")
        again.execute("ALTER TABLE events ATTACH PARTITION 202402")
        assert rows(again, "SELECT count() FROM events") == [(3,)]
    with olapdb.connect(str(tmp_path / "without")) as again:
        again.execute(f"SYSTEM RESTORE FROM '{tmp_path / 'another'}'")
        assert rows(again, "SELECT count() FROM events") == [(2,)]
        sound(again)


MEETINGS = {
    "its part is merged": (
        QUARANTINE,
        ("INSERT INTO events VALUES ('2024-02-09', 'a', 1, 1)", "OPTIMIZE TABLE events FINAL"),
    ),
    "rows of it are deleted": (QUARANTINE, ("ALTER TABLE events DELETE WHERE amount = 30",)),
    "the view means another thing": (
        QUARANTINE,
        (
            "ALTER TABLE daily_mv MODIFY QUERY SELECT addMonths(day, 1) AS day, kind, sum(amount) AS total"
            " FROM events GROUP BY day, kind",
            "SYSTEM REPLAY VIEW daily_mv",
        ),
    ),
    "its slice is emptied and replayed": (
        QUARANTINE,
        ("ALTER TABLE daily DROP PARTITION 202402", "SYSTEM BACKFILL VIEW daily_mv"),
    ),
    "all is replayed": (
        QUARANTINE,
        ("SYSTEM REPLAY VIEW daily_mv", "SYSTEM REPLAY VIEW totals_mv"),
    ),
    "another view comes and is filled": (
        QUARANTINE,
        (
            "CREATE MATERIALIZED VIEW late_mv ENGINE = SummingMergeTree ORDER BY kind POPULATE AS"
            " SELECT kind, count() AS n FROM events GROUP BY kind",
        ),
    ),
    "an INSERT comes": (QUARANTINE, ("INSERT INTO events VALUES ('2024-02-09', 'a', 1, 1)",)),
    "the table is truncated": (QUARANTINE, ("TRUNCATE TABLE events",)),
    "a replay is about to commit": ("SYSTEM REPLAY VIEW daily_mv", (QUARANTINE,)),
    "a replay of stale slices is about to commit": (
        "SYSTEM REPLAY VIEW daily_mv STALE",
        (QUARANTINE,),
    ),
    "a target's part goes while it is replayed": (
        "SYSTEM REPLAY VIEW daily_mv",
        ("SYSTEM QUARANTINE PART '202402_2_2_0' ON daily",),
    ),
    "a merge is about to commit": (
        "OPTIMIZE TABLE daily FINAL",
        ("SYSTEM QUARANTINE PART '202402_2_2_0' ON daily",),
    ),
}


@pytest.mark.parametrize("what", MEETINGS)
def test_it_meets_another_statement(connection: Connection, folder: Path, what: str) -> None:
    """Check, in either order of commits, that views report their state truly and can be mended."""
    statement, meanwhile = MEETINGS[what]
    if "STALE" in statement:
        connection.execute("DELETE FROM events WHERE day = '2024-01-02'")
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as second:
        Race(connection, second).run(statement, *meanwhile)
    assert list(untruths(connection)) == []
    for _ in range(3):
        for view in ("daily_mv", "totals_mv"):
            (found,) = dicts(connection, f"SELECT * FROM system.views WHERE name = '{view}'")
            if found["verdict"] in ("stale", "partial"):
                connection.execute(found["mend"])
    for view in ("daily_mv", "totals_mv"):
        connection.execute(f"SYSTEM RECONCILE VIEW {view}")
        assert verdict(connection, view) == "proven"
    vacuum(connection.database.services, lifetime_seconds=0)
    sound(connection)


def test_frozen_slices_that_it_may_have_reached(connection: Connection) -> None:
    """Check that frozen keys are no longer "proven" once a part of their slice is gone."""
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    connection.execute("ALTER TABLE events DROP PARTITION 202402 SETTINGS retain = 1")
    frozen = "SELECT verdict FROM system.view_retained WHERE view = 'daily_mv'"
    assert rows(connection, frozen) == [("proven",)]
    ((name,),) = rows(
        connection,
        "SELECT name FROM system.parts WHERE table = 'daily' AND partition_id = '202402'"
        " AND active AND rows > 0",
    )
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON daily")
    assert rows(connection, frozen) == [("stale",)]


def test_a_stale_slice_is_replayed_meanwhile(connection: Connection, folder: Path) -> None:
    """Replay between the read of the ledger, in which no part of the slice names the block, and
    the commit, at which one does."""
    connection.execute(
        "CREATE TABLE kinds (kind String, n SimpleAggregateFunction(sum, UInt64))"
        " ENGINE = AggregatingMergeTree PARTITION BY kind ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW kinds_mv TO kinds AS"
        " SELECT kind, count() AS n FROM events GROUP BY kind"
    )
    connection.execute("SYSTEM BACKFILL VIEW kinds_mv")
    connection.execute("ALTER TABLE kinds DROP PARTITION 'b'")
    ((slice_, cause),) = stale(connection, "kinds_mv")
    assert cause == "TARGET CHANGED"
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as second:
        Race(connection, second).run(
            "SYSTEM QUARANTINE PART '202401_1_1_0' ON events", "SYSTEM REPLAY VIEW kinds_mv STALE"
        )
    assert (slice_, "QUARANTINE PART") in stale(connection, "kinds_mv")
    assert list(untruths(connection)) == []
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    connection.execute("SYSTEM RECONCILE VIEW kinds_mv")
    assert verdict(connection, "kinds_mv") == "proven"


@pytest.mark.parametrize(
    "inserted",
    [
        # Two blocks: a merge drops the sums of 'b', which are zero.
        ("(3, 'b', 1)", "(3, 'b', -1), (3, 'a', 4)"),
        # One block of two partitions: the sum of 'b' is zero and is not written.
        ("(2, 'b', 1), (3, 'b', -1), (3, 'a', 4)",),
        # The block writes no row at all.
        ("(2, 'b', 1), (3, 'b', -1)",),
    ],
)
def test_a_part_whose_rows_had_cancelled_others_out(
    connection: Connection, inserted: tuple[str, ...]
) -> None:
    for text in (
        "CREATE TABLE s (p UInt8, k String, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k",
        "CREATE TABLE kinds (k String, n Int64) ENGINE = SummingMergeTree PARTITION BY k ORDER BY k",
        "CREATE MATERIALIZED VIEW kinds_mv TO kinds AS SELECT k, sum(n) AS n FROM s GROUP BY k",
        *(f"INSERT INTO s VALUES {one}" for one in inserted),
        "OPTIMIZE TABLE kinds FINAL",
    ):
        connection.execute(text)
    last = len(inserted)
    connection.execute(f"SYSTEM QUARANTINE PART '3_{last}_{last}_0' ON s")
    assert verdict(connection, "kinds_mv") == "stale"
    made = dicts(connection, "SYSTEM RECONCILE VIEW kinds_mv")
    assert [r for r in made if r["verdict"] != "equal" and not r["causes"]] == []
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    assert rows(connection, "SELECT k, sum(n) FROM kinds GROUP BY k") == [("b", 1)]
    made = dicts(connection, "SYSTEM RECONCILE VIEW kinds_mv")
    assert {r["verdict"] for r in made} == {"equal"}


def test_a_part_that_a_replay_wrote_again_is_missed_below(
    folder: Path, connection: Connection
) -> None:
    """The replay gives the same rows: totals stays covered, and names the block before."""
    connection.execute("SYSTEM REPLAY VIEW daily_mv")
    assert verdict(connection, "totals_mv") == "covered"
    name, _ = damage(folder, connection, "daily", "202401")
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON daily")
    assert [slice_ for slice_, _ in stale(connection, "totals_mv")] in (["all"], [None])
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute("SYSTEM REPLAY VIEW totals_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert rows(connection, "SELECT sum(total) FROM totals") == [(60,)]
