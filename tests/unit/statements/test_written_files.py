"""Files that statements write: names that no file system has, files that appear together."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb

pytestmark = pytest.mark.feature("formats")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


@pytest.fixture
def connection(files: Path) -> olapdb.Connection:
    return olapdb.connect(settings={"user_files_path": str(files)})


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM file('{name}.csv', 'CSV', 'a UInt8')",
        "INSERT INTO FUNCTION file('{name}.csv', 'CSV', 'a UInt8') VALUES (1)",
        "SELECT 1 INTO OUTFILE '{name}.csv'",
        "INSERT INTO FUNCTION file('{{_partition_id}}.csv', 'CSV', 'a String') PARTITION BY a"
        " SELECT arrayJoin(['short', '{name}'])",
    ],
)
def test_a_name_that_is_too_long_is_an_error(
    statement: str, connection: olapdb.Connection, files: Path
) -> None:
    with pytest.raises(olapdb.OperationalError, match="too long"):
        connection.execute(statement.format(name="é" * 130))
    assert list(files.iterdir()) == []


def test_the_longest_name_is_written_and_read(connection: olapdb.Connection, files: Path) -> None:
    name = "x" * 251 + ".csv"
    connection.execute(f"INSERT INTO FUNCTION file('{name}', 'CSV', 'a UInt8') VALUES (7)")
    rows = connection.execute(f"SELECT * FROM file('{name}', 'CSV', 'a UInt8')").fetchall()
    assert rows == [(7,)]
    assert [path.name for path in files.iterdir()] == [name]


def test_files_of_partitions_appear_together_or_not_at_all(
    connection: olapdb.Connection, files: Path
) -> None:
    """The second partition cannot be added to its Parquet file: the first file must not stay."""
    insert = (
        "INSERT INTO FUNCTION file('{_partition_id}.parquet', 'Parquet', 'a UInt8')"
        " PARTITION BY a SELECT number + 1 FROM numbers("
    )
    connection.execute("INSERT INTO FUNCTION file('2.parquet', 'Parquet', 'a UInt8') SELECT 9")
    with pytest.raises(olapdb.Error):
        connection.execute(f"{insert}2)")
    assert [path.name for path in files.iterdir()] == ["2.parquet"]
    connection.execute(f"{insert}1)")
    assert sorted(path.name for path in files.iterdir()) == ["1.parquet", "2.parquet"]
