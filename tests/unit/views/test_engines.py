"""Views from and into tables that keep some rows of a key: provable only where no merge shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import IncorrectData, ViewNotProvable
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("views", "engines")

TABLES = (
    "CREATE TABLE s (k UInt64, v UInt64, n Int64) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE replacing (k UInt64, v UInt64, n Int64) ENGINE = ReplacingMergeTree(v) ORDER BY k",
    "CREATE TABLE states (k UInt64, u AggregateFunction(uniqExact, UInt64),"
    " m SimpleAggregateFunction(max, UInt64)) ENGINE = ReplacingMergeTree ORDER BY k",
    "CREATE TABLE collapsing (k UInt64, sign Int8, n Int64) ENGINE = CollapsingMergeTree(sign) ORDER BY k",
    "CREATE TABLE versioned (k UInt64, sign Int8, v UInt64, n Int64)"
    " ENGINE = VersionedCollapsingMergeTree(sign, v) ORDER BY k",
    "CREATE TABLE log (k UInt64, v UInt64, n Int64) ENGINE = Log",
    "CREATE TABLE total (g UInt8, n SimpleAggregateFunction(sum, Int64),"
    " top SimpleAggregateFunction(max, UInt64), u AggregateFunction(uniqExact, UInt64))"
    " ENGINE = AggregatingMergeTree ORDER BY g",
    "CREATE TABLE keys (k UInt64) ENGINE = ReplacingMergeTree ORDER BY k",
)


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        for statement in TABLES:
            opened.execute(statement)
        yield opened


def mark(connection: Connection, target: str, query: str) -> str:
    """Create the view and return why it cannot be proven, "" if it can."""
    connection.execute(f"CREATE MATERIALIZED VIEW mv TO {target} AS {query}")
    snapshot = connection.session.engine.services.catalog.snapshot()
    view = snapshot.find("default", "mv")
    return str(getattr(view, "unprovable", "no view"))


@pytest.mark.parametrize(
    ("target", "query"),
    [
        ("replacing", "SELECT k, max(v) AS v, sum(n) AS n FROM s GROUP BY k"),
        ("states", "SELECT k, uniqExactState(v) AS u FROM s GROUP BY k"),
        ("states", "SELECT k, max(v) AS m FROM s GROUP BY k"),
        ("collapsing", "SELECT k, toInt8(1) AS sign, sum(n) AS n FROM s GROUP BY k"),
    ],
)
def test_partial_results_into_a_table_that_replaces_rows_are_refused(
    connection: Connection, target: str, query: str
) -> None:
    """The target's merges would keep one block's partial result and lose the other's."""
    with pytest.raises(ViewNotProvable):
        mark(connection, target, query)


@pytest.mark.parametrize(
    ("target", "query", "reason"),
    [
        ("replacing", "SELECT k, v, n FROM s", "keeps one row"),
        ("states", "SELECT k, v AS m FROM s", "keeps one row"),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, sum(n) AS n FROM replacing GROUP BY g",
            "unmerged rows",
        ),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, sum(n) AS n FROM collapsing GROUP BY g",
            "unmerged rows",
        ),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, max(k) AS top FROM collapsing GROUP BY g",
            "unmerged rows",
        ),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, uniqExactState(k) AS u FROM versioned GROUP BY g",
            "unmerged rows",
        ),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, max(v) AS top FROM replacing GROUP BY g",
            "unmerged rows",
        ),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, max(k + v) AS top FROM replacing GROUP BY g",
            "unmerged rows",
        ),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, sum(toInt64(k + 1)) AS n FROM replacing GROUP BY g",
            "unmerged rows",
        ),
    ],
)
def test_what_a_merge_would_change_is_marked(
    connection: Connection, target: str, query: str, reason: str
) -> None:
    assert reason in mark(connection, target, query)


@pytest.mark.parametrize(
    ("target", "query"),
    [
        ("keys", "SELECT k FROM s GROUP BY k"),
        ("total", "SELECT toUInt8(k % 2) AS g, max(k) AS top FROM replacing GROUP BY g"),
        ("total", "SELECT toUInt8(k % 2) AS g, uniqExactState(k) AS u FROM replacing GROUP BY g"),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, max(toUInt8(k + 1)) AS top FROM replacing GROUP BY g",
        ),
        (
            "total",
            "SELECT toUInt8(k % 2) AS g, uniqExactStateIf(toUInt64(k % 3), k > 1) AS u"
            " FROM replacing GROUP BY g",
        ),
        ("total", "SELECT toUInt8(k) AS g, sum(n) AS n FROM log GROUP BY g"),
    ],
)
def test_what_no_merge_changes_is_provable(connection: Connection, target: str, query: str) -> None:
    assert mark(connection, target, query) == ""


def test_a_bad_sign_from_a_view_lands_nowhere(connection: Connection) -> None:
    mark(connection, "collapsing", "SELECT k, toInt8(n) AS sign, n FROM s")
    connection.execute("INSERT INTO s VALUES (1, 1, 1)")
    with pytest.raises(IncorrectData):
        connection.execute("INSERT INTO s VALUES (2, 1, 1), (3, 1, 2)")
    assert (
        rows(connection, "SELECT k FROM s")
        == rows(connection, "SELECT k FROM collapsing")
        == [(1,)]
    )


def test_a_log_backfills_and_fires(connection: Connection) -> None:
    connection.execute("INSERT INTO log VALUES (1, 1, 5), (2, 1, 6)")
    mark(connection, "total", "SELECT toUInt8(k) AS g, sum(n) AS n FROM log GROUP BY g")
    connection.execute("INSERT INTO log VALUES (1, 1, 7)")
    connection.execute("SYSTEM BACKFILL VIEW mv")
    found = rows(connection, "SELECT g, sum(n) FROM total GROUP BY g ORDER BY g")
    assert found == [(1, 12), (2, 6)]
    connection.execute("SYSTEM RECONCILE VIEW mv")
    assert rows(connection, "SELECT verdict FROM system.views WHERE name = 'mv'") == [("proven",)]
