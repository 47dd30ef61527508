"""SELECT … FORMAT and INTO OUTFILE."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import ipc, orc

import olapdb
from olapdb import errors

pytestmark = pytest.mark.feature("formats")


@pytest.fixture
def connection(tmp_path: Path) -> olapdb.Connection:
    files = tmp_path / "files"
    files.mkdir()
    return olapdb.connect(settings={"user_files_path": str(files)})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path / "files"


def test_rows_and_text_of_a_format(connection: olapdb.Connection) -> None:
    cursor = connection.execute("SELECT 1 AS a, 'x' AS b FORMAT JSONEachRow")
    assert cursor.fetchall() == [(1, "x")]
    cursor = connection.execute("SELECT 1 AS a, 'x' AS b FORMAT JSONEachRow")
    assert cursor.fetch_text() == b'{"a":1,"b":"x"}\n'
    assert connection.execute("SELECT 1, 2").fetch_text() == b"1\t2\n"
    assert connection.execute("SELECT 1, 2 FORMAT CSV").fetch_text("TSKV") == b"1=1\t2=2\n"


def test_text_of_the_rest_of_the_rows(connection: olapdb.Connection) -> None:
    cursor = connection.execute(
        "SELECT CAST(number + 1, 'Enum8(''a'' = 1, ''b'' = 2)') FROM numbers(2)"
    )
    assert cursor.fetchone() == ("a",)
    assert cursor.fetch_text("CSV") == b'"b"\n'


def test_null_runs_the_query_and_keeps_nothing(connection: olapdb.Connection) -> None:
    cursor = connection.execute("SELECT number FROM numbers(1000000) FORMAT Null")
    assert cursor.fetchall() == []
    assert cursor.statistics.rows_read == 1_000_000


def test_null_has_a_text_without_anything(connection: olapdb.Connection) -> None:
    assert connection.execute("SELECT 1 FORMAT Null").fetch_text() == b""
    assert connection.execute("SHOW TABLES FORMAT Null").fetch_text() == b""


def test_unknown_format(connection: olapdb.Connection) -> None:
    with pytest.raises(errors.UnknownFormat, match="Did you mean CSV"):
        connection.execute("SELECT 1 FORMAT CSVS")
    with pytest.raises(errors.UnknownFormat):
        connection.execute("SELECT 1").fetch_text("Nope")


def test_binary_formats(connection: olapdb.Connection) -> None:
    sql = "SELECT number AS n, toString(number) AS s, [number] AS a FROM numbers(3)"
    expected = {"n": [0, 1, 2], "s": ["0", "1", "2"], "a": [[0], [1], [2]]}
    data = connection.execute(sql).fetch_text("Parquet")
    assert pq.read_table(io.BytesIO(data)).to_pydict() == expected
    data = connection.execute(sql).fetch_text("Arrow")
    assert ipc.open_file(data).read_all().to_pydict() == expected
    data = connection.execute(sql).fetch_text("ArrowStream")
    assert ipc.open_stream(data).read_all().to_pydict() == expected
    data = connection.execute(sql).fetch_text("ORC")
    assert orc.ORCFile(io.BytesIO(data)).read().to_pydict() == expected


def test_row_groups_of_parquet(connection: olapdb.Connection) -> None:
    data = connection.execute(
        "SELECT number FROM numbers(10) SETTINGS output_format_parquet_row_group_size = 4, max_block_size = 3"
    ).fetch_text("Parquet")
    file = pq.ParquetFile(io.BytesIO(data))
    assert file.metadata.num_rows == 10
    assert file.num_row_groups > 1


def test_into_outfile(connection: olapdb.Connection, files: Path) -> None:
    cursor = connection.execute(
        "SELECT number AS n FROM numbers(3) INTO OUTFILE 'a.csv' FORMAT CSVWithNames"
    )
    assert cursor.rowcount == 3
    assert cursor.description is None
    assert (files / "a.csv").read_text() == '"n"\n0\n1\n2\n'
    assert list(files.iterdir()) == [files / "a.csv"]


def test_format_and_compression_by_the_ending(connection: olapdb.Connection, files: Path) -> None:
    connection.execute("SELECT 1 AS n INTO OUTFILE 'a.jsonl.gz'")
    assert gzip.decompress((files / "a.jsonl.gz").read_bytes()) == b'{"n":1}\n'
    connection.execute("SELECT 1 AS n INTO OUTFILE 'b' COMPRESSION 'gzip' LEVEL 1 FORMAT CSV")
    assert gzip.decompress((files / "b").read_bytes()) == b"1\n"
    connection.execute("SELECT 1 AS n INTO OUTFILE 'c.parquet'")
    assert pq.read_table(files / "c.parquet").to_pydict() == {"n": [1]}
    connection.execute("SELECT 1 AS n INTO OUTFILE 'd.csvwithNAMES.gz'")
    assert gzip.decompress((files / "d.csvwithNAMES.gz").read_bytes()) == b'"n"\n1\n'
    assert connection.execute("SELECT n FROM file('d.csvwithNAMES.gz')").fetchall() == [(1,)]
    with pytest.raises(errors.CannotDetectFormat):
        connection.execute("SELECT * FROM file('csvwithnames')")


def test_existing_files(connection: olapdb.Connection, files: Path) -> None:
    connection.execute("SELECT 1 INTO OUTFILE 'a.tsv'")
    with pytest.raises(errors.FileAlreadyExists, match="APPEND"):
        connection.execute("SELECT 2 INTO OUTFILE 'a.tsv'")
    connection.execute("SELECT 2 INTO OUTFILE 'a.tsv' APPEND")
    assert (files / "a.tsv").read_text() == "1\n2\n"
    connection.execute("SELECT 3 INTO OUTFILE 'a.tsv' TRUNCATE")
    assert (files / "a.tsv").read_text() == "3\n"
    connection.execute("SELECT 1 INTO OUTFILE 'a.parquet'")
    with pytest.raises(errors.CannotAppendToFile):
        connection.execute("SELECT 1 INTO OUTFILE 'a.parquet' APPEND")


def test_and_stdout(connection: olapdb.Connection, files: Path) -> None:
    cursor = connection.execute("SELECT 1 AS n INTO OUTFILE 'a.csv' AND STDOUT FORMAT CSV")
    assert cursor.fetchall() == [(1,)]
    assert (files / "a.csv").read_text() == "1\n"


def test_a_failed_query_leaves_no_file(connection: olapdb.Connection, files: Path) -> None:
    (files / "a.csv").write_text("old\n")
    with pytest.raises(errors.DataError):
        connection.execute(
            "SELECT throwIf(number = 200000) FROM numbers(300000) INTO OUTFILE 'a.csv' TRUNCATE"
        )
    assert (files / "a.csv").read_text() == "old\n"
    assert list(files.iterdir()) == [files / "a.csv"]


@pytest.mark.parametrize("path", ["../x.csv", "/etc/x.csv", "link/x.csv"])
def test_paths_outside_are_refused(
    path: str, connection: olapdb.Connection, files: Path, tmp_path: Path
) -> None:
    (files / "link").symlink_to(tmp_path)
    with pytest.raises(errors.PathNotAllowed):
        connection.execute(f"SELECT 1 INTO OUTFILE '{path}'")


def test_no_folder_is_allowed_by_default() -> None:
    with olapdb.connect() as connection:
        with pytest.raises(errors.PathNotAllowed, match="no folder"):
            connection.execute("SELECT 1 INTO OUTFILE 'a.csv'")
        for statement in ("SET user_files_path = '/'", "SELECT 1 SETTINGS user_files_path = '/'"):
            with pytest.raises(errors.ReadonlySetting):
                connection.execute(statement)


def test_formats_are_listed(connection: olapdb.Connection) -> None:
    rows = connection.execute(
        "SELECT name, is_input, is_output FROM system.formats WHERE name IN ('CSV', 'TSV', 'Pretty', 'Values')"
    ).fetchall()
    assert sorted(rows) == [("CSV", 1, 1), ("Pretty", 0, 1), ("TSV", 1, 1), ("Values", 1, 1)]


def test_orc_has_large_numbers_without_sign_as_their_bits(connection: olapdb.Connection) -> None:
    """ClickHouse writes UInt64 as Int64 of the same bits, also in arrays."""
    sql = "SELECT 18446744073709551615 AS a, [toUInt64(18446744073709551614)] AS b"
    data = connection.execute(sql).fetch_text("ORC")
    assert orc.ORCFile(io.BytesIO(data)).read().to_pydict() == {"a": [-1], "b": [[-2]]}


@pytest.mark.parametrize("name", ["gzip", "bz2", "xz", "zstd", "lz4"])
def test_levels_of_compression(connection: olapdb.Connection, files: Path, name: str) -> None:
    """A file of a LEVEL reads back; more than one frame of zstd and lz4 too."""
    connection.execute(
        f"SELECT number FROM numbers(3000000) INTO OUTFILE 'a' COMPRESSION '{name}' LEVEL 1 FORMAT CSV"
    )
    read = f"SELECT count(), sum(c1) FROM file('a', CSV, 'auto', '{name}')"
    assert connection.execute(read).fetchall() == [(3_000_000, 4_499_998_500_000)]
    with pytest.raises(errors.BadArguments, match="LEVEL 99"):
        connection.execute(f"SELECT 1 INTO OUTFILE 'b' COMPRESSION '{name}' LEVEL 99")
    assert not (files / "b").exists()


def test_modes_that_exclude_each_other(connection: olapdb.Connection, files: Path) -> None:
    with pytest.raises(errors.BadArguments, match="not both"):
        connection.execute("SELECT 1 INTO OUTFILE 'a.csv' APPEND TRUNCATE")
    connection.execute("SELECT 1 INTO OUTFILE 'a.csv.gz'")
    with pytest.raises(errors.BadArguments, match="compressed"):
        connection.execute("SELECT 1 INTO OUTFILE 'a.csv.gz' APPEND")
    shown = connection.execute("SELECT 2 INTO OUTFILE 'b.csv' APPEND AND STDOUT")
    assert shown.fetchall() == [(2,)]
    assert (files / "b.csv").read_text() == "2\n"
