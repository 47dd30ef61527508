"""Targets whose merges keep one of several values or rows: what can be proven of them, and what cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("views")

SUM = "SimpleAggregateFunction(sum, Int64)"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("CREATE TABLE s (k Int64, x Int64) ENGINE = MergeTree ORDER BY x")
        yield opened


def status(connection: Connection, target: str, query: str) -> tuple[str, str]:
    """Create the view `v` over some blocks that are merged in another order; return (verdict, reason) once it is compared."""
    connection.execute(f"CREATE TABLE t {target}")
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
    for value in (5, 3, 4):
        connection.execute(f"INSERT INTO s VALUES (1, {value}), (2, 1)")
    connection.execute("OPTIMIZE TABLE s FINAL")
    connection.execute("OPTIMIZE TABLE t FINAL")
    connection.execute("SYSTEM RECONCILE VIEW v")
    ((verdict, reason),) = rows(connection, "SELECT verdict, reason FROM system.views")
    return verdict, reason


@pytest.mark.parametrize(
    ("target", "query"),
    [
        ("(k Int64)", "SELECT k FROM s"),
        ("(k Int64)", "SELECT k FROM s GROUP BY k"),
        (f"(k Int64, n {SUM})", "SELECT k, x AS n FROM s"),
        (f"(k Int64, n {SUM})", "SELECT k, sum(x) AS n FROM s GROUP BY k"),
        (
            "(k Int64, u AggregateFunction(uniq, Int64), d Int64 DEFAULT k * 2)",
            "SELECT k, uniqState(x) AS u FROM s GROUP BY k",
        ),
        (f"(k Int64, n {SUM}, c {SUM} DEFAULT 1)", "SELECT k, x AS n FROM s"),
    ],
)
def test_keys_and_states_of_a_coalescing_target_are_proven(
    connection: Connection, target: str, query: str
) -> None:
    assert status(connection, f"{target} ENGINE = CoalescingMergeTree ORDER BY k", query) == (
        "proven",
        "",
    )


@pytest.mark.parametrize(
    ("target", "query", "reason"),
    [
        ("(k Int64, n Nullable(Int64))", "SELECT k, x AS n FROM s", "keeps one value of several"),
        (
            "(k Int64, n Nullable(Int64))",
            "SELECT k, max(x) AS n FROM s GROUP BY k",
            "keeps the last block's value",
        ),
        (
            f"(k Int64, n {SUM}, d Int64 DEFAULT n)",
            "SELECT k, sum(x) AS n FROM s GROUP BY k",
            "computed from n of each block",
        ),
        (
            f"(k Int64, n {SUM}, c {SUM} DEFAULT 1)",
            "SELECT k, sum(x) AS n FROM s GROUP BY k",
            "each block adds the DEFAULT of column c",
        ),
        (
            f"(k Int64, d Int64, n {SUM})",
            "SELECT k, x AS d, sum(x) AS n FROM s GROUP BY k, x",
            "it groups by",
        ),
    ],
)
def test_other_coalescing_targets_are_accepted_unproven(
    connection: Connection, target: str, query: str, reason: str
) -> None:
    verdict, told = status(connection, f"{target} ENGINE = CoalescingMergeTree ORDER BY k", query)
    assert verdict == "unproven"
    assert reason in told


@pytest.mark.parametrize("engine", ["ReplacingMergeTree", "CoalescingMergeTree"])
def test_a_default_of_a_kept_row_depends_on_the_order(connection: Connection, engine: str) -> None:
    """All columns that the view gives are keys or not stored, but the row that is kept decides `d`."""
    verdict, told = status(
        connection,
        f"(k Int64, e Int64 EPHEMERAL, d Int64 DEFAULT e) ENGINE = {engine} ORDER BY k",
        "SELECT k, x AS e FROM s",
    )
    assert verdict == "unproven"
    assert "computed from e of each block" in told
