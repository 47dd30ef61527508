"""A value that its column cannot hold is refused on every way in, and no row lands.

Ways in: VALUES of literals through both readers, VALUES with expressions, INSERT SELECT, `?`
parameters, executemany, and insert() of Arrow, pandas and mappings of lists; also UPDATE and
DEFAULT."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import DataError, Error
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("insert")

Way = Callable[[Connection, Any, str], None]


def make(connection: Connection, data_type: str) -> None:
    connection.execute(
        f"CREATE TABLE t (k UInt8, v {data_type}) ENGINE = MergeTree ORDER BY k"
        " SETTINGS allow_suspicious_low_cardinality_types = 1"
    )


def _small(connection: Connection, value: Any, literal: str) -> None:
    connection.execute(f"INSERT INTO t VALUES (1, {literal})")


def _scanned(connection: Connection, value: Any, literal: str) -> None:
    """Insert VALUES that are too long for the reader of small ones, so that the scanner reads
    them."""
    connection.execute(f"INSERT INTO t VALUES (1, {literal})" + " " * (1 << 20))


def _expression(connection: Connection, value: Any, literal: str) -> None:
    connection.execute(f"INSERT INTO t VALUES (0 + 1, {literal})")


def _select(connection: Connection, value: Any, literal: str) -> None:
    connection.execute(f"INSERT INTO t SELECT 1, {literal}")


def _parameter(connection: Connection, value: Any, literal: str) -> None:
    connection.execute("INSERT INTO t VALUES (1, ?)", [value])


def _many(connection: Connection, value: Any, literal: str) -> None:
    connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(1, value)])


def _mapping(connection: Connection, value: Any, literal: str) -> None:
    connection.insert("t", {"k": [1], "v": [value]})


def _arrow(connection: Connection, value: Any, literal: str) -> None:
    wide = pa.uint64() if isinstance(value, int) and value >= 2**63 else None
    connection.insert("t", pa.table({"k": [1], "v": pa.array([value], wide)}))


def _pandas(connection: Connection, value: Any, literal: str) -> None:
    connection.insert("t", pd.DataFrame({"k": [1], "v": pd.Series([value])}))


WAYS: dict[str, Way] = {
    "small": _small,
    "scanned": _scanned,
    "expression": _expression,
    "select": _select,
    "parameter": _parameter,
    "many": _many,
    "mapping": _mapping,
    "arrow": _arrow,
    "pandas": _pandas,
}

DAY = datetime.date
MOMENT = datetime.datetime
REFUSED: list[tuple[str, Any, str]] = [
    ("UInt8", 300, "300"),
    ("UInt8", -1, "-1"),
    ("UInt8", 1.5, "1.5"),
    ("UInt8", float("nan"), "nan"),
    ("UInt8", float("inf"), "inf"),
    ("UInt8", "300", "'300'"),
    ("UInt8", "x", "'x'"),
    ("Nullable(UInt8)", 300, "300"),
    ("LowCardinality(UInt8)", 300, "300"),
    ("Int8", 128, "128"),
    ("Int8", -129, "-129"),
    ("Int64", 2**63, "9223372036854775808"),
    ("UInt64", -1, "-1"),
    ("UInt64", 2**64, "18446744073709551616"),
    ("Float32", 1e39, "1e39"),
    ("Float32", "1e39", "'1e39'"),
    ("Decimal(9, 2)", Decimal("1.239"), "1.239"),
    ("Decimal(9, 2)", Decimal("12345678.12"), "12345678.12"),
    ("Decimal(9, 2)", 12345678, "12345678"),
    ("Decimal(9, 2)", "1.239", "'1.239'"),
    ("Date", DAY(2200, 1, 1), "'2200-01-01'"),
    ("Date", DAY(1960, 1, 1), "'1960-01-01'"),
    ("Date", "2024-02-31", "'2024-02-31'"),
    ("Date", MOMENT(2024, 1, 5, 12), "'2024-01-05 12:00:00'"),
    ("DateTime", MOMENT(2200, 1, 1), "'2200-01-01 00:00:00'"),
    ("DateTime", MOMENT(1960, 1, 1), "'1960-01-01 00:00:00'"),
    ("DateTime", MOMENT(2024, 1, 5, 1, 2, 3, 500_000), "'2024-01-05 01:02:03.5'"),
    ("DateTime64(3)", MOMENT(2024, 1, 5, 1, 2, 3, 123_400), "'2024-01-05 01:02:03.1234'"),
    ("FixedString(2)", "abc", "'abc'"),
    ("Bool", 2, "2"),
    ("Enum8('a' = 1, 'b' = 2)", 1.5, "1.5"),
    ("Enum8('a' = 1, 'b' = 2)", Decimal("1.5"), "toDecimal32(1.5, 1)"),
    ("Array(UInt8)", [1, 300], "[1, 300]"),
    ("Map(String, UInt8)", {"a": 300}, "map('a', 300)"),
]

KEPT: list[tuple[str, Any, str]] = [
    ("UInt8", 255, "255"),
    ("UInt8", 2.0, "2.0"),
    ("Int8", -128, "-128"),
    ("Nullable(UInt8)", 7, "7"),
    ("UInt64", 2**64 - 1, "18446744073709551615"),
    ("Float32", 0.5, "0.5"),
    ("Float64", float("inf"), "inf"),
    ("Decimal(9, 2)", Decimal("0.29"), "0.29"),
    ("Decimal(9, 2)", Decimal("-1234567.89"), "-1234567.89"),
    ("Date", DAY(2149, 6, 6), "'2149-06-06'"),
    ("Date32", DAY(1960, 1, 1), "'1960-01-01'"),
    ("DateTime", MOMENT(2024, 1, 5, 1, 2, 3), "'2024-01-05 01:02:03'"),
    ("DateTime64(3)", MOMENT(1960, 1, 5, 1, 2, 3, 123_000), "'1960-01-05 01:02:03.123'"),
    ("FixedString(2)", "ab", "'ab'"),
    ("Bool", True, "true"),
    ("Enum8('a' = 1, 'b' = 2)", "b", "'b'"),
    ("String", "x", "'x'"),
    ("Array(UInt8)", [1, 255], "[1, 255]"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("data_type", "value", "literal"), REFUSED, ids=str)
def test_what_does_not_fit_is_refused(
    connection: Connection, way: str, data_type: str, value: Any, literal: str
) -> None:
    make(connection, data_type)
    if way in ("arrow", "pandas") and isinstance(value, int) and value >= 2**64:
        pytest.skip("Arrow has no such integer")
    if way in ("arrow", "pandas") and isinstance(value, dict):
        pytest.skip("Arrow reads a dict as a struct")
    with pytest.raises(Error, match=r"Column v(?: of default\.t)?, row 1: "):
        WAYS[way](connection, value, literal)
    assert rows(connection, "SELECT count() FROM t") == [(0,)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("data_type", "value", "literal"), KEPT, ids=str)
def test_what_fits_reads_back(
    connection: Connection, way: str, data_type: str, value: Any, literal: str
) -> None:
    make(connection, data_type)
    WAYS[way](connection, value, literal)
    assert rows(connection, "SELECT v FROM t") == [(value,)]


@pytest.mark.parametrize("way", ["small", "expression", "parameter", "many", "mapping"])
@pytest.mark.parametrize("value", [10**20 + 1, -(2**63) - 1, 2**64])
def test_integers_of_more_than_64_bits(connection: Connection, way: str, value: int) -> None:
    make(connection, "Decimal(38, 0)")
    WAYS[way](connection, value, str(value))
    assert rows(connection, "SELECT v FROM t") == [(value,)]


LOSSY: list[tuple[str, Any, str, Any]] = [
    ("UInt8", 300, "300", 44),
    ("UInt8", 1.5, "1.5", 1),
    ("Int8", 128, "128", -128),
    (
        "DateTime",
        MOMENT(2024, 1, 5, 1, 2, 3, 500_000),
        "'2024-01-05 01:02:03.5'",
        MOMENT(2024, 1, 5, 1, 2, 3),
    ),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("data_type", "value", "literal", "stored"), LOSSY, ids=str)
def test_a_setting_converts_as_cast_does(
    connection: Connection, way: str, data_type: str, value: Any, literal: str, stored: Any
) -> None:
    make(connection, data_type)
    connection.execute("SET insert_allow_lossy_conversion = 1")
    WAYS[way](connection, value, literal)
    assert rows(connection, "SELECT v FROM t") == [(stored,)]


def test_the_setting_of_one_statement(connection: Connection) -> None:
    make(connection, "UInt8")
    connection.execute("INSERT INTO t SETTINGS insert_allow_lossy_conversion = 1 SELECT 1, 300")
    assert rows(connection, "SELECT v FROM t") == [(44,)]


def test_the_row_is_that_of_the_statement(connection: Connection) -> None:
    make(connection, "UInt8")
    connection.execute("SET max_insert_block_size = 2")
    with pytest.raises(DataError, match=r"row 7: Cannot convert 256 to UInt8") as caught:
        connection.execute("INSERT INTO t SELECT 1, number + 250 FROM numbers(10)")
    assert caught.value.row == 6
    with pytest.raises(DataError, match="row 3"):
        connection.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 300)")
    with pytest.raises(DataError, match="row 2"):
        connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(1, 1), (2, 300)])
    assert rows(connection, "SELECT count() FROM t") == [(0,)]


def test_a_cast_in_a_query_wraps(connection: Connection) -> None:
    make(connection, "UInt8")
    connection.execute("INSERT INTO t SELECT 1, toUInt8(300)")
    connection.execute("INSERT INTO t VALUES (2, toUInt8(300))")
    assert rows(connection, "SELECT v FROM t ORDER BY k") == [(44,), (44,)]


@pytest.mark.parametrize(
    "statement", ["UPDATE t SET v = {} WHERE 1", "ALTER TABLE t UPDATE v = {} WHERE 1"]
)
def test_update(connection: Connection, statement: str) -> None:
    make(connection, "UInt8")
    connection.execute("INSERT INTO t VALUES (1, 7)")
    for value in ("300", "k + 255", "-1", "1.5", "'x'"):
        with pytest.raises(DataError, match=r"Column v of default\.t: "):
            connection.execute(statement.format(value))
    assert rows(connection, "SELECT v FROM t") == [(7,)]
    connection.execute(statement.format("k + 254"))
    assert rows(connection, "SELECT v FROM t") == [(255,)]


def test_an_update_to_a_decimal_reads_its_text(connection: Connection) -> None:
    make(connection, "Decimal(38, 2)")
    connection.execute("INSERT INTO t VALUES (1, 7)")
    connection.execute("UPDATE t SET v = 123456789012345678901234567890.12 WHERE 1")
    expected = Decimal("123456789012345678901234567890.12")
    assert rows(connection, "SELECT v FROM t") == [(expected,)]
    with pytest.raises(DataError):
        connection.execute("UPDATE t SET v = 1.239 WHERE 1")


def test_an_update_to_null(connection: Connection) -> None:
    make(connection, "UInt8")
    connection.execute("INSERT INTO t VALUES (1, 7)")
    with pytest.raises(DataError, match="Column v"):
        connection.execute("UPDATE t SET v = NULL WHERE 1")


def test_defaults(connection: Connection) -> None:
    connection.execute("""
        CREATE TABLE t (k UInt64, v UInt8 DEFAULT k * 100, w UInt8 MATERIALIZED k)
        ENGINE = MergeTree ORDER BY tuple()
    """)
    connection.execute("INSERT INTO t (k) VALUES (2)")
    with pytest.raises(DataError, match="Default of column v: Cannot convert 300 to UInt8"):
        connection.execute("INSERT INTO t (k) VALUES (3)")
    with pytest.raises(DataError, match="Default of column w"):
        connection.execute("INSERT INTO t VALUES (256, 1)")
    with pytest.raises(DataError, match="Default of column w"):
        connection.execute("UPDATE t SET k = 300 WHERE 1")
    assert rows(connection, "SELECT k, v, w FROM t") == [(2, 200, 2)]
    with pytest.raises(DataError, match="is no UInt8"):
        connection.execute("CREATE TABLE u (v UInt8 DEFAULT 300) ENGINE = Memory")


def test_a_column_added_later_is_read_as_cast(connection: Connection) -> None:
    """The ALTER does not rewrite older rows, so they are read by CAST, which must not fail."""
    make(connection, "UInt64")
    connection.execute("INSERT INTO t VALUES (1, 300)")
    connection.execute("ALTER TABLE t ADD COLUMN w UInt8 DEFAULT v")
    assert rows(connection, "SELECT w FROM t") == [(44,)]
    with pytest.raises(DataError, match="Default of column w"):
        connection.execute("INSERT INTO t (k, v) VALUES (1, 300)")


def test_null(connection: Connection) -> None:
    make(connection, "UInt8")
    connection.execute("INSERT INTO t VALUES (1, NULL)")
    connection.execute("INSERT INTO t SELECT 2, NULL")
    assert rows(connection, "SELECT v FROM t ORDER BY k") == [(0,), (0,)]
    for setting, statement in (
        ("input_format_null_as_default", "INSERT INTO t VALUES (3, NULL)"),
        ("insert_null_as_default", "INSERT INTO t SELECT 3, NULL"),
    ):
        connection.execute(f"SET {setting} = 0")
        with pytest.raises(Error, match=r"Column v.*NULL"):
            connection.execute(statement)
        connection.execute(f"SET {setting} = 1")
    for way in (_mapping, _arrow):
        with pytest.raises(DataError, match=r"Column v of default\.t, row 1"):
            way(connection, None, "NULL")
