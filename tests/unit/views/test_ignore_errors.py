"""materialized_views_ignore_errors: a failing view misses its block, and the other views get it.
system.query_views_log shows both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BackfillIncomplete, ThrowIfNonZero
from olapdb.maintenance.check import check_database
from tests.unit.views.warehouse import DIRECT, READ, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("views")

FRAGILE = """
    CREATE MATERIALIZED VIEW fragile ENGINE = SummingMergeTree ORDER BY day AS
    SELECT day, count() AS n, sum(throwIf(amount < 0, 'a negative amount')) AS bad
    FROM events GROUP BY day
"""


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened)
        opened.execute(FRAGILE)
        opened.execute("SET materialized_views_ignore_errors = 1")
        yield opened
        services = opened.database.services
        assert check_database(services.catalog, services.store) == []


def reason(connection: Connection) -> str:
    return str(rows(connection, "SELECT reason FROM system.views WHERE name = 'fragile'")[0][0])


def counted(connection: Connection) -> int:
    return int(rows(connection, "SELECT sum(n) FROM fragile")[0][0])


def test_siblings_land_and_the_gap_has_a_reason(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1))
    add(connection, ("2024-01-02", "a", 1, -5), ("2024-01-03", "a", 1, 5))
    add(connection, ("2024-01-04", "a", 1, 1))
    assert rows(connection, "SELECT count() FROM events") == [(4,)]
    assert rows(connection, READ) == rows(connection, DIRECT)
    assert counted(connection) == 2
    assert verdict(connection) == "covered"
    assert verdict(connection, "fragile") == "partial"
    assert "a negative amount" in reason(connection)
    assert "failed on 2 of them" in reason(connection)
    (note,) = dicts(connection, "SELECT * FROM system.view_invalidations")
    assert (note["view"], note["cause"], note["rows"]) == ("fragile", "VIEW FAILED", 2)
    assert note["statement"].startswith("INSERT INTO events VALUES ('2024-01-02'")
    (gap,) = dicts(connection, "SELECT * FROM system.view_coverage WHERE status = 'gap'")
    assert (gap["view"], gap["rows"], gap["first_block"], gap["last_block"]) == ("fragile", 2, 2, 2)
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW fragile METADATA")} == {
        "partial",
        "covered",
    }


def test_rows_that_have_left_since_are_not_counted(connection: Connection) -> None:
    add(
        connection, ("2024-01-02", "a", 1, -5), ("2024-02-03", "a", 1, 5), ("2024-02-04", "a", 1, 5)
    )
    assert "It has not seen 3 rows. It failed on 3 of them" in reason(connection)
    connection.execute("ALTER TABLE events DROP PARTITION 202402")
    assert "It has not seen 1 rows. It failed on 1 of them" in reason(connection)


def test_what_mends_it(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-02", "a", 1, -5))
    with pytest.raises(BackfillIncomplete, match="a negative amount"):
        connection.execute("SYSTEM BACKFILL VIEW fragile")
    for statement in ("SYSTEM REPLAY VIEW fragile", "SYSTEM RECONCILE VIEW fragile"):
        connection.execute(statement)
        assert "a negative amount" in reason(connection), "the gap is still there"
    assert connection.execute("SYSTEM REPLAY VIEW fragile STALE").fetchall() == []

    connection.execute("DELETE FROM events WHERE amount < 0")
    (done,) = dicts(connection, "SYSTEM BACKFILL VIEW fragile")
    assert done["status"] == "published"
    assert counted(connection) == 1
    assert rows(connection, "SELECT * FROM system.view_invalidations WHERE view = 'fragile'") == []
    assert verdict(connection, "fragile") == "covered"


def test_a_failure_further_down_leaves_what_is_above(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW below ENGINE = SummingMergeTree ORDER BY day AS"
        " SELECT day, sum(throwIf(events > 1)) AS bad FROM daily GROUP BY day"
    )
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-01", "a", 2, 1))
    assert verdict(connection) == "covered"
    assert verdict(connection, "below") == "unproven", "it computes with a state"
    below = dicts(connection, "SELECT reason, gap_rows FROM system.views WHERE name = 'below'")[0]
    assert "It failed on 1 of them" in below["reason"]
    assert below["gap_rows"] == 1
    connection.execute("DROP VIEW below")
    assert rows(connection, "SELECT count() FROM system.view_invalidations") == [(0,)]


def test_several_blocks_of_one_insert(connection: Connection) -> None:
    connection.execute("SET max_insert_block_size = 10")
    connection.execute(
        "INSERT INTO events SELECT toDate('2024-01-01') + number % 3, 'a', number,"
        " if(number IN (15, 25), -1, 1) FROM numbers(40)"
    )
    assert counted(connection) == 20
    assert rows(connection, READ) == rows(connection, DIRECT)
    (note,) = dicts(connection, "SELECT * FROM system.view_invalidations")
    assert note["rows"] == 20, "one note for the INSERT"


def test_files_of_a_view_that_fails_in_writing_are_deleted(connection: Connection) -> None:
    """The view's rows span more partitions than a block may have, which staging finds after it
    began."""
    connection.execute("SET inline_bytes_max = 0")
    connection.execute(
        "CREATE MATERIALIZED VIEW wide ENGINE = SummingMergeTree PARTITION BY user ORDER BY user AS"
        " SELECT user, count() AS n FROM events GROUP BY user"
    )
    connection.execute("SET max_partitions_per_insert_block = 2")
    add(connection, *(("2024-01-01", "a", user, 1) for user in range(5)))
    assert verdict(connection, "wide") == "partial"
    assert "TOO_MANY_PARTS" in str(
        rows(connection, "SELECT reason FROM system.views WHERE name = 'wide'")
    )
    assert counted(connection) == 5


def test_without_the_setting_nothing_lands(connection: Connection) -> None:
    connection.execute("SET materialized_views_ignore_errors = 0")
    with pytest.raises(ThrowIfNonZero, match=r"view default\.fragile"):
        add(connection, ("2024-01-02", "a", 1, -5))
    assert rows(connection, "SELECT count() FROM events") == [(0,)]
    assert rows(connection, "SELECT count() FROM system.view_invalidations") == [(0,)]


# --- the log -------------------------------------------------------------------------------------


def log(connection: Connection) -> list[tuple[object, ...]]:
    return rows(
        connection,
        "SELECT view_name, read_rows, written_rows, status, exception_code, insert_landed"
        " FROM system.query_views_log",
    )


def test_what_views_did(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 1), ("2024-01-01", "a", 2, 1))
    add(connection, ("2024-01-01", "a", 1, -1))
    connection.execute("SET materialized_views_ignore_errors = 0")
    with pytest.raises(ThrowIfNonZero):
        add(connection, ("2024-01-02", "a", 1, -5))
    assert log(connection) == [
        ("default.daily_mv", 2, 1, "QueryFinish", 0, 1),
        ("default.fragile", 2, 1, "QueryFinish", 0, 1),
        ("default.daily_mv", 1, 1, "QueryFinish", 0, 1),
        ("default.fragile", 1, 0, "ExceptionWhileProcessing", 395, 1),
        ("default.fragile", 1, 0, "ExceptionWhileProcessing", 395, 0),
    ]
    (entry, *_) = dicts(connection, "SELECT * FROM system.query_views_log")
    assert entry["view_target"] == "default.daily"
    assert entry["view_type"] == "Materialized"
    assert "uniqExactState" in entry["view_query"]
    assert entry["read_bytes"] > 0
    assert entry["written_bytes"] > 0
    known = rows(connection, "SELECT query_id FROM system.snapshots WHERE kind = 'INSERT'")
    assert (entry["initial_query_id"],) in known


def test_the_log_can_be_switched_off(connection: Connection) -> None:
    connection.execute(
        "INSERT INTO events SETTINGS log_query_views = 0 VALUES ('2024-01-01', 'a', 1, 1)"
    )
    assert log(connection) == []
