"""system.view_jobs: the records of backfills, replays and reconciliations; SYSTEM CANCEL VIEW."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite import jobs as catalog_jobs
from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection
from olapdb.errors import BackfillIncomplete, BadArguments, QueryWasCancelled
from olapdb.maintenance.check import check_database
from olapdb.model.job import JobChunk, JobEntry
from olapdb.runtime.failpoints import watching
from olapdb.views.jobs.backfill import backfill
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk
from olapdb.views.jobs.executor import InProcessExecutor, Stop, never_stop
from olapdb.views.jobs.job import ChunkEvent
from tests.unit.views.warehouse import DIRECT, READ, VIEW, add, dicts, make, rows, verdict

JOBS = "SELECT * FROM system.view_jobs ORDER BY started, kind"
CHUNKS = "SELECT * FROM system.view_job_chunks ORDER BY finished, chunk"


pytestmark = [pytest.mark.warehouse(merges=False), pytest.mark.feature("views", "backfill")]


def months(connection: Connection, times: int = 1) -> None:
    """Insert three days of three months, `times` times."""
    for _ in range(times):
        for month in (1, 2, 3):
            add(connection, *((f"2024-0{month}-0{d}", "ab"[d % 2], d, d * 10) for d in (1, 2, 3)))


def with_gap(connection: Connection, times: int = 1) -> None:
    make(connection, view=False)
    months(connection, times)
    connection.execute(VIEW)


# --- the record


def test_a_backfill_is_recorded_chunk_by_chunk(connection: Connection) -> None:
    with_gap(connection)
    cursor = connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    done = {r[1]: r[6] for r in cursor.fetchall()}
    (job,) = dicts(connection, JOBS)
    assert (job["kind"], job["state"], job["view"], job["executor"]) == (
        "BACKFILL",
        "done",
        "daily_mv",
        "in_process",
    )
    assert (job["chunks"], job["chunks_done"], job["rows"], job["rows_done"]) == (3, 3, 9, 9)
    assert job["statement"] == "SYSTEM BACKFILL VIEW daily_mv"
    assert job["finished"] >= job["started"]
    chunks = dicts(connection, CHUNKS)
    assert {c["partition_id"]: c["commit"] for c in chunks} == done
    assert {c["state"] for c in chunks} == {"published"}
    assert {(c["parts"], c["rows"]) for c in chunks} == {(1, 3)}
    assert {c["job"] for c in chunks} == {job["job"]}
    assert all(c["bytes"] for c in chunks)


def test_replay_reconcile_and_adopt_are_recorded_too(connection: Connection) -> None:
    make(connection)
    months(connection)
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    connection.execute("DELETE FROM events WHERE day = '2024-02-02'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    connection.execute("DETACH VIEW daily_mv")
    add(connection, ("2024-02-05", "a", 4, 4))
    connection.execute(
        "INSERT INTO daily SELECT day, kind, count() AS events, sum(amount) AS total,"
        " uniqExactState(user) AS users, avgState(amount) AS mean FROM events"
        " WHERE day = '2024-02-05' GROUP BY day, kind"
    )
    connection.execute("ATTACH VIEW daily_mv")
    connection.execute("SYSTEM ADOPT VIEW daily_mv")
    found = {j["kind"]: j for j in dicts(connection, JOBS)}
    assert {k: j["state"] for k, j in found.items()} == {
        "RECONCILE": "done",
        "REPLAY": "done",
        "ADOPT": "done",
    }
    assert found["RECONCILE"]["rows_done"] == 9
    states = dicts(
        connection,
        "SELECT kind, c.state AS state, count() AS n FROM system.view_job_chunks AS c"
        " JOIN system.view_jobs AS j ON c.job = j.job GROUP BY kind, state ORDER BY kind",
    )
    assert [(s["kind"], s["state"]) for s in states] == [
        ("ADOPT", "compared"),
        ("RECONCILE", "compared"),
        ("REPLAY", "published"),
    ]


def test_what_has_nothing_to_do_leaves_no_record(connection: Connection) -> None:
    make(connection)
    months(connection)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    connection.execute("SYSTEM RECONCILE VIEW daily_mv METADATA")
    assert dicts(connection, JOBS) == []


def test_a_job_follows_its_view_through_rename(connection: Connection) -> None:
    with_gap(connection)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute("RENAME TABLE daily_mv TO other_mv")
    assert dicts(connection, JOBS)[0]["view"] == "other_mv"
    connection.execute("DROP VIEW other_mv")
    assert dicts(connection, JOBS)[0]["view"] == "daily_mv", "as it was called then"


def test_the_record_costs_no_commit(connection: Connection) -> None:
    """A chunk's commit records its outcome. Starting a job makes no commit."""
    with_gap(connection)
    catalog = connection.database.services.catalog
    before = catalog.snapshot().number
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert catalog.snapshot().number == before + 3


def test_old_jobs_are_forgotten_running_ones_are_not(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_jobs, "JOBS_KEPT_MAX", 3)
    monkeypatch.setattr(catalog_jobs, "CHUNKS_KEPT_MAX", 5)
    services = connection.database.services

    def job(number: int) -> JobEntry:
        return JobEntry(
            f"job {number}",
            "v",
            "db.v",
            "BACKFILL",
            services.lease_id,
            1,
            "",
            "",
            "in_process",
            False,
            number,
        )

    for number in range(6):
        services.catalog.open_job(job(number), [JobChunk(0, "p", 1, 1, 1)])
        if number != 1:
            services.catalog.close_job(f"job {number}", "done")
    assert [j.id for j in services.catalog.jobs()] == ["job 1", "job 3", "job 4", "job 5"]
    assert [j for j, _ in services.catalog.job_chunks()] == ["job 1", "job 3", "job 4", "job 5"]
    services.catalog.open_job(job(6), [JobChunk(n, "p", 1, 1, 1) for n in range(5)])
    assert [j.id for j in services.catalog.jobs()] == ["job 1", "job 6"], "too many chunks"


def test_jobs_are_in_the_order_in_which_they_began_whatever_the_clock_says(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_jobs, "JOBS_KEPT_MAX", 4)
    services = connection.database.services
    # the clock is set back at last
    for name, started_ms in (("d", 7), ("c", 7), ("b", 7), ("a", 3)):
        services.catalog.open_job(
            JobEntry(
                name,
                "v",
                "db.v",
                "BACKFILL",
                services.lease_id,
                1,
                "",
                "",
                "in_process",
                False,
                started_ms,
            ),
            [],
        )
        services.catalog.close_job(name, "done")
    assert [j.id for j in services.catalog.jobs()] == ["d", "c", "b", "a"]
    services.catalog.open_job(
        JobEntry(
            "e", "v", "db.v", "BACKFILL", services.lease_id, 1, "", "", "in_process", False, 4
        ),
        [],
    )
    assert [j.id for j in services.catalog.jobs()] == ["c", "b", "a", "e"]


def test_records_survive_and_a_reader_sees_them(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        with_gap(connection)
        connection.execute("SYSTEM BACKFILL VIEW daily_mv")
        before = dicts(connection, JOBS)
    with olapdb.connect(tmp_path / "w", read_only=True) as reader:
        assert dicts(reader, JOBS) == before
        assert len(dicts(reader, CHUNKS)) == 3


# --- failures


def picky(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE s (p UInt8, v UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY v"
    )
    connection.execute("CREATE TABLE t (v UInt64) ENGINE = MergeTree ORDER BY v")
    connection.execute("INSERT INTO s VALUES (1, 1), (2, 13), (3, 3)")
    connection.execute(
        "CREATE MATERIALIZED VIEW m TO t AS SELECT throwIf(v = 13, 'boom') + v AS v FROM s"
    )


def test_a_failed_chunk_stops_no_other_and_is_named_at_the_end(connection: Connection) -> None:
    picky(connection)
    with pytest.raises(BackfillIncomplete, match=r"1 of 3 chunks.*partition 2: .*boom") as raised:
        connection.execute("SYSTEM BACKFILL VIEW m")
    assert "SYSTEM BACKFILL VIEW default.m" in raised.value.hint
    assert sorted(row.status for row in raised.value.rows) == ["failed", "published", "published"]  # type: ignore[attr-defined]
    (job,) = dicts(connection, JOBS)
    assert (job["state"], job["chunks_done"], job["chunks_failed"], job["rows_done"]) == (
        "failed",
        3,
        1,
        2,
    )
    failed = dicts(connection, "SELECT * FROM system.view_job_chunks WHERE state = 'failed'")
    assert [(f["partition_id"], f["commit"]) for f in failed] == [("2", None)]
    assert "boom" in failed[0]["error"]

    connection.execute("DELETE FROM s WHERE v = 13")
    connection.execute("INSERT INTO s VALUES (2, 14)")
    assert dicts(connection, "SYSTEM BACKFILL VIEW m") == [], (
        "nothing is left but what triggers saw"
    )
    assert rows(connection, "SELECT sum(v) FROM t") == [(18,)]


def test_run_again_it_does_only_what_failed(connection: Connection) -> None:
    picky(connection)
    for _ in range(2):
        with pytest.raises(BackfillIncomplete):
            connection.execute("SYSTEM BACKFILL VIEW m")
    first, second = dicts(connection, JOBS)
    assert (first["chunks"], second["chunks"]) == (3, 1)
    assert rows(connection, "SELECT sum(v) FROM t") == [(4,)]


def test_an_error_of_the_whole_statement_is_the_jobs(connection: Connection) -> None:
    make(connection)
    months(connection)
    connection.execute("DELETE FROM events WHERE day = '2024-01-01'")
    services = connection.database.services
    with watching(fail_at("replay.before_commit")), pytest.raises(BadArguments):
        connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    (job,) = dicts(connection, JOBS)
    assert job["state"] == "failed"
    assert "here" in job["error"]
    assert check_database(services.catalog, services.store) == []


def fail_at(stage: str):  # type: ignore[no-untyped-def]
    def told(reached: str) -> None:
        if reached == stage:
            raise BadArguments("here")

    return told


# --- cancelling


class Waiting:
    """An executor that yields the first chunk, then waits until it is stopped."""

    def __init__(self, connection: Connection, then: Sequence[str] = ()) -> None:
        self.services = connection.database.services
        self.first = threading.Event()

    def run(
        self, tasks: Sequence[ChunkTask], stop: Stop = never_stop
    ) -> Iterator[StagedChunk | FailedChunk]:
        inner = InProcessExecutor(self.services.store, threads=1)
        for outcome in inner.run(tasks, stop):
            yield outcome
            self.first.set()
            while not stop():
                threading.Event().wait(0.01)


def test_cancel_ends_a_backfill_between_chunks(connection: Connection) -> None:
    with_gap(connection)
    services = connection.database.services
    view = services.catalog.snapshot().find("default", "daily_mv")
    assert view is not None
    executor = Waiting(connection)
    found: list[object] = []

    def work() -> None:
        try:
            found.extend(backfill(CommitOrigin(services), view.id, executor=executor))
        except QueryWasCancelled as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert executor.first.wait(60)
    (job,) = dicts(connection, JOBS)
    assert (job["state"], job["chunks_done"]) == ("running", 1)
    (cancelled,) = dicts(connection, "SYSTEM CANCEL VIEW daily_mv")
    assert (cancelled["job"], cancelled["state"]) == (job["job"], "cancelled")
    thread.join(60)
    assert isinstance(found[-1], QueryWasCancelled)
    (job,) = dicts(connection, JOBS)
    assert (job["state"], job["rows_done"]) == ("cancelled", 3)
    assert verdict(connection) == "partial"
    assert dicts(connection, "SYSTEM CANCEL VIEW daily_mv") == [], "nothing runs any more"
    again = dicts(connection, f"SYSTEM CANCEL VIEW daily_mv JOB '{job['job']}'")
    assert again[0]["state"] == "cancelled"
    with pytest.raises(BadArguments, match="no job"):
        connection.execute("SYSTEM CANCEL VIEW daily_mv JOB 'other'")
    assert len(dicts(connection, "SYSTEM BACKFILL VIEW daily_mv")) == 2
    assert rows(connection, READ) == rows(connection, DIRECT)


@pytest.mark.parametrize("operation", ["BACKFILL", "REPLAY", "RECONCILE"])
def test_nothing_is_published_once_a_cancel_has_returned(
    connection: Connection, operation: str
) -> None:
    """The cancel arrives when the first chunk is computed, before its commit."""
    make(connection, view=operation != "BACKFILL")
    months(connection)
    if operation == "BACKFILL":
        connection.execute(VIEW)
    connection.execute("DELETE FROM events WHERE day = '2024-01-01'")
    before = connection.database.services.catalog.snapshot().number
    stage = {
        "BACKFILL": "backfill.before_commit",
        "REPLAY": "replay.before_commit",
        "RECONCILE": "rows.chunk_computed",
    }[operation]
    commands: list[object] = []

    def told(reached: str) -> None:
        if reached == stage and not commands:
            commands.append(reached)
            commands.extend(connection.execute("SYSTEM CANCEL VIEW daily_mv").fetchall())

    with watching(told), pytest.raises(QueryWasCancelled):
        connection.execute(f"SYSTEM {operation} VIEW daily_mv")
    assert len(commands) == 2
    services = connection.database.services
    assert services.catalog.snapshot().number == before
    assert dicts(connection, JOBS)[0]["state"] == "cancelled"
    assert check_database(services.catalog, services.store) == []


@pytest.mark.parametrize("operation", ["BACKFILL", "REPLAY"])
def test_whoever_is_told_of_the_plan_can_cancel_it(connection: Connection, operation: str) -> None:
    make(connection, view=operation != "BACKFILL")
    months(connection)
    if operation == "BACKFILL":
        connection.execute(VIEW)
    before = connection.database.services.catalog.snapshot().number
    view = connection.views["daily_mv"]
    cancelled: list[str] = []

    def told(event: ChunkEvent) -> None:
        if event.phase == "planned" and not cancelled:
            cancelled.extend(one.state for one in view.cancel())

    with pytest.raises(QueryWasCancelled):
        view.backfill(progress=told) if operation == "BACKFILL" else view.replay(progress=told)
    assert cancelled == ["cancelled"]
    assert connection.database.services.catalog.snapshot().number == before
    assert dicts(connection, JOBS)[0]["state"] == "cancelled"


def test_another_process_can_cancel(tmp_path: Path) -> None:
    """The job runs in this process; the cancel comes from another one."""
    with olapdb.connect(tmp_path / "w") as connection:
        with_gap(connection)
        code = """
import sys, olapdb
with olapdb.connect(sys.argv[1], read_only=True) as reader:
    print(reader.execute("SELECT state FROM system.view_jobs").fetchall()[0][0])
with olapdb.connect(sys.argv[1]) as other:
    print(other.execute("SYSTEM CANCEL VIEW daily_mv").fetchall()[0][2])
"""
        said: list[str] = []

        def told(reached: str) -> None:
            if reached == "backfill.chunk_published" and not said:
                done = subprocess.run(
                    [sys.executable, "-c", code, str(tmp_path / "w")],
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=120,
                )
                said.extend(done.stdout.split())

        with watching(told), pytest.raises(QueryWasCancelled):
            connection.execute("SYSTEM BACKFILL VIEW daily_mv SETTINGS backfill_threads = 1")
        assert said == ["running", "cancelled"]
        assert rows(connection, "SELECT state, chunks_done FROM system.view_jobs") == [
            ("cancelled", 1)
        ]


def test_kill_query_cancels_the_job(connection: Connection) -> None:
    with_gap(connection)

    def told(reached: str) -> None:
        if reached == "backfill.chunk_published":
            connection.execute("KILL QUERY WHERE query LIKE 'SYSTEM BACKFILL%'")

    with watching(told), pytest.raises(QueryWasCancelled):
        connection.execute("SYSTEM BACKFILL VIEW daily_mv SETTINGS backfill_threads = 1")
    assert rows(connection, "SELECT state, chunks_done FROM system.view_jobs") == [("cancelled", 1)]


def test_a_connection_can_cancel_its_statement(connection: Connection) -> None:
    with_gap(connection)

    def told(reached: str) -> None:
        if reached == "backfill.chunk_published":
            connection.session.cancel()

    with watching(told), pytest.raises(QueryWasCancelled):
        connection.execute("SYSTEM BACKFILL VIEW daily_mv SETTINGS backfill_threads = 1")
    (job,) = dicts(connection, JOBS)
    assert (job["state"], job["chunks_done"]) == ("cancelled", 1)
