"""A view that raises on rows of its source: what system.views says after its mend failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import olapdb
from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection
from olapdb.errors import BackfillIncomplete, BypassRows, MemoryLimitExceeded, ThrowIfNonZero
from olapdb.views.jobs.backfill import backfill
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk
from olapdb.views.jobs.executor import Stop, never_stop
from olapdb.views.proof.reconcile import reconcile
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views", "reconcile")

QUERY = "SELECT p, sum(v + throwIf(v = 13, 'boom')) AS v FROM s GROUP BY p"
IGNORING = "SETTINGS materialized_views_ignore_errors = 1"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute(
            "CREATE TABLE s (p UInt8, v Int64) ENGINE = MergeTree PARTITION BY p ORDER BY p"
        )
        opened.execute(
            "CREATE TABLE t (p UInt8, v Int64) ENGINE = SummingMergeTree PARTITION BY p ORDER BY p"
        )
        opened.execute(f"CREATE MATERIALIZED VIEW v TO t AS {QUERY}")
        yield opened


def status(connection: Connection) -> dict[str, Any]:
    """Return the view's row of system.views."""
    return dicts(connection, "SELECT * FROM system.views WHERE name = 'v'")[0]


def said(connection: Connection) -> tuple[str, str]:
    """Return the view's verdict and mend."""
    found = status(connection)
    return found["verdict"], found["mend"]


def content(connection: Connection) -> list[tuple[Any, ...]]:
    """Return the target's sums by partition."""
    return rows(connection, "SELECT p, sum(v) FROM t GROUP BY p ORDER BY p")


def test_a_backfill_that_fails_is_not_told_again(connection: Connection) -> None:
    connection.execute(f"INSERT INTO s {IGNORING} VALUES (1, 13), (2, 2)")
    assert said(connection) == ("partial", "SYSTEM BACKFILL VIEW default.v")
    with pytest.raises(BackfillIncomplete, match="boom"):
        connection.execute("SYSTEM BACKFILL VIEW v")
    assert content(connection) == [(2, 2)]
    assert said(connection) == ("unproven", "")
    reason = status(connection)["reason"]
    assert "It has not seen 1 rows." in reason
    assert "BACKFILL failed: Code: 395. boom" in reason
    assert "(ALTER TABLE default.v MODIFY QUERY …), then SYSTEM BACKFILL VIEW default.v." in reason
    (check,) = dicts(connection, "SELECT * FROM system.view_checks WHERE mode = 'BACKFILL'")
    assert (check["verdict"], check["is_current"]) == ("unverifiable", 1)
    # rows that triggers see do not change the answer
    connection.execute("INSERT INTO s VALUES (3, 3)")
    assert said(connection) == ("unproven", "")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM s WHERE v = 13",
        "ALTER TABLE s UPDATE v = 12 WHERE v = 13",
        "ALTER TABLE v MODIFY QUERY SELECT p, sum(v) AS v FROM s GROUP BY p",
    ],
)
def test_it_is_told_again_once_something_has_changed(connection: Connection, change: str) -> None:
    connection.execute(f"INSERT INTO s {IGNORING} VALUES (1, 13), (1, 1), (2, 2)")
    with pytest.raises(BackfillIncomplete):
        connection.execute("SYSTEM BACKFILL VIEW v")
    connection.execute(change)
    for _ in range(3):
        verdict, mend = said(connection)
        if verdict == "proven":
            break
        connection.execute(mend)
    assert said(connection) == ("proven", "")


def test_rows_that_arrive_in_the_gap_are_tried(connection: Connection) -> None:
    connection.execute(f"INSERT INTO s {IGNORING} VALUES (1, 13)")
    with pytest.raises(BackfillIncomplete):
        connection.execute("SYSTEM BACKFILL VIEW v")
    connection.execute("DETACH VIEW v")
    connection.execute("INSERT INTO s VALUES (2, 2)")
    assert said(connection) == ("partial", "SYSTEM BACKFILL VIEW default.v")


class OutOfMemory:
    """An executor whose machine has no memory for any chunk."""

    def run(
        self, tasks: Sequence[ChunkTask], stop: Stop = never_stop
    ) -> Iterator[StagedChunk | FailedChunk]:
        for task in tasks:
            yield FailedChunk(task.index, task.partition, MemoryLimitExceeded("No memory."))


def test_errors_of_the_machine_are_no_answer(connection: Connection) -> None:
    connection.execute("DETACH VIEW v")
    connection.execute("INSERT INTO s VALUES (1, 1)")
    services = connection.database.services
    view = services.catalog.snapshot().find("default", "v")
    assert view is not None
    (row,) = backfill(CommitOrigin(services), view.id, executor=OutOfMemory())
    assert (row.status, said(connection)) == (
        "failed",
        ("partial", "SYSTEM BACKFILL VIEW default.v"),
    )
    connection.execute("SYSTEM BACKFILL VIEW v")
    with pytest.raises(MemoryLimitExceeded):
        reconcile(CommitOrigin(services), view.id, executor=OutOfMemory())
    assert said(connection) == ("covered", "SYSTEM RECONCILE VIEW default.v")


def test_a_replay_that_fails_is_not_told_again(connection: Connection) -> None:
    """The new definition fails on rows that are older than it; a failed REPLAY is not proposed
    twice."""
    connection.execute("ALTER TABLE v MODIFY QUERY SELECT p, sum(v) AS v FROM s GROUP BY p")
    connection.execute("INSERT INTO s VALUES (1, 13), (2, 2)")
    connection.execute(f"ALTER TABLE v MODIFY QUERY {QUERY}")
    assert said(connection) == ("stale", "SYSTEM REPLAY VIEW default.v STALE")
    with pytest.raises(ThrowIfNonZero):
        connection.execute("SYSTEM REPLAY VIEW v STALE")
    assert said(connection) == ("unproven", "")
    assert "Stale by MODIFY QUERY. REPLAY failed: Code: 395. boom" in status(connection)["reason"]
    connection.execute("DELETE FROM s WHERE v = 13")
    assert said(connection) == ("stale", "SYSTEM REPLAY VIEW default.v STALE")
    connection.execute("SYSTEM REPLAY VIEW v STALE")
    connection.execute("SYSTEM RECONCILE VIEW v")
    assert said(connection) == ("proven", "")


def test_rows_by_hand_beside_a_gap_that_cannot_be_filled(connection: Connection) -> None:
    connection.execute(f"INSERT INTO s {IGNORING} VALUES (1, 13)")
    connection.execute("INSERT INTO t VALUES (1, 7)")
    assert said(connection) == ("bypassed", "SYSTEM ADOPT VIEW default.v")
    with pytest.raises(BypassRows, match=r"the view fails on rows of its source: .*boom"):
        connection.execute("SYSTEM ADOPT VIEW v")
    assert said(connection) == ("bypassed", "SYSTEM BACKFILL VIEW default.v DISCARD BYPASS")
    assert "ADOPT cannot compare them: " in status(connection)["reason"]
    with pytest.raises(BackfillIncomplete):
        connection.execute("SYSTEM BACKFILL VIEW v DISCARD BYPASS")
    assert content(connection) == []
    assert said(connection) == ("unproven", "")
