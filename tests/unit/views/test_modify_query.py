"""ALTER TABLE view MODIFY QUERY: nothing that the old definition made counts for the new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import (
    Error,
    NotSupportedError,
    QueryNotSupportedInMaterializedView,
    ThereIsNoColumn,
    UnknownTable,
    ViewNotProvable,
)
from olapdb.maintenance.check import check_database
from tests.harness.race import Race
from tests.unit.views.warehouse import QUERY, add, dicts, make, rows, verdict

pytestmark = pytest.mark.feature("views")

DOUBLED = QUERY.replace("sum(amount)", "sum(2 * amount)")
MODIFY = f"ALTER TABLE daily_mv MODIFY QUERY {DOUBLED}"
TOTALS = "SELECT day, kind, sum(total) FROM daily GROUP BY day, kind ORDER BY day, kind"
TRUE_TOTALS = "SELECT day, kind, sum(2 * amount) FROM events GROUP BY day, kind ORDER BY day, kind"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        make(opened)
        add(opened, ("2024-01-01", "a", 1, 5), ("2024-02-01", "b", 2, 6))
        yield opened


def test_old_rows_are_stale_until_they_are_replayed(connection: Connection) -> None:
    connection.execute(MODIFY)
    assert verdict(connection) == "stale"
    (mark,) = dicts(connection, "SELECT * FROM system.view_invalidations")
    assert (mark["cause"], mark["partition_id"], mark["rows"]) == ("MODIFY QUERY", None, 2)
    assert mark["statement"] == MODIFY
    view = dicts(connection, "SELECT * FROM system.views")[0]
    assert view["mend"] == "SYSTEM REPLAY VIEW default.daily_mv STALE"
    assert (view["definition_version"], view["gap_rows"]) == (2, 0)

    add(connection, ("2024-01-01", "a", 1, 7))  # the new definition fires
    assert [r[2] for r in rows(connection, TOTALS)] == [5 + 14, 6]
    different = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")
    assert {r["verdict"] for r in different} == {"different"}
    assert different[0]["causes"] == [f"MODIFY QUERY: {MODIFY}"]

    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert rows(connection, TOTALS) == rows(connection, TRUE_TOTALS)
    assert verdict(connection) == "covered"
    assert {r["verdict"] for r in dicts(connection, "SYSTEM RECONCILE VIEW daily_mv")} == {"equal"}
    assert verdict(connection) == "proven"


def test_a_proven_view_is_proven_no_more(connection: Connection) -> None:
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    assert verdict(connection) == "proven"
    connection.execute(MODIFY)
    assert verdict(connection) == "stale"


def test_the_same_query_changes_nothing(connection: Connection) -> None:
    connection.execute("SYSTEM RECONCILE VIEW daily_mv")
    before = connection.database.services.catalog.snapshot().number
    connection.execute(
        f"ALTER TABLE daily_mv MODIFY QUERY {QUERY.replace('FROM events', 'FROM default.events')}"
    )
    assert connection.database.services.catalog.snapshot().number == before
    assert verdict(connection) == "proven"


def test_a_partition_that_only_the_new_query_reaches_is_replayed(connection: Connection) -> None:
    narrow = QUERY.replace("FROM events", "FROM events WHERE day < '2024-02-01'")
    connection.execute(f"ALTER TABLE daily_mv MODIFY QUERY {narrow}")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert [r[1] for r in rows(connection, TOTALS)] == ["a"]
    connection.execute(f"ALTER TABLE daily_mv MODIFY QUERY {QUERY}")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert [r[1] for r in rows(connection, TOTALS)] == ["a", "b"]
    assert verdict(connection) == "covered"


def test_a_view_that_has_made_nothing_is_not_stale() -> None:
    with olapdb.connect() as opened:
        make(opened)
        opened.execute(MODIFY)
        assert verdict(opened) in ("covered", "proven")
        assert rows(opened, "SELECT count() FROM system.view_invalidations") == [(0,)]


def test_what_was_a_gap_stays_one(connection: Connection) -> None:
    connection.execute("DETACH VIEW daily_mv")
    add(connection, ("2024-01-02", "c", 3, 1))
    connection.execute("ATTACH VIEW daily_mv")
    connection.execute(MODIFY)
    assert rows(connection, "SELECT gap_rows FROM system.views") == [(1,)]
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert rows(connection, TOTALS) == rows(connection, TRUE_TOTALS)


REFUSED = [
    ("SELECT day, kind, avg(amount) AS total FROM events GROUP BY day, kind", ViewNotProvable),
    ("SELECT day, kind, sum(amount) AS nothing FROM events GROUP BY day, kind", ThereIsNoColumn),
    ("SELECT day, sum(amount) AS total FROM events GROUP BY day", ViewNotProvable),
    ("SELECT day, kind, sum(amount) AS total FROM nowhere GROUP BY day, kind", UnknownTable),
    (
        "SELECT day, kind, sum(total) AS total FROM other GROUP BY day, kind",
        QueryNotSupportedInMaterializedView,
    ),
    ("SELECT day, kind, sum(total) AS total FROM daily GROUP BY day, kind", Error),
]


@pytest.mark.parametrize(("query", "error"), REFUSED)
def test_refused_as_at_create(connection: Connection, query: str, error: type[Error]) -> None:
    connection.execute("CREATE TABLE other AS daily")
    with pytest.raises(error) as refused:
        connection.execute(f"ALTER TABLE daily_mv MODIFY QUERY {query}")
    assert refused.value.hint
    assert verdict(connection) == "covered"
    add(connection, ("2024-03-01", "c", 3, 1))
    assert rows(connection, "SELECT sum(total) FROM daily") == [(12,)]


def test_another_source_is_a_rebuild(connection: Connection) -> None:
    connection.execute("CREATE TABLE events2 AS events")
    with pytest.raises(QueryNotSupportedInMaterializedView) as refused:
        connection.execute(
            f"ALTER TABLE daily_mv MODIFY QUERY {QUERY.replace('events G', 'events2 G')}"
        )
    assert "SYSTEM REBUILD VIEW default.daily_mv AS" in refused.value.hint


def test_it_stands_alone_and_is_for_views(connection: Connection) -> None:
    with pytest.raises(NotSupportedError):
        connection.execute(f"ALTER TABLE daily_mv MODIFY COMMENT 'x', MODIFY QUERY {QUERY}")
    with pytest.raises(QueryNotSupportedInMaterializedView):
        connection.execute(f"ALTER TABLE daily MODIFY QUERY {QUERY}")


def test_an_inner_target(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW kinds ENGINE = SummingMergeTree ORDER BY kind POPULATE"
        " AS SELECT kind, sum(amount) AS total FROM events GROUP BY kind"
    )
    connection.execute(
        "ALTER TABLE kinds MODIFY QUERY SELECT kind, sum(10 * amount) AS total FROM events GROUP BY kind"
    )
    connection.execute("SYSTEM REPLAY VIEW kinds STALE")
    assert rows(connection, "SELECT kind, sum(total) FROM kinds GROUP BY kind ORDER BY kind") == [
        ("a", 50),
        ("b", 60),
    ]


def test_a_view_further_down_is_told_by_the_replay(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE monthly (month UInt32, total Int64) ENGINE = SummingMergeTree ORDER BY month"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW monthly_mv TO monthly AS"
        " SELECT toYYYYMM(day) AS month, sum(total) AS total FROM daily GROUP BY month"
    )
    connection.execute("SYSTEM BACKFILL VIEW monthly_mv")
    connection.execute(MODIFY)
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert verdict(connection, "monthly_mv") == "stale"
    connection.execute("SYSTEM REPLAY VIEW monthly_mv STALE")
    assert rows(connection, "SELECT sum(total) FROM monthly") == [(22,)]


def test_from_python(connection: Connection) -> None:
    view = connection.views["daily_mv"]
    view.modify(DOUBLED)
    assert view.status().verdict == "stale"
    view.replay(stale=True)
    assert rows(connection, TOTALS) == rows(connection, TRUE_TOTALS)


# --- races ----------------------------------------------------------------------------------------


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        first.execute("SYSTEM STOP MERGES")
        make(first)
        add(first, ("2024-01-01", "a", 1, 5), ("2024-02-01", "b", 2, 6))
        yield Race(first, second)


def truth(race: Race) -> None:
    """Run what system.views names as mends, then require that the target equals the current
    definition."""
    for _ in range(3):
        mend = race.ask("SELECT mend FROM system.views WHERE verdict NOT IN ('covered', 'proven')")
        for (statement,) in mend:
            race.second.execute(str(statement))
    doubled = "multiply(2" in str(
        race.ask("SELECT as_select FROM system.views")[0][0]
    ) or "2 *" in str(race.ask("SELECT as_select FROM system.views")[0][0])
    factor = 2 if doubled else 1
    query = f"SELECT day, kind, sum({factor} * amount) FROM events GROUP BY day, kind ORDER BY day, kind"
    assert race.ask(TOTALS) == race.ask(query)
    assert {r["verdict"] for r in dicts(race.second, "SYSTEM RECONCILE VIEW daily_mv")} == {"equal"}
    services = race.first.database.services
    assert check_database(services.catalog, services.store) == []


@pytest.mark.parametrize(
    "meanwhile",
    [
        "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 9)",
        "DELETE FROM events WHERE user = 1",
        "DETACH VIEW daily_mv",
        "TRUNCATE TABLE events",
        "SYSTEM REPLAY VIEW daily_mv",
        "RENAME TABLE daily_mv TO daily_mv2, daily_mv2 TO daily_mv",
        "ALTER TABLE events MODIFY COMMENT 'x'",
    ],
)
def test_it_meets_others(race: Race, meanwhile: str) -> None:
    assert race.run(MODIFY, meanwhile)
    assert race.ask("SELECT definition_version FROM system.views") == [(2,)]
    if meanwhile.startswith("DETACH"):
        assert race.ask("SELECT attached FROM system.views") == [(0,)]
        race.second.execute("ATTACH VIEW daily_mv")
    truth(race)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 9)",
        "SYSTEM REPLAY VIEW daily_mv",
        "DELETE FROM events WHERE user = 1",
        "SYSTEM RECONCILE VIEW daily_mv",
    ],
)
def test_others_meet_it(race: Race, statement: str) -> None:
    race.run(statement, MODIFY)
    truth(race)


def test_a_chunk_of_the_old_definition_is_not_published(race: Race) -> None:
    race.first.execute("DETACH VIEW daily_mv")
    add(race.first, ("2024-01-03", "a", 4, 4))
    race.first.execute("ATTACH VIEW daily_mv")
    race.run("SYSTEM BACKFILL VIEW daily_mv", MODIFY)
    race.second.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert race.ask("SELECT sum(total) FROM daily WHERE day = '2024-01-03'") == [(8,)]
    truth(race)


def test_a_view_that_saw_its_first_block_meanwhile_is_marked(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        make(first)
        race = Race(first, second)
        assert race.run(MODIFY, "INSERT INTO events VALUES ('2024-01-01', 'a', 9, 9)")
        assert verdict(second) == "stale"


def test_a_definition_is_of_the_tables_that_it_was_checked_with(race: Race) -> None:
    """Another table gets the name before the commit. The view follows the table that it was bound
    to."""
    race.first.execute("CREATE TABLE events2 AS events")
    race.run(MODIFY, "EXCHANGE TABLES events AND events2")
    view = race.ask("SELECT source_table, definition_version FROM system.views")
    # by that name MODIFY QUERY would read another source, so it was refused
    assert view == [("events2", 1)]
