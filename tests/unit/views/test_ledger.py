"""RECONCILE … METADATA: the ledger agrees with itself after every operation that writes it, and
reports where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import QueryNotSupportedInMaterializedView
from olapdb.model.changes import AddCoverage, AddPart, Commit, RemoveCoverage, RemoveParts
from olapdb.model.part import BlockRange, Part
from olapdb.model.view_state import CoverageRow
from olapdb.views.jobs import chunk
from tests.unit.views.warehouse import DIRECT, QUERY, READ, VIEW, add, dicts, make, rows

pytestmark = pytest.mark.feature("views")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened, view=False)
        for month in (1, 2):
            add(opened, *((f"2024-0{month}-0{d}", "ab"[d % 2], d, d * 10) for d in (1, 2, 3)))
        yield opened


def ledger(connection: Connection, view: str = "daily_mv") -> set[tuple[str, str, str]]:
    """Run RECONCILE … METADATA; return (table, partition, verdict), broken only with problems."""
    found = dicts(connection, f"SYSTEM RECONCILE VIEW {view} METADATA")
    problems = [p for r in found for p in r["problems"]]
    assert bool(problems) == ("broken" in {r["verdict"] for r in found}), problems
    return {(r["table"], r["partition"], r["verdict"]) for r in found}


def verdicts(connection: Connection) -> set[str]:
    """Return the verdicts of RECONCILE … METADATA."""
    return {verdict for _, _, verdict in ledger(connection)}


def test_rows_and_their_numbers(connection: Connection) -> None:
    connection.execute(VIEW)
    add(connection, ("2024-02-01", "a", 1, 10), ("2024-02-01", "a", 2, 20))
    found = dicts(connection, "SYSTEM RECONCILE VIEW daily_mv METADATA")
    assert [tuple(r.values()) for r in found] == [
        ("source", "202401", 1, 3, 3, 0, [], "partial"),
        ("source", "202402", 2, 5, 3, 2, [], "partial"),
        ("target", "202402", 1, 1, 0, 1, [], "covered"),
    ]
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert verdicts(connection) == {"covered"}
    status = connection.views["daily_mv"].status()
    assert status.verdict == "covered", "arithmetic proves nothing"
    assert connection.views["daily_mv"].check_ledger()[0].booked_rows == 3


def test_it_agrees_after_everything(connection: Connection) -> None:
    connection.execute(VIEW)
    for statement in (
        "SYSTEM BACKFILL VIEW daily_mv PARTITION 202401",
        "INSERT INTO events VALUES ('2024-01-01', 'a', 5, 5), ('2024-02-07', 'b', 6, 6)",
        "OPTIMIZE TABLE events FINAL",
        "SYSTEM BACKFILL VIEW daily_mv",
        "OPTIMIZE TABLE events FINAL",
        "OPTIMIZE TABLE daily FINAL",
        "DELETE FROM events WHERE day = '2024-01-02'",
        "SYSTEM REPLAY VIEW daily_mv STALE",
        "DETACH VIEW daily_mv",
        "INSERT INTO events VALUES ('2024-01-09', 'a', 9, 9)",
        "ATTACH VIEW daily_mv",
        "SYSTEM REPLAY VIEW daily_mv",
        "INSERT INTO events VALUES ('2024-03-09', 'a', 9, 9)",
        "SYSTEM BACKFILL VIEW daily_mv",
        "OPTIMIZE TABLE daily FINAL",
        "SYSTEM REPLAY VIEW daily_mv PARTITION 202402",
        "ALTER TABLE events DROP PARTITION 202402",
        "SYSTEM REPLAY VIEW daily_mv STALE",
        "TRUNCATE TABLE daily",
        "SYSTEM BACKFILL VIEW daily_mv",
        "TRUNCATE TABLE events",
        "SYSTEM REPLAY VIEW daily_mv STALE",
        "INSERT INTO events VALUES ('2024-03-09', 'a', 9, 9)",
    ):
        connection.execute(statement)
        assert "broken" not in verdicts(connection), statement
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_it_agrees_after_an_adoption(connection: Connection) -> None:
    connection.execute(VIEW)
    for month in (1, 2):
        connection.execute(
            "INSERT INTO daily "
            + QUERY.replace("FROM events", f"FROM events WHERE toMonth(day) = {month}")
        )
    connection.execute("SYSTEM ADOPT VIEW daily_mv")
    assert verdicts(connection) == {"covered"}
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert verdicts(connection) == {"covered"}


def test_source_rows_that_no_longer_reach_the_target_stay_booked(connection: Connection) -> None:
    """After the DELETE the filter drops the rest of January, so its replay reads and makes no rows.
    Its blocks still count as seen."""
    connection.execute(
        "CREATE MATERIALIZED VIEW daily_mv TO daily AS "
        + QUERY.replace("FROM events", "FROM events WHERE amount < 15")
    )
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute("DELETE FROM events WHERE day = '2024-01-01'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
    assert verdicts(connection) == {"covered"}
    parts = rows(connection, "SELECT count() FROM system.parts WHERE table = 'daily'")
    connection.execute("SYSTEM REPLAY VIEW daily_mv")
    assert verdicts(connection) == {"covered"}
    assert rows(connection, "SELECT count() FROM system.parts WHERE table = 'daily'") == parts
    assert connection.execute("SYSTEM BACKFILL VIEW daily_mv").fetchall() == []


def test_a_chunk_in_several_pieces_is_booked_once(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk, "BLOCK_ROWS_MAX", 2)
    connection.execute("SET max_insert_block_size = 2")
    for day in (11, 12, 13, 14):
        add(connection, (f"2024-01-{day}", "a", day, day))
    connection.execute(VIEW)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    assert rows(connection, "SELECT count() > 2 FROM system.parts WHERE table = 'daily'") == [(1,)]
    assert verdicts(connection) == {"covered"}


# --- where the ledger does not agree --------------------------------------------------------------


def parts_of(connection: Connection, name: str) -> tuple[Part, ...]:
    snapshot = connection.session.snapshot()
    found = snapshot.find("default", name)
    assert found is not None
    return snapshot.parts(found.id)


def apply(connection: Connection, *changes: object) -> None:
    connection.database.services.catalog.apply(Commit((), changes, "TEST"))  # type: ignore[arg-type]


@pytest.fixture
def filled(connection: Connection) -> Connection:
    connection.execute(VIEW)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    return connection


def problems(connection: Connection) -> list[str]:
    return [p for r in connection.views["daily_mv"].check_ledger() for p in r.problems]


def view_id(connection: Connection) -> str:
    found = connection.session.snapshot().find("default", "daily_mv")
    assert found is not None
    return found.id


def test_a_lost_part_of_the_target(filled: Connection) -> None:
    lost = parts_of(filled, "daily")[0]
    apply(filled, RemoveParts(lost.table_id, (lost.id,)))
    assert ("source", "202401", "broken") in ledger(filled)
    assert ("source", "202402", "covered") in ledger(filled)
    assert "no part of the target" in problems(filled)[0]


def test_coverage_that_was_forgotten(filled: Connection) -> None:
    apply(filled, RemoveCoverage(view_id(filled)))
    assert {p.partition(" but ")[2] for p in problems(filled)} == {
        "a part of the target was made from them"
    }


def test_coverage_that_was_made_up(connection: Connection) -> None:
    connection.execute(VIEW)
    apply(connection, AddCoverage(CoverageRow(view_id(connection), None, BlockRange(1, 1))))
    assert ("source", "202401", "broken") in ledger(connection)
    assert ("source", "202402", "partial") in ledger(connection)


def test_a_block_in_two_parts(filled: Connection) -> None:
    part = parts_of(filled, "daily")[0]
    data = filled.session.snapshot().inline_rows(part)
    apply(filled, AddPart(replace(part, id="twin"), data))
    assert ("target", "202401", "broken") in ledger(filled)
    assert "are in two parts" in problems(filled)[0]


def test_a_part_that_grew(filled: Connection) -> None:
    part = parts_of(filled, "daily")[0]
    data = filled.session.snapshot().inline_rows(part)
    less = tuple(replace(contribution, rows=1) for contribution in part.contributions)
    apply(
        filled,
        RemoveParts(part.table_id, (part.id,)),
        AddPart(replace(part, id="grown", contributions=less), data),
    )
    assert "only 1 were brought to it" in problems(filled)[0]


def test_a_null_source_has_no_ledger(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE void (day Date, kind String, user UInt64, amount Int64) ENGINE = Null"
    )
    connection.execute(VIEW.replace("FROM events", "FROM void"))
    with pytest.raises(QueryNotSupportedInMaterializedView, match="Null table"):
        ledger(connection)
