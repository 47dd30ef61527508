"""Ctrl-C at every stage of every operation: it happened or it did not, and the connection works on.

Unlike an error of the machine, an interrupt may also arrive after the commit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.maintenance.check import check_database
from olapdb.runtime.failpoints import recording, watching
from tests.faults.operations import OPERATIONS, Operation, expected, goes_on, prepare_all, verify
from tests.faults.test_fault_loops import copied

pytestmark = pytest.mark.feature("crashes", "settings")

MADE = {
    "create as select": "CREATE TABLE made ENGINE = MergeTree ORDER BY k SETTINGS inline_bytes_max = 0"
    " AS SELECT * FROM s",
    "clone": "CREATE TABLE made CLONE AS other",
    "lightweight update": "UPDATE s SET n = 0 WHERE k = 'a'",
}
"""Operations that stage files and that the fault loops lack."""

ONCE_EACH = ("catalog.before_commit", "catalog.committed")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_all(tmp_path_factory.mktemp("interrupts"))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_interrupt_around_the_commit(name: str, template: Path, tmp_path: Path) -> None:
    loop(OPERATIONS[name], template / name, tmp_path, ONCE_EACH)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_interrupt_at_every_stage(name: str, template: Path, tmp_path: Path) -> None:
    loop(OPERATIONS[name], template / name, tmp_path, None)


@pytest.mark.parametrize("name", MADE)
def test_an_interrupt_behind_the_commit_deletes_nothing(
    name: str, template: Path, tmp_path: Path
) -> None:
    folder = copied(template / "warehouse", tmp_path / "w")
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute("ALTER TABLE other MODIFY COLUMN n Nullable(Int64)")
        connection.execute("INSERT INTO other VALUES (1, 'q', NULL)")
        connection.execute("ALTER TABLE other MODIFY COLUMN n Int64 DEFAULT 5")
        with watching(interrupting("catalog.committed", 1)), pytest.raises(KeyboardInterrupt):
            connection.execute(MADE[name])
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []


def loop(
    operation: Operation, template: Path, tmp_path: Path, chosen: tuple[str, ...] | None
) -> None:
    """Interrupt at the last time that each chosen stage is reached; for None at every time of
    each stage."""
    dry = copied(template, tmp_path / "dry")
    with olapdb.connect(str(dry)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        with recording() as reached:
            operation.run(connection, dry)
    states = expected(template, copied(template, tmp_path / "states"), operation)
    for stage in dict.fromkeys(reached):
        if chosen is not None and stage not in chosen:
            continue
        count = reached.count(stage)
        for number in range(1, count + 1) if chosen is None else (count,):
            folder = copied(template, tmp_path / f"{stage}-{number}")
            one_case(operation, folder, stage, number, states)
            shutil.rmtree(folder)
            shutil.rmtree(f"{folder}.backup", ignore_errors=True)


def one_case(
    operation: Operation, folder: Path, stage: str, number: int, states: tuple[Any, Any]
) -> None:
    """Interrupt the operation; check the crashed copy and the open connection."""
    where = f"Ctrl-C at {stage}, time {number}"
    crashed = folder.with_name(f"{folder.name}-crashed")
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        with watching(interrupting(stage, number)), pytest.raises(KeyboardInterrupt):
            operation.run(connection, folder)
        shutil.copytree(folder, crashed)
        goes_on(operation, connection, folder, where, states)
        assert connection.execute("SELECT count() FROM system.processes").fetchone() == (1,)
    verify(crashed, operation, states, False, where)
    shutil.rmtree(crashed)


def interrupting(stage: str, number: int) -> Callable[[str], None]:
    """Return a watcher that raises at the `number`-th time of the stage."""
    left = [number]

    def told(reached: str) -> None:
        left[0] -= reached == stage
        if reached == stage and left[0] == 0:
            raise KeyboardInterrupt

    return told
