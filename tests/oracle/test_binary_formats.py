"""MsgPack, BSONEachRow and Avro: written as ClickHouse writes them, and read from what it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("formats")

_STRUCTURE = (
    "a UInt64, n Nullable(Int16), b Array(Array(String)), c Tuple(x Int8, y Nullable(String)), d Decimal(18, 4),"
    " f FixedString(3), u UUID, k Bool, m Map(String, Array(Int64)), fl Float32, lc LowCardinality(String)"
)
_ROWS = (
    "SELECT number * 1000000007, if(number % 3, number - 200, NULL), [[toString(number), 'x'], []],"
    " (number % 100, if(number % 2, NULL, 'q')), toDecimal64(number, 4), 'abc',"
    " toUUID('01234567-89ab-cdef-0123-456789abcdef'), number % 2, map('k', range(number % 5)), number / 2,"
    " concat('t', toString(number % 7)) FROM numbers(700)"
)
_TOTALS = (
    "count(), sum(a), sum(n), count(n), sum(length(b)), sum(length(b[1][1])), sum(c.1), count(c.2), sum(d),"
    " any(f), any(u), sum(k), sum(arraySum(m['k'])), sum(fl), uniqExact(lc)"
)
_FORMATS = ("MsgPack", "BSONEachRow", "Avro")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        yield oracle


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[olapdb.Connection]:
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        yield connection


def _structure(kind: str) -> str:
    """Return the structure; MsgPack has no names of elements."""
    return _STRUCTURE.replace("x Int8, y ", "Int8, ") if kind == "MsgPack" else _STRUCTURE


@pytest.mark.parametrize("kind", _FORMATS)
def test_each_reads_what_the_other_wrote(
    kind: str, oracle: Oracle, connection: olapdb.Connection, tmp_path: Path
) -> None:
    structure = _structure(kind)
    totals = f"SELECT {_TOTALS} FROM file('{{}}', '{kind}', '{structure}')"
    oracle.execute(
        f"INSERT INTO FUNCTION file('{tmp_path}/theirs', '{kind}', '{structure}') {_ROWS}"
    )
    connection.execute(f"INSERT INTO FUNCTION file('ours', '{kind}', '{structure}') {_ROWS}")
    expected = oracle.text(totals.format(f"{tmp_path}/theirs"), "TSV")
    assert oracle.text(totals.format(f"{tmp_path}/ours"), "TSV") == expected
    for name in ("theirs", "ours"):
        text = connection.execute(totals.format(name)).fetch_text("TSV")
        assert text == expected


@pytest.mark.parametrize("kind", ["MsgPack", "BSONEachRow"])
def test_the_bytes_are_those_of_clickhouse(
    kind: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    sql = (
        "SELECT toInt64(-number * 70000) AS i, number * 300 AS u, if(number = 1, NULL, 'x') AS s, [1.5, toFloat64(number)] AS f,"
        " toDate(number) AS d, toDateTime64(number, 3, 'UTC') AS t, map('k', number) AS m, number = 1 AS b"
        f" FROM numbers(3) FORMAT {kind}"
    )
    ours = connection.execute(sql).fetch_text()
    assert ours == oracle.text(sql, "TSV")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[1, number]", "Tuple(a Int32, b Int32)"),
        ("[1, number]", "Tuple(a Nullable(Int32), b Nullable(Int32))"),
        ("(1, number)", "Tuple(a Int32, b Int32)"),
        ("[1, number]", "Tuple(Int32, Int32)"),
        ("[1, number]", "Tuple(a Int32, b Int32, c Int32)"),
        ("[1, number, 3]", "Tuple(a Nullable(Int32), b Nullable(Int32))"),
        ("(1, number)::Tuple(b Int32, a Int32)", "Tuple(a Int32, b Int32)"),
        ("(1, number)::Tuple(b Int32, a Int32)", "Tuple(Int32, Int32)"),
        ("(1, number)::Tuple(b Int32, x Int32)", "Tuple(a Nullable(Int32), b Nullable(Int32))"),
    ],
)
def test_arrays_and_documents_of_bson_as_tuples(
    written: str, read: str, oracle: Oracle, connection: olapdb.Connection, tmp_path: Path
) -> None:
    connection.execute(
        "INSERT INTO FUNCTION file('t', 'BSONEachRow') "
        f"SELECT {written} AS t FROM numbers(3) ORDER BY number"
    )
    select = f"SELECT t FROM file('{{}}', 'BSONEachRow', 't {read}')"
    try:
        expected: bytes | str = oracle.text(select.format(f"{tmp_path}/t"), "TSV")
    except OracleError as error:
        expected = error.name
    try:
        found: bytes | str = connection.execute(select.format("t")).fetch_text("TSV")
    except olapdb.Error as error:
        found = error.name
    assert found == expected


@pytest.mark.parametrize(
    "select",
    [
        "DESCRIBE file('{}', 'Avro')",
        "SELECT nope FROM file('{}', 'Avro', 'nope UInt8')",
        "SELECT nope FROM file('{}', 'Avro', 'nope UInt8') LIMIT 1"
        " SETTINGS input_format_avro_allow_missing_fields = 1",
    ],
)
def test_the_schema_of_avro(
    select: str, oracle: Oracle, connection: olapdb.Connection, tmp_path: Path
) -> None:
    connection.execute(f"INSERT INTO FUNCTION file('a', 'Avro', '{_STRUCTURE}') {_ROWS}")
    try:
        expected: bytes | str = oracle.text(select.format(f"{tmp_path}/a"), "TSV")
    except OracleError as error:
        expected = error.name
    try:
        found: bytes | str = connection.execute(select.format("a")).fetch_text("TSV")
    except olapdb.Error as error:
        found = error.name
    assert found == expected


@pytest.mark.parametrize("kind", _FORMATS)
def test_data_that_end_early_are_refused(
    kind: str, connection: olapdb.Connection, tmp_path: Path
) -> None:
    structure = _structure(kind)
    connection.execute(f"INSERT INTO FUNCTION file('whole', '{kind}', '{structure}') {_ROWS}")
    whole = (tmp_path / "whole").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-3])
    with pytest.raises(olapdb.Error, match="end within"):
        connection.execute(f"SELECT sum(a) FROM file('cut', '{kind}', '{structure}')").fetchall()


def test_truncate_keeps_the_head_of_the_format(
    connection: olapdb.Connection, tmp_path: Path
) -> None:
    sql = "INSERT INTO FUNCTION file('a.csv', 'CSVWithNames', 'a UInt8') SELECT 1"
    connection.execute(sql)
    connection.execute(f"{sql} SETTINGS engine_file_truncate_on_insert = 1")
    assert (tmp_path / "a.csv").read_text() == '"a"\n1\n'


def test_a_file_for_each_partition(connection: olapdb.Connection, tmp_path: Path) -> None:
    connection.execute(
        "INSERT INTO FUNCTION file('d/p_{_partition_id}.csv', 'CSV', 'a UInt8, b String')"
        " PARTITION BY a % 2 SELECT number, 'x' FROM numbers(5)"
    )
    assert (tmp_path / "d" / "p_0.csv").read_text() == '0,"x"\n2,"x"\n4,"x"\n'
    assert (tmp_path / "d" / "p_1.csv").read_text() == '1,"x"\n3,"x"\n'
    with pytest.raises(olapdb.Error, match="cannot be in the name"):
        connection.execute(
            "INSERT INTO FUNCTION file('q_{_partition_id}.csv', 'CSV', 'b String') PARTITION BY b SELECT '../x'"
        )
    assert not list(tmp_path.glob("q_*"))


@pytest.mark.parametrize(
    ("settings", "data", "expected"),
    [
        ("input_format_allow_errors_num = 1", "1,a\nbad,b\n3,c\n", [(1, "a"), (3, "c")]),
        ("input_format_allow_errors_ratio = 0.5", "1,a\nbad,b\n3,c\n", [(1, "a"), (3, "c")]),
        ("input_format_allow_errors_num = 1", "bad,a\nbad,b\n3,c\n", "bad"),
        ("input_format_csv_use_default_on_bad_values = 1", "bad,a\n", [(0, "a")]),
        ("input_format_defaults_for_omitted_fields = 0", "5,a\n", [(5, "a")]),
    ],
)
def test_rows_with_errors(
    connection: olapdb.Connection, settings: str, data: str, expected: list[object] | str
) -> None:
    connection.execute("CREATE TABLE t (a UInt8, b String) ENGINE = Memory")
    insert = f"INSERT INTO t SETTINGS {settings} FORMAT CSV\n{data}"
    if isinstance(expected, str):
        with pytest.raises(olapdb.Error, match=expected):
            connection.execute(insert)
        assert connection.execute("SELECT count() FROM t").fetchall() == [(0,)]
    else:
        connection.execute(insert)
        assert connection.execute("SELECT * FROM t ORDER BY a").fetchall() == expected
