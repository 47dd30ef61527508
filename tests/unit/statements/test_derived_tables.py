"""Tables of the engine Dictionary: a dictionary under another name, with some of its columns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi import Connection
from olapdb.errors import (
    HaveDependentObjects,
    IncorrectQuery,
    NotSupportedError,
    ThereIsNoColumn,
    UnsupportedMethod,
)

pytestmark = pytest.mark.feature("engines", "dimensions")


@pytest.fixture
def connection() -> Iterator[Connection]:
    """Yield a connection with a dictionary d of two rows, and the table t over it."""
    with olapdb.connect(":memory:") as connection:
        for statement in (
            "CREATE TABLE s (id UInt64, v String) ENGINE = MergeTree ORDER BY id",
            "INSERT INTO s VALUES (1, 'a'), (2, 'b')",
            "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id"
            " SOURCE(CLICKHOUSE(TABLE 's')) LAYOUT(FLAT()) LIFETIME(0)",
            "CREATE TABLE t (v String) ENGINE = Dictionary(d)",
        ):
            connection.execute(statement)
        yield connection


def test_it_has_the_rows_of_the_dictionary(connection: Connection) -> None:
    connection.execute("INSERT INTO s VALUES (3, 'c')")
    assert connection.execute("SELECT v FROM t ORDER BY v").fetchall() == [("a",), ("b",), ("c",)]
    with pytest.raises(UnsupportedMethod):
        connection.execute("INSERT INTO t VALUES ('x')")


def test_it_follows_the_dictionary(connection: Connection) -> None:
    connection.execute("RENAME DICTIONARY d TO e")
    assert connection.execute("SELECT count() FROM t").fetchall() == [(2,)]
    listed = connection.execute("SELECT engine, engine_full FROM system.tables WHERE name = 't'")
    assert listed.fetchall() == [("Dictionary", "Dictionary('e')")]
    (created,) = connection.execute("SHOW CREATE TABLE t").fetchall()[0]
    assert created.endswith("ENGINE = Dictionary('e')")
    with pytest.raises(HaveDependentObjects, match=r"DROP TABLE default\.t"):
        connection.execute("DROP DICTIONARY e")
    connection.execute("DROP TABLE t")
    connection.execute("DROP DICTIONARY e")


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        ("(v UInt8) ENGINE = Dictionary(d)", ThereIsNoColumn),
        ("(w String) ENGINE = Dictionary('default.d')", ThereIsNoColumn),
        ("ENGINE = Dictionary(d)", IncorrectQuery),
        ("ENGINE = Dictionary(d) AS SELECT 1 AS v", NotSupportedError),
    ],
)
def test_what_cannot_be_made(
    connection: Connection, definition: str, error: type[olapdb.Error]
) -> None:
    with pytest.raises(error):
        connection.execute(f"CREATE TABLE other {definition}")
