"""What a parameter may be: values of Python, numpy, pandas and Arrow keep what they are."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("python")

NANOSECONDS = "2024-01-01 00:00:00.123456789"
SHOWN = {
    "integers of 128 bits": (2**64, "UInt128", str(2**64)),
    "below zero": (-(2**63) - 1, "Int128", str(-(2**63) - 1)),
    "integers of 256 bits": (2**200 + 1, "UInt256", str(2**200 + 1)),
    "within an array": ([2**200 + 1, 1], "Array(UInt256)", f"[{2**200 + 1},1]"),
    "numpy's time": (np.datetime64(NANOSECONDS), "DateTime64(9)", NANOSECONDS),
    "numpy's seconds": (np.datetime64("2024-01-01T00:00:00"), "DateTime", "2024-01-01 00:00:00"),
    "numpy's span": (np.timedelta64(5, "ns"), "Time64(9)", "00:00:00.000000005"),
    "numpy's array": (np.array([1, 2]), "Array(UInt8)", "[1,2]"),
    "numpy's number": (np.float64(3), "Float64", "3"),
    "pandas' time": (pd.Timestamp(NANOSECONDS), "DateTime64(9)", NANOSECONDS),
    "pandas' time with a zone": (
        pd.Timestamp(NANOSECONDS, tz="Europe/Berlin"),
        "DateTime64(9)",
        "2023-12-31 23:00:00.123456789",
    ),
    "pandas' span": (pd.Timedelta(1, "ns"), "Time64(9)", "00:00:00.000000001"),
    "pandas' NaT": (pd.NaT, "Nullable(Nothing)", None),
    "pandas' NA": (pd.NA, "Nullable(Nothing)", None),
    "numpy's NaT": (np.datetime64("NaT"), "Nullable(Nothing)", None),
    "Arrow's number": (pa.scalar(5), "UInt8", "5"),
    "Arrow's array": (pa.array([1, None]), "Array(Nullable(UInt8))", "[1,NULL]"),
    "a buffer": (bytearray(b"ab"), "String", "ab"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_value_is_what_it_was(connection: Connection, name: str) -> None:
    value, *shown = SHOWN[name]
    query = "SELECT toTypeName(?), toString(?)"
    assert connection.execute(query, [value, value]).fetchall() == [tuple(shown)]


def test_naive_times_of_numpy_are_in_the_sessions_zone(connection: Connection) -> None:
    query = "SELECT toUnixTimestamp64Nano(?) SETTINGS session_timezone = 'America/New_York'"
    expected = [(1704085200123456789,)]
    for value in (np.datetime64(NANOSECONDS), pd.Timestamp(NANOSECONDS)):
        assert connection.execute(query, [value]).fetchall() == expected


def test_a_large_integer_is_compared_exactly(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a UInt256, f Float64) ENGINE = MergeTree ORDER BY a")
    connection.execute("INSERT INTO t VALUES (?, ?)", [2**200, 2**200])
    connection.insert("t", {"a": [2**200], "f": [10**300]})
    count = "SELECT count(), max(f) FROM t WHERE a = ?"
    assert connection.execute(count, [2**200]).fetchall() == [(2, 1e300)]
    assert connection.execute(count, [2**200 + 1]).fetchall()[0][0] == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**256, "beyond the integers of 256 bits"),
        (np.datetime64("20000-01-01"), "cannot be counted in nanoseconds"),
        ([b"\xff"], "is not UTF-8"),
        ("\ud800", "is not UTF-8"),
        (object(), "A parameter cannot be of the class object"),
    ],
)
def test_what_no_type_holds_is_refused(connection: Connection, value: object, message: str) -> None:
    with pytest.raises(olapdb.Error, match=message):
        connection.execute("SELECT ?", [value])
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_bytes_come_back(connection: Connection) -> None:
    """A String holds any bytes; read as Python values those that are no UTF-8 are bytes."""
    connection.execute("CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s")
    connection.execute("INSERT INTO t VALUES (?)", [b"\x00\xff"])
    connection.executemany("INSERT INTO t VALUES (?)", [(b"\x00\xff",), ("text",)])
    connection.insert("t", {"s": [b"\x00\xff", "text"]})
    rows = connection.execute("SELECT s, count() FROM t GROUP BY s ORDER BY s").fetchall()
    assert rows == [(b"\x00\xff", 3), ("text", 2)]
    found = connection.execute("SELECT count() FROM t WHERE s = ?", [b"\x00\xff"]).fetchone()
    assert found == (3,)


def test_pandas_values_are_inserted(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (t Nullable(DateTime64(9))) ENGINE = MergeTree ORDER BY ()")
    for value in (pd.NaT, pd.Timestamp(NANOSECONDS), np.datetime64(NANOSECONDS)):
        connection.execute("INSERT INTO t VALUES (?)", [value])
        connection.executemany("INSERT INTO t VALUES (?)", [(value,), (value,)])
        connection.insert("t", {"t": [value, datetime.datetime(2024, 1, 1)]})
    counts = connection.execute(
        "SELECT toString(t), count() FROM t GROUP BY t ORDER BY t"
    ).fetchall()
    assert counts == [("2024-01-01 00:00:00.000000000", 3), (NANOSECONDS, 8), (None, 4)]


@pytest.mark.parametrize("statement", [None, b"SELECT 1", 5])
def test_a_statement_is_a_text(connection: Connection, statement: object) -> None:
    with pytest.raises(olapdb.ProgrammingError, match="A statement is a str"):
        connection.execute(statement)  # type: ignore[arg-type]
    with pytest.raises(olapdb.ProgrammingError, match="A statement is a str"):
        connection.executemany(statement, [(1,)])  # type: ignore[arg-type]


def test_fewer_than_no_rows_cannot_be_fetched(connection: Connection) -> None:
    cursor = connection.execute("SELECT number FROM numbers(2)")
    with pytest.raises(olapdb.ProgrammingError, match="from 0 on"):
        cursor.fetchmany(-1)
    assert cursor.fetchmany(0) == []
    assert cursor.fetchall() == [(0,), (1,)]


@pytest.mark.parametrize("path", [None, "warehouse"])
def test_an_unknown_durability_is_refused(path: str | None) -> None:
    with pytest.raises(olapdb.ProgrammingError, match="durability is"):
        olapdb.connect(path, durability="x")  # type: ignore[arg-type]


def test_texts_of_arrow_are_texts(connection: Connection) -> None:
    for value in (pa.scalar("x"), pa.scalar("x", pa.large_string())):
        assert connection.execute("SELECT ?", [value]).fetchall() == [("x",)]
