"""SIGKILL anywhere in a rebuild, a rollback or a MODIFY QUERY: the view is the old or the new one.

INSERTs fire the existing version, and the statement, run again, reaches the same end.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from tests.faults.kill_rebuild import STATEMENTS
from tests.faults.kill_views import values
from tests.harness.child import run_module
from tests.unit.views.warehouse import dicts, make, rows, verdict

pytestmark = pytest.mark.feature("crashes", "rebuild")

STORE = ["store.written", "store.flushed", "store.renamed", "store.synced"]
CATALOG = ["catalog.checked", "catalog.before_commit", "catalog.committed"]
STAGES = {
    "rebuild": [
        *STORE,
        *CATALOG,
        "backfill.planned",
        "backfill.chunk_computed",
        "backfill.before_commit",
        "backfill.chunk_published",
        "rows.chunk_computed",
        "rebuild.before_start",
        "rebuild.started",
        "rebuild.backfilled",
        "rebuild.reconciled",
        "rebuild.before_swap",
        "rebuild.swapped",
    ],
    "rollback": [*CATALOG, "rollback.before_commit"],
    "modify": [*CATALOG, "modify.before_commit"],
}
SEVERAL = {*STORE, *CATALOG, "backfill.chunk_computed", "rows.chunk_computed"}
TOTALS = "SELECT day, kind, sum(total) FROM {} GROUP BY day, kind ORDER BY day, kind"
TRUTH = "SELECT day, kind, sum({} * amount) FROM events GROUP BY day, kind ORDER BY day, kind"


def prepare(folder: Path, work: str) -> None:
    """Create the view and its rows; for a rollback also rebuild it."""
    with olapdb.connect(folder) as connection:
        make(connection)
        for number in range(6):
            connection.execute(f"INSERT INTO events VALUES {values(number)}")
        if work == "rollback":
            connection.execute(STATEMENTS["rebuild"])


def killed(folder: Path, work: str, stage: str, count: int) -> bool:
    """Run the work in a process; return whether it reached the stage for the `count`-th time and
    died there."""
    done = run_module("tests.faults.kill_rebuild", folder, work, stage, count)
    if done.returncode == 0 and count > 1:
        return False
    assert done.returncode == -signal.SIGKILL, (stage, count, done.stdout, done.stderr[-2000:])
    return True


def version(connection: Connection) -> int:
    """Return the factor of the totals: 1 in the old version, 2 in the new one."""
    there = rows(connection, TOTALS.format("daily"))
    found = [one for one in (1, 2) if there == rows(connection, TRUTH.format(one))]
    assert len(found) == 1, there
    return found[0]


@pytest.mark.parametrize(("work", "stage"), [(w, s) for w in STAGES for s in STAGES[w]])
def test_killed_at(tmp_path: Path, work: str, stage: str) -> None:
    count = random.randint(1, 5) if work == "rebuild" and stage in SEVERAL else 1
    while True:
        folder = tmp_path / f"warehouse_{count}"
        prepare(folder, work)
        if killed(folder, work, stage, count):
            break
        count = max(1, count // 2)
    print(f"killed: {stage}, time {count}")
    with olapdb.connect(folder) as connection:
        services = connection.database.services
        if verdict(connection) != "stale":  # MODIFY QUERY was committed: the rows are the old ones
            version(connection)
        connection.execute(f"INSERT INTO events VALUES {values(7)}")
        finish(connection, work)
        assert verdict(connection) in ("covered", "proven")
        reconciled = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")
        assert {r["verdict"] for r in reconciled} == {"equal"}
        assert check_database(services.catalog, services.store) == []


def finish(connection: Connection, work: str) -> None:
    """Run the statement again, and require the version that it leads to."""
    if work == "rebuild":
        connection.execute(STATEMENTS["rebuild"])
        assert version(connection) == 2
        connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
        assert version(connection) == 1
        names = {name for (name,) in rows(connection, "SHOW TABLES")}
        assert names == {"events", "daily", "daily_mv", "daily__v2", "daily_mv__v2"}
    elif work == "rollback":
        before = version(connection)
        connection.execute("SYSTEM ROLLBACK VIEW daily_mv")
        assert version(connection) == 3 - before
    else:
        connection.execute(STATEMENTS["modify"])
        connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
        assert version(connection) == 2
