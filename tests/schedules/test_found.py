"""Bugs that random schedules found, each as the shortest SQL that showed it."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb.model.changes import Commit, Committed
from tests.schedules.jobs import StagedBackfill
from tests.schedules.meeting import Meeting, Plain
from tests.schedules.rows import Insert
from tests.schedules.schedule import run_steps
from tests.schedules.shapes import TABLES
from tests.schedules.targets import DropTargetPartition
from tests.schedules.truth import dicts
from tests.schedules.views import Backfill, CreateView

pytestmark = pytest.mark.feature("concurrency")

SOURCE = "(p UInt8, k String, u UInt32, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY (k, u)"
SUMS = "(p UInt8, k String, total Int64) ENGINE = SummingMergeTree PARTITION BY p ORDER BY (p, k)"


def test_the_ledger_of_a_view_below_a_replay_agrees_with_itself() -> None:
    """Check that views below record the new rows, which count as seen by them."""
    with olapdb.connect() as connection:
        for text in (
            f"CREATE TABLE s {SOURCE}",
            f"CREATE TABLE sums {SUMS}",
            "CREATE TABLE kinds (k String, total Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO sums AS SELECT p, k, sum(n) AS total FROM s GROUP BY p, k",
            "CREATE MATERIALIZED VIEW w TO kinds AS"
            " SELECT k, sum(total) AS total FROM sums GROUP BY k",
            "INSERT INTO s VALUES (1, 'a', 1, 5), (2, 'b', 1, 3)",
            "SYSTEM REPLAY VIEW v",
        ):
            connection.execute(text)
        for repair in (
            "SYSTEM RECONCILE VIEW w METADATA",
            "SYSTEM REPLAY VIEW w STALE",
            "SYSTEM RECONCILE VIEW w METADATA",
        ):
            rows = dicts(connection, repair)
            assert "broken" not in {row.get("verdict") for row in rows}, rows


def test_the_ledger_agrees_after_a_replay_of_one_partition_and_a_merge_of_the_source() -> None:
    """Check a merged part that spans a block with rows in another partition only."""
    with olapdb.connect() as connection:
        for text in (
            f"CREATE TABLE s {SOURCE}",
            f"CREATE TABLE sums {SUMS}",
            "CREATE MATERIALIZED VIEW v TO sums AS SELECT p, k, sum(n) AS total FROM s GROUP BY p, k",
            "INSERT INTO s VALUES (2, 'b', 3, 1)",
            "INSERT INTO s VALUES (1, 'b', 2, 3)",
            "INSERT INTO s VALUES (2, 'a', 2, 4)",
            "SYSTEM REPLAY VIEW v PARTITION 1",
            "OPTIMIZE TABLE s FINAL",
        ):
            connection.execute(text)
        rows = dicts(connection, "SYSTEM RECONCILE VIEW v METADATA")
        assert {row["verdict"] for row in rows} == {"covered"}, rows


@pytest.mark.parametrize("statement", ["POPULATE", "BACKFILL", "STAGED"])
def test_a_backfill_fills_what_a_replay_of_its_source_put_there(
    tmp_path: Path, statement: str
) -> None:
    """Replay just before the chunk commits: the blocks that the chunk read are gone."""
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        for text in (
            "SYSTEM STOP MERGES",
            f"CREATE TABLE s {SOURCE}",
            f"CREATE TABLE sums {SUMS}",
            "CREATE TABLE kinds (k String, total Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO sums AS SELECT p, k, sum(n) AS total FROM s GROUP BY p, k",
            "INSERT INTO s VALUES (1, 'a', 1, 5), (2, 'b', 1, 3)",
            "INSERT INTO s VALUES (1, 'a', 1, 7)",
        ):
            first.execute(text)
        view = (
            "CREATE MATERIALIZED VIEW w TO kinds {} AS"
            " SELECT k, sum(total) AS total FROM sums GROUP BY k"
        )
        commits = 1 if statement == "POPULATE" else 0
        if statement != "POPULATE":
            first.execute(view.format(""))
        catalog = first.database.services.catalog
        apply, made = catalog.apply, []

        def meddled(commit: Commit) -> Committed:
            made.append(commit.kind)
            if len(made) == commits + 1:
                second.execute("SYSTEM REPLAY VIEW v PARTITION 1")
            return apply(commit)

        catalog.apply = meddled  # type: ignore[method-assign]
        try:
            staging = "SETTINGS backfill_staging = 1" if statement == "STAGED" else ""
            first.execute(
                view.format("POPULATE")
                if statement == "POPULATE"
                else f"SYSTEM BACKFILL VIEW w {staging}"
            )
        finally:
            del catalog.apply
        found = first.execute("SELECT verdict FROM system.views WHERE name = 'w'").fetchall()
        assert found == [("covered",)]
        rows = first.execute("SELECT k, sum(total) FROM kinds GROUP BY k ORDER BY k").fetchall()
        assert rows == [("a", 12), ("b", 3)]


def test_why_a_view_failed_is_forgotten_with_its_gap() -> None:
    """Check that a failure note disappears when the rows on which the view failed are deleted."""
    with olapdb.connect() as connection:
        for text in (
            f"CREATE TABLE s {SOURCE}",
            f"CREATE TABLE sums {SUMS}",
            "CREATE MATERIALIZED VIEW v TO sums AS"
            " SELECT p, k, sum(n + throwIf(u = 9)) AS total FROM s GROUP BY p, k",
            "INSERT INTO s SETTINGS materialized_views_ignore_errors = 1 VALUES (1, 'a', 9, 5)",
        ):
            connection.execute(text)
        marks = "SELECT cause, rows FROM system.view_invalidations"
        assert connection.execute(marks).fetchall() == [("VIEW FAILED", 1)]
        connection.execute("DELETE FROM s WHERE u = 9")
        assert connection.execute(marks).fetchall() == []


def test_what_left_a_target_by_retention_is_no_gap() -> None:
    """Check source block 1, which had reached 'a', dropped by retention, and 'b', deleted. If
    the block became a gap, the backfill would bring 'a' back."""
    with olapdb.connect() as connection:
        for text in (
            f"CREATE TABLE s {SOURCE}",
            "CREATE TABLE users (k String, u UInt32, total Int64) ENGINE = SummingMergeTree"
            " PARTITION BY k ORDER BY (k, u)",
            "CREATE MATERIALIZED VIEW v TO users AS"
            " SELECT k, u, sum(n) AS total FROM s GROUP BY k, u",
            "INSERT INTO s VALUES (1, 'a', 1, 5), (1, 'b', 2, 3)",
            "ALTER TABLE users DROP PARTITION 'a' SETTINGS retain = 1",
            "DELETE FROM users WHERE k = 'b'",
        ):
            connection.execute(text)
        status = "SELECT verdict, gap_rows, mend FROM system.views"
        assert connection.execute(status).fetchall() == [
            ("stale", 0, "SYSTEM REPLAY VIEW default.v STALE")
        ]
        connection.execute("SYSTEM REPLAY VIEW v STALE")
        assert connection.execute("SELECT * FROM users").fetchall() == [("b", 2, 3)]


def test_a_stale_slice_that_is_dropped_stays_stale() -> None:
    """Check a block that a replay above added: the slice lacks it, and none of its parts names
    it."""
    with olapdb.connect() as connection:
        for text in (
            f"CREATE TABLE s {SOURCE}",
            f"CREATE TABLE sums {SUMS}",
            "CREATE TABLE kinds (k String, total Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO sums AS SELECT p, k, sum(n) AS total FROM s GROUP BY p, k",
            "CREATE MATERIALIZED VIEW w TO kinds AS"
            " SELECT k, sum(total) AS total FROM sums GROUP BY k",
            "INSERT INTO s VALUES (1, 'a', 1, 5)",
            "SYSTEM REPLAY VIEW v",
            "ALTER TABLE kinds DROP PARTITION ID 'all'",
        ):
            connection.execute(text)
        status = "SELECT verdict, mend FROM system.views WHERE name = 'w'"
        assert connection.execute(status).fetchall() == [
            ("stale", "SYSTEM REPLAY VIEW default.w STALE")
        ]
        # The block is a gap as well: what a replay leaves out, the next command brings.
        connection.execute("SYSTEM REPLAY VIEW w STALE")
        assert connection.execute(status).fetchall() == [
            ("partial", "SYSTEM BACKFILL VIEW default.w")
        ]
        connection.execute("SYSTEM BACKFILL VIEW w")
        assert connection.execute(status).fetchall()[0][0] == "covered"
        assert connection.execute("SELECT * FROM kinds").fetchall() == [("a", 5)]


@pytest.mark.parametrize("kind", [Backfill, StagedBackfill])
def test_what_becomes_a_gap_during_a_backfill_stays_one_by_name(kind: type[Backfill]) -> None:
    """Add a gap to a partition that the backfill has not filled yet: it fills only what it
    planned."""
    kinds = TABLES["states"].slice_of(("cc",))
    steps = [
        Plain(Insert("s", ((1, "cc", 1, 3), (2, "cc", 3, 3)), 1_000, 0)),
        Plain(CreateView("states_mv", False)),
        Plain(Insert("s", ((1, "cc", 1, 2),), 1_000, 0)),
        Meeting(kind("states_mv", None), DropTargetPartition("states", kinds, "DROP"), 1),
    ]
    assert run_steps(["states_mv"], steps) is None
