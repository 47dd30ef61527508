"""Temporary tables belong to one connection: who sees them, what they cost, what may not read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
from olapdb.errors import MemoryLimitExceeded, NotSupportedError, ReadOnly, UnknownTable

pytestmark = pytest.mark.feature("schema", "python")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse")


@pytest.fixture
def connection(folder: str) -> Iterator[olapdb.Connection]:
    with olapdb.connect(folder) as opened:
        yield opened


def rows(connection: olapdb.Connection, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in connection.execute(sql).fetchall()]


def test_other_connections_do_not_see_them(connection: olapdb.Connection, folder: str) -> None:
    connection.execute("CREATE TEMPORARY TABLE own AS SELECT 1 AS a")
    with olapdb.connect(folder) as other:
        with pytest.raises(UnknownTable):
            other.execute("SELECT * FROM own")
        assert rows(other, "SHOW TEMPORARY TABLES") == []
        assert rows(other, "SELECT name FROM system.tables WHERE is_temporary") == []
        other.execute("CREATE TEMPORARY TABLE own AS SELECT 2 AS a")
        assert rows(other, "SELECT a FROM own") == [(2,)]
    assert rows(connection, "SELECT a FROM own") == [(1,)]


def test_they_end_with_the_connection(folder: str) -> None:
    with olapdb.connect(folder) as first:
        first.execute("CREATE TEMPORARY TABLE own (a Int8) ENGINE = MergeTree ORDER BY a")
        first.execute("INSERT INTO own SELECT number FROM numbers(100)")
        before = rows(first, "SELECT max(number) FROM system.snapshots")
    with olapdb.connect(folder) as second:
        with pytest.raises(UnknownTable):
            second.execute("SELECT * FROM own")
        # No commit of the warehouse was made for them, and no file is left.
        assert rows(second, "SELECT max(number) FROM system.snapshots") == before
        assert list(Path(folder).rglob("*.parquet")) == []


def test_a_cached_plan_does_not_outlive_its_meaning(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a")
    connection.execute("INSERT INTO t VALUES (1)")
    assert rows(connection, "SELECT * FROM t") == [(1,)]
    connection.execute("CREATE TEMPORARY TABLE t AS SELECT 'own' AS b")
    assert rows(connection, "SELECT * FROM t") == [("own",)]
    connection.execute("CREATE OR REPLACE TEMPORARY TABLE t AS SELECT 'new' AS b")
    assert rows(connection, "SELECT * FROM t") == [("new",)]
    connection.execute("DROP TABLE t")
    assert rows(connection, "SELECT * FROM t") == [(1,)]


def test_python_data_go_into_the_temporary_table(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a")
    connection.execute("CREATE TEMPORARY TABLE t (a Int64)")
    connection.insert("t", pa.table({"a": [1, 2]}))
    connection.executemany("INSERT INTO t VALUES (?)", [(3,), (4,)])
    assert rows(connection, "SELECT sum(a) FROM t") == [(10,)]
    assert rows(connection, "SELECT count() FROM default.t") == [(0,)]
    connection.insert("default.t", pa.table({"a": [7]}))
    assert rows(connection, "SELECT * FROM default.t") == [(7,)]


def test_a_stream_reads_on_after_the_table_was_dropped(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TEMPORARY TABLE t (a UInt64)")
    connection.execute("INSERT INTO t SELECT number FROM numbers(300000)")
    cursor = connection.execute("SELECT a FROM t")
    first = cursor.fetchone()
    connection.execute("DROP TABLE t")
    assert first is not None
    assert 1 + len(cursor.fetchall()) == 300_000


def test_their_memory_is_limited_and_freed(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TEMPORARY TABLE t (a UInt64)")
    fill = "INSERT INTO t SELECT rand64() FROM numbers(200000)"
    connection.execute("SET max_memory_usage = 6000000")
    connection.execute(fill)
    connection.execute(fill)
    connection.execute(fill)
    with pytest.raises(MemoryLimitExceeded, match="temporary tables"):
        connection.execute(fill)
    for _ in range(5):
        connection.execute("TRUNCATE TABLE t")
        connection.execute(fill)
    assert rows(connection, "SELECT count() FROM t") == [(200_000,)]
    connection.execute("DROP TABLE t")
    assert connection.session.temporary.store.total_bytes() == 0


def test_many_small_inserts_are_merged(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TEMPORARY TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    for number in range(60):
        connection.execute(f"INSERT INTO t VALUES ({number})")
    own = connection.session.temporary.snapshot()
    assert own is not None
    (table,) = own.objects("")
    assert len(own.parts(table.id)) < 30
    assert rows(connection, "SELECT sum(a), count() FROM t") == [(1770, 60)]


def test_an_open_read_only_warehouse_takes_temporary_tables(folder: str) -> None:
    with olapdb.connect(folder) as writer:
        writer.execute("CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a")
        writer.execute("INSERT INTO t VALUES (1), (2)")
    with olapdb.connect(folder, read_only=True) as reader:
        reader.execute("CREATE TEMPORARY TABLE own AS SELECT a * 10 AS a FROM t")
        reader.execute("INSERT INTO own VALUES (7)")
        assert rows(reader, "SELECT sum(a) FROM own") == [(37,)]
        with pytest.raises(ReadOnly):
            reader.execute("INSERT INTO t SELECT a FROM own")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW v AS SELECT a FROM own",
        "CREATE VIEW v AS SELECT a FROM t WHERE a IN own",
        "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY a AS SELECT a FROM own",
        "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY a"
        " AS SELECT t.a AS a FROM t JOIN own ON t.a = own.a",
        "ALTER TABLE t DELETE WHERE a IN (SELECT a FROM own)",
        "DELETE FROM t WHERE a IN (SELECT a FROM own)",
        "UPDATE t SET b = 1 WHERE a IN own",
    ],
)
def test_what_is_stored_cannot_read_them(connection: olapdb.Connection, statement: str) -> None:
    connection.execute("CREATE TABLE t (a Int8, b Int8) ENGINE = MergeTree ORDER BY a")
    # A permanent table of the name must not be taken in its place.
    connection.execute("CREATE TABLE own (a Int8) ENGINE = MergeTree ORDER BY a")
    connection.execute("CREATE TEMPORARY TABLE own (a Int8)")
    with pytest.raises(NotSupportedError, match="own, a temporary table of this session"):
        connection.execute(statement)
    connection.execute("DROP TEMPORARY TABLE own")
    connection.execute(statement)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM own",
        "SELECT a FROM t WHERE a IN own",
        "SELECT a FROM t WHERE a = (SELECT max(a) FROM own)",
    ],
)
def test_the_new_version_of_a_view_cannot_read_them(
    connection: olapdb.Connection, query: str
) -> None:
    for name in ("t", "own"):
        connection.execute(f"CREATE TABLE {name} (a Int8) ENGINE = MergeTree ORDER BY a")
    connection.execute(
        "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY a AS SELECT a FROM t WHERE a > 0"
    )
    connection.execute("CREATE TEMPORARY TABLE own (a Int8)")
    for statement in (f"SYSTEM REBUILD VIEW v AS {query}", f"ALTER TABLE v MODIFY QUERY {query}"):
        with pytest.raises(NotSupportedError, match="own, a temporary table of this session"):
            connection.execute(statement)
    if query.startswith("SELECT a FROM t"):
        stored = query.replace(" own", " default.own")
        connection.execute(f"SYSTEM REBUILD VIEW v AS {stored}")


def test_they_are_no_target_of_a_view(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a")
    connection.execute("CREATE TEMPORARY TABLE own (a Int8)")
    with pytest.raises(UnknownTable):
        connection.execute("CREATE MATERIALIZED VIEW v TO own AS SELECT a FROM t")


def test_rows_reach_the_views_of_a_permanent_table(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a")
    connection.execute(
        "CREATE MATERIALIZED VIEW v ENGINE = SummingMergeTree ORDER BY a"
        " AS SELECT a, count() AS n FROM t GROUP BY a"
    )
    connection.execute("CREATE TEMPORARY TABLE own AS SELECT 1 AS a UNION ALL SELECT 1")
    connection.execute("INSERT INTO t SELECT a FROM own")
    assert rows(connection, "SELECT a, n FROM v") == [(1, 2)]
    assert rows(connection, "SELECT sum(n) FROM v JOIN own ON v.a = own.a") == [(4,)]


@pytest.mark.parametrize(
    "condition", ["k IN own", "k IN (own)", "in(k, own)", "k GLOBAL NOT IN (own)"]
)
def test_no_view_takes_the_stored_table_of_its_name(
    connection: olapdb.Connection, condition: str
) -> None:
    """A SELECT of the session reads the temporary one."""
    for statement in (
        "CREATE TABLE s (k Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE own (k Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TEMPORARY TABLE own (k Int64)",
    ):
        connection.execute(statement)
    query = f"SELECT k FROM s WHERE {condition}"
    for create in ("CREATE VIEW v", "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY k"):
        with pytest.raises(NotSupportedError, match="own, a temporary table of this session"):
            connection.execute(f"{create} AS {query}")
        connection.execute(f"{create} AS {query.replace('own', 'default.own')}")
        connection.execute("DROP VIEW v")
