"""INSERT … FORMAT with data in the statement, and FROM INFILE."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb import errors
from olapdb.formats.blocks import blocks_of, end_of_escaped_lines

pytestmark = pytest.mark.feature("formats", "insert")

_TABLE = """CREATE TABLE t (a UInt8, b Nullable(String) DEFAULT 'none', c Array(Int32), d Decimal(9, 2),
 e DateTime('UTC'), f UInt8 DEFAULT a + 1) ORDER BY tuple()"""
_ROW = (1, "x", [1, 2], "1.5", "2024-01-02 03:04:05", 2)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


@pytest.fixture
def connection(files: Path) -> Iterator[olapdb.Connection]:
    with olapdb.connect(settings={"user_files_path": str(files)}) as connection:
        connection.execute(_TABLE)
        yield connection


def _rows(connection: olapdb.Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT a, b, c, toString(d), toString(e), f FROM t ORDER BY a"
    ).fetchall()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t (a, b, c, d, e) FORMAT TSV\n1\tx\t[1,2]\t1.5\t2024-01-02 03:04:05\n",
        'INSERT INTO t (a, b, c, d, e) FORMAT CSV 1,x,"[1,2]",1.5,"2024-01-02 03:04:05"',
        'INSERT INTO t (a, b, c, d, e) FORMAT CSV 1 , "x" ,"[1, 2]", 1.5 ,2024-01-02 03:04:05\n',
        "INSERT INTO t (a, b, c, d, e) SETTINGS format_csv_delimiter = ';' FORMAT CSV\n"
        "1;x;[1,2];1.5;2024-01-02 03:04:05\n",
        'INSERT INTO t FORMAT CSVWithNames\nz,e,d,c,b,a\n9,2024-01-02 03:04:05,1.5,"[1,2]",x,1\n',
        "INSERT INTO t FORMAT TSVWithNames\ne\td\tc\tb\ta\n2024-01-02 03:04:05\t1.5\t[1,2]\tx\t1\n",
        'INSERT INTO t FORMAT JSONEachRow {"a":1,"b":"x","c":[1,2],"d":1.5,"e":"2024-01-02 03:04:05"}',
        'INSERT INTO t FORMAT JSONEachRow [{"a":1,"b":"x",\n"c":[1,2],"d":"1.5","e":1704164645}]',
        'INSERT INTO t (a, b, c, d, e) FORMAT JSONCompactEachRow\n[1, "x", [1,2], 1.5, "2024-01-02 03:04:05"]',
        'INSERT INTO t FORMAT JSONCompactEachRowWithNames\n["a", "e", "b", "c", "d"]\n'
        '[1, "2024-01-02 03:04:05", "x", [1,2], 1.5]',
        'INSERT INTO t FORMAT JSONStringsEachRow {"a":"1","b":"x","c":"[1,2]","d":"1.5",'
        '"e":"2024-01-02 03:04:05"}',
        'INSERT INTO t FORMAT JSON {"meta":[{"name":"a","type":"UInt8"}],"data":[{"a":1,"b":"x",'
        '"c":[1,2],"d":1.5,"e":"2024-01-02 03:04:05"}],"rows":1}',
        'INSERT INTO t FORMAT JSONColumns {"a":[1],"b":["x"],"c":[[1,2]],"d":[1.5],'
        '"e":["2024-01-02 03:04:05"]}',
        "INSERT INTO t (a, b, c, d, e) FORMAT Values (1, 'x', [1,2], 1.5, '2024-01-02 03:04:05')",
    ],
)
def test_each_format(statement: str, connection: olapdb.Connection) -> None:
    assert connection.execute(statement).rowcount == 1
    assert _rows(connection) == [_ROW]


def test_a_missing_value_is_the_default_and_null_is_null_where_it_may_be(
    connection: olapdb.Connection,
) -> None:
    connection.execute(
        'INSERT INTO t FORMAT JSONEachRow {"a":1}{"a":2,"b":null}\n{"a":3,"b":"z","f":null}'
    )
    rows = connection.execute("SELECT a, b, f FROM t ORDER BY a").fetchall()
    assert rows == [(1, "none", 2), (2, None, 3), (3, "z", 4)]
    connection.execute("INSERT INTO t (a, b) FORMAT TSV\n7\t\\N\n8\t\\\\N\\t\n")
    rows = connection.execute("SELECT a, b FROM t WHERE a > 6 ORDER BY a").fetchall()
    assert rows == [(7, None), (8, "\\N\t")]


def test_errors_name_column_row_and_value(connection: olapdb.Connection) -> None:
    with pytest.raises(errors.DataError, match=r"Column a of default.t, row 2: .*'x'"):
        connection.execute("INSERT INTO t (a) FORMAT TSV\n1\nx\n")
    with pytest.raises(errors.DataError, match=r"Column a of default.t, row 1: .*300"):
        connection.execute('INSERT INTO t FORMAT JSONEachRow {"a":300}')
    with pytest.raises(errors.DataError, match=r"Column c, row 2: .*\"q\""):
        connection.execute('INSERT INTO t FORMAT JSONEachRow {"c":[1]} {"c":["q"]}')
    with pytest.raises(errors.CannotParseInput, match="Row 2 has 1 values for 2 columns"):
        connection.execute("INSERT INTO t (a, b) FORMAT CSV\n1,2\n3\n")
    with pytest.raises(errors.CannotParseInput, match="Row 1 has 3 values"):
        connection.execute("INSERT INTO t (a, b) FORMAT TSV\n1\t2\t3\n")
    with pytest.raises(errors.CannotParseQuotedString, match="Row 2 is no JSON"):
        connection.execute('INSERT INTO t FORMAT JSONEachRow {"a":1} {"a":1,}')
    with pytest.raises(errors.CannotReadAllData):
        connection.execute('INSERT INTO t FORMAT JSONEachRow {"a":1} {"a":1')
    with pytest.raises(errors.IncorrectData, match="column z"):
        connection.execute(
            'INSERT INTO t SETTINGS input_format_skip_unknown_fields = 0 FORMAT JSONEachRow {"z":1}'
        )
    with pytest.raises(errors.NoDataToInsert, match="no data"):
        connection.execute("INSERT INTO t FORMAT CSV")
    with pytest.raises(errors.FormatNotForInput):
        connection.execute("INSERT INTO t FORMAT Pretty 1")
    assert _rows(connection) == []


def test_an_error_in_a_later_block_inserts_nothing(connection: olapdb.Connection) -> None:
    lines = "".join(f"{n % 200}\n" for n in range(5_000))
    with pytest.raises(errors.DataError, match="row 5001"):
        connection.execute(
            f"INSERT INTO t (a) SETTINGS max_insert_block_size = 100 FORMAT TSV\n{lines}oops\n"
        )
    assert _rows(connection) == []


def test_from_infile(connection: olapdb.Connection, files: Path) -> None:
    (files / "a.csv").write_text("1,x\n2,y\n")
    (files / "b.csv.gz").write_bytes(gzip.compress(b"3,z\n"))
    connection.execute("INSERT INTO t (a, b) FROM INFILE 'a.csv'")
    connection.execute("INSERT INTO t (a, b) FROM INFILE 'b.csv.gz' FORMAT CSV")
    connection.execute("INSERT INTO t (a, b) FROM INFILE '{a,b}.csv*'")
    rows = connection.execute("SELECT a, b, count() FROM t GROUP BY a, b ORDER BY a").fetchall()
    assert rows == [(1, "x", 2), (2, "y", 2), (3, "z", 2)]
    with pytest.raises(errors.FileDoesntExist):
        connection.execute("INSERT INTO t (a) FROM INFILE 'none.csv' FORMAT CSV")
    with pytest.raises(errors.PathNotAllowed):
        connection.execute("INSERT INTO t (a) FROM INFILE '/etc/passwd' FORMAT CSV")


@pytest.mark.parametrize(
    "name",
    [
        "Parquet",
        "Arrow",
        "ArrowStream",
        "ORC",
        "CSVWithNames",
        "TSVWithNamesAndTypes",
        "JSONEachRow",
    ],
)
def test_what_is_written_is_read(name: str, connection: olapdb.Connection) -> None:
    connection.execute(
        "INSERT INTO t SELECT number, if(number = 2, NULL, 'a\\n\"\\\\' || number), [number], number,"
        " number, 5 FROM numbers(200)"
    )
    before = _rows(connection)
    connection.execute(f"SELECT * FROM t INTO OUTFILE 'x' FORMAT {name}")
    connection.execute("TRUNCATE TABLE t")
    connection.execute(f"INSERT INTO t FROM INFILE 'x' FORMAT {name}")
    assert _rows(connection) == before


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        ("TSVWithNames", b"\xef\xbb\xbfa\ts\n7\tx\n", [(7, "x")]),
        ("JSONEachRow", b'\xef\xbb\xbf{"a": 1, "s": "x"}', [(1, "x")]),
        ("JSONEachRow", b'[{"a": 1, "s": "]"}]\n', [(1, "]")]),
        (
            "CSV",
            b'1,5" pipe\n2,"  x , y  "\n3,"x\ny"\n',
            [(1, '5" pipe'), (2, "  x , y  "), (3, "x\ny")],
        ),
    ],
)
def test_marks_and_quotes_are_no_data(
    name: str, data: bytes, rows: list[tuple[int, str]], files: Path
) -> None:
    (files / "data").write_bytes(data)
    with olapdb.connect(settings={"user_files_path": str(files)}) as connection:
        connection.execute("CREATE TABLE t (a Int32, s String) ENGINE = MergeTree ORDER BY a")
        connection.execute(f"INSERT INTO t FROM INFILE 'data' FORMAT {name}")
        assert connection.execute("SELECT a, s FROM t ORDER BY a").fetchall() == rows


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("CSV", b'1,"unclosed\n2,x\n'),
        ("CSVWithNames", b"a,a\n1,2\n"),
        ("CSV", b"no gzip"),
        ("JSONEachRow", b'[{"a": 1}, {"a": 2},\n'),
        ("JSONEachRow", b'[{"a": 1}, {"a": 2}'),
        ("JSONCompactEachRow", b"[[1, 2], [2, 3]"),
        ("JSONCompactEachRowWithNames", b'{"a": 1}\n[1]'),
    ],
)
def test_broken_files_insert_nothing(name: str, data: bytes, files: Path) -> None:
    path = "data.gz" if data == b"no gzip" else "data"
    (files / path).write_bytes(data)
    with olapdb.connect(settings={"user_files_path": str(files)}) as connection:
        connection.execute("CREATE TABLE t (a Int32, s String) ENGINE = MergeTree ORDER BY a")
        with pytest.raises((errors.IncorrectData, errors.CannotParseInput)):
            connection.execute(f"INSERT INTO t FROM INFILE '{path}' FORMAT {name}")
        assert connection.execute("SELECT count() FROM t").fetchall() == [(0,)]


def test_no_value_is_cut_or_wrapped() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE t (a Array(Int32)) ENGINE = MergeTree ORDER BY a")
        with pytest.raises(olapdb.Error, match=r"1\.9"):
            connection.execute('INSERT INTO t FORMAT JSONEachRow {"a": [1.9]}')
        connection.execute("CREATE TABLE ip (a IPv4) ENGINE = MergeTree ORDER BY a")
        with pytest.raises(olapdb.Error, match="out of range"):
            connection.execute("INSERT INTO ip VALUES (4294967301)")


@pytest.mark.parametrize(
    "clause", ["b UInt8 DEFAULT a IN d", "b UInt8 MATERIALIZED a IN d", "CONSTRAINT c CHECK a IN d"]
)
def test_what_each_insert_computes_reads_no_table(clause: str) -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE d (a UInt8) ENGINE = MergeTree ORDER BY a")
        with pytest.raises(olapdb.Error, match="has a subquery"):
            connection.execute(f"CREATE TABLE t (a UInt8, {clause}) ENGINE = MergeTree ORDER BY a")


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 100])
def test_a_block_of_lines_does_not_end_within_an_escaped_line_end(block_bytes: int) -> None:
    data = b"a\\\nb\\\\\nc\\\\\\\nd\ne\\"
    blocks = list(blocks_of(io.BytesIO(data), end_of_escaped_lines, block_bytes))
    assert b"".join(blocks) == data
    lines = {b"a\\\nb\\\\\n", b"c\\\\\\\nd\n", b"e\\"}
    assert all(any(line in block for line in lines) for block in blocks)
    assert all(block in data and block.endswith((b"\\\\\n", b"d\n", b"e\\")) for block in blocks)
