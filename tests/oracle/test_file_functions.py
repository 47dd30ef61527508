"""The table functions file() and format(): the rows and types that ClickHouse reads of the same bytes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import olapdb
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("formats")

_QUERIES = {
    "names of CSV": "SELECT * FROM file('{}/a.csv', CSVWithNames) ORDER BY a",
    "positions of CSV": "SELECT * FROM file('{}/a.csv', 'CSV', 'x String, y String') ORDER BY x",
    "names that are found": "SELECT * FROM file('{}/a.csv', CSV) ORDER BY a",
    "no names to find": "SELECT * FROM file('{}/d/n1.csv', CSV) ORDER BY c1",
    "no rows, no names": "SELECT * FROM file('{}/empty.csv', CSV, 'a UInt8')",
    "by the ending": "SELECT * FROM file('{}/rows.jsonl') ORDER BY a",
    "a structure": "SELECT * FROM file('{}/a.csv', CSVWithNames, 'b String, a UInt8') ORDER BY a",
    "structure and auto": "SELECT * FROM file('{}/a.csv', CSVWithNames, 'auto') ORDER BY a",
    "compressed by its name": "SELECT * FROM file('{}/z.csv.gz', CSVWithNames) ORDER BY a",
    "compressed as said": "SELECT * FROM file('{}/packed', CSVWithNames, 'auto', 'gzip') ORDER BY a",
    "a glob": "SELECT _file, count() FROM file('{}/d/*.tsv', TSV) GROUP BY _file ORDER BY _file",
    "alternatives": "SELECT _file, sum(c1) FROM file('{}/d/{{p,q}}.tsv', TSV) GROUP BY 1 ORDER BY 1",
    "a range": "SELECT count() FROM file('{}/d/n{{1..2}}.csv', CSV, 'n UInt8')",
    "folders": "SELECT DISTINCT _file FROM file('{}/**/n*.csv', CSV, 'n UInt8') ORDER BY 1",
    "virtual columns": "SELECT CAST(_path AS String) LIKE '%/a.csv', _file, _size, toTypeName(_path),"
    " toTypeName(_size), toTypeName(_time) FROM file('{}/a.csv', CSVWithNames) LIMIT 1",
    "Parquet": "SELECT * FROM file('{}/t.parquet') ORDER BY n",
    "one column of Parquet": "SELECT s FROM file('{}/t.parquet') WHERE n > 1",
    "a missing column": "SELECT * FROM file('{}/t.parquet', Parquet, 'n Int64, m String') ORDER BY n",
    "a join": "SELECT f.b, g.n FROM file('{0}/a.csv', CSVWithNames) AS f JOIN"
    " file('{0}/t.parquet') AS g ON f.a = g.n ORDER BY g.n",
    "an alias": "SELECT f.a FROM file('{}/a.csv', CSVWithNames) AS f ORDER BY 1",
    "format of JSON": "SELECT * FROM format(JSONEachRow, $$" + '{{"a":1,"b":"x"}}\n{{"a":2}}$$)',
    "format of TSV": "SELECT * FROM format('TSV', 'x UInt8, y String', '1\tq\n2\tw')",
    "format without rows": "SELECT count() FROM format(CSV, 'x UInt8', '')",
    "a header above a structure": "SELECT * FROM file('{}/a.csv', CSV, 'b String, a UInt8') ORDER BY a",
    "no file matches": "SELECT * FROM file('{}/none/*.csv', CSV, 'a UInt8')",
    "no file of a binary format matches": "SELECT a FROM file('{}/*.none', Parquet, 'a UInt8')",
    "names in quotes": "SELECT * FROM format(CSV, '`a b` Enum8(\\'x,y\\' = 1)', '\"x,y\"')",
    "a row for each file": "SELECT *, _file FROM file('{}/d/*.tsv', One) ORDER BY _file",
    "One and a structure": "SELECT * FROM file('{}/a.csv', One, 'x UInt8')",
    "null": "SELECT * FROM null('a UInt8, b Array(String)')",
}
_REFUSED = {
    "no such file": "SELECT * FROM file('{}/nope.csv', CSV, 'a UInt8')",
    "no such format": "SELECT * FROM file('{}/a.csv', Nope)",
    "no arguments": "SELECT * FROM file()",
    "no file, no structure": "SELECT * FROM file('{}/none/*.csv', CSV)",
    "no file, no format": "SELECT * FROM file('{}/none/*.csv')",
    "One of a text": "SELECT * FROM file('{}/a.csv', One, 'x String')",
    "not read": "SELECT * FROM format(Pretty, 'a UInt8', '1')",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of files."""
    folder = tmp_path_factory.mktemp("files")
    text = b"a,b\n1,x\n2,y\n3,\n"
    (folder / "a.csv").write_bytes(text)
    (folder / "z.csv.gz").write_bytes(gzip.compress(text))
    (folder / "packed").write_bytes(gzip.compress(text))
    (folder / "rows.jsonl").write_text('{"a":1,"b":[1,2],"s":"x"}\n{"a":2,"b":[],"s":"y"}\n')
    pq.write_table(pa.table({"n": [1, 2, 3], "s": ["x", None, "z"]}), folder / "t.parquet")
    (folder / "empty.csv").write_bytes(b"")
    (folder / "d").mkdir()
    (folder / "d" / "p.tsv").write_text("1\tone\n2\ttwo\n")
    (folder / "d" / "q.tsv").write_text("3\tthree\n")
    (folder / "d" / "n1.csv").write_text("1\n2\n")
    (folder / "d" / "n2.csv").write_text("3\n")
    return folder


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        yield oracle


@pytest.fixture(scope="module")
def connection(files: Path) -> Iterator[olapdb.Connection]:
    with olapdb.connect(settings={"user_files_path": str(files)}) as connection:
        yield connection


@pytest.mark.parametrize("name", _QUERIES)
def test_rows_and_types(
    name: str, files: Path, oracle: Oracle, connection: olapdb.Connection
) -> None:
    sql = _QUERIES[name].format(files)
    expected = oracle.text(sql, "TabSeparatedWithNamesAndTypes").decode()
    text = connection.execute(sql).fetch_text("TabSeparatedWithNamesAndTypes")
    assert text.decode() == expected


@pytest.mark.parametrize("name", _REFUSED)
def test_refusals(name: str, files: Path, oracle: Oracle, connection: olapdb.Connection) -> None:
    sql = _REFUSED[name].format(files)
    with pytest.raises(OracleError) as expected:
        oracle.query(sql)
    with pytest.raises(olapdb.Error) as refused:
        connection.execute(sql).fetchall()
    assert refused.value.name == expected.value.name


def test_values_that_are_none_of_the_type_name_their_place(
    files: Path, connection: olapdb.Connection
) -> None:
    """The error names column, row and file."""
    (files / "wrong.csv").write_text("1\n2\nx\n")
    path = files / "wrong.csv"
    with pytest.raises(olapdb.Error, match=r"Column n, row 3 of .*wrong\.csv"):
        connection.execute(f"SELECT sum(n) FROM file('{path}', CSV, 'n UInt8')").fetchall()


def test_files_outside_of_the_folders_are_refused(
    files: Path, connection: olapdb.Connection
) -> None:
    """Paths, and links, that lead out of user_files_path are not read."""
    (files / "link.csv").symlink_to("/etc/hostname")
    for path in ("/etc/hostname", "../x.csv", "link.csv"):
        with pytest.raises(olapdb.Error) as refused:
            connection.execute(f"SELECT * FROM file('{path}', CSV, 'a String')")
        assert refused.value.name == "DATABASE_ACCESS_DENIED"
    with olapdb.connect() as other, pytest.raises(olapdb.Error) as refused:
        other.execute(f"SELECT * FROM file('{files}/a.csv', CSV, 'a String')")
    assert refused.value.name == "DATABASE_ACCESS_DENIED"


def test_plain_views_read_the_files_of_the_moment(
    files: Path, connection: olapdb.Connection
) -> None:
    """A second read of the same text finds a changed file; a materialized view is refused."""
    (files / "moment.csv").write_text("1\n")
    connection.execute("CREATE VIEW v AS SELECT * FROM file('moment.csv', CSV, 'n UInt8')")
    assert connection.execute("SELECT sum(n) FROM v").fetchall() == [(1,)]
    (files / "moment.csv").write_text("1\n5\n")
    assert connection.execute("SELECT sum(n) FROM v").fetchall() == [(6,)]
    connection.execute("CREATE TABLE t (n UInt8) ENGINE = MergeTree ORDER BY n")
    with pytest.raises(olapdb.Error, match="change without an INSERT") as refused:
        connection.execute(
            "CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY n AS SELECT t.n AS n FROM t"
            " JOIN file('moment.csv', CSV, 'n UInt8') AS f ON f.n = t.n"
        )
    assert refused.value.name == "QUERY_IS_NOT_SUPPORTED_IN_MATERIALIZED_VIEW"


_NESTED = """SELECT number AS n, [number] AS a, [toNullable(number)] AS b, map('k', [number]) AS m,
 (number, 'x') AS t, [(toNullable(number), [number])] AS u, CAST([] AS Array(UInt8)) AS e,
 CAST(if(number = 1, NULL, 'y') AS Nullable(String)) AS s FROM numbers(3)"""


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_elements_are_nullable_in_files_only_where_their_types_are(
    ending: str, files: Path, oracle: Oracle, connection: olapdb.Connection
) -> None:
    connection.execute(f"INSERT INTO FUNCTION file('nested.{ending}') {_NESTED}")
    sql = f"SELECT * FROM file('{files}/nested.{ending}') ORDER BY n"
    own = connection.execute(_NESTED).fetch_text("TabSeparatedWithNames").decode()
    for reader in (oracle.text(sql, "TabSeparatedWithNamesAndTypes"),
                   connection.execute(sql).fetch_text("TabSeparatedWithNamesAndTypes")):  # fmt: skip
        names, types, *rows = reader.decode().split("\n")
        assert "\n".join([names, *rows]) == own
        assert types.split("\t")[1:4] == [
            "Array(UInt64)",
            "Array(Nullable(UInt64))",
            "Map(String, Array(UInt64))",
        ]
        assert types.split("\t")[4] == "Tuple(`1` UInt64, `2` String)"


def test_a_missing_file_is_another_error_where_nothing_says_the_columns(
    files: Path, connection: olapdb.Connection
) -> None:
    with pytest.raises(olapdb.Error, match="CANNOT_STAT"):
        connection.execute(f"SELECT * FROM file('{files}/nope.csv')")


def test_an_orc_file_without_the_wanted_columns_has_its_rows(
    files: Path, connection: olapdb.Connection
) -> None:
    connection.execute("INSERT INTO FUNCTION file('rows.orc') SELECT number AS n FROM numbers(3)")
    sql = f"SELECT count(), sum(zz) FROM file('{files}/rows.orc', ORC, 'zz UInt8')"
    assert connection.execute(sql).fetchone() == (3, 0)


def test_parquet_columns_are_skipped_matched_and_refused_as_the_settings_say(
    files: Path, connection: olapdb.Connection
) -> None:
    connection.execute("INSERT INTO FUNCTION file('case.parquet') SELECT 7 AS A, 'x' AS b")
    connection.execute("CREATE TABLE cased (a UInt8, b String) ENGINE = Memory")
    source = f"INSERT INTO cased FROM INFILE '{files}/case.parquet'"
    connection.execute(source)
    connection.execute(
        f"{source} SETTINGS input_format_parquet_case_insensitive_column_matching = 1 FORMAT Parquet"
    )
    assert connection.execute("SELECT * FROM cased ORDER BY a").fetchall() == [(0, "x"), (7, "x")]
    with pytest.raises(olapdb.DataError, match="column A"):
        connection.execute(f"{source} SETTINGS input_format_skip_unknown_fields = 0 FORMAT Parquet")
