"""Which catalogs can be opened by whom, and that a read-only connection changes nothing."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite import schema_cache, statements
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.catalog.sqlite.connections import Connections
from olapdb.errors import CannotOpenWarehouse, CatalogChanged, InterfaceError, ReadOnly
from olapdb.model import encoding
from olapdb.model.schema import SchemaObject
from tests.harness.commits import create_all, insert, make_table

pytestmark = pytest.mark.feature("commits")


def test_a_warehouse_keeps_its_identity(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    first = SqliteCatalog(path, zone="Europe/Berlin")
    facts = (first.warehouse_id, first.zone)
    first.close()
    again = SqliteCatalog(path, zone="UTC")
    assert (again.warehouse_id, again.zone) == facts, "the zone is fixed when it is made"
    again.close()
    assert SqliteCatalog(":memory:").warehouse_id != facts[0]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    SqliteCatalog(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = '3' WHERE key = 'format_version'")
    connection.close()
    with pytest.raises(CannotOpenWarehouse, match=r"format 3.*newer olapdb"):
        SqliteCatalog(path)


def test_what_is_no_catalog_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("this is no database, but a text that is long enough to be read as one")
    with pytest.raises(CannotOpenWarehouse):
        SqliteCatalog(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE meta2 (x)")
    connection.close()
    with pytest.raises(CannotOpenWarehouse, match="no catalog of olapdb"):
        SqliteCatalog(other)
    with pytest.raises(CannotOpenWarehouse):
        SqliteCatalog(tmp_path / "no" / "folder.sqlite")
    with pytest.raises(CannotOpenWarehouse, match="no warehouse"):
        SqliteCatalog(tmp_path / "nothing.sqlite", read_only=True)


def test_a_closed_catalog_says_so(tmp_path: Path) -> None:
    catalog = SqliteCatalog(tmp_path / "catalog.sqlite")
    snapshot = catalog.snapshot()
    catalog.pin(snapshot.number)
    catalog.close()
    catalog.close()
    catalog.unpin(snapshot.number)
    with pytest.raises(InterfaceError, match="closed"):
        catalog.snapshot()
    assert sorted(os.listdir(tmp_path)) == ["catalog.processes", "catalog.sqlite"]
    assert os.listdir(tmp_path / "catalog.processes") == []


READ = """
import sys
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.catalog.sqlite.connections import Connections
reader = SqliteCatalog(sys.argv[1], read_only=True)
while True:
    with reader.pinned() as snapshot:
        assert snapshot.coverage("v").everywhere
        print(len(snapshot.parts("s")), flush=True)
    if not sys.stdin.readline():
        break
"""


@pytest.mark.parametrize("writer_open", [True, False])
def test_reading_only_changes_no_byte_and_follows_writers(
    tmp_path: Path, writer_open: bool
) -> None:
    path = tmp_path / "catalog.sqlite"
    writer = SqliteCatalog(path)
    lease = writer.open_lease("w")
    create_all(writer)
    insert(writer, lease)
    if not writer_open:
        writer.close()
    before = _bytes_of(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", READ, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "1\n"
    assert _bytes_of(tmp_path) == before
    if not writer_open:
        writer = SqliteCatalog(path)
        lease = writer.open_lease("w")
    insert(writer, lease)
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "2\n"
    writer.close()
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "2\n"
    child.communicate()
    assert child.returncode == 0


COME_AND_GO = """
import sqlite3, sys
for number in range(4000):
    writer = sqlite3.connect(sys.argv[1], timeout=60)
    writer.execute("PRAGMA synchronous = OFF")
    writer.execute("UPDATE counted SET number = ?", (number,))
    writer.commit()
    writer.close()  # the last connection removes the log and its shared memory
"""


def test_reading_while_writers_come_and_go(tmp_path: Path) -> None:
    """A reader that meets a writer's opening or closing is asked to read again; it gets no error of SQLite."""
    path = str(tmp_path / "catalog.sqlite")
    created = sqlite3.connect(path)
    created.execute("PRAGMA journal_mode = WAL")
    created.execute("CREATE TABLE counted (number INTEGER)")
    created.execute("INSERT INTO counted VALUES (-1)")
    created.commit()
    created.close()
    reader = Connections(path, "full", read_only=True)

    def read() -> int:
        with reader.reading() as connection:
            return int(connection.execute("SELECT number FROM counted").fetchone()[0])

    with subprocess.Popen([sys.executable, "-c", COME_AND_GO, path]) as writer:
        try:
            seen = -1
            while seen < 3999 and writer.poll() in (None, 0):
                with contextlib.suppress(CatalogChanged):
                    number = read()
                    assert number >= seen
                    seen = number
        finally:
            writer.kill()
    assert seen == 3999


def test_a_read_only_catalog_refuses_to_write(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    SqliteCatalog(path).close()
    reader = SqliteCatalog(path, read_only=True)
    with pytest.raises(ReadOnly):
        create_all(reader)
    with pytest.raises(ReadOnly):
        reader.open_lease("r")
    reader.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    SqliteCatalog(path).close()
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert SqliteCatalog(path, read_only=True).snapshot().number == 1
        with pytest.raises((ReadOnly, CannotOpenWarehouse)):
            SqliteCatalog(path)
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def _bytes_of(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def test_an_empty_log_without_its_memory_is_no_log(tmp_path: Path) -> None:
    """Leave the files of a reader that came while the last writer was removing the log."""
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
        connection.execute("INSERT INTO t VALUES (1)")
    (tmp_path / "catalog.sqlite-wal").touch()
    with olapdb.connect(str(tmp_path), read_only=True) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_log_that_only_a_writer_can_bring_in_says_so(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
        log = (tmp_path / "catalog.sqlite-wal").read_bytes()
    (tmp_path / "catalog.sqlite-wal").write_bytes(log)
    with pytest.raises(CannotOpenWarehouse, match="without read_only"):
        olapdb.connect(str(tmp_path), read_only=True)
    with olapdb.connect(str(tmp_path)) as connection:
        assert connection.execute("SELECT count() FROM t").fetchall() == [(0,)]


def _as_format_1(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for name in ("block_spans", "damaged_parts"):
            connection.execute(f"DROP TABLE {name}")
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'format_version'")
        connection.execute("INSERT INTO blocks VALUES ('gone', 1, 1, 1, '', 'insert', 1)")


def _filled(path: Path) -> None:
    with contextlib.closing(SqliteCatalog(path)) as catalog:
        create_all(catalog)
        insert(catalog, catalog.open_lease("w"))
    _as_format_1(path)


def test_an_older_format_is_read_as_it_is_and_migrated_by_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "catalog.sqlite"
    _filled(path)
    before = _bytes_of(tmp_path)
    with contextlib.closing(SqliteCatalog(path, read_only=True)) as reader:
        snapshot = reader.snapshot()
        assert snapshot.next_block(make_table("s")) == 2
        assert [b.number for b in snapshot.blocks("s")] == [1]
    assert _bytes_of(tmp_path) == before
    with contextlib.closing(SqliteCatalog(path)) as catalog:
        insert(catalog, catalog.open_lease("w"))
        assert [b.number for b in catalog.snapshot().blocks("s")] == [1, 2]
        assert catalog.snapshot().blocks("gone") == (), "a table that nothing can bring back"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        query = "SELECT value FROM meta WHERE key = 'format_version'"
        assert connection.execute(query).fetchone() == ("2",)


def test_a_migration_that_is_interrupted_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between any two statements leaves the catalog in the old format or the new one."""
    path = tmp_path / "catalog.sqlite"
    _filled(path)

    def interrupted(*arguments: object, **values: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(statements, "set_meta", interrupted)
        with pytest.raises(KeyboardInterrupt):
            SqliteCatalog(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = {n for (n,) in connection.execute("SELECT name FROM sqlite_master")}
        assert not {"block_spans", "damaged_parts"} & names
    with contextlib.closing(SqliteCatalog(path)) as catalog:
        assert [b.number for b in catalog.snapshot().blocks("s")] == [1]


def test_a_process_reads_only_the_tables_that_it_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with olapdb.connect(tmp_path / "warehouse") as connection:
        for number in range(50):
            connection.execute(f"CREATE TABLE t{number} (a UInt8) ENGINE = MergeTree ORDER BY a")
        connection.execute("CREATE MATERIALIZED VIEW v TO t2 AS SELECT a FROM t1")
    decoded: list[str] = []

    def decode(kind: str, body: str, parse_type: encoding.ParseType) -> SchemaObject:
        item = encoding.decode_object(kind, body, parse_type)
        decoded.append(item.name)
        return item

    monkeypatch.setattr(schema_cache, "decode_object", decode)
    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute("INSERT INTO t1 VALUES (1)")
        assert connection.execute("SELECT a FROM t2").fetchall() == [(1,)]
    assert set(decoded) == {"t1", "t2", "v"}
    assert len(decoded) == 3
