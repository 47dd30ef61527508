"""generateRandom: random rows of a structure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb import errors

pytestmark = pytest.mark.feature("select")

_ALL = (
    "a Array(Int8), d Decimal32(4), c Tuple(x DateTime64(3), y UUID), e Enum8(''p'' = 1, ''q'' = 2),"
    " f Float64, g FixedString(4), h Date, i Date32, j DateTime(''UTC''), k IPv4, l IPv6,"
    " m Map(String, Array(Nullable(Int16))), n Bool, o LowCardinality(Nullable(String)), p Int128,"
    " q UInt256, r Decimal(38, 10), s Nullable(Tuple(Int8, String)), z Int64"
)


@pytest.fixture
def connection() -> Iterator[olapdb.Connection]:
    with olapdb.connect() as connection:
        yield connection


def test_every_type_has_random_values(connection: olapdb.Connection) -> None:
    query = f"SELECT * FROM generateRandom('{_ALL}', 1, 10, 2) LIMIT 50"
    rows = connection.execute(query).fetchall()
    assert len(rows) == 50
    assert connection.execute(query).fetchall() == rows
    other = query.replace("', 1,", "', 2,")
    assert connection.execute(other).fetchall() != rows
    for column in zip(*rows, strict=True):
        assert len({repr(value) for value in column}) > 1


def test_lengths_and_nulls(connection: olapdb.Connection) -> None:
    sql = """SELECT countIf(a IS NULL) BETWEEN 20 AND 200, uniqExact(b) > 990, max(length(s)), max(length(x))
     FROM (SELECT * FROM generateRandom('a Nullable(Int32), b UInt64, s String, x Array(UInt8)', 1, 5, 3)
     LIMIT 1000)"""
    assert connection.execute(sql).fetchall() == [(1, 1, 5, 3)]


def test_without_a_seed_rows_differ(connection: olapdb.Connection) -> None:
    query = "SELECT a FROM generateRandom('a UInt64') LIMIT 5"
    assert len({row[0] for row in connection.execute(query).fetchall()}) == 5
    assert connection.execute(query).fetchall() != connection.execute(query).fetchall()


def test_refused_arguments(connection: olapdb.Connection) -> None:
    for sql, error in (
        ("generateRandom()", errors.NotSupportedError),
        ("generateRandom('a UInt8', 1, -1)", errors.BadArguments),
        ("generateRandom('a UInt8', 1, 1, 1, 1)", errors.NumberOfArgumentsDoesntMatch),
        ("generateRandom('a AggregateFunction(sum, UInt8)')", errors.NotSupportedError),
    ):
        with pytest.raises(error):
            connection.execute(f"SELECT * FROM {sql} LIMIT 1")
