"""Settings of a session in what a table computes: refused where rows are stored, unproven where an ALIAS reads one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import NotSupportedError
from tests.unit.views.warehouse import rows, verdict

pytestmark = pytest.mark.feature("views", "settings", "schema")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        yield opened


@pytest.mark.parametrize(
    "definition",
    [
        "(k Int64, m UInt64 DEFAULT getSetting('max_threads')) ENGINE = MergeTree ORDER BY k",
        "(k Int64, m DEFAULT getSetting('max_threads')) ENGINE = MergeTree ORDER BY k",
        "(k Int64, m UInt64 MATERIALIZED k + getSettingOrDefault('max_threads', 1)) ENGINE = Memory",
        "(k Int64, m UInt64 EPHEMERAL getSetting('max_threads')) ENGINE = Memory",
        "(k Int64, a Int64 ALIAS getSetting('max_threads'), m Int64 DEFAULT a + 1) ENGINE = Memory",
        "(k Int64, CONSTRAINT c CHECK k > getSetting('max_threads')) ENGINE = MergeTree ORDER BY k",
        "(k Int64) ENGINE = MergeTree ORDER BY k % getSetting('max_threads')",
        "(k Int64) ENGINE = MergeTree PARTITION BY k % getSetting('max_threads') ORDER BY k",
        "(k Int64, d Date) ENGINE = MergeTree ORDER BY k TTL d + toIntervalDay(getSetting('max_threads'))",
        "(k Int64, d Date, a Int64 ALIAS getSetting('max_threads')) ENGINE = MergeTree ORDER BY k"
        " TTL d + toIntervalDay(1) DELETE WHERE k > a",
        "(k Int64, a Int64 ALIAS getSetting('max_threads'), INDEX i k + a TYPE minmax) ENGINE = MergeTree"
        " ORDER BY k",
        "(k Int64, PROJECTION p (SELECT k, sum(getSetting('max_threads')) GROUP BY k)) ENGINE = MergeTree"
        " ORDER BY k",
    ],
)
def test_a_table_cannot_store_what_a_session_sets(connection: Connection, definition: str) -> None:
    with pytest.raises(NotSupportedError, match="each session may set another value"):
        connection.execute(f"CREATE TABLE t {definition}")


def test_nor_through_a_function_or_an_alter(connection: Connection) -> None:
    connection.execute("CREATE FUNCTION threads AS (x) -> x + getSetting('max_threads')")
    connection.execute("CREATE TABLE t (k Int64) ENGINE = MergeTree ORDER BY k")
    with pytest.raises(NotSupportedError, match="getSetting in the DEFAULT of column m"):
        connection.execute("ALTER TABLE t ADD COLUMN m UInt64 DEFAULT threads(1)")


def test_a_view_over_an_alias_of_a_setting_is_unproven(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE s (k Int64, a Int64 ALIAS k + 1) ENGINE = MergeTree ORDER BY k"
    )
    connection.execute("CREATE TABLE t (k Int64, a Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE MATERIALIZED VIEW v TO t AS SELECT k, a FROM s")
    connection.execute("ALTER TABLE s MODIFY COLUMN a Int64 ALIAS k + getSetting('max_threads')")
    connection.execute("SET max_threads = 5")
    connection.execute("INSERT INTO s VALUES (1)")
    assert rows(connection, "SELECT a FROM s") == [
        (6,)
    ]  # as in ClickHouse: the query's own setting
    assert verdict(connection, "v") == "unproven"
    connection.execute("ALTER TABLE s MODIFY COLUMN a Int64 ALIAS k + 5")
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    connection.execute("SYSTEM RECONCILE VIEW v")
    assert verdict(connection, "v") == "proven"
