"""Rows that are removed from a view's target (rule 5): the view's gap where a backfill can restore
them exactly, stale otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import DIRECT, READ, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("changes")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened)
        yield opened


def gaps(connection: Connection) -> list[tuple[object, ...]]:
    return rows(
        connection,
        "SELECT partition_id, rows FROM system.view_coverage WHERE status = 'gap' ORDER BY 1",
    )


def stale(connection: Connection) -> list[tuple[object, ...]]:
    """Return partition and cause of each invalidation."""
    return rows(connection, "SELECT partition_id, cause FROM system.view_invalidations ORDER BY 1")


def sound(connection: Connection) -> None:
    assert rows(connection, READ) == rows(connection, DIRECT)
    sound_ledger(connection)
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")} <= {"equal"}


def sound_ledger(connection: Connection) -> None:
    """Require that RECONCILE … METADATA reports no problems."""
    problems = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv METADATA")
    assert [p for p in problems if p["problems"]] == []


def test_a_dropped_partition_is_a_gap(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    add(connection, ("2024-02-01", "a", 1, 1))
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert gaps(connection) == [("202401", 2)]
    assert stale(connection) == []
    assert verdict(connection) == "partial"
    add(connection, ("2024-01-03", "a", 1, 1))  # triggers keep covering it
    assert gaps(connection) == [("202401", 2)]
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert gaps(connection) == []
    sound(connection)


def test_after_merges_too(connection: Connection) -> None:
    for day in range(1, 5):
        add(connection, (f"2024-01-0{day}", "a", 1, 1))
        add(connection, (f"2024-02-0{day}", "a", 1, 1))
    connection.execute("OPTIMIZE TABLE events FINAL")
    connection.execute("OPTIMIZE TABLE daily FINAL")
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert gaps(connection) == [("202401", 4)]
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


def test_a_block_of_two_months_is_a_gap_by_partition(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-02-01", "b", 2, 2))
    add(connection, ("2024-01-02", "a", 1, 1))
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert gaps(connection) == [("202401", 2)]
    assert stale(connection) == []
    sound_ledger(connection)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


def test_a_part_that_reached_two_partitions_is_stale_not_a_gap(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE weeks (week Date, n UInt64) ENGINE = SummingMergeTree PARTITION BY week"
        " ORDER BY week"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW weeks_mv TO weeks AS SELECT toMonday(day) AS week, count() AS n"
        " FROM events GROUP BY week"
    )
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-08", "b", 2, 2))
    add(connection, ("2024-01-02", "a", 1, 1))
    select = "SELECT week, sum(n) FROM weeks GROUP BY week ORDER BY week"
    before = rows(connection, select)
    for order in (
        ("BACKFILL VIEW weeks_mv", "REPLAY VIEW weeks_mv STALE"),
        ("REPLAY VIEW weeks_mv STALE", "BACKFILL VIEW weeks_mv"),
    ):
        connection.execute("ALTER TABLE weeks DROP PARTITION '2024-01-01'")
        assert stale(connection) == [("20240101", "TARGET CHANGED")]
        for operation in order:
            connection.execute(f"SYSTEM {operation}")
        assert rows(connection, select) == before
        assert verdict(connection, "weeks_mv") == "covered"


def test_a_source_partition_that_reaches_every_partition_of_the_target(
    connection: Connection,
) -> None:
    """Every source block reaches several partitions of the target, so no block can become a gap."""
    connection.execute(
        "CREATE TABLE kinds (kind String, n SimpleAggregateFunction(sum, UInt64))"
        " ENGINE = AggregatingMergeTree PARTITION BY kind ORDER BY kind"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW kinds_mv TO kinds AS SELECT kind, count() AS n FROM events"
        " GROUP BY kind"
    )
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    add(connection, ("2024-01-03", "a", 1, 1))
    connection.execute("ALTER TABLE kinds DROP PARTITION 'a'")
    # The second block reached 'a' only.
    assert rows(
        connection,
        "SELECT rows FROM system.view_coverage WHERE view = 'kinds_mv' AND status = 'gap'",
    ) == [(1,)]
    assert verdict(connection, "kinds_mv") == "stale"
    connection.execute("SYSTEM REPLAY VIEW kinds_mv STALE")
    connection.execute("SYSTEM BACKFILL VIEW kinds_mv")
    assert rows(connection, "SELECT kind, sum(n) FROM kinds GROUP BY kind ORDER BY kind") == [
        ("a", 2),
        ("b", 1),
    ]


def test_deleted_rows_make_their_slice_stale(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    connection.execute("DELETE FROM daily WHERE kind = 'a'")
    assert stale(connection) == [("202401", "TARGET CHANGED")]
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    sound(connection)


def test_a_delete_that_empties_a_partition_is_a_gap(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    connection.execute("DELETE FROM daily WHERE 1")
    assert (gaps(connection), stale(connection)) == ([("202401", 2)], [])
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


def test_bypass_rows_may_be_deleted_without_a_word(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute("INSERT INTO daily (day, kind, events) VALUES ('2024-01-01', 'hand', 5)")
    connection.execute("DELETE FROM daily WHERE kind = 'hand'")
    assert (gaps(connection), stale(connection)) == ([], [])
    sound(connection)


def test_views_further_down_are_stale(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE months (m UInt32, n UInt64) ENGINE = SummingMergeTree ORDER BY m"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW months_mv TO months AS SELECT toYYYYMM(day) AS m,"
        " sum(daily.events) AS n FROM daily GROUP BY m"
    )
    add(connection, ("2024-01-01", "a", 1, 1))
    add(connection, ("2024-02-01", "a", 1, 1))
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert verdict(connection, "months_mv") == "stale"
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")  # also fires months_mv
    connection.execute("SYSTEM REPLAY VIEW months_mv STALE")
    assert rows(connection, "SELECT m, sum(n) FROM months GROUP BY m ORDER BY m") == [
        (202401, 1),
        (202402, 1),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE daily DETACH PARTITION 202401",
        "ALTER TABLE daily REPLACE PARTITION 202401 FROM other SETTINGS"
        " allow_replace_partition_from_empty_source = 1",
        "ALTER TABLE daily MOVE PARTITION 202401 TO TABLE other",
    ],
)
def test_other_ways_for_a_partition_to_leave(connection: Connection, statement: str) -> None:
    connection.execute("CREATE TABLE other AS daily")
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute(statement)
    assert gaps(connection) == [("202401", 1)]
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


def test_what_is_attached_to_a_target_is_bypass(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute("ALTER TABLE daily DETACH PARTITION 202401")
    connection.execute("ALTER TABLE daily ATTACH PARTITION 202401")
    assert verdict(connection) == "bypassed"
    assert gaps(connection) == [("202401", 1)]
    connection.execute("SYSTEM ADOPT VIEW daily_mv")  # the rows are those that the view missed
    assert verdict(connection) == "proven"
    sound(connection)


def test_two_views_into_one_target(connection: Connection) -> None:
    connection.execute("CREATE TABLE more AS events")
    connection.execute(
        "CREATE MATERIALIZED VIEW more_mv TO daily AS SELECT day, kind, count() AS events,"
        " sum(amount) AS total, uniqExactState(user) AS users, avgState(amount) AS mean FROM more"
        " GROUP BY day, kind"
    )
    add(connection, ("2024-01-01", "a", 1, 1))
    connection.execute(
        "INSERT INTO more VALUES ('2024-01-01', 'a', 2, 5), ('2024-02-01', 'a', 2, 5)"
    )
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert verdict(connection, "daily_mv") == "partial"
    assert verdict(connection, "more_mv") == "partial"
    connection.execute("SYSTEM BACKFILL VIEW more_mv")
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert rows(connection, "SELECT day, sum(events) FROM daily GROUP BY day ORDER BY day") == rows(
        connection,
        "SELECT day, count() FROM (SELECT day FROM events UNION ALL SELECT day FROM more)"
        " GROUP BY day ORDER BY day",
    )


def test_rows_of_a_null_source_are_gone(connection: Connection) -> None:
    connection.execute("CREATE TABLE stream (day Date) ENGINE = Null")
    connection.execute(
        "CREATE TABLE days (day Date, n UInt64) ENGINE = SummingMergeTree PARTITION BY day ORDER BY day"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW days_mv TO days AS SELECT day, count() AS n FROM stream GROUP BY day"
    )
    connection.execute("INSERT INTO stream VALUES ('2024-01-01')")
    connection.execute("ALTER TABLE days DROP PARTITION '2024-01-01'")
    assert rows(connection, "SELECT * FROM days") == []
    assert verdict(connection, "days_mv") == "unproven"


def test_a_stale_slice_that_is_dropped_is_a_gap_and_no_more_stale(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "b", 2, 2))
    connection.execute("DELETE FROM events WHERE kind = 'b'")
    assert verdict(connection) == "stale"
    connection.execute("ALTER TABLE daily DROP PARTITION 202401")
    assert (gaps(connection), stale(connection)) == ([("202401", 1)], [])
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    sound(connection)


# --- rows that cancelled out: a merge of a SummingMergeTree drops them
# ------------------------------


@pytest.fixture
def cancelling() -> Iterator[Connection]:
    """Create views whose sums may be zero, with a target partitioned as the source and one by
    key."""
    with olapdb.connect() as opened:
        for text in (
            "SYSTEM STOP MERGES",
            "CREATE TABLE s (p UInt8, k String, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k",
            "CREATE TABLE sums (p UInt8, k String, n Int64) ENGINE = SummingMergeTree PARTITION BY p"
            " ORDER BY (p, k)",
            "CREATE TABLE kinds (k String, n Int64) ENGINE = SummingMergeTree PARTITION BY k ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO sums AS SELECT p, k, sum(n) AS n FROM s GROUP BY p, k",
            "CREATE MATERIALIZED VIEW w TO kinds AS SELECT k, sum(n) AS n FROM s GROUP BY k",
        ):
            opened.execute(text)
        yield opened


CANCELLED = (
    "INSERT INTO s VALUES (3, 'b', 1)",
    "INSERT INTO s VALUES (3, 'b', -1), (2, 'a', 4)",
    "OPTIMIZE TABLE sums FINAL",
    "OPTIMIZE TABLE kinds FINAL",
)
"""The rows of 'b' cancel out, and one half of them was inserted together with 'a'."""


@pytest.mark.parametrize(
    "statements",
    [
        (*CANCELLED, "ALTER TABLE sums DROP PARTITION 2", "ALTER TABLE kinds DROP PARTITION 'a'"),
        (
            *CANCELLED,
            "INSERT INTO s VALUES (3, 'c', 5)",
            "DELETE FROM sums WHERE 1",
            "DELETE FROM kinds WHERE 1",
        ),
        (
            *CANCELLED,
            "INSERT INTO s VALUES (3, 'b', 6)",
            "DELETE FROM sums WHERE 1",
            "DELETE FROM kinds WHERE k = 'b'",
            "DELETE FROM kinds WHERE 1",
        ),
        # Rows cancel out within one block, before anything is written.
        (
            "INSERT INTO s VALUES (1, 'a', 5), (1, 'b', 1), (2, 'b', -1)",
            "INSERT INTO s VALUES (1, 'c', 1)",
            "OPTIMIZE TABLE s FINAL",
            "ALTER TABLE kinds DROP PARTITION 'a'",
        ),
        # Rows cancel out within a chunk of a replay of that slice alone.
        (
            "INSERT INTO s VALUES (3, 'b', 1), (3, 'c', 1)",
            "INSERT INTO s VALUES (3, 'b', -1), (3, 'a', 4)",
            "SYSTEM REPLAY VIEW w WHERE k = 'b'",
            "ALTER TABLE kinds DROP PARTITION 'a'",
        ),
        (
            "INSERT INTO s VALUES (3, 'b', 1), (3, 'c', 1)",
            "INSERT INTO s VALUES (3, 'b', -1), (3, 'a', 4)",
            "SYSTEM REPLAY VIEW w WHERE k = 'b'",
            "INSERT INTO s VALUES (3, 'b', 7)",
            "DELETE FROM kinds WHERE k != 'c'",
        ),
        (
            "INSERT INTO s VALUES (3, 'b', 1)",
            "INSERT INTO s VALUES (3, 'b', -1), (3, 'a', 4)",
            "SYSTEM REPLAY VIEW w WHERE k = 'b'",
            "SYSTEM REPLAY VIEW w",
            "INSERT INTO s VALUES (3, 'b', 7)",
            "OPTIMIZE TABLE kinds FINAL",
            "DELETE FROM kinds WHERE k = 'a'",
        ),
        # Rows cancel out within a part that is removed with its partition, or before it.
        (
            "INSERT INTO s VALUES (3, 'b', 1)",
            "INSERT INTO s VALUES (3, 'b', -1), (3, 'a', 4), (2, 'a', 4)",
            "OPTIMIZE TABLE sums FINAL",
            "INSERT INTO s VALUES (3, 'd', 4)",
            "DELETE FROM sums WHERE k = 'a'",
            "DELETE FROM sums WHERE 1",
        ),
    ],
)
@pytest.mark.parametrize("order", [("BACKFILL", "REPLAY"), ("REPLAY", "BACKFILL")])
def test_rows_that_cancelled_out_do_not_come_back(
    cancelling: Connection, statements: tuple[str, ...], order: tuple[str, str]
) -> None:
    """A backfill reads whole source blocks. A gap must not hold one half of two blocks that
    cancelled out."""
    for text in statements:
        cancelling.execute(text)
    for view, columns, target in (("v", "p, k", "sums"), ("w", "k", "kinds")):
        for operation in order:
            stale_only = " STALE" if operation == "REPLAY" else ""
            cancelling.execute(f"SYSTEM {operation} VIEW {view}{stale_only}")
        assert verdict(cancelling, view) == "covered"
        having = f"GROUP BY {columns} HAVING sum(n) != 0 ORDER BY {columns}"
        wanted = rows(cancelling, f"SELECT {columns}, sum(n) FROM s {having}")
        assert rows(cancelling, f"SELECT {columns}, sum(n) FROM {target} {having}") == wanted
        problems = dicts(cancelling, f"SYSTEM RECONCILE VIEW {view} METADATA")
        assert [p for p in problems if p["problems"]] == []
        made = dicts(cancelling, f"SYSTEM RECONCILE VIEW {view}")
        assert {r["verdict"] for r in made} <= {"equal"}


def test_what_a_slice_that_keeps_rows_lost_is_no_gap(cancelling: Connection) -> None:
    """The other rows of that block had reached a slice that is now empty."""
    cancelling.execute("INSERT INTO s VALUES (1, 'c', 2), (3, 'b', 1)")
    cancelling.execute("INSERT INTO s VALUES (2, 'a', 4), (3, 'a', 3)")
    cancelling.execute("DELETE FROM sums WHERE k = 'a'")
    select = (
        "SELECT partition_id, rows FROM system.view_coverage WHERE view = 'v' AND status = 'gap'"
    )
    assert rows(cancelling, select) == [("2", 1)]
    assert stale(cancelling) == [("3", "TARGET CHANGED")]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP PARTITION 2",
        "DETACH PARTITION 2",
        "MOVE PARTITION 2 TO TABLE other",
        "REPLACE PARTITION 2 FROM other",
    ],
)
@pytest.mark.parametrize("by_replay", [False, True])
def test_a_partition_with_a_part_of_which_nothing_is_left(
    cancelling: Connection, statement: str, by_replay: bool
) -> None:
    """A merge or a replay leaves a part without rows beside others. The statement does not move
    it."""
    for text in (
        "CREATE TABLE other (p UInt8, k String, n Int64) ENGINE = SummingMergeTree PARTITION BY p"
        " ORDER BY (p, k)",
        "INSERT INTO other VALUES (2, 'x', 1)",
        "INSERT INTO s VALUES (2, 'b', 1)",
        "INSERT INTO s VALUES (2, 'b', -1), (3, 'a', 1)",
        "SYSTEM REPLAY VIEW v" if by_replay else "OPTIMIZE TABLE sums FINAL",
        "INSERT INTO s VALUES (2, 'c', 7)",
        f"ALTER TABLE sums {statement}",
    ):
        cancelling.execute(text)
    for operation in ("BACKFILL VIEW v", "REPLAY VIEW v STALE", "REPLAY VIEW v DISCARD BYPASS"):
        cancelling.execute(f"SYSTEM {operation}")
    assert rows(cancelling, "SELECT p, k, n FROM sums FINAL ORDER BY k") == [
        (3, "a", 1),
        (2, "c", 7),
    ]
    problems = dicts(cancelling, "SYSTEM RECONCILE VIEW v METADATA")
    assert [p for p in problems if p["problems"]] == []
    assert {r["verdict"] for r in dicts(cancelling, "SYSTEM RECONCILE VIEW v")} == {"equal"}


def test_a_partition_comes_from_a_table_with_such_a_part(cancelling: Connection) -> None:
    for text in (
        "CREATE TABLE other AS sums",
        "INSERT INTO s VALUES (2, 'b', 1)",
        "INSERT INTO s VALUES (2, 'b', -1)",
        "OPTIMIZE TABLE sums FINAL",
        "INSERT INTO s VALUES (2, 'c', 7)",
        "ALTER TABLE other REPLACE PARTITION 2 FROM sums",
        "ALTER TABLE other ATTACH PARTITION 2 FROM sums",
    ):
        cancelling.execute(text)
    assert rows(cancelling, "SELECT p, k, n FROM other FINAL") == [(2, "c", 14)]


@pytest.mark.parametrize("inline", [0, 100_000])
def test_a_part_that_keeps_rows_names_no_block_of_a_gap(
    connection: Connection, inline: int
) -> None:
    """One block reaches three slices. A DELETE empties two of them and keeps a row of the third."""
    for statement in (
        "SYSTEM STOP MERGES",
        "CREATE TABLE s3 (p UInt8, k String, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY k",
        "CREATE TABLE t3 (p UInt8, k String, n Int64) ENGINE = SummingMergeTree PARTITION BY p"
        " ORDER BY (p, k)",
        "CREATE MATERIALIZED VIEW v3 TO t3 AS SELECT p, k, sum(n) AS n FROM s3 GROUP BY p, k",
        f"INSERT INTO s3 SETTINGS inline_bytes_max = {inline} VALUES (1, 'a', 1), (1, 'b', 2),"
        " (2, 'b', 3), (3, 'b', 4)",
        "DELETE FROM t3 WHERE k = 'b'",
    ):
        connection.execute(statement)
    problems = dicts(connection, "SYSTEM RECONCILE VIEW v3 METADATA")
    assert [problem for problem in problems if problem["problems"]] == []
    gaps = dicts(connection, "SELECT * FROM system.view_coverage WHERE view = 'v3'")
    assert {gap["partition_id"]: gap["status"] for gap in gaps} == {
        "1": "covered",
        "2": "gap",
        "3": "gap",
    }
    connection.execute("SYSTEM BACKFILL VIEW v3")
    connection.execute("SYSTEM REPLAY VIEW v3 STALE")
    assert {one["verdict"] for one in dicts(connection, "SYSTEM RECONCILE VIEW v3")} == {"equal"}
    connection.execute("DELETE FROM t3 WHERE p = 2")
    problems = dicts(connection, "SYSTEM RECONCILE VIEW v3 METADATA")
    assert [problem for problem in problems if problem["problems"]] == []
    connection.execute("SYSTEM BACKFILL VIEW v3")
    assert rows(connection, "SELECT sum(n) FROM t3") == [(10,)]
