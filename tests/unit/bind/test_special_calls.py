"""Calls that the binder answers: what they say of tables and settings, and when."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import rows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE t (k UInt8, m UInt8 MATERIALIZED k + 1, n Nested(a UInt8))"
        " ENGINE = MergeTree ORDER BY k"
    ),
    pytest.mark.feature("functions"),
]


def has(connection: Connection, column: str) -> object:
    (row,) = rows(connection, f"SELECT hasColumnInTable('default', 't', '{column}')")
    return row[0]


def test_columns_of_a_table_as_it_is_now(connection: Connection) -> None:
    assert [has(connection, c) for c in ("k", "m", "n", "n.a", "z")] == [1, 1, 1, 1, 0]
    connection.execute("ALTER TABLE t ADD COLUMN z UInt8")
    assert has(connection, "z") == 1
    connection.execute("ALTER TABLE t DROP COLUMN z")
    assert has(connection, "z") == 0


def test_in_as_a_function_reads_a_table_too(connection: Connection) -> None:
    connection.execute("INSERT INTO t (k) VALUES (1), (3)")
    query = "SELECT number FROM numbers(5) WHERE in(toUInt8(number), (SELECT k FROM t)) ORDER BY 1"
    assert rows(connection, query) == [(1,), (3,)]


def test_null_is_in_no_set_and_the_answer_is_never_null(connection: Connection) -> None:
    query = "SELECT nullIn(NULL, (1, NULL)), notNullIn(NULL, (1, NULL)), globalNullIn(1, (1, NULL))"
    assert rows(connection, query) == [(0, 1, 1)]
