"""Native: ClickHouse reads what olapdb writes, and olapdb what ClickHouse writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("formats")

_QUERIES = {
    "numbers": "SELECT toInt8(number) AS a, toUInt64(number) AS b, number / 3 AS c, toInt256(-number) AS d,"
    " toDecimal64(number, 3) AS e, toBFloat AS f, number % 2 = 0 AS g FROM (SELECT number,"
    " toFloat32(number) AS toBFloat FROM numbers(1000)) ORDER BY b",
    "texts": "SELECT repeat('x', number % 300) AS a, toFixedString('ab', 3) AS b, '' AS c, CAST('y',"
    " 'Enum16(\\'y\\' = 300)') AS d FROM numbers(70000)",
    "times": "SELECT toDate('2024-01-02') AS a, toDate32('1950-01-02') AS b, toDateTime64('1950-01-02"
    " 03:04:05.678', 3, 'Asia/Tokyo') AS c, toDateTime('2024-01-02 03:04:05', 'Asia/Tokyo') AS d,"
    " toIntervalDay(3) AS e, CAST('01:02:03' AS Time) AS f",
    "nulls": "SELECT if(number % 3 = 0, NULL, number) AS a, if(number % 2, NULL, 'x') AS b, NULL AS c,"
    " [NULL, number] AS d FROM numbers(9)",
    "nested": "SELECT range(number) AS a, [[1], []] AS b, map('k', [number]) AS c, (number, 'q') AS d,"
    " tuple() AS e, CAST((1, 'z'), 'Tuple(x UInt8, y String)') AS f, [(1, 'p')] AS g, CAST([] AS"
    " Array(String)) AS h FROM numbers(4)",
    "low cardinality": "SELECT CAST(toString(number % 700) AS LowCardinality(String)) AS a,"
    " CAST(if(number % 2, NULL, 'u') AS LowCardinality(Nullable(String))) AS b, [a] AS c, CAST([] AS"
    " Array(LowCardinality(String))) AS d, (a, b) AS e FROM numbers(3000)",
    "ids": "SELECT toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS a, toIPv4('1.2.3.4') AS b,"
    " toIPv6('::1') AS c, true AS d, CAST((1, 2) AS Point) AS e",
    "no rows": "SELECT number AS a FROM numbers(0)",
}
_LONG = "SELECT repeat('wide', 200000) AS a, number AS b FROM numbers(3)"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        yield oracle


@pytest.mark.parametrize("name", _QUERIES)
def test_clickhouse_and_olapdb_read_each_other(name: str, oracle: Oracle, tmp_path: Path) -> None:
    sql, ours, theirs = _QUERIES[name], tmp_path / "ours", tmp_path / "theirs"
    expected = oracle.text(sql, "TSVWithNamesAndTypes")
    expected = expected.replace(b"\tDateTime(\\'Asia/Tokyo\\')", b"\tDateTime")
    expected = expected.replace(b"2024-01-02 03:04:05", b"2024-01-01 18:04:05")
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        ours.write_bytes(connection.execute(sql).fetch_text("Native"))
        theirs.write_bytes(oracle.text(sql, "Native"))
        if ours.stat().st_size:
            read = oracle.text(f"SELECT * FROM file('{ours}', Native)", "TSVWithNamesAndTypes")
            assert read == expected
        if theirs.stat().st_size:
            read = connection.execute(f"SELECT * FROM file('{theirs}', Native)").fetch_text(
                "TSVWithNamesAndTypes"
            )
            assert read == expected


def test_texts_longer_than_what_is_read_at_once(oracle: Oracle, tmp_path: Path) -> None:
    file = tmp_path / "long.native"
    file.write_bytes(oracle.text(_LONG, "Native"))
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        rows = connection.execute(f"SELECT length(a), b FROM file('{file}') ORDER BY b").fetchall()
    assert [tuple(row) for row in rows] == [(800000, 0), (800000, 1), (800000, 2)]


@pytest.mark.parametrize("kept", [1, 5, 20, 60])
def test_data_that_end_early_are_refused(kept: int, tmp_path: Path) -> None:
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        data = connection.execute("SELECT number AS n, 'abc' AS s FROM numbers(9)").fetch_text(
            "Native"
        )
        (tmp_path / "cut").write_bytes(data[:kept])
        with pytest.raises(olapdb.DataError):
            connection.execute(
                f"SELECT * FROM file('{tmp_path}/cut', Native, 'n UInt64, s String')"
            ).fetchall()


def test_insert_converts_and_takes_columns_by_name(tmp_path: Path) -> None:
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        connection.execute("CREATE TABLE t (s String, n Int32, d UInt8 DEFAULT 7) ENGINE = Memory")
        connection.execute(
            f"INSERT INTO FUNCTION file('{tmp_path}/x.native') SELECT number AS n, 'v' AS s FROM numbers(2)"
        )
        connection.execute(f"INSERT INTO t FROM INFILE '{tmp_path}/x.native' FORMAT Native")
        rows = connection.execute("SELECT * FROM t ORDER BY n").fetchall()
    assert [tuple(row) for row in rows] == [("v", 0, 7), ("v", 1, 7)]


def _word(number: int) -> bytes:
    """Return a number as eight bytes, the lowest first."""
    return (number % (1 << 64)).to_bytes(8, "little")


_KEYED = b"\1\2\1a\x16LowCardinality(String)" + _word(1)
_DAMAGED = {
    "a negative index": _KEYED + _word(0x603) + _word(2) + b"\0\1x" + _word(2) + _word(-1) * 2,
    "a negative number of keys": _KEYED + _word(0x600) + _word(-1) + b"\0\1x" + _word(2) + b"\0\1",
    "a number without an end": b"\1\2" + b"\x80" * 9 + b"\x20",
    "a list without an end": b"\1\1\1a\x0cArray(UInt8)" + _word(1 << 62),
    "rows without columns": b"\0\x80\x80\x80\x08",
}


@pytest.mark.parametrize("name", _DAMAGED)
def test_damaged_data_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.native").write_bytes(_DAMAGED[name])
    with (
        olapdb.connect(":memory:", settings={"user_files_path": str(tmp_path)}) as connection,
        pytest.raises(olapdb.errors.IncorrectData),
    ):
        connection.execute("SELECT * FROM file('x.native', 'Native', 'a String')").fetchall()


def test_an_enum_has_no_unknown_number(tmp_path: Path) -> None:
    name = b"Enum8('a' = 1)"
    data = b"\1\2\1e" + bytes([len(name)]) + name + b"\1\5"
    (tmp_path / "x.native").write_bytes(data)
    with olapdb.connect(":memory:", settings={"user_files_path": str(tmp_path)}) as connection:
        with pytest.raises(olapdb.errors.UnknownElementOfEnum):
            connection.execute(
                "SELECT * FROM file('x.native', 'Native', 'e Enum8(\\'a\\' = 1)')"
            ).fetchall()
        nulls = "SELECT if(number = 1, NULL, 'a')::Nullable(Enum8('a' = 1)) AS e FROM numbers(3)"
        connection.execute(f"INSERT INTO FUNCTION file('y.native', 'Native') {nulls}")
        read = connection.execute("SELECT * FROM file('y.native', 'Native')").fetchall()
        assert read == [("a",), (None,), ("a",)]


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("<i4", "(3, 1099511627776, 1099511627776)"),
        ("<i4", "(-1,)"),
        ("<i4", "(1000000000000, 0)"),
        ("|S0", "(3,)"),
        ("<i4", "(2, -1)"),
        ("<i4", "('a',)"),
    ],
)
def test_a_shape_that_no_array_of_numpy_has_is_refused(
    kind: str, shape: str, tmp_path: Path
) -> None:
    head = f"{{'descr':'{kind}','fortran_order':False,'shape':{shape},}}".encode()
    data = b"\x93NUMPY\3\0" + len(head).to_bytes(4, "little") + head
    (tmp_path / "x.npy").write_bytes(data)
    with (
        olapdb.connect(":memory:", settings={"user_files_path": str(tmp_path)}) as connection,
        pytest.raises(olapdb.errors.IncorrectData),
    ):
        connection.execute("SELECT * FROM file('x.npy', 'Npy', 'a Int32')").fetchall()


def test_bytes_of_numpy_may_be_any(tmp_path: Path) -> None:
    head = b"{'descr':'|S2','fortran_order':False,'shape':(2,),}"
    data = b"\x93NUMPY\3\0" + len(head).to_bytes(4, "little") + head + b"a\xff\xfe\0"
    (tmp_path / "x.npy").write_bytes(data)
    with olapdb.connect(":memory:", settings={"user_files_path": str(tmp_path)}) as connection:
        read = connection.execute("SELECT hex(array) FROM file('x.npy', 'Npy')").fetchall()
    assert read == [("61FF",), ("FE",)]
