"""A backup is whole, or the earlier one remains; a restored warehouse equals the original."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, ChecksumDoesntMatch
from olapdb.maintenance.check import check_database
from tests.harness.child import run_module

pytestmark = pytest.mark.feature("crashes", "upkeep")

ROWS = 1000


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with olapdb.connect(
        str(tmp_path / "warehouse"), settings={"inline_bytes_max": 0}
    ) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
        connection.execute(
            "CREATE TABLE sums (k UInt8, n SimpleAggregateFunction(sum, UInt64))"
            " ENGINE = AggregatingMergeTree ORDER BY k"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO sums AS SELECT a % 10 AS k, count() AS n FROM t GROUP BY k"
        )
        add(connection)
        connection.execute("INSERT INTO t SETTINGS inline_bytes_max = 262144 VALUES (1)")
        yield connection


def add(connection: Connection) -> None:
    """Insert a block of rows."""
    connection.execute(f"INSERT INTO t SELECT number FROM numbers({ROWS})")


def ask(connection: Connection, query: str) -> list[tuple[object, ...]]:
    """Return the rows of a query."""
    return connection.execute(query).fetchall()


def back_up(connection: Connection, folder: Path) -> dict[str, object]:
    """Run SYSTEM BACKUP; return its report."""
    cursor = connection.execute(f"SYSTEM BACKUP TO '{folder}'")
    names = [one[0] for one in cursor.description]
    return dict(zip(names, cursor.fetchone(), strict=True))


def content(folder: Path) -> tuple[object, ...]:
    """Return (rows, rows that the view counted, its verdict) of a folder, without writing to it."""
    with olapdb.connect(str(folder), read_only=True) as backup:
        assert {row[3] for row in ask(backup, "CHECK ALL TABLES")} <= {1}
        return (
            *ask(backup, "SELECT count() FROM t")[0],
            *ask(backup, "SELECT sum(n) FROM sums")[0],
            *ask(backup, "SELECT verdict FROM system.views")[0],
        )


def test_only_new_parts_are_copied(connection: Connection, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    first = back_up(connection, folder)
    assert first["files"] == first["files_copied"] == 2
    add(connection)
    second = back_up(connection, folder)
    assert (second["files"], second["files_copied"]) == (4, 2)
    assert content(folder) == (2 * ROWS + 1, 2 * ROWS + 1, "covered")
    connection.execute("OPTIMIZE TABLE t FINAL")
    third = back_up(connection, folder)
    assert (third["files"], third["files_copied"]) == (3, 1)
    kept = {p.name for p in folder.rglob("*.parquet")}
    assert len(kept) == 3, "parts that no backup refers to are gone"


def test_what_is_restored_goes_on(connection: Connection, tmp_path: Path) -> None:
    back_up(connection, tmp_path / "backup")
    add(connection)
    with olapdb.connect(str(tmp_path / "again")) as again:
        again.execute(f"SYSTEM RESTORE FROM '{tmp_path / 'backup'}'")
        assert ask(again, "SELECT count() FROM t") == [(ROWS + 1,)]
        add(again)
        assert ask(again, "SELECT sum(n) FROM sums") == [(2 * ROWS + 1,)]
        again.execute("SYSTEM RECONCILE VIEW v")
        assert ask(again, "SELECT verdict FROM system.views") == [("proven",)]
        assert check_database(again.database.services.catalog, again.database.services.store) == []
        with pytest.raises(BadArguments, match="needs a new one"):
            again.execute(f"SYSTEM RESTORE FROM '{tmp_path / 'backup'}'")
    assert ask(connection, "SELECT count() FROM t") == [(2 * ROWS + 1,)]


def test_a_warehouse_in_memory_is_kept_in_a_folder(tmp_path: Path) -> None:
    with olapdb.connect(":memory:") as memory:
        memory.execute("CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
        memory.execute(
            f"INSERT INTO t SELECT number FROM numbers({ROWS}) SETTINGS inline_bytes_max = 0"
        )
        memory.execute(f"SYSTEM BACKUP TO '{tmp_path / 'kept'}'")
    with olapdb.connect(str(tmp_path / "kept")) as kept:
        assert ask(kept, "SELECT count() FROM t") == [(ROWS,)]


def test_a_backup_under_load_is_one_state(connection: Connection, tmp_path: Path) -> None:
    stop = threading.Event()

    def insert() -> None:
        while not stop.is_set():
            add(connection)

    writer = threading.Thread(target=insert)
    writer.start()
    try:
        for number in range(4):
            folder = tmp_path / f"backup{number % 2}"
            back_up(connection, folder)
            rows, counted, verdict = content(folder)
            assert (rows - 1) % ROWS == 0
            assert counted == rows
            assert verdict == "covered"
    finally:
        stop.set()
        writer.join()


def test_a_damaged_part_leaves_the_earlier_backup(connection: Connection, tmp_path: Path) -> None:
    back_up(connection, tmp_path / "backup")
    add(connection)
    path = ask(
        connection,
        "SELECT path FROM system.parts WHERE table = 't' AND commit ="
        " (SELECT max(commit) FROM system.parts)",
    )[0][0]
    file = tmp_path / "warehouse" / str(path)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))
    with pytest.raises(ChecksumDoesntMatch):
        back_up(connection, tmp_path / "backup")
    assert content(tmp_path / "backup") == (ROWS + 1, ROWS + 1, "covered")


def test_what_is_no_backup_is_left_alone(connection: Connection, tmp_path: Path) -> None:
    for folder, why in ((tmp_path, "lies in"), (tmp_path / "warehouse" / "data", "lies in")):
        with pytest.raises(BadArguments, match=why):
            back_up(connection, folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(BadArguments, match="not empty"):
        back_up(connection, other)
    with olapdb.connect(str(tmp_path / "alive")):
        pass
    with pytest.raises(BadArguments, match="no backup"):
        back_up(connection, tmp_path / "alive")
    back_up(connection, tmp_path / "backup")
    with olapdb.connect(str(tmp_path / "backup")) as backup:
        add(backup)
    with pytest.raises(BadArguments, match="written to"):
        back_up(connection, tmp_path / "backup")


@pytest.mark.parametrize(
    ("stage", "count"),
    [
        ("backup.catalog_copied", 1),
        ("store.written", 1),
        ("store.flushed", 2),
        ("store.renamed", 1),
        ("store.renamed", 2),
        ("store.synced", 1),
        ("backup.parts_copied", 1),
        ("backup.published", 1),
    ],
)
def test_killed_anywhere_there_is_the_earlier_or_the_new_one(
    connection: Connection, tmp_path: Path, stage: str, count: int
) -> None:
    folder, warehouse = tmp_path / "backup", tmp_path / "warehouse"
    back_up(connection, folder)
    earlier = content(folder)
    add(connection)
    die(warehouse, folder, "backup", stage, count)
    now = content(folder)
    newer = (2 * ROWS + 1, 2 * ROWS + 1, "covered")
    assert now == (newer if stage == "backup.published" else earlier)
    back_up(connection, folder)
    assert content(folder) == newer
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("stage", "count"), [("store.renamed", 1), ("store.written", 2), ("restore.parts_copied", 1)]
)
def test_a_killed_restore_is_run_again(
    connection: Connection, tmp_path: Path, stage: str, count: int
) -> None:
    folder, again = tmp_path / "backup", tmp_path / "again"
    back_up(connection, folder)
    die(again, folder, "restore", stage, count)
    with olapdb.connect(str(again)) as restored:
        assert ask(restored, "SHOW TABLES") == []
        restored.execute(f"SYSTEM RESTORE FROM '{folder}'")
    assert content(again) == (ROWS + 1, ROWS + 1, "covered")


def die(warehouse: Path, folder: Path, work: str, stage: str, count: int) -> None:
    """Run the backup or restore in a process that dies at the stage."""
    done = run_module("tests.faults.kill_backup", warehouse, folder, work, stage, count)
    assert done.returncode == -signal.SIGKILL, (done.stdout, done.stderr[-2000:])


def test_what_is_in_use_is_not_restored(tmp_path: Path) -> None:
    """Check the refusal: the newest commits are in the log, which a restore does not read."""
    with olapdb.connect(tmp_path / "used") as used:
        used.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
        used.execute("INSERT INTO t VALUES (1)")
    with olapdb.connect(tmp_path / "used") as used, olapdb.connect(tmp_path / "new") as new:
        used.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(olapdb.OperationalError, match="SYSTEM BACKUP TO"):
            new.execute(f"SYSTEM RESTORE FROM '{tmp_path / 'used'}'")
        used.execute(f"SYSTEM BACKUP TO '{tmp_path / 'copy'}'")
        new.execute(f"SYSTEM RESTORE FROM '{tmp_path / 'copy'}'")
        assert new.execute("SELECT sum(k) FROM t").fetchone() == (3,)
