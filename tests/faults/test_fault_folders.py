"""Fails every call once, or for ever, while a whole folder is filled: by RESTORE and
rebuild_catalog.

Afterwards the warehouse is as before, empty or without a catalog, or it is whole. The operation,
run again, ends as if nothing had failed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from olapdb.maintenance.check import check_database
from olapdb.maintenance.rebuild_catalog import RebuildReport
from tests.faults.failing import Calls, Fault, failing, failing_anywhere
from tests.faults.operations import dicts, prepare, rows, state
from tests.faults.test_fault_loops import cases

pytestmark = pytest.mark.feature("crashes")

SECONDS = 3.0
TABLES = ("s", "other", "sums", "late")
"""Tables whose rows all lie in files."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folders")
    prepare(folder / "warehouse")
    with olapdb.connect(str(folder / "warehouse")) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("SYSTEM REPLAY VIEW v SETTINGS inline_bytes_max = 0")
        connection.execute("OPTIMIZE TABLE s FINAL")
        connection.execute(f"SYSTEM BACKUP TO '{folder / 'backup'}'")
    return folder


# --- RESTORE --------------------------------------------------------------------------------------


def restore_case(template: Path, folder: Path, fault: Fault | None) -> Calls:
    """Restore the backup under the fault; require a whole or an empty warehouse, then restore
    again."""
    with olapdb.connect(str(template / "warehouse"), read_only=True) as connection:
        wanted = state(connection)
    statement = f"SYSTEM RESTORE FROM '{template / 'backup'}'"
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        with failing(connection.database.services, fault) as calls:
            acknowledged = _succeeds(lambda: connection.execute(statement))
        shutil.copytree(folder, folder.with_name(f"{folder.name}-crashed"))
        _whole_or_empty(connection, statement, wanted, acknowledged, f"{fault}")
    with olapdb.connect(f"{folder}-crashed") as connection:
        _whole_or_empty(connection, statement, wanted, acknowledged, f"{fault}, opened anew")
    return calls


def _whole_or_empty(
    connection: Connection, statement: str, wanted: Any, acknowledged: bool, where: str
) -> None:
    """Require that the warehouse is whole, or empty and restorable."""
    is_empty = not rows(connection, "SELECT name FROM system.tables WHERE database = 'default'")
    assert not (acknowledged and is_empty), where
    if is_empty:
        connection.execute(statement)
    assert state(connection) == wanted, where
    assert {one["is_passed"] for one in dicts(connection, "CHECK ALL TABLES")} == {1}, where
    services = connection.database.services
    assert check_database(services.catalog, services.store) == [], where


# --- rebuild_catalog ------------------------------------------------------------------------------


def rebuild_case(template: Path, folder: Path, fault: Fault | None) -> Calls:
    """Rebuild the catalog under the fault; require a whole catalog or none, then rebuild again."""
    with olapdb.connect(str(template / "warehouse"), read_only=True) as connection:
        wanted = _rows(connection)
    shutil.copytree(template / "warehouse" / "data", folder / "data")
    with failing_anywhere(fault) as calls:
        reports: list[RebuildReport] = []
        acknowledged = _succeeds(lambda: reports.append(olapdb.rebuild_catalog(folder)))
    is_there = (folder / "catalog.sqlite").exists()
    assert is_there or not acknowledged, f"{fault}"
    if reports and reports[0].unreadable:
        # The report names unreadable files that it left out, so that the rebuild can be repeated.
        assert "store.open_input" in calls.names[fault.number - 1 :] if fault else False
        (folder / "catalog.sqlite").unlink()
        is_there = False
    if not is_there:
        olapdb.rebuild_catalog(folder)
    left = {path.name for path in folder.iterdir()}
    assert {"catalog.sqlite", "data"} <= left <= {"catalog.sqlite", "data", "superseded"}
    with olapdb.connect(str(folder)) as connection:
        # Even after an error behind the rename the new catalog is whole.
        assert _rows(connection) == wanted, f"{fault}"
        services = connection.database.services
        problems = check_database(services.catalog, services.store)
        assert all("referred to by nothing" in problem for problem in problems), f"{fault}"
    return calls


def _rows(connection: Connection) -> list[Any]:
    return [sorted(rows(connection, f"SELECT p, k, n FROM {name}")) for name in TABLES]


# --- loops ----------------------------------------------------------------------------------------


def _succeeds(work: Callable[[], object]) -> bool:
    try:
        work()
    except Error:
        return False
    return True


CASES = {"restore": restore_case, "rebuild_catalog": rebuild_case}


def loop(name: str, template: Path, tmp_path: Path, seconds: float | None) -> int:
    """Run a case for each fault; return the number of cases. With `seconds`, run only some."""
    calls = CASES[name](template, tmp_path / "dry", None)
    until = None if seconds is None else time.monotonic() + seconds
    done = 0
    for done, fault in enumerate(cases(calls, every=seconds is None), 1):
        CASES[name](template, tmp_path / str(done), fault)
        if until is not None and time.monotonic() > until and done >= 4:
            break
    return done


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_some_calls_fail(name: str, template: Path, tmp_path: Path) -> None:
    assert loop(name, template, tmp_path, SECONDS) >= 4


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", CASES)
def test_every_call_fails(name: str, template: Path, tmp_path: Path) -> None:
    loop(name, template, tmp_path, None)
