"""SETTINGS engine = 'spark' is refused by every statement that would ignore it."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import Error, NotSupportedError

ENGINE = "SETTINGS engine = 'spark'"
IGNORING = (
    f"INSERT INTO t {ENGINE} VALUES (1)",
    f"INSERT INTO t {ENGINE} SELECT 1",
    f"INSERT INTO t SELECT 1 {ENGINE}",
    f"SELECT n FROM t {ENGINE}",
    f"SELECT n FROM t UNION ALL SELECT 1 {ENGINE}",
    f"DELETE FROM t WHERE n = 1 {ENGINE}",
    f"ALTER TABLE t DELETE WHERE n = 1 {ENGINE}",
    f"ALTER TABLE t UPDATE m = 2 WHERE n = 1 {ENGINE}",
    f"OPTIMIZE TABLE t FINAL {ENGINE}",
    f"CHECK TABLE t {ENGINE}",
    f"EXPLAIN SELECT n FROM t {ENGINE}",
    f"CREATE VIEW plain AS SELECT n FROM t {ENGINE}",
    f"CREATE TABLE made ENGINE = MergeTree ORDER BY n AS SELECT n FROM t {ENGINE}",
    f"SYSTEM STOP VIEW v {ENGINE}",
    f"SYSTEM BACKFILL VIEW v DRY RUN {ENGINE}",
    f"SYSTEM RECONCILE VIEW v METADATA {ENGINE}",
    f"SYSTEM ROLLBACK VIEW v {ENGINE}",
    f"SYSTEM CANCEL VIEW v {ENGINE}",
)


pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE t (n UInt64, m UInt64) ENGINE = MergeTree ORDER BY n",
        "CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY n AS SELECT n FROM t",
        on_disk=True,
    ),
    pytest.mark.feature("schema", "settings", "engines"),
]


@pytest.mark.parametrize("statement", IGNORING)
def test_a_statement_that_would_ignore_the_engine_refuses_it(
    connection: Connection, statement: str
) -> None:
    before = connection.database.services.catalog.snapshot().number
    with pytest.raises(NotSupportedError, match="write_dataframe"):
        connection.execute(statement)
    assert connection.database.services.catalog.snapshot().number == before


def test_in_process_says_what_is_so(connection: Connection) -> None:
    connection.execute("INSERT INTO t (n) SETTINGS engine = 'in_process' VALUES (1)")
    assert connection.execute("SELECT n FROM t SETTINGS engine = 'in_process'").fetchall() == [(1,)]


def test_an_engine_that_does_not_exist_is_told_so(connection: Connection) -> None:
    with pytest.raises(Error, match="flink"):
        connection.execute("INSERT INTO t (n) SETTINGS engine = 'flink' VALUES (1)")


def test_the_sessions_engine_is_that_of_its_chunks(connection: Connection) -> None:
    """A session with engine = 'spark' for its backfills can still insert and read."""
    connection.execute("SET engine = 'spark'")
    connection.execute("INSERT INTO t (n) VALUES (1)")
    assert connection.execute("SELECT n FROM t").fetchall() == [(1,)]
