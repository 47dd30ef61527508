"""Views over hundreds of partitions: a comparison groups small ones and answers for each."""

from __future__ import annotations

import cProfile
import pstats
import sqlite3
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.catalog.sqlite import statements
from olapdb.catalog.sqlite.tables import create_statements
from olapdb.dbapi.connection import Connection
from olapdb.lineage import target_deletion
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


def calls(connection: Connection, statement: str, function: str = "") -> int:
    """Return how many Python functions the statement calls: those of this name, or all."""
    profile = cProfile.Profile()
    profile.enable()
    connection.execute(statement)
    profile.disable()
    counted = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    return sum(numbers[1] for (_, _, name), numbers in counted if function in ("", name))


def test_an_insert_into_many_partitions_does_not_look_at_all_parts_for_each(
    connection: Connection,
) -> None:
    insert = f"INSERT INTO s SELECT number % {PARTITIONS}, number, 1 FROM numbers({PARTITIONS})"
    connection.execute(insert)
    connection.execute(insert)  # more parts than may be uncounted: the bytes of inline parts matter
    before = calls(connection, insert)
    for _ in range(4):
        connection.execute(insert)
    assert calls(connection, insert) < 1.3 * before


def contributions(connection: Connection) -> int:
    """Return how many contributions the parts of the target have."""
    snapshot = connection.database.services.catalog.snapshot()
    target = snapshot.find("default", "t")
    assert target is not None
    return sum(len(part.contributions) for part in snapshot.parts(target.id))


@pytest.mark.parametrize("change", ["SELECT 1", "DELETE FROM s WHERE k < 300"])
def test_a_replay_of_a_target_that_drops_zeros_costs_what_it_has_partitions(
    connection: Connection, change: str
) -> None:
    """A slice names the source partitions that reached it, not all that its old parts named."""
    connection.execute(change)
    selection = " STALE" if change.startswith("DELETE") else ""
    for _ in range(2):
        ranges = calls(connection, f"SYSTEM REPLAY VIEW v{selection}", "union_ranges")
        assert ranges < 20 * PARTITIONS
        assert contributions(connection) <= 2 * PARTITIONS
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert contributions(connection) <= 2 * PARTITIONS
    ledger = dicts(connection, "SYSTEM RECONCILE VIEW v METADATA")
    assert {row["verdict"] for row in ledger} == {"covered"}
    found = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert {row["verdict"] for row in found} == {"equal"}


@pytest.mark.parametrize("width", [1, 2, PARTITIONS])
def test_no_part_names_a_block_twice_after_a_replay_and_a_merge(width: int) -> None:
    """The placeholders that a replay leaves for cancelled rows may be merged with its parts."""
    with olapdb.connect() as connection:
        for statement in (
            "SYSTEM STOP MERGES",
            "SET max_partitions_per_insert_block = 0",
            "CREATE TABLE s (p UInt16, k UInt64, v Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k",
            "CREATE TABLE t (q UInt16, k UInt64, v Int64) ENGINE = SummingMergeTree PARTITION BY q"
            " ORDER BY (q, k)",
            f"CREATE MATERIALIZED VIEW v TO t AS SELECT intDiv(p, {width}) AS q, k % 2 AS k,"
            " sum(v) AS v FROM s GROUP BY q, k",
            "INSERT INTO s SELECT number % 12, number, 1 FROM numbers(72)",
            "SYSTEM REPLAY VIEW v",
            "INSERT INTO s SELECT number % 12, number, 1 FROM numbers(72)",
            "OPTIMIZE TABLE t FINAL",
        ):
            connection.execute(statement)
        ledger = dicts(connection, "SYSTEM RECONCILE VIEW v METADATA")
        assert {row["verdict"] for row in ledger} == {"covered"}


def test_parts_are_found_by_their_ids() -> None:
    """By the index of a table's live parts each merge would look at all of them."""
    catalog = sqlite3.connect(":memory:")
    for text in create_statements(["parts"]):
        catalog.execute(text)
    for named in (statements.live_parts_named, statements.drop_parts):
        explain = f"EXPLAIN QUERY PLAN {named.text}"
        plan = catalog.execute(explain, [None] * len(named.names)).fetchall()
        assert "USING INDEX parts_by_id" in plan[0][3]


def test_a_dropped_partition_is_stale_where_a_gap_would_name_too_many(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts of one INSERT name its block for all partitions. If one of these were a gap, each
    part would name all others instead. After a replay each part names its own."""
    monkeypatch.setattr(target_deletion, "CONTRIBUTIONS_MAX", PARTITIONS * (PARTITIONS - 1) - 1)
    for mend in ("REPLAY VIEW v STALE", "BACKFILL VIEW v"):
        connection.execute("ALTER TABLE t DROP PARTITION 7")
        assert rows(connection, "SELECT mend FROM system.views") == [
            (f"SYSTEM {mend.replace(' v', ' default.v')}",)
        ]
        assert contributions(connection) <= 2 * PARTITIONS
        connection.execute(f"SYSTEM {mend}")
        found = dicts(connection, "SYSTEM RECONCILE VIEW v")
        assert {row["verdict"] for row in found} == {"equal"}
        ledger = dicts(connection, "SYSTEM RECONCILE VIEW v METADATA")
        assert {row["verdict"] for row in ledger} == {"covered"}
        connection.execute("SYSTEM REPLAY VIEW v")


def test_all_rows_of_a_target_may_leave_at_once(connection: Connection) -> None:
    connection.execute("DELETE FROM t WHERE 1")
    assert rows(connection, "SELECT verdict FROM system.views") == [("partial",)]
    assert contributions(connection) == 0
    connection.execute("SYSTEM BACKFILL VIEW v")
    found = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert {row["verdict"] for row in found} == {"equal"}


def test_a_chunk_of_a_backfill_does_not_look_at_all_partitions(connection: Connection) -> None:
    for statement in (
        "CREATE TABLE u AS t",
        "CREATE MATERIALIZED VIEW w TO u AS SELECT p, k % 2 AS k, sum(v) AS v FROM s GROUP BY p, k",
    ):
        connection.execute(statement)
    assert calls(connection, "SYSTEM BACKFILL VIEW w", "union_ranges") < 20 * PARTITIONS
    found = dicts(connection, "SYSTEM RECONCILE VIEW w")
    assert {row["verdict"] for row in found} == {"equal"}


@pytest.mark.parametrize("condition", ["1", "p % 2 = 0"])
def test_removed_slices_are_not_compared_with_each_source_partition(
    connection: Connection, condition: str
) -> None:
    for function in ("overlaps_any", "union_ranges", "covers", "_is_removed"):
        called = calls(connection, f"DELETE FROM t WHERE {condition}", function)
        assert called < 20 * PARTITIONS, function
        connection.execute("SYSTEM REPLAY VIEW v")
    connection.execute(f"DELETE FROM t WHERE {condition}")
    connection.execute("SYSTEM BACKFILL VIEW v")
    found = dicts(connection, "SYSTEM RECONCILE VIEW v")
    assert {row["verdict"] for row in found} == {"equal"}
