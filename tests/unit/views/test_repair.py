"""BACKFILL, REPLAY and RECONCILE: what each reports, and which state it leaves."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BypassRows
from olapdb.model.changes import AddPart, Commit, RemoveParts
from olapdb.model.schema import Table
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.reader import PartReader
from olapdb.storage.writer import write_part
from tests.unit.views.warehouse import DIRECT, READ, VIEW, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("views", "reconcile")


def three_months(connection: Connection) -> None:
    for month in (1, 2, 3):
        add(connection, *((f"2024-0{month}-0{d}", "ab"[d % 2], d, d * 10) for d in (1, 2, 3)))


def test_backfill_publishes_one_chunk_for_each_partition(connection: Connection) -> None:
    make(connection, view=False)
    three_months(connection)
    connection.execute(VIEW)
    assert verdict(connection) == "partial"
    add(connection, ("2024-03-09", "a", 9, 9))
    done = dicts(connection, "SYSTEM BACKFILL VIEW daily_mv")
    assert sorted(r["partition"] for r in done) == ["202401", "202402", "202403"]
    assert {r["status"] for r in done} == {"published"}
    assert len({r["commit"] for r in done}) == 3
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"
    assert dicts(connection, "SYSTEM BACKFILL VIEW daily_mv") == []


def test_one_partition_can_be_backfilled_and_says_what_is_left(connection: Connection) -> None:
    make(connection, view=False)
    three_months(connection)
    connection.execute(VIEW)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv PARTITION 202402")
    left = dicts(connection, "SELECT * FROM system.view_coverage WHERE status = 'gap'")
    assert sorted(r["partition_id"] for r in left) == ["202401", "202403"]
    assert sum(r["rows"] for r in left) == 6


def test_populate_is_a_backfill(connection: Connection) -> None:
    make(connection, view=False)
    three_months(connection)
    connection.execute(
        "CREATE MATERIALIZED VIEW p ENGINE = SummingMergeTree ORDER BY day POPULATE"
        " AS SELECT day, count() AS n FROM events GROUP BY day"
    )
    assert rows(connection, "SELECT sum(n) FROM p") == [(9,)]
    assert verdict(connection, "p") == "covered"


def test_a_detached_view_has_a_gap_for_what_it_missed(connection: Connection) -> None:
    make(connection)
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute("DETACH VIEW daily_mv")
    add(connection, ("2024-01-01", "a", 2, 2))
    connection.execute("ATTACH VIEW daily_mv")
    add(connection, ("2024-01-01", "a", 3, 3))
    connection.execute("OPTIMIZE TABLE events FINAL")
    assert verdict(connection) == "partial"
    assert rows(connection, READ)[0][2] == 2
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute("OPTIMIZE TABLE events FINAL")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"


def test_backfill_cascades_to_views_below(connection: Connection) -> None:
    make(connection, view=False)
    three_months(connection)
    connection.execute(
        "CREATE TABLE monthly (month UInt32, amount Int64) ENGINE = SummingMergeTree ORDER BY month"
    )
    connection.execute(VIEW)
    connection.execute(
        "CREATE MATERIALIZED VIEW monthly_mv TO monthly AS"
        " SELECT toYYYYMM(day) AS month, sum(total) AS amount FROM daily GROUP BY month"
    )
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    by_month = "SELECT {} AS month, sum(amount) FROM {} GROUP BY month ORDER BY month"
    assert rows(connection, by_month.format("month", "monthly")) == rows(
        connection, by_month.format("toYYYYMM(day)", "events")
    )
    assert verdict(connection, "monthly_mv") == "covered"


def test_delete_names_the_stale_slice_and_replay_mends_just_that(connection: Connection) -> None:
    make(connection)
    three_months(connection)
    connection.execute("DELETE FROM events WHERE day = '2024-02-02'")
    assert verdict(connection) == "stale"
    stale = dicts(connection, "SELECT * FROM system.view_invalidations")
    assert [(s["partition_id"], s["cause"]) for s in stale] == [("202402", "DELETE")]
    assert "DELETE FROM events" in stale[0]["statement"]
    assert rows(connection, READ) != rows(connection, DIRECT)
    done = dicts(connection, "SYSTEM REPLAY VIEW daily_mv STALE")
    assert [(d["partition"], d["status"]) for d in done] == [("202402", "replayed")]
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"
    add(connection, ("2024-02-02", "a", 4, 4))
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_replay_marks_views_below_stale(connection: Connection) -> None:
    make(connection)
    connection.execute(
        "CREATE TABLE monthly (month UInt32, amount Int64) ENGINE = SummingMergeTree ORDER BY month"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW monthly_mv TO monthly AS"
        " SELECT toYYYYMM(day) AS month, sum(total) AS amount FROM daily GROUP BY month"
    )
    three_months(connection)
    connection.execute("DELETE FROM events WHERE day = '2024-02-02'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert verdict(connection, "monthly_mv") == "stale"
    causes = rows(connection, "SELECT cause FROM system.view_invalidations")
    assert causes == [("UPSTREAM REPLAY",)]
    connection.execute("SYSTEM REPLAY VIEW monthly_mv STALE")
    assert rows(connection, "SELECT sum(amount) FROM monthly") == rows(
        connection, "SELECT sum(amount) FROM events"
    )
    assert dicts(connection, "SYSTEM BACKFILL VIEW monthly_mv") == []
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW monthly_mv")} == {
        "equal"
    }


def test_reconcile_proves_and_the_proof_lapses(connection: Connection) -> None:
    make(connection)
    three_months(connection)
    done = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")
    assert {d["verdict"] for d in done} == {"equal"}
    assert [d["keys_compared"] for d in done] == [3, 3, 3]
    assert verdict(connection) == "proven"
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert verdict(connection) == "proven"
    add(connection, ("2024-02-02", "a", 4, 4))
    assert verdict(connection) == "covered"


def current_verdicts(connection: Connection) -> dict[str, str]:
    """Return the verdicts about partitions of the target that still hold."""
    query = "SELECT partition_id, verdict FROM system.view_checks WHERE is_current"
    return dict(rows(connection, query))


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE events UPDATE amount = amount + 1 WHERE day = '2024-02-01'",
        "DELETE FROM events WHERE day = '2024-02-01'",
        "ALTER TABLE events DROP PARTITION 202402",
    ],
)
def test_a_change_in_one_partition_ends_the_proof_of_that_partition_only(
    connection: Connection, statement: str
) -> None:
    make(connection)
    three_months(connection)
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    everything = {"202401": "equal", "202402": "equal", "202403": "equal"}
    assert current_verdicts(connection) == everything
    connection.execute(statement)
    assert current_verdicts(connection) == {"202401": "equal", "202403": "equal"}
    assert verdict(connection) == "stale"
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert current_verdicts(connection) == {"202401": "equal", "202403": "equal"}
    connection.execute("SYSTEM RECONCILE VIEW daily_mv PARTITION 202402")
    assert current_verdicts(connection) == everything
    assert verdict(connection) == "proven"
    assert rows(connection, READ) == rows(connection, DIRECT)


def plant_wrong_rows(connection: Connection, partition: str) -> None:
    """Add 1 to a column of the view's rows in the partition of `daily`, behind the ledger's back:
    the new part claims to be the view's."""
    services = connection.database.services
    snapshot = services.catalog.snapshot()
    target = snapshot.find("default", "daily")
    assert isinstance(target, Table)
    part = next(p for p in snapshot.parts(target.id) if p.partition_id == partition and p.rows)
    names = [c.name for c in target.stored_columns]
    found = PartReader(services.store, snapshot, part, target).read(names)
    wrong = found.set_column(
        3, found.schema.field(3), [[v + 1 for v in found.column(3).to_pylist()]]
    )
    staged = write_part(
        services.store,
        target,
        wrong.cast(found.schema),
        PartPlan(
            part.partition_id,
            part.partition_value,
            part.block_range,
            part.contributions,
            inline_bytes_max=1 << 20,
        ),
        lease_id=services.lease_id,
    )
    planted = replace(staged.part, level=part.level)
    services.catalog.apply(
        Commit(
            (), (RemoveParts(target.id, (part.id,)), AddPart(planted, staged.inline_rows)), "TEST"
        )
    )


def test_a_slice_that_differs_stays_stale_when_another_one_changes(connection: Connection) -> None:
    make(connection)
    three_months(connection)
    plant_wrong_rows(connection, "202402")
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    connection.execute("ALTER TABLE events UPDATE amount = 0 WHERE day = '2024-03-01'")
    assert current_verdicts(connection) == {"202401": "equal", "202402": "different"}
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"


def test_a_planted_row_with_a_true_ledger_is_found(connection: Connection) -> None:
    """The row is written behind the ledger's back: its part claims to be the view's."""
    make(connection)
    three_months(connection)
    plant_wrong_rows(connection, "202402")
    assert verdict(connection) == "covered"
    done = {d["partition"]: d for d in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")}
    assert done["202401"]["verdict"] == "equal"
    assert done["202402"]["verdict"] == "different"
    assert done["202402"]["differing"] == 3
    assert done["202402"]["largest_difference"] == 1
    assert "2024-02-01" in done["202402"]["examples"][0]
    assert verdict(connection) == "stale"
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_bypass_rows_are_counted_named_and_never_dropped_unasked(connection: Connection) -> None:
    make(connection)
    three_months(connection)
    connection.execute(
        "INSERT INTO daily SELECT toDate('2024-02-07'), 'hand', 5, 500, uniqExactState(toUInt64(1)),"
        " avgState(toInt64(1))"
    )
    status = dicts(connection, "SELECT * FROM system.views")[0]
    assert (status["verdict"], status["bypass_rows"]) == ("bypassed", 1)
    found = {d["partition"]: d for d in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")}
    assert found["202402"]["verdict"] == "different"
    assert (found["202402"]["extra"], found["202402"]["bypass_rows"]) == (1, 1)
    assert "hand" in found["202402"]["examples"][0]
    with pytest.raises(BypassRows, match="202402"):
        connection.execute("SYSTEM REPLAY VIEW daily_mv PARTITION 202402")
    kept = dicts(connection, "SYSTEM REPLAY VIEW daily_mv STALE")
    assert [(k["partition"], k["status"]) for k in kept] == [("202402", "bypass kept")]
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert dicts(connection, "SELECT bypass_rows FROM system.views")[0]["bypass_rows"] == 1
    gone = dicts(connection, "SYSTEM REPLAY VIEW daily_mv PARTITION 202402 DISCARD BYPASS")
    assert [(g["status"], g["bypass_rows"]) for g in gone] == [("bypass discarded", 1)]
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_deleting_from_a_target_is_told_and_truncate_makes_a_gap(connection: Connection) -> None:
    make(connection)
    three_months(connection)
    connection.execute("DELETE FROM daily WHERE kind = 'a'")
    assert verdict(connection) == "stale"
    connection.execute("TRUNCATE TABLE daily")
    status = dicts(connection, "SELECT * FROM system.views")[0]
    assert (status["verdict"], status["gap_rows"]) == ("partial", 9)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_truncate_of_the_source_makes_all_of_the_target_stale(connection: Connection) -> None:
    make(connection)
    three_months(connection)
    connection.execute("TRUNCATE TABLE events")
    assert verdict(connection) == "stale"
    add(connection, ("2024-05-01", "a", 1, 1))
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"


def test_drop_partition_makes_its_slice_stale(connection: Connection) -> None:
    make(connection)
    three_months(connection)
    connection.execute("ALTER TABLE events DROP PARTITION 202402")
    stale = dicts(connection, "SELECT * FROM system.view_invalidations")
    assert [(s["partition_id"], s["cause"]) for s in stale] == [("202402", "DROP PARTITION")]
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_two_views_into_one_target_are_replayed_together(connection: Connection) -> None:
    make(connection)
    connection.execute(
        "CREATE TABLE more (day Date, kind String, user UInt64, amount Int64)"
        " ENGINE = MergeTree ORDER BY day"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW more_mv TO daily AS SELECT day, kind, count() AS events,"
        " sum(amount) AS total, uniqExactState(user) AS users, avgState(amount) AS mean"
        " FROM more GROUP BY day, kind"
    )
    three_months(connection)
    connection.execute("INSERT INTO more VALUES ('2024-02-02', 'b', 77, 1000)")
    before = rows(connection, READ)
    connection.execute("DELETE FROM events WHERE day = '2024-02-02'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    after = rows(connection, READ)
    assert sum(r[3] for r in before) - sum(r[3] for r in after) == 20
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW more_mv")} == {"equal"}


def test_a_row_wise_view_is_reconciled_as_a_multiset(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE s (k UInt64, v Nullable(Float64)) ENGINE = MergeTree ORDER BY k"
    )
    connection.execute(
        "CREATE TABLE t (k UInt64, v Nullable(Float64), l Array(UInt64)) ENGINE = MergeTree ORDER BY k"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW m TO t AS SELECT k, v * 2 AS v, [k, k + 1] AS l FROM s"
    )
    connection.execute("INSERT INTO s VALUES (1, 1.5), (1, 1.5), (2, NULL)")
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW m")} == {"equal"}
    connection.execute("INSERT INTO t VALUES (1, 3, [1, 2])")
    done = dicts(connection, "SYSTEM RECONCILE VIEW m")[0]
    assert (done["verdict"], done["extra"], done["missing"]) == ("different", 1, 0)


def test_four_threads_insert_while_a_backfill_runs(connection: Connection) -> None:
    make(connection, view=False)
    for month in range(1, 10):
        add(connection, *((f"2024-0{month}-{d:02}", "ab"[d % 2], d, d) for d in range(1, 28)))
    connection.execute(VIEW)
    failures: list[olapdb.Error] = []

    def insert(number: int) -> None:
        try:
            for i in range(25):
                add(connection, (f"2024-0{1 + (i + number) % 9}-15", "c", number * 1000 + i, i))
        except olapdb.Error as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=insert, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    done = dicts(connection, "SYSTEM BACKFILL VIEW daily_mv")
    for thread in threads:
        thread.join()
    assert not failures
    assert {d["status"] for d in done} == {"published"}
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert verdict(connection) == "covered"


def test_progress_tells_of_every_chunk(connection: Connection) -> None:
    make(connection, view=False)
    three_months(connection)
    connection.execute(VIEW)
    seen: list[tuple[str, str]] = []
    connection.system(
        "SYSTEM BACKFILL VIEW daily_mv", lambda event: seen.append((event.phase, event.partition))
    )
    for partition in ("202401", "202402", "202403"):
        assert [p for p, where in seen if where == partition] == [
            "planned",
            "computed",
            "published",
        ]


def chained_months(connection: Connection, columns: str = "sum(total) AS amount") -> None:
    """Create a view by month on the target of `daily_mv`, and one in total on that one's."""
    for name, key, select, source in (
        ("monthly", "month", f"toYYYYMM(day) AS month, {columns}", "daily"),
        ("overall", "tuple()", "sum(amount) AS amount", "monthly"),
    ):
        column = "month UInt32, " if name == "monthly" else ""
        connection.execute(
            f"CREATE TABLE {name} ({column}amount SimpleAggregateFunction(sum, Int64))"
            f" ENGINE = AggregatingMergeTree ORDER BY {key}"
        )
        group = " GROUP BY month" if name == "monthly" else ""
        connection.execute(
            f"CREATE MATERIALIZED VIEW {name}_mv TO {name} AS SELECT {select} FROM {source}{group}"
        )


def test_a_replay_that_gives_the_same_rows_makes_nothing_below_stale(
    connection: Connection,
) -> None:
    make(connection)
    chained_months(connection)
    three_months(connection)
    three_months(connection)  # more parts than the replay writes
    connection.execute("SYSTEM REPLAY VIEW daily_mv")
    assert (verdict(connection, "monthly_mv"), verdict(connection, "overall_mv")) == (
        "covered",
        "covered",
    )
    connection.execute("INSERT INTO events SELECT day, kind, user, 0 FROM events LIMIT 1")
    connection.execute("DELETE FROM events WHERE amount = 0")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    # `events` and `top` of the day are others now, which the view below does not read.
    assert verdict(connection, "monthly_mv") == "covered"
    assert rows(connection, "SELECT sum(amount) FROM overall") == rows(
        connection, "SELECT sum(amount) FROM events"
    )
    for view in ("daily_mv", "monthly_mv", "overall_mv"):
        assert {r["verdict"] for r in dicts(connection, f"SYSTEM RECONCILE VIEW {view}")} == {
            "equal"
        }


def test_a_replay_makes_only_the_slices_of_changed_rows_stale_below(connection: Connection) -> None:
    make(connection)
    chained_months(connection)
    three_months(connection)
    connection.execute("DELETE FROM events WHERE day = '2024-02-02'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv")
    assert rows(
        connection, "SELECT view, cause, rows FROM system.view_invalidations ORDER BY ALL"
    ) == [("monthly_mv", "UPSTREAM REPLAY", 1)]
    for view in ("monthly_mv", "overall_mv"):
        connection.execute(f"SYSTEM REPLAY VIEW {view} STALE")
    assert rows(connection, "SELECT sum(amount) FROM overall") == rows(
        connection, "SELECT sum(amount) FROM events"
    )


def test_a_view_that_cannot_be_proven_is_stale_whatever_a_replay_gives(
    connection: Connection,
) -> None:
    make(connection)
    connection.execute(
        "CREATE TABLE counted (month UInt32, amount Int64) ENGINE = MergeTree ORDER BY month"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW counted_mv TO counted AS"
        " SELECT toYYYYMM(day) AS month, count() AS amount FROM daily GROUP BY month"
    )
    three_months(connection)
    three_months(connection)
    connection.execute("SYSTEM REPLAY VIEW daily_mv")
    assert verdict(connection, "counted_mv") == "unproven"
    stale = rows(connection, "SELECT DISTINCT view, cause FROM system.view_invalidations")
    assert stale == [("counted_mv", "UPSTREAM REPLAY")]
