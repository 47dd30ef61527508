"""A gap cut into chunks by rows and bytes: planned without running, retried, staged."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BackfillIncomplete
from olapdb.maintenance.check import check_database
from olapdb.model.part import BlockRange, Part
from olapdb.runtime.failpoints import watching
from olapdb.views.jobs import chunk
from olapdb.views.jobs.chunk_planner import ChunkLimits, part_groups
from tests.unit.views.warehouse import DIRECT, READ, VIEW, add, dicts, make, rows, verdict

CUT = "SETTINGS backfill_chunk_rows_max = 6"
STAGED = f"{CUT}, backfill_staging = 1"
LEDGER = "SYSTEM RECONCILE VIEW daily_mv METADATA"


pytestmark = [pytest.mark.warehouse(merges=False), pytest.mark.feature("views", "backfill")]


def month(connection: Connection, number: int, times: int = 1) -> None:
    """Insert three days of a month, `times` times."""
    for _ in range(times):
        add(connection, *((f"2024-0{number}-0{d}", "ab"[d % 2], d, d * 10) for d in (1, 2, 3)))


def with_gap(connection: Connection) -> None:
    """Create a view with a gap: January has five parts of three rows, February two."""
    make(connection, view=False)
    month(connection, 1, 2)
    month(connection, 2, 2)
    month(connection, 1, 3)
    connection.execute(VIEW)


def is_true(connection: Connection) -> None:
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) in ("covered", "proven")
    assert {r["verdict"] for r in dicts(connection, LEDGER)} <= {"covered"}
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")} == {"equal"}
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


# --- cutting


def test_a_large_partition_is_cut_by_its_parts(connection: Connection) -> None:
    with_gap(connection)
    done = dicts(connection, f"SYSTEM BACKFILL VIEW daily_mv {CUT}")
    assert sorted((r["partition"], r["parts"], r["rows"], r["status"]) for r in done) == [
        ("202401", 1, 3, "published"),
        ("202401", 2, 6, "published"),
        ("202401", 2, 6, "published"),
        ("202402", 2, 6, "published"),
    ]
    assert len({r["commit"] for r in done}) == 4
    is_true(connection)
    month(connection, 1)
    connection.execute("OPTIMIZE TABLE events FINAL")
    connection.execute("OPTIMIZE TABLE daily FINAL")
    is_true(connection)
    parts = (
        "SELECT count() FROM system.parts WHERE table = 'events' AND active GROUP BY partition_id"
    )
    assert rows(connection, parts) == [(1,), (1,)], "nothing keeps the cut apart"


def test_chunks_in_bytes_and_by_memory(connection: Connection) -> None:
    with_gap(connection)
    by_bytes = dicts(
        connection, "SYSTEM BACKFILL VIEW daily_mv DRY RUN SETTINGS backfill_chunk_bytes_max = 1"
    )
    assert len(by_bytes) == 7
    by_memory = "SETTINGS backfill_threads = 2, max_memory_usage = 2"
    assert len(dicts(connection, f"SYSTEM BACKFILL VIEW daily_mv DRY RUN {by_memory}")) == 7
    assert len(dicts(connection, "SYSTEM BACKFILL VIEW daily_mv DRY RUN")) == 2


def test_a_dry_run_says_what_would_be_done_and_does_nothing(connection: Connection) -> None:
    with_gap(connection)
    catalog = connection.database.services.catalog
    before = catalog.snapshot().number
    plan = dicts(connection, f"SYSTEM BACKFILL VIEW daily_mv PARTITION 202401 DRY RUN {CUT}")
    assert [(r["chunk"], r["partition"], r["parts"], r["rows"]) for r in plan] == [
        (0, "202401", 2, 6),
        (1, "202401", 2, 6),
        (2, "202401", 1, 3),
    ]
    assert [(r["first_block"], r["last_block"]) for r in plan] == [(1, 2), (5, 6), (7, 7)]
    assert all(r["bytes"] for r in plan)
    assert catalog.snapshot().number == before
    assert catalog.jobs() == ()
    assert verdict(connection) == "partial"


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), min_size=1, max_size=30),
    st.integers(1, 40),
)
def test_every_part_is_in_one_group_within_the_limits(
    shapes: list[tuple[int, int]], rows_max: int
) -> None:
    """`shapes` gives (rows, blocks) of consecutive parts."""
    parts: list[Part] = []
    first = 1
    for number, (count, width) in enumerate(shapes):
        blocks = BlockRange(first, first + width - 1)
        parts.append(Part(str(number), "t", "p", (), count, 1, blocks))
        first += width
    groups = list(part_groups(reversed(parts), ChunkLimits(rows_max, 10**9)))
    assert [part for group in groups for part in group] == parts
    assert all(len(g) == 1 or sum(p.rows for p in g) <= rows_max for g in groups)
    for group, following in pairwise(groups):
        assert sum(p.rows for p in group) + following[0].rows > rows_max


def test_a_chunk_beside_a_covered_part_claims_nothing_twice(connection: Connection) -> None:
    """The gap's parts have blocks between them that triggers have seen."""
    make(connection)
    for _ in range(3):
        month(connection, 1)
        connection.execute("DETACH VIEW daily_mv")
        month(connection, 1)
        month(connection, 2)
        connection.execute("ATTACH VIEW daily_mv")
    month(connection, 2)
    dicts(connection, "SYSTEM BACKFILL VIEW daily_mv SETTINGS backfill_chunk_rows_max = 3")
    is_true(connection)
    connection.execute("OPTIMIZE TABLE events FINAL")
    connection.execute("OPTIMIZE TABLE daily FINAL")
    is_true(connection)


def test_what_triggers_have_seen_is_not_booked_again(connection: Connection) -> None:
    """The target is not partitioned, so parts of the chunk and of the trigger lie side by side."""
    make(connection, view=False)
    month(connection, 1)
    connection.execute(
        "CREATE TABLE sums (kind String, n UInt64) ENGINE = SummingMergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW sums_mv TO sums AS SELECT kind, count() AS n FROM events GROUP BY kind"
    )
    month(connection, 2, 3)
    connection.execute("SYSTEM BACKFILL VIEW sums_mv")
    found = dicts(connection, "SYSTEM RECONCILE VIEW sums_mv METADATA")
    assert [r["problems"] for r in found if r["problems"]] == []


# --- concurrent changes


def meddling(connection: Connection, statement: str, stage: str = "backfill.chunk_computed"):  # type: ignore[no-untyped-def]
    """Run the statement once, when the failpoint `stage` is first reached."""
    done: list[str] = []

    def told(reached: str) -> None:
        if reached == stage and not done:
            done.append(reached)
            for one in statement.split(";"):
                connection.execute(one)

    return watching(told)


@pytest.mark.parametrize("settings", [CUT, STAGED])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM events WHERE day = '2024-01-02'",
        "OPTIMIZE TABLE events FINAL",
        "INSERT INTO events VALUES ('2024-01-02', 'a', 7, 7); OPTIMIZE TABLE events FINAL",
        "DETACH VIEW daily_mv; INSERT INTO events VALUES ('2024-01-02', 'a', 7, 7);"
        " OPTIMIZE TABLE events FINAL; ATTACH VIEW daily_mv",
        "TRUNCATE TABLE events",
        "SYSTEM BACKFILL VIEW daily_mv",
        "SYSTEM BACKFILL VIEW daily_mv PARTITION 202401",
    ],
)
def test_whatever_happens_meanwhile(connection: Connection, settings: str, statement: str) -> None:
    with_gap(connection)
    with meddling(connection, statement):
        done = dicts(connection, f"SYSTEM BACKFILL VIEW daily_mv {settings}, backfill_threads = 1")
    assert {r["status"] for r in done} <= {"published", "already covered", "joined", "gone"}
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    is_true(connection)
    assert {j["state"] for j in dicts(connection, "SELECT state FROM system.view_jobs")} == {"done"}


def test_two_backfills_with_other_cuts_at_once(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        with_gap(connection)
        start = threading.Barrier(3)

        def work(rows_max: int) -> None:
            with olapdb.connect(tmp_path / "w") as other:
                start.wait()
                other.execute(
                    f"SYSTEM BACKFILL VIEW daily_mv SETTINGS backfill_chunk_rows_max = {rows_max}"
                )

        threads = [threading.Thread(target=work, args=(n,)) for n in (3, 6, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        is_true(connection)


# --- staged


def test_a_staged_backfill_is_one_commit(connection: Connection) -> None:
    with_gap(connection)
    seen: list[int] = []

    def told(reached: str) -> None:
        if reached == "backfill.before_commit":
            month(connection, 1)  # INSERTs continue
            seen.append(rows(connection, "SELECT sum(events) FROM daily")[0][0])

    with watching(told):
        done = dicts(connection, f"SYSTEM BACKFILL VIEW daily_mv {STAGED}")
    assert seen == [3], "nothing was visible but what the trigger made"
    assert len(done) == 4
    assert len({r["commit"] for r in done}) == 1
    is_true(connection)
    (job,) = dicts(connection, "SELECT * FROM system.view_jobs WHERE kind = 'BACKFILL'")
    assert (job["is_staged"], job["state"], job["rows_done"]) == (1, "done", 21)
    commits = rows(
        connection, "SELECT DISTINCT commit FROM system.view_job_chunks WHERE state = 'published'"
    )
    assert commits == [(done[0]["commit"],)]


def test_a_staged_backfill_fires_views_below(connection: Connection) -> None:
    with_gap(connection)
    connection.execute(
        "CREATE TABLE monthly (month UInt32, amount Int64) ENGINE = SummingMergeTree ORDER BY month"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW monthly_mv TO monthly AS"
        " SELECT toYYYYMM(day) AS month, sum(total) AS amount FROM daily GROUP BY month"
    )
    connection.execute(f"SYSTEM BACKFILL VIEW daily_mv {STAGED}")
    assert rows(
        connection, "SELECT month, sum(amount) FROM monthly GROUP BY month ORDER BY month"
    ) == [(202401, 300), (202402, 120)]
    assert verdict(connection, "monthly_mv") == "covered"


def test_only_what_changed_is_computed_again(connection: Connection) -> None:
    with_gap(connection)
    computed: list[str] = []

    def told(reached: str) -> None:
        if reached == "backfill.chunk_computed":
            computed.append(reached)
        if reached == "backfill.before_commit" and len(computed) == 4:
            connection.execute("DELETE FROM events WHERE day = '2024-02-02'")

    with watching(told):
        dicts(connection, f"SYSTEM BACKFILL VIEW daily_mv {STAGED}")
    assert len(computed) == 5, "February's one chunk"
    is_true(connection)


def test_a_failed_chunk_of_a_staged_backfill_leaves_everything_as_it_was(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute(
            "CREATE TABLE s (p UInt8, v UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY v"
        )
        connection.execute("CREATE TABLE t (v UInt64) ENGINE = MergeTree ORDER BY v")
        connection.execute("INSERT INTO s VALUES (1, 1), (2, 13), (3, 3)")
        connection.execute(
            "CREATE MATERIALIZED VIEW m TO t AS SELECT throwIf(v = 13, 'boom') + v AS v FROM s"
        )
        with pytest.raises(BackfillIncomplete, match="boom") as raised:
            connection.execute(
                "SYSTEM BACKFILL VIEW m SETTINGS backfill_staging = 1, inline_bytes_max = 0"
            )
        status = sorted(row.status for row in raised.value.rows)  # type: ignore[attr-defined]
        assert status == ["failed", "not published", "not published"]
        assert rows(connection, "SELECT count() FROM t") == [(0,)]
        assert rows(connection, "SELECT state FROM system.view_jobs") == [("failed",)]
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
        assert not [
            p for p in (tmp_path / "w" / "data").rglob("*.parquet") if _is_orphan(connection, p)
        ]
        connection.execute("DELETE FROM s WHERE v = 13")
        connection.execute("SYSTEM BACKFILL VIEW m SETTINGS backfill_staging = 1")
        assert rows(connection, "SELECT sum(v) FROM t") == [(4,)]


def _is_orphan(connection: Connection, path: Path) -> bool:
    known = connection.database.services.catalog.referenced_paths()
    return not any(str(path).endswith(one) for one in known)


def test_a_populate_that_fails_in_part_says_so(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE s (p UInt8, v UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY v"
    )
    connection.execute("INSERT INTO s VALUES (1, 1), (2, 13), (3, 3)")
    with pytest.raises(
        BackfillIncomplete, match=r"1 of 3 chunks of the backfill of default\.m failed"
    ):
        connection.execute(
            "CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY v POPULATE"
            " AS SELECT throwIf(v = 13, 'boom') + v AS v FROM s"
        )
    assert verdict(connection, "m") == "unproven", "nothing that a statement could fill"
    (found,) = dicts(connection, "SELECT gap_rows, reason, mend FROM system.views")
    assert (found["gap_rows"], found["mend"]) == (1, "")
    assert "boom" in found["reason"]
    assert rows(connection, "SELECT sum(v) FROM m") == [(4,)]


def test_wide_rows_are_read_in_smaller_blocks(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view makes a row of each block, which shows that a chunk reads its source in blocks
    bounded in bytes."""
    monkeypatch.setattr(chunk, "PIECE_ROWS", 100)
    connection.execute(
        "CREATE TABLE s (v UInt64, wide String) ENGINE = MergeTree ORDER BY v"
        " SETTINGS index_granularity = 100"
    )
    connection.execute("INSERT INTO s SELECT number, repeat('x', 1000) FROM numbers(1000)")
    counts = {
        "narrow": "SELECT count() AS n, max(v) AS m FROM s",
        "whole": "SELECT count() AS n, max(wide) AS m FROM s",
    }
    for name, query in counts.items():
        connection.execute(
            f"CREATE TABLE {name} (n UInt64, m String) ENGINE = MergeTree ORDER BY n"
        )
        connection.execute(f"CREATE MATERIALIZED VIEW {name}_mv TO {name} AS {query}")
        connection.execute(
            f"SYSTEM BACKFILL VIEW {name}_mv SETTINGS min_insert_block_size_bytes = 250000"
        )
    assert rows(connection, "SELECT n FROM narrow") == [(1000,)], "only columns that are read count"
    assert {n for (n,) in rows(connection, "SELECT n FROM whole")} == {200}


@pytest.mark.parametrize("block_rows", [1_000_000, 700])
@pytest.mark.parametrize("engine", ["AggregatingMergeTree", "SummingMergeTree"])
def test_rows_of_one_block_are_not_combined_twice(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, engine: str, block_rows: int
) -> None:
    """A view that gives each key once a block needs no combining after a single block, and one after several."""
    monkeypatch.setattr(chunk, "PIECE_ROWS", 500)
    connection.execute(
        "CREATE TABLE s (p UInt8, k UInt32, v Int64) ENGINE = MergeTree PARTITION BY p ORDER BY v"
        " SETTINGS index_granularity = 100"
    )
    connection.execute(
        "INSERT INTO s SETTINGS inline_bytes_max = 0"
        " SELECT number % 2, number % 90, number % 7 - 2 FROM numbers(4000)"
    )
    connection.execute(
        "CREATE TABLE t (p UInt8, k UInt32, n SimpleAggregateFunction(sum, Int64))"
        f" ENGINE = {engine} PARTITION BY k % 3 ORDER BY (k, p)"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW m TO t AS SELECT p, k, sum(v) AS n FROM s GROUP BY p, k"
    )
    combined: list[int] = []
    combine_rows = chunk.combined_rows
    monkeypatch.setattr(
        chunk, "combined_rows", lambda *given: [combined.append(1), combine_rows(*given)][1]
    )
    connection.execute(f"SYSTEM BACKFILL VIEW m SETTINGS max_insert_block_size = {block_rows}")
    parts = rows(
        connection, "SELECT count(), sum(rows) FROM system.parts WHERE active AND table = 't'"
    )
    assert parts == [(6, 90)]
    assert bool(combined) == (block_rows == 700 or engine == "SummingMergeTree")
    expected = rows(connection, "SELECT p, k, sum(v) FROM s GROUP BY p, k ORDER BY p, k")
    assert rows(connection, "SELECT p, k, n FROM t ORDER BY p, k") == expected
    assert verdict(connection, "m") == "covered"
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []
