"""system.views: how far a view lags, since when, when it was proven; RECONCILE's OLDEST and
SAMPLE."""

from __future__ import annotations

import datetime

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, QueryNotSupportedInMaterializedView, SyntaxError
from olapdb.runtime.failpoints import watching
from tests.unit.views.warehouse import VIEW, add, dicts, make, rows

HEALTH = "SELECT * FROM system.views WHERE name = 'daily_mv'"


pytestmark = [pytest.mark.warehouse(merges=False), pytest.mark.feature("views")]


def health(connection: Connection):  # type: ignore[no-untyped-def]
    return dicts(connection, HEALTH)[0]


def month(connection: Connection, number: int) -> None:
    """Insert three days of a month."""
    add(connection, *((f"2024-0{number}-0{d}", "ab"[d % 2], d, d * 10) for d in (1, 2, 3)))


def reconciled(connection: Connection, clause: str) -> list[str]:
    """Run RECONCILE with the clause; return the partitions that it compared."""
    return [r["partition"] for r in dicts(connection, f"SYSTEM RECONCILE VIEW daily_mv {clause}")]


def test_lag_is_the_blocks_missed_and_the_age_of_the_oldest(connection: Connection) -> None:
    make(connection)
    month(connection, 1)
    seen = health(connection)
    assert (seen["lag_blocks"], seen["lag_since"], seen["lag_seconds"]) == (0, None, 0)
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
    connection.execute("DETACH VIEW daily_mv")
    month(connection, 1)
    month(connection, 2)
    connection.execute("ATTACH VIEW daily_mv")
    month(connection, 3)
    seen = health(connection)
    assert (seen["lag_blocks"], seen["gap_rows"], seen["verdict"]) == (2, 6, "partial")
    first = rows(
        connection, "SELECT min(modification_time) FROM system.parts WHERE table = 'events'"
    )
    assert first
    since = seen["lag_since"].replace(tzinfo=datetime.UTC)
    assert before <= since <= datetime.datetime.now(datetime.UTC)
    assert 0 <= seen["lag_seconds"] < 60
    assert seen["mend"] == "SYSTEM BACKFILL VIEW default.daily_mv"
    connection.execute("SYSTEM BACKFILL VIEW daily_mv PARTITION 202401")
    assert health(connection)["lag_blocks"] == 1
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert health(connection)["lag_blocks"] == 0


def test_a_view_on_old_rows_is_behind_by_all_of_them(connection: Connection) -> None:
    make(connection, view=False)
    for number in (1, 2, 3, 1):
        month(connection, number)
    connection.execute("OPTIMIZE TABLE events FINAL")
    connection.execute(VIEW)
    assert health(connection)["lag_blocks"] == 4, "merges keep the blocks"


def test_a_view_of_a_null_table_says_what_is_amiss(connection: Connection) -> None:
    """A view of a Null table has no mend, but its reason names each defect."""
    connection.execute("CREATE TABLE kinds (kind String, weight Int64) ORDER BY kind")
    connection.execute("CREATE TABLE stream (kind String, n Int64) ENGINE = Null")
    connection.execute(
        "CREATE TABLE sums (kind String, n Int64) ENGINE = SummingMergeTree ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW sums_mv TO sums AS"
        " SELECT kind, sum(n * weight) AS n FROM stream LEFT JOIN kinds USING kind GROUP BY kind"
    )
    connection.execute("INSERT INTO stream VALUES ('a', 1)")
    connection.execute("INSERT INTO sums VALUES ('a', 5)")
    connection.execute("INSERT INTO kinds VALUES ('a', 2)")
    (seen,) = dicts(connection, "SELECT * FROM system.views WHERE name = 'sums_mv'")
    assert (seen["verdict"], seen["mend"]) == ("unproven", "")
    assert (seen["stale_slices"], seen["bypass_rows"]) == (1, 1)
    assert "Stale by DIMENSION CHANGE." in seen["reason"]
    assert "1 rows of the target (in all) were made by no view." in seen["reason"]
    for clause in ("", "STALE", "PARTITION ID 'all'"):
        with pytest.raises(QueryNotSupportedInMaterializedView, match="keeps no rows"):
            connection.execute(f"SYSTEM REPLAY VIEW sums_mv {clause}")


def test_a_slice_that_is_stale_twice_is_one(connection: Connection) -> None:
    make(connection)
    month(connection, 1)
    month(connection, 2)
    connection.execute("DELETE FROM events WHERE day = '2024-01-01'")
    connection.execute("DELETE FROM events WHERE day IN ('2024-01-02')")
    count = "SELECT count() FROM system.view_invalidations"
    assert rows(connection, count) == [(2,)]
    assert health(connection)["stale_slices"] == 1
    connection.execute(
        "ALTER TABLE daily_mv MODIFY QUERY SELECT day, kind, count() AS events FROM events"
        " GROUP BY day, kind"
    )
    assert health(connection)["stale_slices"] == 2, "all of the target: both of its partitions"


def test_the_last_proof_and_the_oldest_stale_slice(connection: Connection) -> None:
    make(connection)
    month(connection, 1)
    month(connection, 2)
    assert health(connection)["last_proof"] is None
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    proven = health(connection)
    assert proven["verdict"] == "proven"
    assert proven["last_proof"] == proven["last_check"]
    connection.execute("DELETE FROM events WHERE day = '2024-02-01'")
    stale = health(connection)
    assert (stale["verdict"], stale["stale_slices"]) == ("stale", 1)
    assert stale["oldest_stale"] is not None
    assert stale["mend"] == "SYSTEM REPLAY VIEW default.daily_mv STALE"
    assert stale["last_check"] == proven["last_check"], "it was made"
    assert stale["last_proof"] is not None, "that of the other month still holds"
    connection.execute("DELETE FROM events WHERE day = '2024-01-01'")
    assert health(connection)["last_proof"] is None


def test_running_jobs_are_named(connection: Connection) -> None:
    make(connection, view=False)
    month(connection, 1)
    connection.execute(VIEW)
    seen: list[list[str]] = []

    def told(reached: str) -> None:
        if reached == "backfill.before_commit":
            seen.append(health(connection)["running_jobs"])

    with watching(told):
        connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    ((job,),) = rows(connection, "SELECT job FROM system.view_jobs")
    assert [list(one) for one in seen] == [[job]]
    assert list(health(connection)["running_jobs"]) == []


# --- OLDEST and SAMPLE


def test_oldest_goes_round_all_partitions(connection: Connection) -> None:
    make(connection)
    for number in (1, 2, 3, 4, 5):
        month(connection, number)
    assert reconciled(connection, "OLDEST 2") == ["202401", "202402"]
    assert reconciled(connection, "OLDEST 2") == ["202403", "202404"]
    assert reconciled(connection, "OLDEST 2") == ["202401", "202405"], (
        "never first, then longest ago"
    )
    month(connection, 4)
    assert reconciled(connection, "OLDEST 1") == ["202404"], "its proof has lapsed"
    assert len(reconciled(connection, "OLDEST 100")) == 5
    assert health(connection)["verdict"] == "proven"


def test_oldest_is_answered_from_the_source(connection: Connection) -> None:
    """Rows written into the target behind the ledger's back are found by a comparison with the
    source."""
    make(connection)
    month(connection, 1)
    connection.execute(
        "INSERT INTO daily SELECT day, kind, toUInt64(1) AS events, toInt64(1) AS total,"
        " uniqExactState(user) AS users, avgState(amount) AS mean FROM events GROUP BY day, kind"
    )
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv OLDEST 1")
    assert (row["verdict"], row["differing"]) == ("different", 3)


def test_sample_is_random_and_within_the_partitions(connection: Connection) -> None:
    make(connection)
    for number in (1, 2, 3, 4, 5, 6):
        month(connection, number)
    drawn = [tuple(reconciled(connection, "SAMPLE 2")) for _ in range(8)]
    assert all(len(set(one)) == 2 for one in drawn)
    assert len(set(drawn)) > 1
    assert len(reconciled(connection, "SAMPLE 100")) == 6


def test_one_choice_at_a_time(connection: Connection) -> None:
    make(connection)
    for clause in ("OLDEST 1 SAMPLE 1", "OLDEST 1 STALE", "OLDEST 1 METADATA", "OLDEST 1 OLDEST 2"):
        with pytest.raises(SyntaxError, match="one of PARTITION, SAMPLE, OLDEST"):
            connection.execute(f"SYSTEM RECONCILE VIEW daily_mv {clause}")
    with pytest.raises(BadArguments, match="OLDEST is the number"):
        connection.execute("SYSTEM RECONCILE VIEW daily_mv OLDEST 0")
    with pytest.raises(SyntaxError, match="DRY RUN"):
        connection.execute("SYSTEM BACKFILL VIEW daily_mv OLDEST 1")
    with pytest.raises(SyntaxError):
        connection.execute("SYSTEM REPLAY VIEW daily_mv OLDEST 1")


# --- from Python


def test_the_handle_has_it_too(connection: Connection) -> None:
    make(connection, view=False)
    for number in (1, 2, 3):
        month(connection, number)
    connection.execute(VIEW)
    view = connection.views["daily_mv"]
    status = view.status()
    assert (status.gap_blocks, status.gap_since_ms > 0, status.last_proof_ms) == (3, True, 0)
    assert [row.rows for row in view.backfill_plan()] == [3, 3, 3]
    assert [row.partition for row in view.backfill_plan(partition="202402")] == ["202402"]
    assert len({row.commit for row in view.backfill(staged=True)}) == 1
    (job,) = view.jobs()
    assert (job.state, job.rows_done, job.job.staged) == ("done", 9, True)
    assert view.cancel() == ()
    assert [row.partition for row in view.reconcile(oldest=1)] == ["202401"]
    with pytest.raises(BadArguments):
        view.reconcile(oldest=1, sample=1)


def test_an_unproven_view_still_names_what_is_amiss_and_its_mend(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (k Int64, v Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE per_block (k Int64, v Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO s VALUES (0, 0)")
    connection.execute(
        "CREATE MATERIALIZED VIEW daily_mv TO per_block AS SELECT k, sum(v) AS v FROM s GROUP BY k"
    )
    marked = connection.execute("SELECT reason FROM system.views").fetchall()[0][0]
    assert "each block adds its own groups" in marked
    assert "has not seen 1 rows" in marked
    connection.execute("INSERT INTO s VALUES (1, 1), (2, 2)")
    connection.execute("ALTER TABLE s DELETE WHERE k = 1")
    connection.execute("INSERT INTO per_block VALUES (7, 7)")
    for words, mend in (
        ("Stale by DELETE.", "SYSTEM REPLAY VIEW default.daily_mv STALE"),
        (
            "1 rows of the target (in all) were made by no view. It has not seen 1 rows.",
            "SYSTEM BACKFILL VIEW default.daily_mv",
        ),
        (
            "1 rows of the target (in all) were made by no view. DISCARD BYPASS removes them.",
            "SYSTEM REPLAY VIEW default.daily_mv DISCARD BYPASS",
        ),
    ):
        now = health(connection)
        assert now["verdict"] == "unproven"
        assert now["reason"].endswith(words)
        assert now["mend"] == mend
        connection.execute(mend)
    assert health(connection)["mend"] == ""
    assert rows(connection, "SELECT * FROM per_block ORDER BY k") == [(0, 0), (2, 2)]


def test_what_a_null_source_lost_is_named(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (k Int64, v Int64) ENGINE = Null")
    connection.execute("CREATE TABLE t (k Int64, v Int64) ENGINE = MergeTree ORDER BY k")
    query = "SELECT k, v FROM s WHERE throwIf(v = 13) = 0"
    with pytest.raises(QueryNotSupportedInMaterializedView):
        connection.execute(f"CREATE MATERIALIZED VIEW daily_mv TO t POPULATE AS {query}")
    # the failed CREATE left no view behind
    assert rows(connection, "SELECT count() FROM system.views") == [(0,)]
    connection.execute(f"CREATE MATERIALIZED VIEW daily_mv TO t AS {query}")
    connection.execute(
        "INSERT INTO s SETTINGS materialized_views_ignore_errors = 1 VALUES (1, 13), (2, 13)"
    )
    assert "failed on 2 rows, which it lacks for good" in health(connection)["reason"]


def test_a_null_target_is_unproven_and_its_gap_is_backfilled(connection: Connection) -> None:
    """The backfill's block also fires the views below the Null target."""
    connection.execute("CREATE TABLE s (k Int64, v Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO s VALUES (1, 1)")
    connection.execute("CREATE TABLE pipe (k Int64, v Int64) ENGINE = Null")
    connection.execute("CREATE TABLE t (k Int64, v Int64) ENGINE = SummingMergeTree ORDER BY k")
    connection.execute(
        "CREATE MATERIALIZED VIEW lower TO t AS SELECT k, sum(v) AS v FROM pipe GROUP BY k"
    )
    connection.execute("CREATE MATERIALIZED VIEW daily_mv TO pipe AS SELECT k, v FROM s")
    assert health(connection)["verdict"] == "unproven"
    assert health(connection)["mend"] == "SYSTEM BACKFILL VIEW default.daily_mv"
    connection.execute(health(connection)["mend"])
    assert rows(connection, "SELECT * FROM t") == [(1, 1)]
    connection.execute("TRUNCATE TABLE s")
    assert health(connection)["verdict"] == "unproven"
    assert health(connection)["mend"] == ""  # a replay has nothing to replace
