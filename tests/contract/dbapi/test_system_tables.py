"""Common queries of system tables that users bring from ClickHouse."""

from __future__ import annotations

from contextlib import suppress

import pytest

import olapdb
from olapdb.errors import AccessDenied

QUERIES = (
    "SELECT table, formatReadableSize(sum(data_compressed_bytes)), sum(rows), count() "
    "FROM system.parts WHERE active GROUP BY table ORDER BY sum(bytes) DESC",
    "SELECT database, table, sum(bytes_on_disk), max(modification_time), any(engine), "
    "sum(primary_key_bytes_in_memory), any(disk_name) FROM system.parts GROUP BY database, table",
    "SELECT name, formatReadableSize(data_compressed_bytes), "
    "round(data_uncompressed_bytes / data_compressed_bytes, 2), is_in_primary_key, marks_bytes "
    "FROM system.columns WHERE table = 't' ORDER BY data_compressed_bytes DESC",
    "SELECT column, any(type), formatReadableSize(sum(column_data_compressed_bytes)) "
    "FROM system.parts_columns WHERE active AND table = 't' GROUP BY column",
    "SELECT name, total_rows, total_bytes, parts, active_parts, total_marks, sampling_key, "
    "has_own_data FROM system.tables WHERE database = currentDatabase()",
)


pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE t (k UInt32, s String) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO t SELECT number, toString(number) FROM numbers(1000)",
    ),
    pytest.mark.feature("python", "introspection"),
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_sizes(connection: olapdb.Connection, query: str) -> None:
    assert connection.execute(query).fetchall()


def test_every_system_table_is_listed_and_read(connection: olapdb.Connection) -> None:
    listed = connection.execute("SELECT name FROM system.tables WHERE database = 'system'")
    names = {name for (name,) in listed.fetchall()}
    described = connection.execute(
        "SELECT DISTINCT table FROM system.columns WHERE database = 'system'"
    )
    assert names == {name for (name,) in described.fetchall()}
    for name in names:
        with suppress(AccessDenied):  # of users, roles, quotas
            cursor = connection.execute(f"SELECT * FROM system.{name} LIMIT 100")
            cursor.fetchall()
            assert cursor.description
    assert {"parts", "columns", "mutations", "query_log", "part_log"} <= names


def test_columns_of_parts_add_up(connection: olapdb.Connection) -> None:
    (whole,) = connection.execute("SELECT sum(data_compressed_bytes) FROM system.parts").fetchone()
    (parts,) = connection.execute(
        "SELECT sum(column_data_compressed_bytes) FROM system.parts_columns"
    ).fetchone()
    assert parts == whole > 0
    keys = connection.execute(
        "SELECT name FROM system.columns WHERE table = 't' AND is_in_primary_key"
    )
    assert keys.fetchall() == [("k",)]
