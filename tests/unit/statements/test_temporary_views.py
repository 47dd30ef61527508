"""CREATE TEMPORARY VIEW: a view that belongs to the session, over tables of both kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.errors import BadDatabaseForTemporaryTable, TableAlreadyExists, UnknownTable

pytestmark = pytest.mark.feature("schema")


@pytest.fixture
def connection() -> Iterator[olapdb.Connection]:
    """Yield a connection to a warehouse with a table and a temporary table."""
    opened = olapdb.connect()
    opened.execute("CREATE TABLE t (id UInt32, s String) ENGINE = MergeTree ORDER BY id")
    opened.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    opened.execute("CREATE TEMPORARY TABLE ids (id UInt32)")
    opened.execute("INSERT INTO ids VALUES (1), (3)")
    yield opened
    opened.close()


def rows(connection: olapdb.Connection, query: str) -> list[tuple[object, ...]]:
    """Return the rows of a query."""
    return connection.execute(query).fetchall()


def test_it_reads_the_newest_rows_of_both_kinds(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TEMPORARY VIEW v AS SELECT upper(s) AS u FROM t JOIN ids USING id")
    connection.execute("CREATE TEMPORARY VIEW w AS SELECT concat(u, '!') AS x FROM v")
    assert rows(connection, "SELECT x FROM w ORDER BY x") == [("A!",), ("C!",)]
    connection.execute("INSERT INTO ids VALUES (2)")
    assert rows(connection, "SELECT count() FROM v") == [(3,)]


def test_it_is_listed_and_described(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TEMPORARY VIEW v AS SELECT id FROM t WHERE id > 1")
    assert rows(connection, "SHOW TEMPORARY TABLES") == [("ids",), ("v",)]
    assert rows(connection, "EXISTS TEMPORARY VIEW v") == [(1,)]
    assert rows(connection, "EXISTS VIEW v") == [(0,)]
    assert "CREATE TEMPORARY TABLE ids" in str(rows(connection, "SHOW CREATE TEMPORARY ids"))
    assert rows(connection, "DESCRIBE v")[0][:2] == ("id", "UInt32")
    shown = str(rows(connection, "SHOW CREATE TEMPORARY VIEW v")[0][0])
    assert shown == (
        "CREATE TEMPORARY VIEW v\n(\n    `id` UInt32\n)\nAS SELECT id\nFROM default.t\nWHERE id > 1"
    )


def test_it_hides_a_table_of_its_name_until_it_is_dropped(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TEMPORARY VIEW t AS SELECT 7 AS id")
    assert rows(connection, "SELECT id FROM t") == [(7,)]
    assert rows(connection, "SELECT count() FROM default.t") == [(3,)]
    connection.execute("DROP TEMPORARY VIEW t")
    assert rows(connection, "SELECT count() FROM t") == [(3,)]


def test_its_errors_are_those_of_clickhouse(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TEMPORARY VIEW v AS SELECT 1 AS x")
    connection.execute("CREATE TEMPORARY VIEW IF NOT EXISTS v AS SELECT 2 AS x")
    with pytest.raises(TableAlreadyExists):
        connection.execute("CREATE TEMPORARY VIEW v AS SELECT 2 AS x")
    with pytest.raises(BadDatabaseForTemporaryTable):
        connection.execute("CREATE TEMPORARY VIEW default.w AS SELECT 2 AS x")
    connection.execute("DROP TEMPORARY VIEW v")
    with pytest.raises(UnknownTable):
        connection.execute("DROP TEMPORARY VIEW v")
    connection.execute("DROP TEMPORARY VIEW IF EXISTS v")
