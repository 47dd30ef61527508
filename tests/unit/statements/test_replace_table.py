"""CREATE OR REPLACE: views over what is replaced go on, and materialized views are told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb import errors
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("schema", "views")

TARGET = "SELECT v, sum(c) FROM target GROUP BY v HAVING sum(c) != 0 ORDER BY v"
NEW = "CREATE OR REPLACE TABLE t ENGINE = MergeTree ORDER BY tuple() AS SELECT"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        for text in (
            "CREATE TABLE t (k Int64, v String) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE target (v String, c UInt64) ENGINE = SummingMergeTree ORDER BY v",
            "CREATE MATERIALIZED VIEW mv TO target AS SELECT v, count() AS c FROM t GROUP BY v",
            "CREATE VIEW plain AS SELECT v, k FROM t",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'b')",
        ):
            opened.execute(text)
        yield opened


def read(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in connection.execute(query).fetchall()]


def verdict(connection: Connection) -> object:
    return read(connection, "SELECT verdict FROM system.views WHERE name = 'mv'")[0][0]


def test_a_replaced_source_keeps_its_views(connection: Connection) -> None:
    connection.execute(f"{NEW} 7 AS more, if(v = 'a', 'z', v) AS v, k FROM t")
    assert read(connection, "SELECT * FROM plain ORDER BY k") == [("z", 1), ("b", 2), ("b", 3)]
    assert verdict(connection) == "stale"
    connection.execute("INSERT INTO t VALUES (8, 'n', 4)")
    connection.execute("SYSTEM REPLAY VIEW mv STALE")
    assert read(connection, TARGET) == [("b", 2), ("n", 1), ("z", 1)]
    reconciled = connection.execute("SYSTEM RECONCILE VIEW mv").fetchall()
    assert [row[-2] for row in reconciled] == ["equal"]


def test_a_source_that_is_replaced_without_rows_or_by_a_clone(connection: Connection) -> None:
    connection.execute("CREATE OR REPLACE TABLE t (v String) ENGINE = MergeTree ORDER BY v")
    connection.execute("SYSTEM REPLAY VIEW mv STALE")
    assert read(connection, TARGET) == []
    connection.execute("CREATE TABLE other ENGINE = MergeTree ORDER BY v AS SELECT 'o' AS v")
    connection.execute("CREATE OR REPLACE TABLE t CLONE AS other")
    assert verdict(connection) == "partial"
    connection.execute("SYSTEM BACKFILL VIEW mv")
    assert read(connection, TARGET) == [("o", 1)]
    assert read(connection, "SELECT v FROM t") == [("o",)]


@pytest.mark.parametrize("columns", ["1 AS k", "map(1, 2) AS v"])
def test_a_replacement_that_breaks_a_view_is_refused(connection: Connection, columns: str) -> None:
    with pytest.raises(errors.AlterOfColumnIsForbidden, match=r"default\.mv would not fit"):
        connection.execute(f"{NEW} {columns}")
    assert read(connection, "SELECT count() FROM t") == [(3,)]
    assert verdict(connection) == "covered"


def test_the_target_of_a_view_is_not_replaced(connection: Connection) -> None:
    with pytest.raises(errors.HaveDependentObjects, match=r"default\.mv depends on it"):
        connection.execute(
            "CREATE OR REPLACE TABLE target (v String) ENGINE = MergeTree ORDER BY v"
        )


def test_a_replaced_table_takes_the_same_rows_again(connection: Connection) -> None:
    connection.execute("INSERT INTO t SETTINGS insert_deduplication_token = 'x' VALUES (4, 'b')")
    connection.execute(
        "CREATE OR REPLACE TABLE t (k Int64, v String) ENGINE = MergeTree ORDER BY k"
    )
    connection.execute("INSERT INTO t SETTINGS insert_deduplication_token = 'x' VALUES (4, 'b')")
    assert read(connection, "SELECT * FROM t") == [(4, "b")]


def test_tables_and_views_replace_each_other(connection: Connection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE plain ENGINE = MergeTree ORDER BY v AS SELECT 1 AS v"
    )
    connection.execute("CREATE VIEW over AS SELECT v + 1 AS w FROM plain")
    connection.execute("CREATE OR REPLACE VIEW plain AS SELECT 2 AS v")
    assert read(connection, "SELECT w FROM over") == [(3,)]
    with pytest.raises(errors.HaveDependentObjects, match=r"default\.mv depends on it"):
        connection.execute("CREATE OR REPLACE VIEW t AS SELECT 'a' AS v")
    with pytest.raises(errors.TableAlreadyExists, match="materialized view"):
        connection.execute("CREATE OR REPLACE VIEW mv AS SELECT 'a' AS v")


def test_a_source_of_the_same_definition_exchanges_the_rows_that_differ(
    connection: Connection,
) -> None:
    connection.execute("ALTER TABLE t MODIFY COMMENT 'letters'")
    connection.execute("ALTER TABLE t COMMENT COLUMN v 'a letter'")
    same = "CREATE OR REPLACE TABLE t ENGINE = MergeTree ORDER BY k AS SELECT"
    connection.execute(f"{same} k, v FROM t")
    connection.execute(f"{same} arrayJoin([toInt64(2), 3, 4]) AS k, 'b' AS v")
    assert read(connection, TARGET) == [("a", 1), ("b", 3)]
    assert read(connection, "SELECT keys FROM system.view_invalidations") == [(["a"],)]
    connection.execute("SYSTEM REPLAY VIEW mv STALE")
    assert read(connection, TARGET) == [("b", 3)]
    assert read(connection, "SELECT comment FROM system.tables WHERE name = 't'") == [("letters",)]
    connection.execute(
        "CREATE OR REPLACE TABLE t ENGINE = MergeTree ORDER BY k EMPTY AS SELECT * FROM t"
    )
    connection.execute("SYSTEM REPLAY VIEW mv STALE")
    assert read(connection, TARGET) == []


def test_plain_views_that_do_not_fit_any_more_are_told(connection: Connection) -> None:
    connection.execute("CREATE VIEW over AS SELECT k + 1 AS more FROM plain")
    cursor = connection.execute(f"{NEW} v, k + 1 AS k FROM t")
    assert cursor.messages == []
    cursor = connection.execute(f"{NEW} v FROM t")
    told = [text for _, text in cursor.messages]
    assert [text.split(" does not work")[0] for text in told] == [
        "The view default.plain",
        "The view default.over",
    ]
    assert "since default.t has other columns" in told[0]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TABLE mv (v String) ENGINE = MergeTree ORDER BY v",
        "CREATE OR REPLACE TABLE mv ENGINE = MergeTree ORDER BY v AS SELECT 'x' AS v",
        "CREATE OR REPLACE TABLE mv CLONE AS t",
        "CREATE OR REPLACE VIEW mv AS SELECT 1 AS a",
    ],
)
def test_a_materialized_view_is_not_replaced(connection: Connection, statement: str) -> None:
    with pytest.raises(errors.TableAlreadyExists, match="would end its trigger"):
        connection.execute(statement)
    connection.execute("INSERT INTO t VALUES (4, 'new')")
    assert ("new", 1) in read(connection, TARGET)


@pytest.mark.parametrize("replaced", [False, True])
def test_the_settings_of_as_select_are_those_of_the_insert(
    connection: Connection, replaced: bool
) -> None:
    """As in ClickHouse: insert_null_as_default decides what a NULL is that the SELECT gives."""
    create = "CREATE OR REPLACE TABLE d (x Int64) ENGINE = MergeTree ORDER BY x AS"
    select = "SELECT if(k = 2, NULL, k) AS x FROM t SETTINGS insert_null_as_default ="
    if replaced:  # a view over it: the rows of the same definition are exchanged
        connection.execute(f"{create} SELECT 9 AS x")
        connection.execute("CREATE TABLE of_d (x Int64) ENGINE = MergeTree ORDER BY x")
        connection.execute("CREATE MATERIALIZED VIEW d_mv TO of_d AS SELECT x FROM d")
    with pytest.raises(errors.Error, match="NULL is no value of Int64") as refused:
        connection.execute(f"{create} {select} 0")
    assert refused.value.code == 349
    connection.execute("SET insert_null_as_default = 0")
    connection.execute(f"{create} {select} 1")
    assert read(connection, "SELECT x FROM d ORDER BY x") == [(0,), (1,), (3,)]
