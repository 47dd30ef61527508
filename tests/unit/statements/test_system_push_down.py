"""Conditions on names reach the system tables: what is listed and rendered, not how long it takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.system import catalog_tables

pytestmark = pytest.mark.feature("introspection")

TABLES = 12


@pytest.fixture
def connection() -> Iterator[olapdb.Connection]:
    """Open a warehouse with two databases of twelve tables each, and a view in each."""
    with olapdb.connect() as connection:
        for database in ("a", "b"):
            connection.execute(f"CREATE DATABASE {database}")
            for number in range(TABLES):
                connection.execute(
                    f"CREATE TABLE {database}.t{number} (k String, n UInt64) "
                    "ENGINE = MergeTree ORDER BY k"
                )
            connection.execute(
                f"CREATE MATERIALIZED VIEW {database}.v TO {database}.t1 "
                f"AS SELECT k, n FROM {database}.t0"
            )
        yield connection


def listed(connection: olapdb.Connection, sql: str) -> int:
    """Return how many rows the query's system tables listed."""
    cursor = connection.execute(sql)
    cursor.fetchall()
    return cursor.statistics.rows_read


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("database = 'a' AND name = 't3'", 1),
        ("name = 't3'", 2),
        ("'a' = database AND name IN ('t3', 't4', 'none')", 2),
        ("(database = 'a' AND name = 't3') OR (database = 'b' AND name = 't5')", 4),
        ("database IN ('a') AND engine = 'MaterializedView'", TABLES + 1),
        ("database = 'a' AND name = 't3' AND name = 't4'", 0),
        ("database = 'system' AND name = 'tables'", 1),
    ],
)
def test_only_the_named_tables_are_listed(
    connection: olapdb.Connection, condition: str, rows: int
) -> None:
    sql = f"SELECT database, name, uuid FROM system.tables WHERE {condition}"
    assert listed(connection, sql) == rows
    everything = connection.execute("SELECT database, name, uuid, engine FROM system.tables")
    names = {tuple(row[:3]) for row in everything.fetchall()}
    assert set(connection.execute(sql).fetchall()) <= names


@pytest.mark.parametrize(
    "condition",
    [
        "database = 'a' AND name NOT IN ('t3')",
        "name = 't3' OR engine = 'MaterializedView'",
        "lower(name) = 't3'",
        "name LIKE 't3%' AND database = 'b'",
        "NOT (name = 't3')",
        "name = 't3' OR name LIKE 't4'",
        "name = if(database = 'a', 't3', 't4')",
    ],
)
@pytest.mark.parametrize("table", ["system.tables", "information_schema.tables"])
def test_the_answer_is_that_of_all_rows(
    connection: olapdb.Connection, condition: str, table: str
) -> None:
    if table != "system.tables":
        condition = condition.replace("database", "table_schema").replace("name", "table_name")
        condition = condition.replace("engine = 'MaterializedView'", "table_type = 'VIEW'")
    pushed = connection.execute(f"SELECT * FROM {table} WHERE {condition}").fetchall()
    flag = f"SELECT *, materialize({condition}) AS keep FROM {table}"
    rows = connection.execute(flag).fetchall()
    assert pushed == [row[:-1] for row in rows if row[-1]]
    assert pushed


def test_ddl_is_rendered_for_the_listed_tables_if_it_is_read(
    connection: olapdb.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []
    render = catalog_tables.create_statement

    def counted(item: object, snapshot: object) -> str:
        rendered.append(item.name)  # type: ignore[attr-defined]
        return render(item, snapshot)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog_tables, "create_statement", counted)
    connection.execute("SELECT name, engine, comment FROM system.tables").fetchall()
    assert rendered == []
    sql = "SELECT create_table_query FROM system.tables WHERE database = 'b' AND name = 't7'"
    ((statement,),) = connection.execute(sql).fetchall()
    assert "b.t7" in statement
    assert rendered == ["t7"]


@pytest.mark.parametrize(
    ("table", "condition", "rows"),
    [
        ("columns", "database = 'a' AND table = 't2'", 2),
        ("columns", "database = 'a' AND name = 'k'", 2 * TABLES + 2),
        ("views", "database = 'b' AND name = 'v'", 1),
        ("view_dependencies", "database = 'b' AND view = 'v'", 2),
        ("view_coverage", "database = 'b' AND view = 'none'", 0),
        ("parts", "database = 'a' AND table = 't1'", 1),
    ],
)
def test_other_tables_list_the_named_objects(
    connection: olapdb.Connection, table: str, condition: str, rows: int
) -> None:
    connection.execute("INSERT INTO a.t0 VALUES ('x', 1)")
    connection.execute("INSERT INTO b.t0 VALUES ('x', 1)")
    assert listed(connection, f"SELECT * FROM system.{table} WHERE {condition}") == rows


def test_conditions_reach_both_sides_of_a_join_and_information_schema(
    connection: olapdb.Connection,
) -> None:
    joined = (
        "SELECT t.name, c.name FROM system.columns AS c INNER JOIN system.tables AS t "
        "ON t.database = c.database AND t.name = c.table "
        "WHERE c.database = 'a' AND c.table = 't2' AND t.database = 'a' AND t.name = 't2'"
    )
    assert listed(connection, joined) == 3
    standard = "SELECT table_name FROM information_schema.tables WHERE {} = 'a' AND {} = 't2'"
    for columns in (("table_schema", "table_name"), ("TABLE_SCHEMA", "TABLE_NAME")):
        assert listed(connection, standard.format(*columns)) == 1


def test_explain_shows_the_values(connection: olapdb.Connection) -> None:
    sql = "EXPLAIN SELECT uuid FROM system.tables WHERE database = 'a' AND name IN ('t1', 't2')"
    plan = "\n".join(row[0] for row in connection.execute(sql).fetchall())
    assert "Only: database in 'a'" in plan
    assert "Only: name in 't1', 't2'" in plan
