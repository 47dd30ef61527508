"""Tables of the engine Join: how views and joinGet read them, and what they refuse."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import rows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE names (k UInt8, name String, size UInt32) ENGINE = Join(ANY, LEFT, k)",
        "INSERT INTO names VALUES (1, 'one', 10), (1, 'uno', 11)",
        "CREATE TABLE events (k UInt8) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO events VALUES (1), (2), (2)",
        merges=False,
    ),
    pytest.mark.feature("schema", "dimensions"),
]


def test_the_first_row_of_a_key_counts_whatever_block_it_came_in(connection: Connection) -> None:
    connection.execute("INSERT INTO names VALUES (1, 'eins', 12), (2, 'zwei', 2)")
    assert rows(connection, "SELECT * FROM names ORDER BY k") == [(1, "one", 10), (2, "zwei", 2)]
    assert rows(connection, "SELECT count() FROM names") == [(2,)]


def test_calls_with_several_columns_and_keys_of_rows(connection: Connection) -> None:
    query = (
        "SELECT k, joinGet('names', 'name', k), joinGet(names, 'size', k),"
        " joinGetOrNull('default.names', 'name', k) FROM events ORDER BY k"
    )
    assert rows(connection, query) == [(1, "one", 10, "one"), (2, "", 0, None), (2, "", 0, None)]
    connection.execute("INSERT INTO names VALUES (2, 'two', 20)")
    assert rows(connection, query)[1] == (2, "two", 20, "two")


def test_a_view_that_looks_up_is_told_of_changes(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW m ENGINE = SummingMergeTree ORDER BY name POPULATE AS"
        " SELECT joinGet('names', 'name', k) AS name, count() AS n FROM events GROUP BY name"
    )
    assert rows(connection, "SELECT name, sum(n) FROM m GROUP BY name ORDER BY name") == [
        ("", 2),
        ("one", 1),
    ]
    connection.execute("INSERT INTO names VALUES (2, 'two', 20)")
    assert rows(connection, "SELECT count() > 0 FROM system.view_invalidations") == [(True,)]
    connection.execute("SYSTEM REPLAY VIEW m STALE")
    assert rows(connection, "SELECT name, sum(n) FROM m GROUP BY name ORDER BY name") == [
        ("one", 1),
        ("two", 2),
    ]
    connection.execute("RENAME TABLE names TO titles")
    connection.execute("INSERT INTO events VALUES (1)")
    assert rows(connection, "SELECT sum(n) FROM m WHERE name = 'one'") == [(2,)]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE names ADD COLUMN z UInt8",
        "ALTER TABLE names DELETE WHERE k = 1",
        "DELETE FROM names WHERE k = 1",
        "OPTIMIZE TABLE names",
        "CREATE TABLE b (k UInt8, v UInt8) ENGINE = Join(ANY, LEFT, k) SETTINGS join_use_nulls = 1",
        "CREATE TABLE b (k UInt8, v UInt8) ENGINE = Join(ANY, LEFT, k) SETTINGS persistent = 0",
    ],
)
def test_refused(connection: Connection, statement: str) -> None:
    with pytest.raises(olapdb.Error, match="Join"):
        connection.execute(statement)
    assert rows(connection, "SELECT * FROM names") == [(1, "one", 10)]


def test_truncate_and_persistent(connection: Connection) -> None:
    connection.execute("TRUNCATE TABLE names")
    assert rows(connection, "SELECT count() FROM names") == [(0,)]
    connection.execute(
        "CREATE TABLE b (k UInt8, v UInt8) ENGINE = Join(ANY, LEFT, k) SETTINGS persistent = 1"
    )
    assert rows(connection, "SELECT engine_full FROM system.tables WHERE name = 'b'") == [
        ("Join(ANY, LEFT, k)",)
    ]
