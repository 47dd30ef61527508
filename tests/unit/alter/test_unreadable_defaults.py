"""An ALTER is refused if its default cannot be computed for a stored row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import CannotInsertNull, DataError

pytestmark = pytest.mark.feature("schema", "crashes")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute(
            "CREATE TABLE t (k Nullable(String), n UInt64) ENGINE = MergeTree ORDER BY n"
        )
        opened.execute("INSERT INTO t VALUES ('1', 1)")
        opened.execute("INSERT INTO t VALUES (NULL, 0), ('x', 2)")
        yield opened


@pytest.mark.parametrize(
    "column",
    [
        "c String DEFAULT concat(k, 'm')",
        "c Int64 MATERIALIZED n > 0 ? 1 : NULL",
        "c Int64 DEFAULT length(toString(k))",
        "e Nullable(String) EPHEMERAL k, ADD COLUMN c String DEFAULT e",
    ],
)
def test_null_for_a_column_that_holds_none(connection: Connection, column: str) -> None:
    with pytest.raises(CannotInsertNull, match="column c") as refused:
        connection.execute(f"ALTER TABLE t ADD COLUMN {column}")
    assert "Nothing was changed" in str(refused.value)
    assert connection.execute("SELECT * FROM t ORDER BY n").fetchall() == [
        (None, 0),
        ("1", 1),
        ("x", 2),
    ]


@pytest.mark.parametrize(
    "column",
    [
        "c Int64 DEFAULT toInt64(ifNull(k, '0'))",
        "c Nullable(Int64) DEFAULT k",
        "c UInt64 DEFAULT intDiv(10, n)",
        "c UInt64 DEFAULT throwIf(n = 2)",
        "c UUID DEFAULT toUUID(ifNull(k, '0'))",
        "c String DEFAULT repeat('x', n * 1000000)",
        "c UInt8 DEFAULT accurateCast(n + 254, 'UInt8')",
        "c Decimal(9, 2) DEFAULT toDecimal32(n * 100000000, 2)",
    ],
)
def test_values_that_do_not_convert(connection: Connection, column: str) -> None:
    with pytest.raises(DataError, match="column c"):
        connection.execute(f"ALTER TABLE t ADD COLUMN {column}")
    assert len(connection.execute("SELECT * FROM t").fetchall()) == 3


def test_a_default_that_becomes_unreadable(connection: Connection) -> None:
    connection.execute("ALTER TABLE t ADD COLUMN c String DEFAULT ''")
    with pytest.raises(CannotInsertNull, match="column c"):
        connection.execute("ALTER TABLE t MODIFY COLUMN c String DEFAULT k")
    connection.execute("ALTER TABLE t MATERIALIZE COLUMN c")
    connection.execute("ALTER TABLE t MODIFY COLUMN c String DEFAULT k")  # every part stores c
    assert len(connection.execute("SELECT c FROM t").fetchall()) == 3


def test_what_every_row_can_be_read_with(connection: Connection) -> None:
    connection.execute("ALTER TABLE t DELETE WHERE k IS NULL OR k = 'x'")
    connection.execute(
        "ALTER TABLE t ADD COLUMN c String DEFAULT concat(k, 'm'), ADD COLUMN i Int64 DEFAULT k"
    )
    assert connection.execute("SELECT c, i FROM t").fetchall() == [("1m", 1)]


def test_an_empty_table_takes_any(connection: Connection) -> None:
    connection.execute("TRUNCATE TABLE t")
    connection.execute("ALTER TABLE t ADD COLUMN c String DEFAULT k")
