"""A busy warehouse stays small: history does not make a small INSERT with three views costlier.

Costs are counted, not timed: statements and steps of SQLite, rows of each table of the catalog,
bytes, parts. A few thousand INSERTs in CI, a million in the soak."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator
from math import log2
from pathlib import Path

import pytest

import olapdb
from olapdb.catalog.sqlite import compaction
from olapdb.dbapi.connection import Connection
from olapdb.maintenance import vacuum as vacuuming
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum_thread import VacuumThread
from tests.load.small_inserts import ROWS, TABLES, Window, insert, prepared, statement

pytestmark = pytest.mark.feature("concurrency", "insert")

GROWTH_MAX = 1.3
OPENING_GROWTH_MAX = 1.5
SPANS_A_DOUBLING_MAX = 12
"""Neighbouring spans that may not join last an eighth of their age together, so that an age twice as long holds
ln(2) / ln(9/8) = 6 pairs more of them."""
BACKLOG_SECONDS_MAX = 120
SOAK_INSERTS = 1_000_000
"""OLAPDB_SOAK_INSERTS takes another number of thousands, at least 22,000."""


def check_growth(first: Window, last: Window) -> None:
    for share in (0.5, 0.99):
        for before, after in ((first.statements, last.statements), (first.counts, last.counts)):
            limit = GROWTH_MAX * first.quantile(before, share)
            assert last.quantile(after, share) <= limit, (share, first.line(), last.line())
    assert last.live_parts <= GROWTH_MAX * first.live_parts + 8, last.line()
    assert last.head_parts <= last.live_parts, "memory holds live parts only"
    assert last.used_bytes <= GROWTH_MAX * first.used_bytes, (first.line(), last.line())
    assert last.opening.statements <= OPENING_GROWTH_MAX * first.opening.statements
    assert last.opening.counts <= OPENING_GROWTH_MAX * first.opening.counts, last.line()
    for name, count in last.rows.items():
        if name == "block_spans":  # bounded by age, not by blocks
            assert count <= 4 * SPANS_A_DOUBLING_MAX * log2(16 + last.age_seconds)
        else:
            assert count <= GROWTH_MAX * first.rows[name] + 8, (name, first.rows, last.rows)


def check_answers(connection: Connection, inserts: int) -> None:
    counted = connection.execute("SELECT count(), sum(v) FROM s").fetchall()
    assert counted == [(ROWS * inserts, ROWS * inserts * (inserts - 1) // 2)]
    for i in range(3):
        summed = connection.execute(f"SELECT sum(n), sum(v) FROM t{i}").fetchall()
        assert summed == counted
    services = connection.database.services
    assert services.catalog.overdue_parts(services.clock_ms()) == 0
    assert check_database(services.catalog, services.store) == []
    found = connection.execute("SELECT name, verdict, gap_rows, lag_blocks FROM system.views")
    assert {row[1:] for row in found.fetchall()} == {("covered", 0, 0)}


@pytest.mark.slow
def test_small_inserts_cost_what_they_cost_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuuming, "COMMITS_KEPT", 300)
    monkeypatch.setattr(compaction, "BLOCKS_KEPT_MAX", 200)
    with prepared(str(tmp_path / "w")) as connection:
        insert(connection, 0, 500)
        first = insert(connection, 500, 250)
        insert(connection, 750, 1_500)
        last = insert(connection, 2_250, 250)
        print(f"\n{first.line()}\n{last.line()}")
        check_growth(first, last)
        check_answers(connection, 2_500)


@pytest.mark.soak
@pytest.mark.timeout(6 * 3_600)
def test_a_million_small_inserts(tmp_path: Path) -> None:
    inserts = int(os.environ.get("OLAPDB_SOAK_INSERTS", str(SOAK_INSERTS)))
    with prepared(str(tmp_path / "w")) as connection:
        insert(connection, 0, 20_000)  # until the statement and commit logs are full
        first = insert(connection, 20_000, 1_000)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(21_000, inserts - 1_000, 1_000):
            window = insert(connection, number, 1_000)
            if number % 50_000 == 0:
                print(number, window.line(), flush=True)
        last = insert(connection, inserts - 1_000, 1_000)
        print(f"\n{first.line()}\n{last.line()}")
        check_growth(first, last)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss <= GROWTH_MAX * memory
        check_answers(connection, inserts)


# --- in the background ----------------------------------------------------------------------------


def metric(connection: Connection, name: str) -> int:
    query = f"SELECT value FROM system.metrics WHERE metric = '{name}'"
    return int(connection.execute(query).fetchall()[0][0])


@pytest.fixture
def busy(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Create three views, with merges and vacuum running in the background."""
    lifetime, every = request.param
    with olapdb.connect(str(tmp_path / "w")) as connection:
        for text in TABLES:
            kept = f" SETTINGS old_parts_lifetime = {lifetime}"
            connection.execute(text + (kept if text.startswith("CREATE TABLE") else ""))
        failures: list[Exception] = []
        vacuum = VacuumThread(connection.database.services, failures.append, every)
        ended = threading.Event()

        def merge() -> None:
            with olapdb.connect(str(tmp_path / "w")) as other:
                while not ended.is_set():
                    for name in ("s", "t0", "t1", "t2"):
                        other.execute(f"OPTIMIZE TABLE {name}")

        merging = threading.Thread(target=merge)
        vacuum.start()
        merging.start()
        try:
            yield connection
        finally:
            ended.set()
            merging.join()
            vacuum.stop()
        assert failures == []


def keep_inserting(connection: Connection, seconds: float) -> None:
    until, number, worst = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until or metric(connection, "VacuumBacklogParts") > 1_000:
        for _ in range(50):
            connection.execute(statement(number))
            number += 1
        worst = max(worst, metric(connection, "VacuumBacklogSeconds"))
    forgotten = connection.execute(
        "SELECT value FROM system.events WHERE event = 'VacuumedParts'"
    ).fetchall()
    print(f"\n{number} INSERTs, {forgotten[0][0]} parts forgotten, worst backlog {worst} s")
    assert forgotten[0][0] > 0, "merges do not starve vacuum"
    assert worst < BACKLOG_SECONDS_MAX
    assert connection.execute("SELECT count() FROM s").fetchall() == [(ROWS * number,)]


@pytest.mark.slow
@pytest.mark.parametrize("busy", [(1, 0.5)], indirect=True)
def test_vacuum_keeps_pace_beside_merges(busy: Connection) -> None:
    keep_inserting(busy, 8)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("busy", [(60, 30.0)], indirect=True)
def test_vacuum_keeps_pace_for_long(busy: Connection) -> None:
    keep_inserting(busy, 900)
