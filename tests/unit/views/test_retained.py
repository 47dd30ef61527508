"""Slices whose source rows were removed by retention (rule 4) are frozen, reported and
protected."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, RetainedRows
from tests.unit.views.warehouse import add, dicts, rows, verdict

pytestmark = pytest.mark.feature("views", "replay")

SOURCE = """
    CREATE TABLE events (day Date, kind String, user UInt64, amount Int64)
    ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (day, kind)
"""
TARGET = """
    CREATE TABLE daily (day Date, kind String, n SimpleAggregateFunction(sum, UInt64))
    ENGINE = AggregatingMergeTree PARTITION BY toYear(day) ORDER BY (day, kind)
"""
VIEW = """
    CREATE MATERIALIZED VIEW daily_mv TO daily AS
    SELECT day, kind, count() AS n FROM events GROUP BY day, kind
"""
READ = "SELECT toString(day), kind, sum(n) FROM daily GROUP BY day, kind ORDER BY day, kind"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        for statement in (SOURCE, TARGET, VIEW):
            opened.execute(statement)
        yield opened


def months(connection: Connection, *days: str) -> None:
    """Insert one row on each day."""
    for day in days or ("2024-01-01", "2024-01-31", "2024-02-01", "2024-03-01"):
        add(connection, (day, "a", 1, 1))


def drop(connection: Connection, partition: int) -> None:
    """Drop a partition of the source by retention."""
    connection.execute(f"ALTER TABLE events DROP PARTITION {partition} SETTINGS retain = 1")


def status(connection: Connection) -> dict[str, object]:
    return dicts(connection, "SELECT * FROM system.views WHERE name = 'daily_mv'")[0]


def sound_ledger(connection: Connection) -> None:
    """Require that RECONCILE … METADATA reports no problems."""
    problems = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv METADATA")
    assert [p for p in problems if p["problems"]] == []


def test_rows_by_hand_beside_frozen_ones_are_mended_as_told(connection: Connection) -> None:
    months(connection)
    drop(connection, 202401)
    connection.execute("SYSTEM STOP VIEW daily_mv")
    months(connection, "2024-02-02")
    connection.execute("SYSTEM START VIEW daily_mv")
    connection.execute("INSERT INTO daily VALUES ('2024-02-02', 'a', 1)")
    assert status(connection)["verdict"] == "bypassed"
    with pytest.raises(RetainedRows):
        connection.execute("SYSTEM ADOPT VIEW daily_mv")
    told = []
    while mend := str(status(connection)["mend"]):
        assert mend not in told
        told.append(mend)
        connection.execute(mend)
    assert verdict(connection) == "retained"
    assert [(day, n) for day, _, n in rows(connection, READ)] == [
        ("2024-01-01", 1),
        ("2024-01-31", 1),
        ("2024-02-01", 1),
        ("2024-02-02", 1),
        ("2024-03-01", 1),
    ]


def test_nothing_is_lost_and_everything_is_told(connection: Connection) -> None:
    months(connection)
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    before = rows(connection, READ)
    drop(connection, 202401)
    assert rows(connection, READ) == before
    assert verdict(connection) == "retained"
    assert "2 rows of its source" in str(status(connection)["reason"])
    assert "2024 (proven)" in str(status(connection)["reason"])
    coverage = "SELECT partition_id, status, rows FROM system.view_coverage ORDER BY 1, 2"
    assert rows(connection, coverage) == [
        ("202401", "retained", 2),
        ("202402", "covered", 1),
        ("202403", "covered", 1),
    ]
    (kept,) = dicts(connection, "SELECT * FROM system.view_retained")
    assert (kept["side"], kept["target_partition_id"], kept["verdict"], kept["cause"]) == (
        "source",
        "2024",
        "proven",
        "DROP PARTITION",
    )
    assert rows(connection, "SELECT count() FROM system.view_invalidations") == [(0,)]


def test_what_can_be_reconciled_is(connection: Connection) -> None:
    months(connection)
    drop(connection, 202401)
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")
    assert (row["verdict"], row["keys_compared"], row["retained_rows"]) == ("equal", 2, 2)
    assert verdict(connection) == "retained"
    assert str(status(connection)["reason"]).endswith("The rest is proven.")
    sound_ledger(connection)
    # A bypass row outside the frozen keys is found; inside them it cannot be.
    connection.execute("INSERT INTO daily VALUES ('2024-02-01', 'a', 5)")
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")
    assert (row["verdict"], row["differing"]) == ("different", 1)


def test_a_wholly_retained_slice_has_a_verdict_of_its_own(connection: Connection) -> None:
    months(connection, "2023-05-01", "2024-01-01")
    drop(connection, 202305)
    verdicts = {
        r["partition"]: r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")
    }
    assert verdicts == {"2023": "retained", "2024": "equal"}
    with pytest.raises(RetainedRows, match="Partition 2023"):
        connection.execute("SYSTEM REPLAY VIEW daily_mv PARTITION 2023")
    done = {r["partition"]: r for r in dicts(connection, "SYSTEM REPLAY VIEW daily_mv")}
    assert (done["2023"]["status"], done["2023"]["retained_rows"]) == ("retained", 1)
    assert rows(connection, READ) == [("2023-05-01", "a", 1), ("2024-01-01", "a", 1)]


def test_a_frozen_slice_is_one_whether_it_is_merged_or_not(connection: Connection) -> None:
    months(connection, "2023-05-01", "2023-05-01", "2024-01-01")
    drop(connection, 202305)
    for _ in range(2):
        with pytest.raises(RetainedRows, match="Partition 2023"):
            connection.execute("SYSTEM REPLAY VIEW daily_mv PARTITION 2023")
        connection.execute("OPTIMIZE TABLE daily FINAL")


def test_a_replay_repairs_the_rest(connection: Connection) -> None:
    months(connection)
    drop(connection, 202401)
    connection.execute("DELETE FROM events WHERE day = '2024-02-01'")
    assert verdict(connection) == "stale"
    (row,) = dicts(connection, "SYSTEM REPLAY VIEW daily_mv STALE")
    assert (row["rows_before"], row["rows_after"], row["retained_rows"]) == (4, 3, 2)
    assert rows(connection, READ) == [
        ("2024-01-01", "a", 1),
        ("2024-01-31", "a", 1),
        ("2024-03-01", "a", 1),
    ]
    assert verdict(connection) == "retained"
    assert "(covered)" in str(status(connection)["reason"])  # the frozen keys were not touched
    sound_ledger(connection)


def test_frozen_keys_that_a_change_reaches_are_stale_for_good(connection: Connection) -> None:
    months(connection)
    drop(connection, 202401)
    add(connection, ("2024-01-31", "a", 2, 2))  # arrives late
    assert rows(connection, READ)[1] == ("2024-01-31", "a", 2)
    connection.execute("DELETE FROM events WHERE user = 2")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ)[1] == ("2024-01-31", "a", 2)
    assert verdict(connection) == "retained"
    assert "2024 (stale)" in str(status(connection)["reason"])


def test_a_slice_that_was_stale_stays_known_as_stale(connection: Connection) -> None:
    months(connection)
    add(connection, ("2024-01-31", "a", 2, 2))
    connection.execute("DELETE FROM events WHERE user = 2 OR day = '2024-01-01'")
    drop(connection, 202401)
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    # The recomputed rows are right. The frozen key keeps the deleted row, and the reason says so.
    assert rows(connection, READ)[0] == ("2024-01-31", "a", 2)
    assert "2024 (stale)" in str(status(connection)["reason"])


@pytest.mark.parametrize("differs", [False, True])
def test_a_replay_above_leaves_the_verdict_where_it_gives_what_was_there(
    connection: Connection, differs: bool
) -> None:
    """The chain is events -> daily -> kinds. Rows of one month of `daily` are removed. The key of
    kinds has no time, so another month reaches the frozen keys."""
    connection.execute("""
        CREATE TABLE kinds (kind String, n SimpleAggregateFunction(sum, UInt64))
        ENGINE = AggregatingMergeTree ORDER BY kind
    """)
    connection.execute("""
        CREATE MATERIALIZED VIEW kinds_mv TO kinds AS
        SELECT kind, sum(n) AS n FROM daily GROUP BY kind
    """)
    months(connection, "2023-01-01", "2024-02-01", "2024-02-01", "2024-03-01")
    connection.execute("SYSTEM RECONCILE VIEW kinds_mv")
    connection.execute("ALTER TABLE daily DROP PARTITION 2023 SETTINGS retain = 1")
    kept = "SELECT DISTINCT verdict FROM system.view_retained WHERE view = 'kinds_mv'"
    assert rows(connection, kept) == [("proven",)]
    if differs:
        connection.execute("DELETE FROM events WHERE day = '2024-03-01'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv PARTITION 2024")
    assert verdict(connection, "kinds_mv") == ("stale" if differs else "retained")
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    assert rows(connection, kept) == [("stale",) if differs else ("proven",)]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE daily DROP PARTITION 2024",
        "DELETE FROM daily WHERE day < '2024-01-02'",
        "TRUNCATE TABLE daily",
        "ALTER TABLE daily DETACH PARTITION 2024",
    ],
)
def test_retained_rows_are_not_dropped_by_mistake(connection: Connection, statement: str) -> None:
    months(connection)
    drop(connection, 202401)
    before = rows(connection, READ)
    with pytest.raises(RetainedRows, match="discard_retained"):
        connection.execute(statement)
    assert rows(connection, READ) == before
    connection.execute("SET discard_retained = 1")
    connection.execute(statement)
    assert rows(connection, READ) != before


def test_rows_beside_the_frozen_ones_may_be_deleted(connection: Connection) -> None:
    months(connection)
    drop(connection, 202401)
    before = rows(connection, READ)
    connection.execute("DELETE FROM daily WHERE day = '2024-02-01'")
    assert verdict(connection) == "stale"
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, READ) == before


def test_giving_retained_rows_up(connection: Connection) -> None:
    months(connection)
    drop(connection, 202401)
    connection.execute("SYSTEM REPLAY VIEW daily_mv PARTITION 2024 SETTINGS discard_retained = 1")
    assert rows(connection, READ) == [("2024-02-01", "a", 1), ("2024-03-01", "a", 1)]
    assert verdict(connection) == "covered"
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    assert verdict(connection) == "proven"


def test_a_targets_own_retention(connection: Connection) -> None:
    months(connection, "2023-05-01", "2024-01-01", "2024-02-01")
    connection.execute("ALTER TABLE daily DROP PARTITION 2023 SETTINGS retain = 1")
    assert verdict(connection) == "retained"
    assert rows(connection, "SELECT count() FROM system.view_coverage WHERE status = 'gap'") == [
        (0,)
    ]
    sound_ledger(connection)
    for operation in ("REPLAY", "RECONCILE", "BACKFILL"):
        connection.execute(f"SYSTEM {operation} VIEW daily_mv")
        assert rows(connection, READ) == [("2024-01-01", "a", 1), ("2024-02-01", "a", 1)]
    assert verdict(connection) == "retained"


def test_a_gap_leaves_without_a_trace(connection: Connection) -> None:
    connection.execute("DETACH VIEW daily_mv")
    months(connection)
    connection.execute("ATTACH VIEW daily_mv")
    drop(connection, 202401)
    assert verdict(connection) == "partial"
    assert rows(connection, "SELECT count() FROM system.view_retained") == [(0,)]
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert verdict(connection) == "covered"


def test_a_target_without_a_key_is_frozen_whole(connection: Connection) -> None:
    connection.execute("CREATE TABLE total (n UInt64) ENGINE = SummingMergeTree ORDER BY tuple()")
    connection.execute(
        "CREATE MATERIALIZED VIEW total_mv TO total AS SELECT count() AS n FROM events"
    )
    months(connection)
    drop(connection, 202401)
    (row,) = dicts(connection, "SYSTEM RECONCILE VIEW total_mv")
    assert row["verdict"] == "retained"
    with pytest.raises(RetainedRows):
        connection.execute("SYSTEM REPLAY VIEW total_mv PARTITION ID 'all'")
    connection.execute("SYSTEM REPLAY VIEW total_mv")
    assert rows(connection, "SELECT sum(n) FROM total") == [(4,)]


def test_a_broken_view_is_frozen_whole(connection: Connection) -> None:
    """Which slices the removed rows had reached is unknown, so no slice is recomputed unless
    requested."""
    connection.execute(
        "CREATE TABLE names (kind String, name String) ENGINE = MergeTree ORDER BY kind"
    )
    connection.execute("INSERT INTO names VALUES ('a', 'A')")
    connection.execute(
        "CREATE TABLE named (name String, n UInt64) ENGINE = SummingMergeTree ORDER BY name"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW named_mv TO named AS SELECT names.name AS name, count() AS n"
        " FROM events JOIN names ON events.kind = names.kind GROUP BY name"
    )
    months(connection)
    connection.execute("DELETE FROM names WHERE 1")
    connection.execute("INSERT INTO names VALUES ('a', 'B')")
    drop(connection, 202401)
    (kept,) = dicts(
        connection,
        "SELECT * FROM system.view_retained WHERE view = 'named_mv'"
        " AND target_partition_id IS NULL",
    )
    assert kept["rows"] == 2
    connection.execute("SYSTEM REPLAY VIEW named_mv")
    assert rows(connection, "SELECT name, sum(n) FROM named GROUP BY name") == [("A", 4)]
    with pytest.raises(BadArguments, match="not known which slices"):
        connection.execute(
            "SYSTEM REPLAY VIEW named_mv PARTITION ID 'all' SETTINGS discard_retained = 1"
        )
    connection.execute("SYSTEM REPLAY VIEW named_mv SETTINGS discard_retained = 1")
    assert rows(connection, "SELECT name, sum(n) FROM named GROUP BY name") == [("B", 2)]


def test_adopt_cannot_prove_rows_beside_frozen_ones(connection: Connection) -> None:
    months(connection)
    drop(connection, 202401)
    connection.execute("INSERT INTO daily VALUES ('2024-01-01', 'a', 5)")
    with pytest.raises(RetainedRows, match="ADOPT"):
        connection.execute("SYSTEM ADOPT VIEW daily_mv")
    connection.execute("SYSTEM REPLAY VIEW daily_mv DISCARD BYPASS")
    assert rows(connection, READ)[0] == ("2024-01-01", "a", 1)


def test_it_survives_reopening_and_rename(tmp_path: object) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        for statement in (SOURCE, TARGET, VIEW):
            connection.execute(statement)
        months(connection)
        drop(connection, 202401)
        connection.execute("RENAME TABLE events TO old")
    with olapdb.connect(str(tmp_path)) as connection:
        assert verdict(connection) == "retained"
        connection.execute("SYSTEM REPLAY VIEW daily_mv")
        assert len(rows(connection, READ)) == 4
        connection.execute("DROP VIEW daily_mv")
        assert rows(connection, "SELECT count() FROM system.view_retained") == [(0,)]


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_changes(connection: Connection, seed: int) -> None:
    """By key, the target equals the result of the live rows plus the frozen result of the removed
    ones."""
    chance = random.Random(seed)
    live: Counter[str] = Counter()
    frozen: Counter[str] = Counter()
    closed: set[str] = set()

    def day() -> str:
        month = chance.choice([m for m in range(1, 7) if f"2024-0{m}" not in closed])
        return f"2024-0{month}-0{chance.randint(1, 4)}"

    for _ in range(25):
        match chance.choice(
            (
                "insert",
                "insert",
                "insert",
                "retain",
                "drop",
                "delete",
                "replay",
                "backfill",
                "optimize",
                "target",
            )
        ):
            case "insert":
                days = [day() for _ in range(chance.randint(1, 3))]
                add(connection, *((d, "a", 1, 1) for d in days))
                live.update(days)
            case "retain" if len(closed) < 3:
                month = day()[:7]
                connection.execute("SYSTEM BACKFILL VIEW daily_mv")
                connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
                drop(connection, int(month.replace("-", "")))
                for d in [d for d in live if d.startswith(month)]:
                    frozen[d] += live.pop(d)
                    closed.add(month)
            case "drop":
                month = day()[:7]
                connection.execute(f"ALTER TABLE events DROP PARTITION {month.replace('-', '')}")
                for d in [d for d in live if d.startswith(month)]:
                    del live[d]
            case "delete":
                gone = day()
                connection.execute(f"DELETE FROM events WHERE day = '{gone}'")
                live.pop(gone, None)
            case "target":
                connection.execute(f"DELETE FROM daily WHERE day = '{day()}'")
            case "replay":
                connection.execute("SYSTEM REPLAY VIEW daily_mv")
            case "backfill":
                connection.execute("SYSTEM BACKFILL VIEW daily_mv")
            case "optimize":
                connection.execute("OPTIMIZE TABLE daily FINAL")
                connection.execute("OPTIMIZE TABLE events FINAL")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    expected = live + frozen
    assert rows(connection, READ) == [(d, "a", expected[d]) for d in sorted(expected)]
    assert verdict(connection) in (("retained",) if closed else ("covered", "proven"))
    sound_ledger(connection)
    verdicts = {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")}
    assert verdicts <= {"equal", "retained"}
