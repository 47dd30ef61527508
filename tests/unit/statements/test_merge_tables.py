"""Tables of the engine Merge: what they read tomorrow, and who may not read them."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb import errors
from olapdb.dbapi.connection import Connection
from olapdb.sql.formatter.definition_lines import on_one_line
from tests.unit.views.warehouse import rows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE l1 (k UInt8) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO l1 VALUES (1)",
        "CREATE TABLE m ENGINE = Merge(default, '^l[0-9]$')",
        merges=False,
    ),
    pytest.mark.feature("schema", "select"),
]


@pytest.mark.parametrize("source", ["m", "merge('^l[0-9]$')", "v"])
def test_a_table_that_matches_later_is_read(connection: Connection, source: str) -> None:
    connection.execute("CREATE VIEW v AS SELECT * FROM merge('^l[0-9]$')")
    text = f"SELECT sum(k) FROM {source}"
    assert rows(connection, text) == [(1,)]
    connection.execute("CREATE TABLE l2 (k UInt8) ENGINE = Memory")
    connection.execute("INSERT INTO l2 VALUES (5)")
    assert rows(connection, text) == [(6,)]
    connection.execute("DROP TABLE l1")
    assert rows(connection, text) == [(5,)]


def test_databases_may_match_too(connection: Connection) -> None:
    connection.execute("CREATE DATABASE d2")
    connection.execute("CREATE TABLE d2.l1 (k UInt8) ENGINE = Memory")
    connection.execute("INSERT INTO d2.l1 VALUES (9)")
    text = "SELECT _database, k FROM merge(REGEXP('^d'), '^l1$') ORDER BY k"
    assert rows(connection, text) == [("default", 1), ("d2", 9)]


def test_the_catalog_keeps_it(tmp_path: Path) -> None:
    text = "CREATE TABLE default.m (`k` UInt8) ENGINE = Merge('default', '^l')"
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute(text)
    with olapdb.connect(tmp_path / "w") as connection:
        ((shown,),) = rows(connection, "SHOW CREATE TABLE m")
        assert on_one_line(shown) == text
        listed = "SELECT engine, engine_full, as_select FROM system.tables WHERE name = 'm'"
        assert rows(connection, listed) == [("Merge", "Merge('default', '^l')", "")]
        assert rows(connection, "SHOW VIEWS") == []


def test_a_renamed_column_is_its_default(connection: Connection) -> None:
    connection.execute("CREATE TABLE l2 (a UInt8, b UInt8) ENGINE = MergeTree ORDER BY a")
    connection.execute("INSERT INTO l2 VALUES (1, 2)")
    connection.execute("CREATE TABLE both (b UInt8) ENGINE = Merge(default, '^l2$')")
    assert rows(connection, "SELECT b FROM both") == [(2,)]
    connection.execute("ALTER TABLE l2 RENAME COLUMN b TO c")
    assert rows(connection, "SELECT b FROM both") == [(0,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM m",
        "SELECT k FROM merge('^l')",
        "SELECT l1.k AS k FROM l1 JOIN m ON l1.k = m.k",
        "SELECT k FROM l1 WHERE k IN (SELECT k FROM merge('^l'))",
        "SELECT l1.k AS k FROM l1 JOIN v ON l1.k = v.k",
    ],
)
def test_a_materialized_view_cannot_read_one(connection: Connection, query: str) -> None:
    connection.execute("CREATE VIEW v AS SELECT k FROM merge('^l')")
    with pytest.raises(errors.QueryNotSupportedInMaterializedView):
        connection.execute(f"CREATE MATERIALIZED VIEW mv ENGINE = MergeTree ORDER BY k AS {query}")


def test_merge_tables_that_read_each_other_are_an_error(connection: Connection) -> None:
    connection.execute("CREATE TABLE a1 (k UInt8) ENGINE = Merge(default, '^a')")
    connection.execute("CREATE TABLE a2 (k UInt8) ENGINE = Merge(default, '^a')")
    with pytest.raises(errors.TooDeepRecursion):
        connection.execute("SELECT * FROM a1").fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE m ADD COLUMN z UInt8",
        "OPTIMIZE TABLE m",
        "DELETE FROM m WHERE k = 1",
        "CREATE TABLE e ENGINE = Merge(default, '^l') AS SELECT 1",
    ],
)
def test_it_stores_nothing(connection: Connection, sql: str) -> None:
    with pytest.raises(olapdb.NotSupportedError):
        connection.execute(sql)


def test_a_condition_on_the_table_reads_no_other(connection: Connection) -> None:
    connection.execute("CREATE TABLE l2 (k UInt8) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO l2 SELECT number FROM numbers(200)")
    text = "EXPLAIN ANALYZE SELECT sum(k) FROM m WHERE _table = 'l1' AND k < 150"
    explained = "\n".join(row[0] for row in rows(connection, text))
    assert "Parts: 0/1" in explained.split("default.l2")[1]
    assert rows(connection, "SELECT sum(k) FROM m WHERE _table = 'l1'") == [(1,)]
