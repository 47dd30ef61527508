"""Views over hundreds of partitions: a comparison groups small ones and answers for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views", "changes")

PARTITIONS = 150


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        for statement in (
            "SYSTEM STOP MERGES",
            "SET max_partitions_per_insert_block = 0",
            "CREATE TABLE s (p UInt16, k UInt64, v Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k",
            "CREATE TABLE t (p UInt16, k UInt64, v Int64) ENGINE = SummingMergeTree PARTITION BY p"
            " ORDER BY (p, k)",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT p, k % 2 AS k, sum(v) AS v FROM s GROUP BY p, k",
            f"INSERT INTO s SELECT number % {PARTITIONS}, number, 1 FROM numbers({PARTITIONS * 6})",
        ):
            opened.execute(statement)
        yield opened


def test_a_comparison_answers_for_each_partition(connection: Connection) -> None:
    found = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert len(found) == PARTITIONS
    assert {row["verdict"] for row in found} == {"equal"}
    assert rows(connection, "SELECT verdict FROM system.views") == [("proven",)]


def test_one_wrong_partition_is_the_one_that_differs(connection: Connection) -> None:
    connection.execute("INSERT INTO t VALUES (77, 1, 1)")
    found = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert [row["partition"] for row in found if row["verdict"] != "equal"] == ["77"]
    (one,) = dicts(connection, "SYSTEM RECONCILE VIEW v PARTITION ID '78'")
    assert (one["partition"], one["verdict"]) == ("78", "equal")


def test_a_replay_mends_all_of_them(connection: Connection) -> None:
    connection.execute("ALTER TABLE s UPDATE v = 5 WHERE 1")
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    found = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert {row["verdict"] for row in found} == {"equal"}
    assert rows(connection, "SELECT sum(v) FROM t FINAL") == [(PARTITIONS * 6 * 5,)]
    ledger = dicts(connection, "SYSTEM RECONCILE VIEW v METADATA")
    assert {row["verdict"] for row in ledger} == {"covered"}
