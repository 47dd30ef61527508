"""Tables of the engine Set, and engines that are refused with what to use."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import NotSupportedError
from tests.unit.views.warehouse import rows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE chosen (k UInt8) ENGINE = Set",
        "CREATE TABLE events (k UInt8, n UInt8) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW m ENGINE = SummingMergeTree ORDER BY k AS "
        "SELECT k, sum(n) AS n FROM events WHERE k IN chosen GROUP BY k",
        "INSERT INTO chosen VALUES (1)",
        "INSERT INTO events VALUES (1, 10), (2, 20)",
        merges=False,
    ),
    pytest.mark.feature("schema", "dimensions"),
]


def test_a_view_that_asks_a_set_is_told_of_its_changes(connection: Connection) -> None:
    assert rows(connection, "SELECT * FROM m") == [(1, 10)]
    connection.execute("INSERT INTO chosen VALUES (2)")
    assert rows(connection, "SELECT count() > 0 FROM system.view_invalidations") == [(True,)]
    connection.execute("SYSTEM REPLAY VIEW m STALE")
    assert rows(connection, "SELECT * FROM m ORDER BY k") == [(1, 10), (2, 20)]


def test_a_set_has_no_columns_added(connection: Connection) -> None:
    with pytest.raises(olapdb.NotSupportedError, match="Set keeps its columns"):
        connection.execute("ALTER TABLE chosen ADD COLUMN z UInt8")


def test_a_view_fires_on_rows_of_a_buffer(connection: Connection) -> None:
    """A Buffer hands rows to its table at once, so that its views see them in the same commit."""
    connection.execute("CREATE TABLE seen (k UInt8) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE behind (k UInt8) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE MATERIALIZED VIEW copies TO seen AS SELECT k FROM behind")
    connection.execute(
        "CREATE TABLE b AS behind ENGINE = Buffer(currentDatabase(), behind, 1, 1, 1, 1, 1, 1, 1)"
    )
    connection.execute("INSERT INTO b VALUES (7)")
    for table in ("b", "behind", "seen"):
        assert rows(connection, f"SELECT k FROM {table}") == [(7,)]
    with pytest.raises(
        olapdb.Error, match=r"Buffer default\.b: what is inserted into it goes to its table"
    ):
        connection.execute("CREATE MATERIALIZED VIEW more TO seen AS SELECT k FROM b")


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE TABLE b",
        "DELETE FROM b WHERE 1",
        "ALTER TABLE b DELETE WHERE 1",
        "ALTER TABLE b DROP COLUMN s",
        "ALTER TABLE b DROP PARTITION tuple()",
    ],
)
def test_a_buffer_passes_on_nothing_that_removes(connection: Connection, statement: str) -> None:
    connection.execute("CREATE TABLE behind (k UInt8, s String) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        "CREATE TABLE b AS behind ENGINE = Buffer(currentDatabase(), behind, 1, 1, 1, 1, 1, 1, 1)"
    )
    connection.execute("INSERT INTO b VALUES (7, 'a')")
    with pytest.raises(NotSupportedError, match=r"Buffer.* Run the statement on default\.behind"):
        connection.execute(statement)
    assert rows(connection, "SELECT * FROM behind") == [(7, "a")]
