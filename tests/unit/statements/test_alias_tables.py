"""Tables of the engine Alias: what they stand for, and what may not be made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb.errors import HaveDependentObjects

pytestmark = pytest.mark.feature("schema", "engines")


@pytest.fixture
def aliased(connection: olapdb.Connection) -> olapdb.Connection:
    connection.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE a ENGINE = Alias('t')")
    connection.execute("CREATE TABLE target (k UInt64) ENGINE = MergeTree ORDER BY k")
    return connection


def rows(connection: olapdb.Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE MATERIALIZED VIEW v TO target AS SELECT k FROM a",
        "CREATE MATERIALIZED VIEW v TO target AS SELECT k FROM t WHERE k IN (SELECT k FROM a)",
        "CREATE MATERIALIZED VIEW v TO a AS SELECT k FROM target",
    ],
)
def test_no_materialized_view_reads_or_writes_an_alias(
    aliased: olapdb.Connection, statement: str
) -> None:
    with pytest.raises(olapdb.Error):
        aliased.execute(statement)
    assert rows(aliased, "SELECT name FROM system.tables WHERE name = 'v'") == []


def test_views_of_the_table_fire_on_an_insert_into_its_alias(aliased: olapdb.Connection) -> None:
    aliased.execute("CREATE MATERIALIZED VIEW v TO target AS SELECT k FROM t")
    aliased.execute("INSERT INTO a VALUES (7)")
    assert rows(aliased, "SELECT k FROM target") == [(7,)]
    aliased.execute("ALTER TABLE a DELETE WHERE k = 7")
    assert rows(aliased, "SELECT stale_slices FROM system.views") == [(1,)]


def test_a_plain_view_reads_what_the_name_means_now(aliased: olapdb.Connection) -> None:
    aliased.execute("INSERT INTO t VALUES (1)")
    aliased.execute("CREATE VIEW v AS SELECT sum(k) AS s FROM a")
    query = "SELECT s FROM v"
    assert rows(aliased, query) == [(1,)]
    aliased.execute("CREATE TABLE other (k UInt64) ENGINE = MergeTree ORDER BY k")
    aliased.execute("INSERT INTO other VALUES (5)")
    aliased.execute("EXCHANGE TABLES t AND other")
    assert rows(aliased, query) == [(5,)]


def test_it_is_stored(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
        connection.execute("CREATE TABLE a ENGINE = Alias('t')")
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute("INSERT INTO a VALUES (3)")
        assert rows(connection, "SELECT k FROM t") == [(3,)]
        ((made,),) = rows(connection, "SHOW CREATE TABLE a")
        connection.execute("DROP TABLE a")
        connection.execute(str(made).replace("(\n    `k` UInt64\n)\n", ""))
        assert rows(connection, "SELECT k FROM a") == [(3,)]


@pytest.mark.parametrize("clause", ["AS t", "ORDER BY k", "SETTINGS index_granularity = 1"])
def test_other_clauses_are_refused(aliased: olapdb.Connection, clause: str) -> None:
    with pytest.raises(olapdb.Error):
        aliased.execute(f"CREATE TABLE b ENGINE = Alias('t') {clause}")


def test_the_default_granularity_is_shown_and_means_the_default(
    connection: olapdb.Connection,
) -> None:
    query = "INSERT INTO {} SELECT number FROM numbers(70000)"
    for name, clause in (("s", ""), ("d", "SETTINGS index_granularity = 8192")):
        connection.execute(f"CREATE TABLE {name} (k UInt64) ENGINE = MergeTree ORDER BY k {clause}")
        connection.execute(query.format(name))
        ((made,),) = rows(connection, f"SHOW CREATE TABLE {name}")
        assert str(made).endswith("SETTINGS index_granularity = 8192")
    marks = "SELECT table, marks FROM system.parts WHERE table IN ('s', 'd') ORDER BY table"
    ((_, given), (_, default)) = rows(connection, marks)
    assert given == default == 2


@pytest.mark.parametrize(
    "definition",
    [
        "AS numbers(3)",
        "ENGINE = Alias('target')",
        "AS t ENGINE = Buffer('default', 'target', 1, 1, 1, 1, 1, 1, 1)",
        "(k UInt64) ENGINE = Merge('default', 'target')",
    ],
)
def test_the_source_of_a_view_is_not_replaced_by_a_table_without_rows(
    aliased: olapdb.Connection, definition: str
) -> None:
    aliased.execute("CREATE TABLE source (k UInt64) ENGINE = MergeTree ORDER BY k")
    aliased.execute("CREATE MATERIALIZED VIEW v TO target AS SELECT k FROM source")
    with pytest.raises(HaveDependentObjects, match=r"DROP VIEW default\.v first"):
        aliased.execute(f"CREATE OR REPLACE TABLE source {definition}")
    aliased.execute("INSERT INTO source VALUES (1)")
    assert rows(aliased, "SELECT k FROM target") == [(1,)]
