"""Rows that cancel out within a chunk of a backfill or a replay leave no row of their slice, but the
slice still depends on their source parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import dicts, rows, verdict

pytestmark = pytest.mark.feature("views", "changes")


@pytest.fixture
def connection() -> Iterator[Connection]:
    """Open a warehouse with a source of two rows of 'b' that cancel out, and a view of it."""
    with olapdb.connect() as opened:
        for text in (
            "SYSTEM STOP MERGES",
            "CREATE TABLE s (p UInt8, k String, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k",
            "CREATE TABLE t (k String, n Int64) ENGINE = SummingMergeTree PARTITION BY k ORDER BY k",
            "INSERT INTO s VALUES (3, 'b', 1)",
            "INSERT INTO s VALUES (3, 'b', -1)",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(n) AS n FROM s GROUP BY k",
        ):
            opened.execute(text)
        yield opened


def slices(connection: Connection) -> list[int]:
    """Return the rows of the target's parts that belong to a partition."""
    query = "SELECT rows FROM system.parts WHERE table = 't' AND active AND partition_id != ''"
    return [count for (count,) in rows(connection, query)]


@pytest.mark.parametrize("others", [(), ("INSERT INTO s VALUES (3, 'a', 1)",)])
@pytest.mark.parametrize("made", ["BACKFILL", "REPLAY"])
@pytest.mark.parametrize("merged", [False, True])
def test_a_part_that_leaves_makes_the_slice_stale_in_which_it_cancelled_out(
    connection: Connection, others: tuple[str, ...], made: str, merged: bool
) -> None:
    for text in (*others, "SYSTEM BACKFILL VIEW v", f"SYSTEM {made} VIEW v"):
        connection.execute(text)
    if merged:
        connection.execute("OPTIMIZE TABLE t FINAL")
    assert 0 in slices(connection)
    assert verdict(connection, "v") == "covered"
    name = rows(connection, "SELECT name FROM system.parts WHERE table = 's' ORDER BY name")[0][0]
    connection.execute(f"SYSTEM QUARANTINE PART '{name}' ON s")
    assert verdict(connection, "v") == "stale"
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    found = rows(connection, "SELECT k FROM t FINAL ORDER BY k")
    assert found == [*[("a",)] * len(others), ("b",)]
    ledger = dicts(connection, "SYSTEM RECONCILE VIEW v METADATA")
    assert [row for row in ledger if row["problems"]] == []


def test_a_chunk_of_which_nothing_is_left_needs_no_part_for_all_partitions(
    connection: Connection,
) -> None:
    """A replay names the blocks in the slice alone, however often it runs."""
    connection.execute("SYSTEM BACKFILL VIEW v")
    for _ in range(3):
        connection.execute("SYSTEM REPLAY VIEW v")
        snapshot = connection.database.services.catalog.snapshot()
        target = snapshot.find("default", "t")
        assert target is not None
        parts = snapshot.parts(target.id)
        assert len([part for part in parts if part.partition_id]) == 1
        assert len(parts) <= 2
    assert verdict(connection, "v") == "covered"
