"""An unreadable part makes its views unverifiable, whichever statement reads it first, until the
part is restored or set aside."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import CorruptedData, Error, FileDoesntExist, OperationalError
from olapdb.maintenance.vacuum import vacuum
from olapdb.storage.checksum import unreadable
from olapdb.storage.store import LocalStore, storage_error
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views", "upkeep")

QUERY = (
    "SELECT toYYYYMM(s.day) AS month, s.kind AS kind, sum(s.x * d.weight) AS w FROM s"
    " LEFT JOIN d ON s.kind = d.kind GROUP BY month, kind"
)
ROLES = {"s": "its source", "t": "its target", "d": "a table that it joins"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def connection(folder: Path) -> Iterator[Connection]:
    """Open s joined with d, by v into t, by w above t into u. Every part is a file."""
    with olapdb.connect(folder, settings={"inline_bytes_max": 0}) as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute(
            "CREATE TABLE s (day Date, kind String, x Int64) ENGINE = MergeTree"
            " PARTITION BY toYYYYMM(day) ORDER BY day"
        )
        opened.execute(
            "CREATE TABLE d (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
        )
        opened.execute(
            "CREATE TABLE t (month UInt32, kind String, w Int64) ENGINE = SummingMergeTree"
            " PARTITION BY month ORDER BY (month, kind)"
        )
        opened.execute(
            "CREATE TABLE u (kind String, w Int64) ENGINE = SummingMergeTree ORDER BY kind"
        )
        opened.execute("INSERT INTO d VALUES ('a', 2), ('b', 3)")
        opened.execute(f"CREATE MATERIALIZED VIEW v TO t AS {QUERY}")
        opened.execute(
            "CREATE MATERIALIZED VIEW w TO u AS SELECT kind, sum(w) AS w FROM t GROUP BY kind"
        )
        opened.execute("INSERT INTO s VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'b', 1)")
        opened.execute("INSERT INTO s VALUES ('2024-02-01', 'a', 5)")
        yield opened


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0xFF
    file.write_bytes(bytes(data))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def remove(file: Path) -> None:
    file.unlink()


DAMAGES: tuple[Callable[[Path], None], ...] = (flip, cut, remove)


def damage(
    folder: Path, connection: Connection, table: str, how: Callable[[Path], None] = flip
) -> tuple[str, Path, bytes]:
    """Damage the first part of the table; return its name, its file and the file's old bytes."""
    name, path = rows(
        connection,
        f"SELECT name, path FROM system.parts WHERE table = '{table}' AND active AND rows > 0"
        " ORDER BY partition_id, name LIMIT 1",
    )[0]
    file = folder / str(path)
    before = file.read_bytes()
    how(file)
    connection.database.services.store.cache.forget(str(path))
    return str(name), file, before


def meet(connection: Connection, statement: str) -> None:
    """Require that the statement fails on a damaged or missing file."""
    with pytest.raises((CorruptedData, FileDoesntExist)):
        connection.execute(statement).fetchall()


def health(connection: Connection, view: str = "v") -> dict[str, str]:
    """Return the view's row of system.views."""
    return dicts(connection, f"SELECT * FROM system.views WHERE name = '{view}'")[0]


def mended(connection: Connection, *views: str) -> None:
    """Run `mend` until each view is proven, at most three times a view, and check the targets."""
    for view in views:
        done = []
        while health(connection, view)["verdict"] != "proven":
            done.append(health(connection, view)["mend"])
            assert len(done) <= 3, done
            connection.execute(done[-1])
    wanted = rows(connection, f"SELECT * FROM ({QUERY}) WHERE w != 0 ORDER BY month, kind")
    assert rows(connection, "SELECT * FROM t FINAL ORDER BY month, kind") == wanted
    totals = rows(connection, "SELECT kind, sum(w) FROM t GROUP BY kind ORDER BY kind")
    assert rows(connection, "SELECT kind, w FROM u FINAL ORDER BY kind") == totals


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("table", ROLES)
def test_a_read_that_fails_is_enough(
    connection: Connection, folder: Path, table: str, how: Callable[[Path], None]
) -> None:
    assert health(connection)["verdict"] == "covered"
    connection.execute("SYSTEM RECONCILE VIEW v")
    name, _, _ = damage(folder, connection, table, how)
    assert health(connection)["verdict"] == "proven", "nothing has met it"
    meet(connection, f"SELECT * FROM {table}")
    found = health(connection)
    assert found["verdict"] == "unverifiable"
    assert f"Part {name} of {ROLES[table]} default.{table} is damaged" in found["reason"]
    assert health(connection, "w")["verdict"] == ("unverifiable" if table == "t" else "covered")
    mended(connection, "v", "w")


def test_several_parts_are_mended_at_once(connection: Connection, folder: Path) -> None:
    for table in ("s", "t", "d"):
        for path in rows(
            connection, f"SELECT path FROM system.parts WHERE table = '{table}' AND rows > 0"
        ):
            flip(folder / str(path[0]))
    connection.execute("CHECK ALL TABLES")
    assert "4 more parts are damaged" in health(connection)["reason"]
    mended(connection, "v", "w")


@pytest.mark.parametrize("engine", ["Log", "Memory", "MergeTree ORDER BY k"])
def test_tables_without_partitions(tmp_path: Path, engine: str) -> None:
    """A damaged part is set aside for every engine that stores rows, and comes back once
    restored."""
    folder = tmp_path / "warehouse"
    with olapdb.connect(folder, settings={"inline_bytes_max": 0}) as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute(f"CREATE TABLE `order` (k UInt64, x Int64) ENGINE = {engine}")
        opened.execute("CREATE TABLE t (k UInt64, x Int64) ENGINE = SummingMergeTree ORDER BY k")
        query = "SELECT k, sum(x) AS x FROM `order` GROUP BY k"
        opened.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
        opened.execute("INSERT INTO `order` VALUES (1, 1)")
        opened.execute("INSERT INTO `order` VALUES (2, 2)")
        _, file, before = damage(folder, opened, "order")
        meet(opened, "SELECT * FROM `order`")
        assert health(opened)["verdict"] == "unverifiable"
        opened.execute(health(opened)["mend"])
        assert "QUARANTINE PART (SYSTEM QUARANTINE PART '" in health(opened)["reason"]
        opened.execute(health(opened)["mend"])
        opened.execute(health(opened)["mend"])
        assert health(opened)["verdict"] == "proven"
        assert len(rows(opened, "SELECT * FROM `order`")) == 1
        file.write_bytes(before)
        opened.execute("ALTER TABLE `order` ATTACH PARTITION ALL")
        assert health(opened)["verdict"] == "partial"
        opened.execute(health(opened)["mend"])
        opened.execute(health(opened)["mend"])
        assert health(opened)["verdict"] == "proven"
        assert len(rows(opened, "SELECT * FROM `order`")) == 2


def test_a_backup_meets_it(connection: Connection, folder: Path, tmp_path: Path) -> None:
    damage(folder, connection, "s")
    with pytest.raises(Error):
        connection.execute(f"SYSTEM BACKUP TO '{tmp_path / 'copy'}'")
    assert health(connection)["verdict"] == "unverifiable"


@pytest.mark.parametrize("table", ROLES)
def test_others_know_and_so_does_who_opens_it_later(
    connection: Connection, folder: Path, table: str
) -> None:
    damage(folder, connection, table)
    meet(connection, f"SELECT * FROM {table}")
    connection.close()
    with olapdb.connect(folder, read_only=True) as later:
        assert health(later)["verdict"] == "unverifiable"
        assert later.views["v"].status().verdict == "unverifiable"


def test_a_reader_that_cannot_write_knows_for_itself(connection: Connection, folder: Path) -> None:
    connection.close()
    with olapdb.connect(folder, read_only=True) as reader:
        damage(folder, reader, "t")
        meet(reader, "SELECT * FROM t")
        assert health(reader)["verdict"] == "unverifiable"
        assert reader.views["v"].status().verdict == "unverifiable"
    with olapdb.connect(folder) as writer:
        assert health(writer)["verdict"] == "covered"


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("s", "SYSTEM RECONCILE VIEW v"),
        ("s", "SYSTEM REPLAY VIEW v"),
        ("s", "OPTIMIZE TABLE s FINAL"),
        ("s", "DELETE FROM s WHERE x = 1"),
        ("s", "ALTER TABLE s UPDATE x = 2 WHERE 1"),
        ("s", "ALTER TABLE s DROP PARTITION 202401"),
        ("t", "SYSTEM RECONCILE VIEW v"),
        ("t", "SELECT count() FROM t WHERE w > 0"),
        ("d", "SYSTEM RECONCILE VIEW v"),
        ("d", "INSERT INTO s VALUES ('2024-03-01', 'a', 1)"),
        ("d", "TRUNCATE TABLE d"),
    ],
)
def test_whoever_meets_it(connection: Connection, folder: Path, table: str, statement: str) -> None:
    connection.execute("INSERT INTO s VALUES ('2024-01-05', 'a', 7)")
    damage(folder, connection, table)
    try:
        cursor = connection.execute(statement)
        if cursor.description is not None:
            cursor.fetchall()
    except Error:
        assert health(connection)["verdict"] == "unverifiable"
    else:
        # The statement skipped the missing part, or another requirement reported the damage.
        assert health(connection)["verdict"] in ("stale", "unverifiable")
    mended(connection, "v", "w")


def test_an_insert_that_goes_on_without_the_view(connection: Connection, folder: Path) -> None:
    """The trigger reads the damaged part. Its failure becomes a gap, and the INSERT succeeds."""
    damage(folder, connection, "d")
    connection.execute(
        "INSERT INTO s SETTINGS materialized_views_ignore_errors = 1 VALUES ('2024-03-01', 'a', 1)"
    )
    assert health(connection)["verdict"] == "unverifiable"


def test_check_table_tells_and_lifts(connection: Connection, folder: Path) -> None:
    _, file, before = damage(folder, connection, "s")
    assert [one["is_passed"] for one in dicts(connection, "CHECK TABLE s")] == [0, 1]
    assert health(connection)["verdict"] == "unverifiable"
    file.write_bytes(before)
    assert health(connection)["verdict"] == "unverifiable", "nobody has looked"
    assert {one["is_passed"] for one in dicts(connection, "CHECK TABLE s")} == {1}
    assert health(connection)["verdict"] == "covered"
    mended(connection, "v", "w")


def test_a_part_of_the_target_that_is_replaced(connection: Connection, folder: Path) -> None:
    connection.execute("DROP VIEW w")  # a replay fires w with the rows it removes
    damage(folder, connection, "t")
    meet(connection, "SELECT * FROM t")
    connection.execute("SYSTEM REPLAY VIEW v PARTITION 202401")
    assert health(connection)["verdict"] == "covered"


def test_rows_in_the_catalog(tmp_path: Path) -> None:
    """Inline parts are damaged by wrong bytes and by missing rows in the catalog."""
    for change in ("UPDATE inline_rows SET data = zeroblob(10)", "DELETE FROM inline_rows"):
        with olapdb.connect(":memory:") as opened:
            opened.execute("SYSTEM STOP MERGES")
            opened.execute("CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k")
            opened.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
            opened.execute("CREATE MATERIALIZED VIEW v TO t AS SELECT k FROM s")
            opened.execute("INSERT INTO s VALUES (1)")
            services = opened.database.services
            with services.catalog.connections.reading() as driver:  # type: ignore[attr-defined]
                driver.execute(change)
            services.store.cache.inline = type(services.store.cache)().inline
            with pytest.raises(Error):
                rows(opened, "SELECT * FROM s")
            assert health(opened)["verdict"] == "unverifiable"


def test_a_part_that_vacuum_removed_is_not_damaged(connection: Connection, folder: Path) -> None:
    """A reader without a pin finds that vacuum deleted the file of a replaced part."""
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    table = snapshot.find("default", "s")
    assert table is not None
    old = snapshot.parts(table.id)
    connection.execute("DELETE FROM s WHERE 1")
    vacuum(services, lifetime_seconds=0)
    assert not any((folder / part.path).exists() for part in old)
    services.store.cache.suspects.add(old[0])
    assert health(connection)["verdict"] != "unverifiable"
    assert services.catalog.damaged() == ()


def test_a_part_that_is_sound_is_not_damaged(connection: Connection) -> None:
    """A suspected part that reads well is not damaged: the reader itself may have failed."""
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    table = snapshot.find("default", "s")
    assert table is not None
    services.store.cache.suspects.add(snapshot.parts(table.id)[0])
    assert health(connection)["verdict"] == "covered"


@pytest.mark.parametrize(
    ("error", "damaged"),
    [
        (OSError(errno.EIO, "input/output error"), True),
        (OSError("Corrupt snappy data"), True),
        (pa.ArrowInvalid("not a Parquet file"), True),
        (OSError(errno.EMFILE, "too many open files"), False),
        (OSError(errno.ENOMEM, "cannot allocate"), False),
        (OSError(errno.EINTR, "interrupted"), False),
        (pa.ArrowMemoryError("malloc of size 99 failed"), False),
    ],
)
def test_what_says_something_of_the_part(
    connection: Connection, error: Exception, damaged: bool
) -> None:
    snapshot = connection.database.services.catalog.snapshot()
    table = snapshot.find("default", "s")
    assert table is not None
    told = unreadable(snapshot.parts(table.id)[0], error)
    assert isinstance(told, OperationalError)
    assert isinstance(told, CorruptedData) == damaged


@pytest.mark.parametrize(("number", "damaged"), [(errno.EIO, True), (errno.EMFILE, False)])
def test_a_file_that_cannot_be_opened(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, number: int, damaged: bool
) -> None:
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    table = snapshot.find("default", "s")
    assert table is not None
    path = snapshot.parts(table.id)[0].path
    services.store.cache.forget(path)
    opened = type(services.store).open_input

    def failing(store: LocalStore, asked: str) -> pa.NativeFile:
        if asked == path:
            raise storage_error(OSError(number, os.strerror(number)), asked) from OSError(
                number, os.strerror(number)
            )
        return opened(store, asked)

    monkeypatch.setattr(LocalStore, "open_input", failing)
    with pytest.raises(OperationalError):
        rows(connection, "SELECT * FROM s")
    assert health(connection)["verdict"] == ("unverifiable" if damaged else "covered")


def test_too_many_open_files(connection: Connection, folder: Path) -> None:
    """CHECK TABLE raises an error where it cannot open a file, and reports no part as damaged."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    list(rows(connection, "CHECK TABLE t"))  # what it imports cannot be opened later
    held = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
        while True:
            try:
                held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        with pytest.raises(Error):
            rows(connection, "CHECK TABLE s")
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert health(connection)["verdict"] == "covered"


def test_a_catalog_of_an_older_release(connection: Connection, folder: Path) -> None:
    """A catalog of an older release lacks the list of damaged parts until a writer opens it."""
    services = connection.database.services
    with services.catalog.connections.reading() as driver:  # type: ignore[attr-defined]
        for name in ("block_spans", "damaged_parts"):
            driver.execute(f"DROP TABLE {name}")
        driver.execute("UPDATE meta SET value = '1' WHERE key = 'format_version'")
    connection.close()
    with olapdb.connect(folder, read_only=True) as reader:
        assert health(reader)["verdict"] == "covered"
    with olapdb.connect(folder) as writer:
        damage(folder, writer, "s")
        meet(writer, "SELECT * FROM s")
        assert health(writer)["verdict"] == "unverifiable"
