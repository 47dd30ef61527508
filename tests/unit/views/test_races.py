"""Statements that commit between computing and committing: only what changed is computed again.

The executor here computes a chunk, calls `meddle`, and then returns the chunk. The blocks of an
INSERT come from a generator that meddles between two of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

import olapdb.dml.insert_writer as insert_module
from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection
from olapdb.dml.insert import commit_staged, insert, snapshot_for_insert
from olapdb.errors import Aborted, BackfillIncomplete, ThrowIfNonZero
from olapdb.functions.base import Environment
from olapdb.ingest.block import InsertedData, make_blocks
from olapdb.ingest.block_stager import stage_insert
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.changes import Commit, Committed
from olapdb.model.schema import Table
from olapdb.runtime.cache import Cache
from olapdb.runtime.services import Services
from olapdb.views.jobs.backfill import backfill
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, StagedChunk
from olapdb.views.jobs.executor import InProcessExecutor, Stop, never_stop
from olapdb.views.jobs.replay import ReplaySelection, replay
from tests.unit.views.warehouse import DIRECT, READ, VIEW, add, dicts, make, rows, verdict

pytestmark = [pytest.mark.warehouse(merges=False), pytest.mark.feature("views", "concurrency")]


@dataclass
class Meddling:
    """An executor that pickles tasks and chunks, as if they were sent to another machine. After
    each computed chunk it calls the next function of `meddle`, if any is left."""

    services: Services
    meddle: list[Callable[[], object]] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)

    def run(
        self, tasks: Sequence[ChunkTask], stop: Stop = never_stop
    ) -> Iterator[StagedChunk | FailedChunk]:
        inner = InProcessExecutor(self.services.store, Cache(), threads=1)
        for outcome in inner.run(pickle.loads(pickle.dumps(list(tasks))), stop):
            self.computed.append(outcome.partition)
            if self.meddle:
                self.meddle.pop(0)()
            yield pickle.loads(pickle.dumps(outcome))


def view_id(connection: Connection, name: str = "daily_mv") -> str:
    found = connection.database.services.catalog.snapshot().find("default", name)
    assert found is not None
    return found.id


def months(connection: Connection) -> None:
    """Insert three days of three months."""
    for month in (1, 2, 3):
        add(connection, *((f"2024-0{month}-0{d}", "ab"[d % 2], d, d * 10) for d in (1, 2, 3)))


def source(connection: Connection, name: str = "events") -> Table:
    found = connection.database.services.catalog.snapshot().find("default", name)
    assert isinstance(found, Table)
    return found


def event_blocks(connection: Connection, *days: str) -> list[pa.Table]:
    """Return one block of one row for each day."""
    import datetime

    services = connection.database.services
    snapshot = services.catalog.snapshot()
    made: list[pa.Table] = []
    for number, day in enumerate(days):
        data = pa.table(
            {
                "day": pa.array([datetime.date.fromisoformat(day)], pa.date32()),
                "kind": ["x"],
                "user": pa.array([number], pa.uint64()),
                "amount": pa.array([number], pa.int64()),
            }
        )
        made += make_blocks(
            source(connection), InsertedData(data), snapshot=snapshot, environment=Environment()
        )
    return made


# --- backfill


def test_rows_deleted_while_a_chunk_was_computed(connection: Connection) -> None:
    make(connection, view=False)
    months(connection)
    connection.execute(VIEW)
    services = connection.database.services
    executor = Meddling(
        services, [lambda: connection.execute("DELETE FROM events WHERE day = '2024-01-02'")]
    )
    done = list(backfill(CommitOrigin(services), view_id(connection), executor=executor))
    assert executor.computed == ["202401", "202402", "202403", "202401"]
    assert {d.status for d in done} == {"published"}
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"


def test_two_backfills_at_once(connection: Connection) -> None:
    make(connection, view=False)
    months(connection)
    connection.execute(VIEW)
    services = connection.database.services
    executor = Meddling(services, [lambda: connection.execute("SYSTEM BACKFILL VIEW daily_mv")])
    done = list(backfill(CommitOrigin(services), view_id(connection), executor=executor))
    assert {d.status for d in done} == {"already covered"}
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_merges_and_inserts_do_not_disturb_a_chunk(connection: Connection) -> None:
    make(connection, view=False)
    months(connection)
    months(connection)
    connection.execute(VIEW)
    services = connection.database.services
    executor = Meddling(
        services,
        [lambda: connection.execute("OPTIMIZE TABLE events FINAL"), lambda: months(connection)],
    )
    done = list(backfill(CommitOrigin(services), view_id(connection), executor=executor))
    assert len(executor.computed) == 3
    assert {d.status for d in done} == {"published"}
    assert rows(connection, READ) == rows(connection, DIRECT)
    connection.execute("OPTIMIZE TABLE events FINAL")
    assert rows(
        connection,
        "SELECT max(c) FROM (SELECT count() AS c FROM system.parts"
        " WHERE table = 'events' AND active GROUP BY partition_id)",
    ) == [(1,)]


def test_a_view_below_that_appears_meanwhile_is_filled_too(connection: Connection) -> None:
    make(connection, view=False)
    months(connection)
    connection.execute(VIEW)
    connection.execute("CREATE TABLE total (n UInt64) ENGINE = SummingMergeTree ORDER BY tuple()")
    services = connection.database.services
    below = "CREATE MATERIALIZED VIEW below TO total AS SELECT sum(events) AS n FROM daily"
    executor = Meddling(services, [lambda: connection.execute(below)])
    list(backfill(CommitOrigin(services), view_id(connection), executor=executor))
    connection.execute("SYSTEM BACKFILL VIEW below")
    assert rows(connection, "SELECT sum(n) FROM total") == [(9,)]


def test_a_failing_chunk_leaves_its_gap_and_the_others_are_published(
    connection: Connection,
) -> None:
    connection.execute(
        "CREATE TABLE s (p UInt8, v UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY v"
    )
    connection.execute("CREATE TABLE t (v UInt64) ENGINE = MergeTree ORDER BY v")
    connection.execute("INSERT INTO s VALUES (1, 1), (2, 13), (3, 3)")
    connection.execute(
        "CREATE MATERIALIZED VIEW m TO t AS SELECT throwIf(v = 13, 'boom') + v AS v FROM s"
    )
    with pytest.raises(BackfillIncomplete, match="boom"):
        connection.execute("SYSTEM BACKFILL VIEW m")
    done = rows(connection, "SELECT partition_id, state FROM system.view_job_chunks ORDER BY chunk")
    assert done == [("1", "published"), ("2", "failed"), ("3", "published")]
    assert rows(
        connection, "SELECT partition_id FROM system.view_coverage WHERE status = 'gap'"
    ) == [("2",)]
    connection.execute("DELETE FROM s WHERE v = 13")
    assert dicts(connection, "SYSTEM BACKFILL VIEW m") == []
    assert rows(connection, "SELECT sum(v) FROM t") == [(4,)]


# --- replay


@pytest.mark.parametrize(
    "meddle",
    [
        "INSERT INTO events VALUES ('2024-02-02', 'b', 5, 5)",
        "DELETE FROM events WHERE day = '2024-02-03'",
        "OPTIMIZE TABLE daily FINAL",
        "OPTIMIZE TABLE events FINAL",
        "SYSTEM REPLAY VIEW daily_mv",
        "TRUNCATE TABLE daily",
    ],
)
def test_a_replay_keeps_what_came_later(connection: Connection, meddle: str) -> None:
    make(connection)
    months(connection)
    connection.execute("DELETE FROM events WHERE day = '2024-02-02'")
    services = connection.database.services
    executor = Meddling(services, [lambda: connection.execute(meddle)])
    replay(
        CommitOrigin(services), view_id(connection), ReplaySelection(stale=True), executor=executor
    )
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    if verdict(connection) == "stale":
        assert meddle.startswith("DELETE")
        connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")} == {"equal"}


def test_an_insert_and_a_merge_across_the_fence(connection: Connection) -> None:
    make(connection)
    months(connection)
    connection.execute("DELETE FROM events WHERE day = '2024-02-02'")

    def meddle() -> None:
        add(connection, ("2024-02-02", "b", 5, 5))
        connection.execute("OPTIMIZE TABLE daily FINAL")

    services = connection.database.services
    executor = Meddling(services, [meddle])
    replay(
        CommitOrigin(services), view_id(connection), ReplaySelection(stale=True), executor=executor
    )
    assert len(executor.computed) > 1  # it started over; each attempt reads the one month
    assert rows(connection, READ) == rows(connection, DIRECT)


# --- INSERT


@pytest.mark.parametrize("kept", [1 << 20, 0])
def test_a_view_created_between_two_blocks(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(insert_module, "BLOCKS_IN_MEMORY_BYTES_MAX", kept)
    make(connection, view=False)
    blocks = event_blocks(connection, "2024-01-01", "2024-01-01", "2024-02-01")

    def draw() -> Iterator[pa.Table]:
        yield blocks[0]
        connection.execute(VIEW)
        yield from blocks[1:]

    done = insert(CommitOrigin(connection.database.services), source(connection).id, draw())
    assert (done.rows, done.blocks) == (3, 3)
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"


def test_a_dimension_that_moves_between_two_blocks(connection: Connection) -> None:
    make(connection, view=False)
    connection.execute(
        "CREATE TABLE kinds (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE TABLE weights (day Date, weight Int64) ENGINE = SummingMergeTree ORDER BY day"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW w TO weights AS SELECT events.day AS day, sum(kinds.weight) AS weight"
        " FROM events INNER JOIN kinds ON events.kind = kinds.kind GROUP BY day"
    )
    blocks = event_blocks(connection, "2024-01-01", "2024-01-02")

    def draw() -> Iterator[pa.Table]:
        yield blocks[0]
        connection.execute("INSERT INTO kinds VALUES ('x', 7)")
        yield blocks[1]

    insert(CommitOrigin(connection.database.services), source(connection).id, draw())
    assert rows(connection, "SELECT sum(weight) FROM weights") == [(14,)]
    assert verdict(connection, "w") == "covered"


def test_a_dimension_that_never_rests_leaves_an_invalidation(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(connection, view=False)
    connection.execute(
        "CREATE TABLE kinds (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE TABLE weights (day Date, weight Int64) ENGINE = SummingMergeTree ORDER BY day"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW w TO weights AS SELECT events.day AS day, sum(kinds.weight) AS weight"
        " FROM events INNER JOIN kinds ON events.kind = kinds.kind GROUP BY day"
    )
    services = connection.database.services
    blocks = event_blocks(connection, "2024-01-01")
    kinds = source(connection, "kinds")
    data = pa.table({"kind": ["x"], "weight": pa.array([1], pa.int64())})

    def meddle(stage: str) -> None:
        if stage == "insert.before_commit":
            monkeypatch.setattr(insert_module, "failpoint", lambda stage: None)
            more = make_blocks(
                kinds,
                InsertedData(data),
                snapshot=services.catalog.snapshot(),
                environment=Environment(),
            )
            insert(CommitOrigin(services), kinds.id, more)
            monkeypatch.setattr(insert_module, "failpoint", meddle)

    monkeypatch.setattr(insert_module, "failpoint", meddle)
    assert insert(CommitOrigin(services), source(connection).id, blocks).rows == 1
    monkeypatch.undo()
    assert verdict(connection, "w") == "stale"
    assert ("DIMENSION CHANGE",) in rows(connection, "SELECT cause FROM system.view_invalidations")
    connection.execute("SYSTEM REPLAY VIEW w STALE")
    assert rows(connection, "SELECT sum(weight) FROM weights") == rows(
        connection, "SELECT sum(weight) FROM kinds"
    )


def test_a_large_insert_into_a_null_table_says_that_nothing_landed(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insert_module, "BLOCKS_IN_MEMORY_BYTES_MAX", 0)
    connection.execute("CREATE TABLE n (v UInt64) ENGINE = Null")
    connection.execute("CREATE TABLE t (v UInt64) ENGINE = MergeTree ORDER BY v")
    block = pa.table({"v": pa.array([1], pa.uint64())})

    def draw() -> Iterator[pa.Table]:
        yield block
        connection.execute("CREATE MATERIALIZED VIEW m TO t AS SELECT v FROM n")

    with pytest.raises(Aborted, match="changed while"):
        insert(CommitOrigin(connection.database.services), source(connection, "n").id, draw())
    assert rows(connection, "SELECT count() FROM t") == [(0,)]


def test_blocks_staged_elsewhere_are_one_commit(connection: Connection) -> None:
    make(connection)
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    table = source(connection)
    frozen = pickle.dumps(snapshot_for_insert(snapshot, table.id))
    staged = [
        pickle.loads(
            pickle.dumps(
                stage_insert(
                    table,
                    block,
                    TriggerContext(
                        pickle.loads(frozen),
                        services.store,
                        Cache(),
                        {"inline_bytes_max": 0},
                        Environment(),
                    ),
                    services.lease_id,
                )
            )
        )
        for block in event_blocks(connection, "2024-01-01", "2024-01-01", "2024-02-01")
    ]
    assert rows(connection, "SELECT count() FROM events") == [(0,)]
    done = commit_staged(CommitOrigin(services), staged, token="once")
    assert (done.rows, done.blocks) == (3, 3)
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"
    again = commit_staged(CommitOrigin(services), staged, token="once")
    assert again.duplicate
    assert rows(connection, "SELECT count() FROM events") == [(3,)]


def test_a_failing_view_leaves_no_file(connection: Connection) -> None:
    make(connection)
    connection.execute("CREATE TABLE t (v Int64) ENGINE = MergeTree ORDER BY v")
    connection.execute(
        "CREATE MATERIALIZED VIEW z TO t AS SELECT throwIf(amount = 2) + amount AS v FROM events"
    )
    services = connection.database.services
    before = {f.path for f in services.store.list("")}
    with pytest.raises(ThrowIfNonZero):
        insert(
            CommitOrigin(services, settings={"inline_bytes_max": 0}),
            source(connection).id,
            event_blocks(connection, "2024-01-01", "2024-01-01", "2024-02-01"),
        )
    assert {f.path for f in services.store.list("")} == before


def test_views_follow_renamed_and_exchanged_tables(connection: Connection) -> None:
    make(connection)
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute("RENAME TABLE events TO renamed, daily TO daily_renamed")
    connection.execute("INSERT INTO renamed VALUES ('2024-01-01', 'a', 2, 2)")
    assert rows(connection, "SELECT sum(events) FROM daily_renamed") == [(2,)]
    connection.execute("CREATE TABLE other AS renamed")
    connection.execute("EXCHANGE TABLES renamed AND other")
    connection.execute("INSERT INTO renamed VALUES ('2024-01-01', 'a', 3, 3)")
    assert rows(connection, "SELECT sum(events) FROM daily_renamed") == [(2,)]
    connection.execute("INSERT INTO other VALUES ('2024-01-01', 'a', 3, 3)")
    assert rows(connection, "SELECT sum(events) FROM daily_renamed") == [(3,)]
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")} == {"equal"}


def test_a_target_below_is_truncated_before_the_swap(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the TRUNCATE, the view below has seen neither the new rows nor those that they
    replace."""
    for statement in (
        "CREATE TABLE s (p UInt8, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY n",
        "CREATE TABLE sums (p UInt8, n Int64) ENGINE = SummingMergeTree PARTITION BY p ORDER BY p",
        "CREATE TABLE total (one UInt8, n Int64) ENGINE = SummingMergeTree ORDER BY one",
        "CREATE MATERIALIZED VIEW sums_mv TO sums AS SELECT p, sum(n) AS n FROM s GROUP BY p",
        "CREATE MATERIALIZED VIEW total_mv TO total AS SELECT 1 AS one, sum(n) AS n FROM sums"
        " GROUP BY one",
        "INSERT INTO s VALUES (1, 10), (2, 20)",
    ):
        connection.execute(statement)
    catalog = connection.database.services.catalog
    apply = catalog.apply

    def truncated_before(commit: Commit) -> Committed:
        if commit.kind == "REPLAY":
            monkeypatch.setattr(catalog, "apply", apply)
            connection.execute("TRUNCATE TABLE total")
        return apply(commit)

    monkeypatch.setattr(catalog, "apply", truncated_before)
    connection.execute("SYSTEM REPLAY VIEW sums_mv WHERE p = 2")
    assert verdict(connection, "total_mv") == "partial"
    seen = (
        "SELECT partition_id, status FROM system.view_coverage WHERE view = 'total_mv' ORDER BY ALL"
    )
    assert rows(connection, seen) == [("1", "gap"), ("2", "gap")]
    connection.execute("SYSTEM BACKFILL VIEW total_mv")
    assert rows(connection, "SELECT n FROM total FINAL") == [(30,)]
