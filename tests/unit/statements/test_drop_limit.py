"""DROP, TRUNCATE and their kin refuse tables that are larger than max_table_size_to_drop."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import TableTooLargeToDrop, UnknownSetting

pytestmark = pytest.mark.feature("settings")


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE d.t",
        "DROP TABLE d.t, d.u",
        "DROP DATABASE d",
        "TRUNCATE TABLE d.t",
        "TRUNCATE ALL TABLES FROM d",
        "TRUNCATE DATABASE d",
    ],
)
def test_a_large_table_stays(connection: Connection, sql: str) -> None:
    connection.execute("CREATE DATABASE d")
    for table in ("t", "u"):
        connection.execute(f"CREATE TABLE d.{table} (k UInt64) ENGINE = MergeTree ORDER BY k")
        connection.execute(f"INSERT INTO d.{table} SELECT number FROM numbers(100)")
    with pytest.raises(TableTooLargeToDrop, match=r"d\.[tu] has \d+ bytes"):
        connection.execute(f"{sql} SETTINGS max_table_size_to_drop = 1")
    assert connection.execute("SELECT count() FROM d.t").fetchall() == [(100,)]
    connection.execute(f"{sql} SETTINGS max_table_size_to_drop = 0")


def test_settings_behind_an_explained_statement_are_checked(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
    with pytest.raises(UnknownSetting, match="no_such_setting"):
        connection.execute("EXPLAIN AST DROP TABLE t SETTINGS no_such_setting = 1")
