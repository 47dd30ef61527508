"""SIGKILL anywhere in a backfill of several chunks: the job is dead, and a second run finishes it.

A staged backfill publishes all of its chunks or none; vacuum removes its staged files.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.faults.kill_jobs import SETTINGS
from tests.faults.kill_views import values
from tests.harness.child import run_module
from tests.unit.views.warehouse import DIRECT, READ, VIEW, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("crashes", "backfill")

STAGES = [
    ("store.written", 2),
    ("store.renamed", 4),
    ("store.synced", 1),
    ("catalog.checked", 1),
    ("catalog.before_commit", 1),
    ("catalog.committed", 1),
    ("backfill.planned", 1),
    ("backfill.chunk_computed", 3),
    ("backfill.before_commit", 1),
    ("backfill.chunk_published", 1),
]


def prepare(folder: Path) -> int:
    """Create a view with a gap; return the number of chunks of the gap."""
    with olapdb.connect(folder) as connection:
        connection.execute("SYSTEM STOP MERGES")
        make(connection, view=False)
        for number in range(12):
            connection.execute(f"INSERT INTO events VALUES {values(number)}")
        connection.execute(VIEW)
        plan = dicts(connection, f"SYSTEM BACKFILL VIEW daily_mv DRY RUN SETTINGS {SETTINGS}")
    return len(plan)


def killed(folder: Path, work: str, stage: str, count: int) -> None:
    """Run the backfill in a process that dies at the stage."""
    done = run_module("tests.faults.kill_jobs", folder, work, stage, count)
    assert done.returncode == -signal.SIGKILL, (stage, done.stdout, done.stderr[-2000:])


def states(connection: Connection) -> list[str]:
    """Return the states of the view's jobs, oldest first."""
    return [
        row[0] for row in rows(connection, "SELECT state FROM system.view_jobs ORDER BY started")
    ]


@pytest.mark.parametrize("work", ["staged", "chunks"])
@pytest.mark.parametrize(("stage", "count"), STAGES, ids=[stage for stage, _ in STAGES])
def test_killed_at(tmp_path: Path, work: str, stage: str, count: int) -> None:
    folder = tmp_path / "warehouse"
    total = prepare(folder)
    assert total == 6, "two chunks for each of three partitions"
    killed(folder, work, stage, count)
    with olapdb.connect(folder, read_only=True) as reader:
        before = states(reader)
        assert before in (["dead"], ["done"], []), "it may have died before, or after, it was a job"
        published = rows(
            reader, "SELECT count() FROM system.view_job_chunks WHERE state = 'published'"
        )[0][0]
        gap = (
            rows(reader, "SELECT sum(rows) FROM system.view_coverage WHERE status = 'gap'")[0][0]
            or 0
        )
    with olapdb.connect(folder) as connection:
        assert (published, gap) in (
            [(0, 72), (6, 0)] if work == "staged" else [(n, 72 - 12 * n) for n in range(7)]
        ), "the record says what the ledger says"
        assert (verdict(connection) == "covered") == (gap == 0)
        done = dicts(connection, f"SYSTEM BACKFILL VIEW daily_mv SETTINGS {SETTINGS}")
        assert len(done) == total - published
        assert rows(connection, READ) == rows(connection, DIRECT)
        assert {
            r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv METADATA")
        } == {"covered"}
        services = connection.database.services
        vacuum(services)
        assert check_database(services.catalog, services.store) == []
        files = {str(p.relative_to(folder)) for p in (folder / "data").rglob("*.parquet")}
        assert files == set(services.catalog.referenced_paths()), "what it left is vacuumed"
        assert states(connection)[: len(before)] == before
