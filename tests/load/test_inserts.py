"""No row is lost or doubled while views are created, changed and dropped; prints INSERT times."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from tests.load.inserts import HEADER, ROWS, Inserts, insert_for, mend, prepare, views_changing
from tests.unit.views.warehouse import dicts

pytestmark = pytest.mark.feature("concurrency", "insert")


def load(folder: str, seconds: float) -> None:
    prepare(folder)
    alone = insert_for(folder, seconds / 2)
    start = 1 + max(n for numbers in alone.acknowledged.values() for n in numbers)
    with views_changing(folder) as changes:
        together = insert_for(folder, seconds, start, lambda: "DROP VIEW" in changes.done)
    print(f"{HEADER}\n{alone.row('one that stays', seconds / 2)}")
    print(together.row("and others that come and go", seconds))
    print(", ".join(f"{count} {words}" for words, count in sorted(changes.done.items())))
    print("\n".join([*changes.refused[:5], *(error for *_, error in together.failed[:3])]))
    assert changes.done.get("DROP VIEW"), "at least one view lived and died"
    with olapdb.connect(folder) as connection:
        check_rows(connection, [alone, together])
        check_views(connection)
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []


def check_rows(connection: Connection, runs: list[Inserts]) -> None:
    """Require each acknowledged row once and no row of a failed INSERT."""
    found = connection.execute("SELECT thread, number FROM events").fetchall()
    counts = Counter((thread, number) for thread, number in found)
    assert set(counts.values()) <= {1}, "rows are doubled"
    assert counts.keys() == {
        (thread, row)
        for run in runs
        for thread, numbers in run.acknowledged.items()
        for number in numbers
        for row in range(number * ROWS, (number + 1) * ROWS)
    }


def check_views(connection: Connection) -> None:
    """Run the mends of system.views, then require views equal to a computation in Python."""

    def ask(query: str) -> str:
        row = connection.execute(query).fetchone()
        return str(row[0]) if row else ""

    print("; ".join(mend(connection, ask)) or "nothing to mend")
    verdicts = connection.execute("SELECT verdict FROM system.views").fetchall()
    assert {v for (v,) in verdicts} <= {"covered", "proven"}
    due: Counter[tuple[int, int, str]] = Counter()
    for day, thread, amount in connection.execute("SELECT day, thread, amount FROM events"):
        due[day, thread, "rows"] += 1
        due[day, thread, "amount"] += amount
    there: Counter[tuple[int, int, str]] = Counter()
    for day, thread, rows, amount in connection.execute("SELECT * FROM kept"):
        there[day, thread, "rows"] += rows
        there[day, thread, "amount"] += amount
    assert there == due
    told = dicts(connection, "SYSTEM RECONCILE VIEW kept_mv")
    assert {row["verdict"] for row in told} == {"equal"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_eight_threads_insert_while_views_change(tmp_path: Path) -> None:
    load(str(tmp_path / "warehouse"), 10)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_eight_threads_insert_for_a_minute(tmp_path: Path) -> None:
    load(str(tmp_path / "warehouse"), 60)
