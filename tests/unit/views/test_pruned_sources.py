"""Views that use no column of their source, or only those that a subquery outputs."""

from __future__ import annotations

from typing import Any

import pytest

from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import dicts, rows

SUBQUERY = "(SELECT k FROM s) AS s"
DEFINITIONS = [
    f"SELECT d.n AS n FROM {SUBQUERY} JOIN d ON s.k = d.k",
    f"SELECT n FROM {SUBQUERY} JOIN d USING (k)",
    f"SELECT d.n AS n FROM {SUBQUERY} LEFT JOIN d ON s.k = d.k",
    f"SELECT d.n FROM {SUBQUERY} CROSS JOIN d",
    f"SELECT n FROM (SELECT d.n AS n FROM {SUBQUERY} JOIN d ON s.k = d.k)",
    f"SELECT shown.n AS n FROM {SUBQUERY} JOIN shown ON s.k = shown.k",
    "WITH x AS (SELECT k FROM s) SELECT d.n AS n FROM x JOIN d ON x.k = d.k",
    f"SELECT d.n AS n FROM {SUBQUERY} JOIN d ON s.k = d.k UNION ALL SELECT 'all' AS n FROM s",
    "SELECT d.n AS n FROM (SELECT 1 AS one FROM s) AS s JOIN d ON s.one = d.k",
    "SELECT 'x' AS n FROM s",
    "SELECT called AS n FROM s",
    "SELECT n FROM (SELECT 'x' AS n, k FROM s)",
    "SELECT toString(e) AS n FROM s ARRAY JOIN [1, 2] AS e",
]


pytestmark = [
    pytest.mark.warehouse(
        (
            "CREATE TABLE s (k UInt8, v Int64, called String ALIAS toString(k)) ENGINE = MergeTree"
            " ORDER BY k"
        ),
        "CREATE TABLE d (k UInt8, n String) ENGINE = MergeTree ORDER BY k",
        "CREATE VIEW shown AS SELECT k, n FROM d WHERE n != 'b'",
        "CREATE TABLE t (n String) ENGINE = MergeTree ORDER BY n",
        "INSERT INTO d VALUES (1, 'a'), (2, 'b')",
        merges=False,
    ),
    pytest.mark.feature("views"),
]


def sorted_rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return sorted(rows(connection, query))


@pytest.mark.parametrize("query", DEFINITIONS)
def test_rows_are_those_of_the_query(connection: Connection, query: str) -> None:
    connection.execute("INSERT INTO s (k, v) VALUES (2, 1)")
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
    connection.execute("INSERT INTO s (k, v) VALUES (1, 1), (2, 2), (1, 3)")
    connection.execute("SYSTEM BACKFILL VIEW v")
    assert sorted_rows(connection, "SELECT n FROM t") == sorted_rows(connection, query)
    connection.execute("ALTER TABLE d UPDATE n = 'c' WHERE k = 1")
    connection.execute("DELETE FROM s WHERE v = 2")
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert sorted_rows(connection, "SELECT n FROM t") == sorted_rows(connection, query)
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW v")} == {"equal"}


def test_groups_of_the_other_table(connection: Connection) -> None:
    connection.execute("CREATE TABLE c (n String, c UInt64) ENGINE = SummingMergeTree ORDER BY n")
    connection.execute(
        f"CREATE MATERIALIZED VIEW v TO c AS SELECT d.n AS n, count() AS c FROM {SUBQUERY}"
        " JOIN d ON s.k = d.k GROUP BY n"
    )
    connection.execute("INSERT INTO s (k, v) VALUES (1, 1), (2, 2), (1, 3)")
    assert sorted_rows(connection, "SELECT * FROM c") == [("a", 2), ("b", 1)]
    connection.execute("SYSTEM RECONCILE VIEW v")
    assert rows(connection, "SELECT verdict FROM system.views") == [("proven",)]
