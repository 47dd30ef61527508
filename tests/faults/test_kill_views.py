"""SIGKILL anywhere in an INSERT with views, a backfill, a replay, or a CREATE that backfills: nothing is half done.

Every stage is hit, at random occurrences within the run. An acknowledged INSERT is there with all
its views, any other one wholly or not at all. Finishing the work gives the same target as without a
kill.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from tests.faults.kill_views import INSERTS, values
from tests.harness.child import run_module
from tests.unit.views.warehouse import (
    CREATE,
    DIRECT,
    READ,
    SOURCE,
    VIEW,
    dicts,
    make,
    rows,
    verdict,
)

pytestmark = pytest.mark.feature("crashes")

STORE = ["store.written", "store.flushed", "store.renamed", "store.synced"]
CATALOG = ["catalog.checked", "catalog.before_commit", "catalog.committed"]
STAGES = {
    "insert": [
        *STORE,
        *CATALOG,
        "insert.source_staged",
        "insert.view_fired",
        "insert.staged",
        "insert.before_commit",
        "insert.committed",
    ],
    "backfill": [
        *STORE,
        *CATALOG,
        "backfill.planned",
        "backfill.chunk_computed",
        "insert.view_fired",
        "backfill.before_commit",
        "backfill.chunk_published",
    ],
    "create": [
        *CATALOG,
        "backfill.planned",
        "backfill.chunk_computed",
        "backfill.before_commit",
        "backfill.chunk_published",
    ],
    "replay": [
        *STORE,
        *CATALOG,
        "replay.chunk_computed",
        "replay.before_commit",
        "replay.committed",
    ],
}
ONCE = ("backfill.planned", "replay.before_commit", "replay.committed")
MONTHLY = (
    "CREATE MATERIALIZED VIEW monthly_mv TO monthly AS"
    " SELECT toYYYYMM(day) AS month, sum(total) AS amount FROM daily GROUP BY month"
)


def prepare(folder: Path, work: str) -> None:
    """Create the tables, views and rows for the work."""
    with olapdb.connect(folder) as connection:
        if work == "create":
            connection.execute(SOURCE)
            for number in range(6):
                connection.execute(f"INSERT INTO events VALUES {values(number)}")
            return
        make(connection, view=work != "backfill")
        connection.execute(
            "CREATE TABLE monthly (month UInt32, amount Int64) ENGINE = SummingMergeTree ORDER BY month"
        )
        if work != "backfill":
            connection.execute(MONTHLY)
        if work != "insert":
            for number in range(6):
                connection.execute(f"INSERT INTO events VALUES {values(number)}")
        if work == "backfill":
            connection.execute(VIEW)
            connection.execute(MONTHLY)
        if work == "replay":
            connection.execute("DELETE FROM events WHERE user = 2")


def killed(folder: Path, work: str, stage: str, count: int) -> list[int] | None:
    """Run the work in a process that dies. Return the numbers of the acknowledged INSERTs; None
    where it ended before it reached the stage for the `count`-th time."""
    done = run_module("tests.faults.kill_views", folder, work, stage, count)
    if done.returncode == 0 and count > 1:
        return None
    assert done.returncode == -signal.SIGKILL, (stage, count, done.stdout, done.stderr[-2000:])
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("ack")]


def finish(connection: Connection, work: str, acknowledged: list[int]) -> None:
    """Complete the killed work."""
    if work == "insert":
        there = {r[0] for r in rows(connection, "SELECT DISTINCT user FROM events")}
        assert there >= set(acknowledged)
        assert rows(connection, "SELECT user FROM events GROUP BY user HAVING count() != 6") == []
        for number in range(INSERTS):
            if number not in there:
                connection.execute(f"INSERT INTO events VALUES {values(number)}")
    elif work == "backfill":
        connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    elif work == "create":
        finish_created(connection)
    else:
        connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
        connection.execute("SYSTEM REPLAY VIEW monthly_mv STALE")


def finish_created(connection: Connection) -> None:
    """Check that target and view are both there or neither, and the plain view only once no row is
    missing; then complete the work."""
    there = {name for (name,) in rows(connection, "SHOW TABLES")} - {"events"}
    if not there:
        connection.execute(CREATE)
        return
    assert {"daily", "daily_mv"} <= there
    if "daily_read" in there:
        assert rows(connection, "SELECT gap_rows FROM system.views") == [(0,)]
    else:
        connection.execute("SYSTEM BACKFILL VIEW daily_mv")
        connection.execute(f"CREATE VIEW daily_read AS {READ}")


@pytest.mark.parametrize(("work", "stage"), [(w, s) for w in STAGES for s in STAGES[w]])
def test_killed_at(tmp_path: Path, work: str, stage: str) -> None:
    most = {"insert": 8, "backfill": 3, "replay": 1, "create": 3}[work]
    count = 1 if stage in ONCE else random.randint(1, most)
    acknowledged = None
    while acknowledged is None:
        folder = tmp_path / f"warehouse_{count}"
        prepare(folder, work)
        acknowledged = killed(folder, work, stage, count)
        print(f"{'not reached' if acknowledged is None else 'killed'}: {stage}, time {count}")
        count = max(1, count // 2)
    with olapdb.connect(folder) as connection:
        if work == "insert":  # before anything is finished: source and views agree
            assert rows(connection, READ) == rows(connection, DIRECT)
        finish(connection, work, acknowledged)
        assert rows(connection, READ) == rows(connection, DIRECT)
        if work == "create":
            read = rows(connection, "SELECT * FROM daily_read ORDER BY day, kind")
            assert read == rows(connection, DIRECT)
            assert verdict(connection) == "covered"
            return
        by_month = "SELECT {} AS m, sum({}) FROM {} GROUP BY m ORDER BY m"
        assert rows(connection, by_month.format("month", "amount", "monthly")) == rows(
            connection, by_month.format("toYYYYMM(day)", "amount", "events")
        )
        assert verdict(connection) in ("covered", "proven")
        assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")} == {
            "equal"
        }
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
