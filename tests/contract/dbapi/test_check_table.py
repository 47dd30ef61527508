"""CHECK TABLE finds bytes that changed since they were written, and names the part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ChecksumDoesntMatch, NoSuchDataPart, NotSupportedError

pytestmark = pytest.mark.feature("python", "upkeep")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def connection(folder: Path) -> Iterator[Connection]:
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (d Date, a UInt32) ENGINE = MergeTree PARTITION BY d ORDER BY a"
        )
        connection.execute("INSERT INTO t VALUES ('2024-01-01', 1), ('2024-01-02', 2)")
        yield connection


def ask(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def damage(folder: Path, connection: Connection, partition: str) -> str:
    """Flip a byte amid the rows of the partition's file; return the part's name."""
    ((name, path),) = ask(
        connection, f"SELECT name, path FROM system.parts WHERE partition_id = '{partition}'"
    )
    file = folder / str(path)
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0xFF
    file.write_bytes(bytes(data))
    return str(name)


def test_a_sound_table(connection: Connection) -> None:
    assert ask(connection, "CHECK TABLE t") == [
        ("20240101_1_1_0", 1, ""),
        ("20240102_1_1_0", 1, ""),
    ]
    assert ask(connection, "CHECK TABLE t PARTITION '2024-01-02'") == [("20240102_1_1_0", 1, "")]
    assert ask(connection, "CHECK TABLE t PART '20240101_1_1_0'") == [("20240101_1_1_0", 1, "")]
    assert ask(connection, "CHECK ALL TABLES")[0] == ("default", "t", "20240101_1_1_0", 1, "")


def test_a_damaged_part_names_itself_and_the_others_stay_readable(
    connection: Connection, folder: Path
) -> None:
    name = damage(folder, connection, "20240102")
    found = {part: (passed, message) for part, passed, message in ask(connection, "CHECK TABLE t")}
    assert found["20240101_1_1_0"] == (1, "")
    passed, message = found[name]
    assert passed == 0
    assert "CHECKSUM_DOESNT_MATCH" in str(message)
    assert ask(connection, "SELECT a FROM t WHERE d = '2024-01-01'") == [(1,)]
    with pytest.raises(ChecksumDoesntMatch, match="partition 20240102"):
        connection.execute("SELECT a FROM t").fetchall()


def test_a_missing_file(connection: Connection, folder: Path) -> None:
    ((path,),) = ask(connection, "SELECT path FROM system.parts WHERE partition_id = '20240101'")
    (folder / str(path)).unlink()
    assert [row[1] for row in ask(connection, "CHECK TABLE t")] == [0, 1]


def test_what_cannot_be_checked(connection: Connection) -> None:
    connection.execute("CREATE VIEW w AS SELECT 1 AS one")
    connection.execute("CREATE TABLE n (a UInt8) ENGINE = Null")
    for name in ("w", "n"):
        with pytest.raises(NotSupportedError, match="stores nothing"):
            connection.execute(f"CHECK TABLE {name}")
    with pytest.raises(NoSuchDataPart, match=r"system\.parts"):
        connection.execute("CHECK TABLE t PART 'all_9_9_0'")
