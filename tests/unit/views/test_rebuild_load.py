"""Rebuilds, rollbacks, cancels and MODIFY QUERY run against each other while rows are inserted,
deleted and merged. At the end one view has the name, and it and every version beside it are
right."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from olapdb.maintenance.check import check_database
from tests.unit.views.warehouse import add, dicts, make, rows

pytestmark = pytest.mark.feature("views", "rebuild")

SECONDS = 5.0
LOST_RACES = ("COMMIT_CONFLICT", "ABORTED", "UNKNOWN_TABLE", "BAD_ARGUMENTS")
"""Errors that a statement about a version may raise after it lost a race."""


def query(factor: int) -> str:
    return (
        f"SELECT day, kind, count() AS events, sum({factor} * amount) AS total"
        " FROM events GROUP BY day, kind"
    )


def insert(own: Connection, chance: random.Random) -> None:
    month, kind, user = chance.randint(1, 3), chance.choice("abc"), chance.randint(1, 99)
    add(own, (f"2024-0{month}-01", kind, user, chance.randint(1, 50)))


def delete(own: Connection, chance: random.Random) -> None:
    time.sleep(0.2)
    own.execute(f"DELETE FROM events WHERE user = {chance.randint(1, 99)}")


def define(own: Connection, chance: random.Random) -> None:
    factor = chance.randint(2, 9)
    statement = chance.choice(
        [
            f"SYSTEM REBUILD VIEW daily_mv AS {query(factor)}",
            "SYSTEM REBUILD VIEW daily_mv",
            "SYSTEM ROLLBACK VIEW daily_mv",
            "SYSTEM CANCEL REBUILD VIEW daily_mv",
            f"ALTER TABLE daily_mv MODIFY QUERY {query(factor)}",
            "SYSTEM REPLAY VIEW daily_mv STALE",
            "OPTIMIZE TABLE daily FINAL",
        ]
    )
    own.execute(statement)


@pytest.mark.parametrize("seed", range(2))
def test_definitions_change_under_load(tmp_path: Path, seed: int) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        make(connection)
        add(connection, ("2024-01-01", "a", 1, 5), ("2024-02-01", "b", 2, 6))
        problems: list[str] = []
        until = time.monotonic() + SECONDS

        def work(number: int, step: Callable[[Connection, random.Random], None]) -> None:
            chance = random.Random(100 * seed + number)
            with olapdb.connect(str(tmp_path)) as own:
                while time.monotonic() < until:
                    try:
                        step(own, chance)
                    except Error as error:
                        if error.name not in LOST_RACES:
                            problems.append(str(error))

        steps = (insert, insert, delete, define, define, define)
        threads = [threading.Thread(target=work, args=one) for one in enumerate(steps)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert problems == []
        standings = rows(connection, "SELECT standing FROM system.views WHERE name = 'daily_mv'")
        assert standings == [("",)]
        beside = rows(
            connection, "SELECT standing, version_of FROM system.views WHERE name != 'daily_mv'"
        )
        assert len(set(beside)) == len(beside) <= 2
        assert {version_of for _, version_of in beside} <= {"default.daily_mv"}
        for (name,) in rows(connection, "SELECT name FROM system.views"):
            assert_true(connection, name)
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []


def assert_true(connection: Connection, view: str) -> None:
    """Run the mends of system.views, then require that the view equals a recomputation."""
    for _ in range(4):
        (found,) = dicts(
            connection, f"SELECT verdict, mend FROM system.views WHERE name = '{view}'"
        )
        if found["verdict"] in ("covered", "proven"):
            break
        connection.execute(found["mend"])
    reconciled = dicts(connection, f"SYSTEM RECONCILE VIEW {view}")
    assert {r["verdict"] for r in reconciled} <= {"equal"}, (view, found, reconciled)
