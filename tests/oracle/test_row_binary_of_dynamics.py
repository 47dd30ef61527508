"""RowBinary of values of several types: the bytes are ClickHouse's, and ClickHouse reads those of a JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("formats")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        yield oracle


VALUES = (
    "42::UInt8",
    "-1::Int128",
    "'ab'",
    "NULL",
    "[1, 2]::Array(UInt8)",
    "['a', NULL]::Array(Nullable(String))",
    "array()",
    "map('a', 1::Int64)",
    "(1::UInt8, 'x')::Tuple(UInt8, String)",
    "('a', 1::UInt8)::Tuple(a String, b UInt8)",
    "toDate('2020-01-01')",
    "toDate32('1930-01-01')",
    "toDateTime('2020-01-01 00:00:00', 'UTC')",
    "toDateTime64('2020-01-01 00:00:00', 3, 'UTC')",
    "1.5::Decimal(9, 2)",
    "1.5::Decimal(38, 2)",
    "1.5::Float64",
    "1.5::Float32",
    "1.5::BFloat16",
    "true",
    "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')",
    "toIPv4('1.2.3.4')",
    "toIPv6('::1')",
    "'ab'::FixedString(2)",
    "'a'::Enum8('a' = -1, 'b' = 2)",
    "'b'::Enum16('a' = -1, 'b' = 200)",
    "'{\"a\" : 1}'::JSON",
)


@pytest.mark.parametrize("value", VALUES)
def test_the_bytes_of_a_dynamic_are_those_of_clickhouse(value: str, oracle: Oracle) -> None:
    sql = f"SELECT hex(formatRow('RowBinary', CAST({value}, 'Dynamic'))) AS h"
    with olapdb.connect() as connection:
        ours = connection.execute(sql).fetchall()[0][0]
    assert ours == oracle.query(sql).rows[0][0]


@pytest.mark.parametrize("kind", ["RowBinary", "RowBinaryWithNamesAndTypes", "Native"])
def test_the_bytes_of_a_brain_float_are_those_of_clickhouse(
    kind: str, oracle: Oracle, tmp_path: Path
) -> None:
    sql = "SELECT toBFloat16(number / 3 - 1) AS x, [x, toBFloat16(nan), toBFloat16(-0.0)] AS a FROM numbers(4)"
    oracle.execute(f"INSERT INTO FUNCTION file('{tmp_path}/theirs', '{kind}') {sql}")
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        connection.execute(f"INSERT INTO FUNCTION file('ours', '{kind}') {sql}")
        read = f"SELECT toString(a) FROM file('theirs', '{kind}', 'x BFloat16, a Array(BFloat16)')"
        assert connection.execute(read).fetchall() == [
            (row[0],) for row in oracle.query(f"SELECT toString(a) FROM ({sql})").rows
        ]
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_clickhouse_reads_the_objects(oracle: Oracle, tmp_path: Path) -> None:
    texts = (
        '\'{"a":1,"b":{"c":[1,null]},"d":"x"}\'',
        '\'{"t":3,"x":[{"a":1},{"b":"2020-01-01"}]}\'',
        "'{}'",
        '\'{"n":7,"t":2,"u":null,"v":true,"w":1.5}\'',
    )
    structure = "j JSON, k JSON(t UInt8, n Nullable(Int64))"
    rows = " UNION ALL ".join(
        f"SELECT {text}::JSON AS j, {text}::JSON(t UInt8, n Nullable(Int64)) AS k" for text in texts
    )
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as connection:
        connection.execute(f"INSERT INTO FUNCTION file('ours', 'RowBinary', '{structure}') {rows}")
    wanted = "SELECT toString(j) AS x, toString(k) AS y, JSONAllPathsWithTypes(j) AS z FROM {} ORDER BY x"
    found = oracle.query(wanted.format(f"file('{tmp_path}/ours', 'RowBinary', '{structure}')"))
    assert found.rows == oracle.query(wanted.format(f"({rows})")).rows
