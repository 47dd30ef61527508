"""additional_table_filters and additional_result_filter, where ClickHouse is no oracle."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import BadArguments, NotSupportedError

pytestmark = pytest.mark.feature("settings", "select")


@pytest.fixture
def connection() -> olapdb.Connection:
    """Return a connection to a warehouse with a table of three rows."""
    opened = olapdb.connect()
    opened.execute("CREATE TABLE t (x UInt32) ENGINE = MergeTree ORDER BY x")
    opened.execute("INSERT INTO t VALUES (1), (2), (3)")
    return opened


@pytest.mark.parametrize(
    "kind",
    ["VIEW v", "MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY x"],
    ids=["plain", "trigger"],
)
@pytest.mark.parametrize(
    "setting", ["additional_result_filter = 'x > 1'", "additional_table_filters = {'t': 'x > 1'}"]
)
def test_a_view_has_no_added_filter(connection: olapdb.Connection, kind: str, setting: str) -> None:
    with pytest.raises(NotSupportedError, match="does not keep the setting additional_"):
        connection.execute(f"CREATE {kind} AS SELECT x FROM t SETTINGS {setting}")


def test_a_filter_of_the_session_ends_with_it(connection: olapdb.Connection) -> None:
    connection.execute("SET additional_table_filters = {'t': 'x > 1'}")
    assert connection.execute("SELECT x FROM default.t ORDER BY x").fetchall() == [(2,), (3,)]
    connection.execute("SET additional_table_filters = DEFAULT")
    assert connection.execute("SELECT count() FROM t").fetchall() == [(3,)]


def test_a_text_that_is_no_map_is_refused(connection: olapdb.Connection) -> None:
    with pytest.raises(BadArguments, match="takes a map"):
        connection.execute("SELECT x FROM t SETTINGS additional_table_filters = 'x > 1'")


def test_a_set_operation_has_no_result_filter(connection: olapdb.Connection) -> None:
    with pytest.raises(NotSupportedError, match="UNION"):
        connection.execute(
            "SELECT x FROM t UNION ALL SELECT x FROM t SETTINGS additional_result_filter = 'x > 1'"
        )
