"""WITH queries that read those written behind them, in views; the answers of SELECT are in tests/sql/common_tables.slt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("select", "views")
LATE = "WITH late AS (SELECT id FROM pool), pool AS (SELECT id + 100 AS id FROM staff) SELECT id FROM late"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("CREATE TABLE staff (id Int32) ENGINE = MergeTree ORDER BY id")
        opened.execute("CREATE TABLE pool (id Int32) ENGINE = MergeTree ORDER BY id")
        opened.execute("INSERT INTO staff VALUES (1), (2)")
        opened.execute("INSERT INTO pool VALUES (70)")
        yield opened


def test_a_view_reads_the_query_and_not_the_table_of_its_name(connection: Connection) -> None:
    connection.execute(f"CREATE VIEW v AS {LATE}")
    assert connection.execute("SELECT id FROM v ORDER BY id").fetchall() == [(101,), (102,)]
    shown = connection.execute("SHOW CREATE VIEW v").fetchone()
    assert shown is not None
    assert shown[0].index("late AS") < shown[0].index("pool AS")
    assert "default.pool" not in shown[0]


def test_a_materialized_view_fires_for_the_table_behind_the_queries(connection: Connection) -> None:
    connection.execute("CREATE TABLE target (id Int32) ENGINE = MergeTree ORDER BY id")
    connection.execute(f"CREATE MATERIALIZED VIEW m TO target AS {LATE}")
    connection.execute("INSERT INTO staff VALUES (3)")
    connection.execute("INSERT INTO pool VALUES (71)")
    assert connection.execute("SELECT id FROM target").fetchall() == [(103,)]
    connection.execute("SYSTEM BACKFILL VIEW m")
    rows = connection.execute("SELECT id FROM target ORDER BY id").fetchall()
    assert rows == [(101,), (102,), (103,)]


def test_a_view_keeps_a_constant_that_reads_a_query(connection: Connection) -> None:
    connection.execute(
        "CREATE VIEW v AS WITH (SELECT max(id) FROM c) AS peak, a AS (SELECT peak + 1 AS z),"
        " c AS (SELECT id FROM staff) SELECT peak, z FROM a"
    )
    connection.execute("INSERT INTO staff VALUES (9)")
    assert connection.execute("SELECT * FROM v").fetchall() == [(9, 10)]


@pytest.mark.parametrize("condition", ["id IN (pool)", "in(id, pool)", "NOT notNullIn(id, pool)"])
def test_a_view_keeps_the_table_of_a_set(connection: Connection, condition: str) -> None:
    connection.execute(f"CREATE VIEW v AS SELECT id FROM staff WHERE {condition}")
    connection.execute("CREATE TABLE target (id Int32) ENGINE = MergeTree ORDER BY id")
    connection.execute(
        f"CREATE MATERIALIZED VIEW m TO target AS SELECT id FROM staff WHERE {condition}"
    )
    shown = connection.execute("SELECT as_select FROM system.views WHERE name = 'm'").fetchone()
    assert shown is not None
    assert "default.pool" in shown[0]
    connection.execute("INSERT INTO pool VALUES (2)")
    connection.execute("RENAME TABLE pool TO crew")
    connection.execute("CREATE DATABASE other")
    connection.execute("USE other")
    assert connection.execute("SELECT id FROM default.v").fetchall() == [(2,)]
    connection.execute("INSERT INTO default.staff VALUES (70)")
    assert connection.execute("SELECT id FROM default.target").fetchall() == [(70,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, 70 AS pool FROM staff WHERE id IN (pool)",
        "SELECT id, [70] AS pool FROM staff WHERE id IN pool",
        "SELECT id, [70] AS pool FROM staff WHERE in(id, pool)",
        "SELECT id FROM (SELECT id, 70 AS pool FROM staff) AS s WHERE id IN (s.pool)",
        "SELECT id FROM staff WHERE arrayExists(pool -> id IN (pool), [70])",
    ],
)
def test_a_view_keeps_a_column_of_a_set_that_is_named_like_a_table(
    connection: Connection, query: str
) -> None:
    connection.execute(f"CREATE VIEW v AS {query}")
    connection.execute("INSERT INTO staff VALUES (70)")
    connection.execute("TRUNCATE TABLE pool")
    assert connection.execute("SELECT id FROM v").fetchall() == [(70,)]


@pytest.mark.parametrize(
    "query",
    [
        "WITH a AS (SELECT 5 AS x WHERE 1 IN (b)), b AS (SELECT 1) SELECT x FROM a",
        "WITH b AS (SELECT x FROM a), a AS (WITH b AS (SELECT 5 AS x) SELECT x FROM b) SELECT x FROM b",
    ],
)
def test_queries_behind_are_found_in_sets_and_beside_inner_queries_of_their_name(
    connection: Connection, query: str
) -> None:
    assert connection.execute(query).fetchall() == [(5,)]
    connection.execute(f"CREATE VIEW v AS {query}")
    assert connection.execute("SELECT * FROM v").fetchall() == [(5,)]
