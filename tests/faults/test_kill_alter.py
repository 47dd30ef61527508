"""SIGKILL anywhere in an ALTER or UPDATE: all of it happened, or nothing; run again, all of it
did."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.faults.kill_views import values
from tests.harness.child import run_module
from tests.unit.views.warehouse import DIRECT, READ, make, rows

pytestmark = pytest.mark.feature("crashes", "schema")

CATALOG = ("catalog.checked", "catalog.before_commit", "catalog.committed")
STORE = ("store.written", "store.flushed", "store.renamed", "store.synced")
UPDATE = "UPDATE events SET amount = amount + 100 WHERE kind = 'a'"
MIXED = (
    "ALTER TABLE events UPDATE amount = amount + 100 WHERE kind = 'a', DELETE WHERE user = 1,"
    " ADD COLUMN fee Int64 DEFAULT amount, UPDATE fee = 7 WHERE kind = 'b'"
)
COLUMNS = (
    "ALTER TABLE events MODIFY COLUMN n Int64 DEFAULT 3, RENAME COLUMN amount TO cents,"
    " ADD COLUMN fee Int64 DEFAULT cents FIRST, MODIFY COLUMN code UInt16"
)
CASES = [
    *(
        (UPDATE, stage)
        for stage in ("update.before_commit", "update.part_rewritten", *CATALOG, *STORE)
    ),
    *((MIXED, stage) for stage in ("update.part_rewritten", "store.renamed")),
    *((COLUMNS, stage) for stage in ("alter.before_commit", "update.part_rewritten", *CATALOG)),
]


def prepared(folder: Path) -> Path:
    """Create the table with some parts."""
    with olapdb.connect(folder) as connection:
        make(connection)
        connection.execute(
            "ALTER TABLE events ADD COLUMN n Nullable(Int64), ADD COLUMN code String DEFAULT '5'"
        )
        for number in range(4):
            inline = 0 if number % 2 else 262_144
            connection.execute(
                "INSERT INTO events (day, kind, user, amount)"
                f" SETTINGS inline_bytes_max = {inline} VALUES {values(number)}"
            )
    return folder


def state(connection: Connection) -> object:
    """Return the columns and rows of the table."""
    columns = rows(
        connection,
        "SELECT name, type, default_expression FROM system.columns WHERE table = 'events'"
        " ORDER BY position",
    )
    return columns, sorted(rows(connection, "SELECT * FROM events"), key=repr)


def direct(connection: Connection) -> str:
    """Return the query over the source, with the present name of the column."""
    names = {
        n for (n,) in rows(connection, "SELECT name FROM system.columns WHERE table = 'events'")
    }
    return DIRECT.replace("amount", "cents") if "cents" in names else DIRECT


def killed(folder: Path, statement: str, stage: str, count: int) -> bool:
    """Run the statement in a process; return whether it died at the stage."""
    done = run_module("tests.faults.kill_alter", folder, statement, stage, count)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]
    return done.returncode != 0


@pytest.mark.parametrize(("statement", "stage"), CASES)
def test_killed_at(tmp_path: Path, statement: str, stage: str) -> None:
    prepared(tmp_path / "whole")
    with olapdb.connect(tmp_path / "whole") as connection:
        before = state(connection)
        connection.execute(statement)
        after = state(connection)
    count = random.randint(1, 4)
    while not killed(prepared(tmp_path / f"killed_{count}"), statement, stage, count):
        assert count > 1, f"{stage} was not reached"
        count //= 2
    with olapdb.connect(tmp_path / f"killed_{count}") as connection:
        connection.execute("SYSTEM STOP MERGES")
        found = state(connection)
        assert found in (before, after), "half of an ALTER"
        if found == before:
            connection.execute(statement)
        assert state(connection) == after
        connection.execute("SYSTEM REPLAY VIEW daily_mv STALE")
        assert rows(connection, READ) == rows(connection, direct(connection))
        services = connection.database.services
        vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == []
