"""Fails every call of the catalog and the store once, or from then on for ever, in every operation.

After each fault the open connection works. A copy of the warehouse, opened, is sound and holds all
of the operation or nothing of it (all where it was acknowledged); its views are right.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.errors import Error, FileDoesntExist
from tests.faults.failing import Calls, Fault, failing
from tests.faults.operations import OPERATIONS, check_backup, expected, goes_on, prepare_all, verify

pytestmark = pytest.mark.feature("crashes")

SECONDS = 2.0
"""The time for each operation in CI; `make soak` runs every case."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_all(tmp_path_factory.mktemp("loops"))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_some_calls_fail(name: str, template: Path, tmp_path: Path) -> None:
    assert loop(name, template, tmp_path, SECONDS) >= 4


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_call_fails(name: str, template: Path, tmp_path: Path) -> None:
    loop(name, template, tmp_path, None)


@pytest.mark.slow
def test_it_bites(template: Path, tmp_path: Path) -> None:
    """Plant a fault: a commit that happened raises as if it had not, and its files are deleted."""
    operation = OPERATIONS["insert"]
    states = expected(template, copied(template / "insert", tmp_path / "states"), operation)
    folder = copied(template / "insert", tmp_path / "lying")
    lie = Fault(1, "after", False, lying=True, name="catalog.apply")
    with pytest.raises((AssertionError, FileDoesntExist)):
        one_case("insert", folder, lie, states)
    folder = copied(template / "insert", tmp_path / "unknown")
    one_case("insert", folder, Fault(1, "after", False, name="catalog.apply"), states)


def loop(name: str, template: Path, tmp_path: Path, seconds: float | None) -> int:
    """Run the cases of an operation, for `seconds` (None: all); return their number."""
    operation = OPERATIONS[name]
    dry = copied(template / name, tmp_path / "dry")
    with olapdb.connect(str(dry)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        with failing(connection.database.services, None) as calls:
            operation.run(connection, dry)
    states = expected(template, copied(template / name, tmp_path / "states"), operation)
    until = None if seconds is None else time.monotonic() + seconds
    done = 0
    for fault in cases(calls, every=seconds is None):
        folder = copied(template / name, tmp_path / f"{fault.number}-{fault.when}-{fault.forever}")
        one_case(name, folder, fault, states)
        shutil.rmtree(folder)
        shutil.rmtree(f"{folder}.backup", ignore_errors=True)
        done += 1
        if until is not None and time.monotonic() > until and done >= 4:
            break
    return done


def cases(calls: Calls, *, every: bool) -> Iterator[Fault]:
    """Yield all faults; in CI the most important first, then evenly over the operation."""
    numbers = list(range(1, len(calls.names) + 1))
    if not every:
        first = [n for n in numbers if calls.names[n - 1] in ("catalog.apply", "store.write")][-3:]
        step = max(len(numbers) // 7, 1)
        rest = [n for start in range(step) for n in numbers[start::step]]
        numbers = list(dict.fromkeys([*reversed(first), *rest]))
    kinds = [(False, "after"), (True, "before"), (False, "before"), (True, "after")]
    if every:
        yield from (Fault(n, w, f) for n in numbers for f, w in kinds)  # type: ignore[arg-type]
        return
    for shift in range(len(kinds)):
        for at, number in enumerate(numbers):
            forever, when = kinds[(at + shift) % len(kinds)]
            yield Fault(number, when, forever)  # type: ignore[arg-type]


def one_case(name: str, folder: Path, fault: Fault, states: tuple[Any, Any]) -> None:
    """Run the operation under the fault; check the open connection and the crashed copy."""
    operation = OPERATIONS[name]
    crashed = folder.with_name(f"{folder.name}-crashed")
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        with failing(connection.database.services, fault) as calls:
            try:
                operation.run(connection, folder)
                acknowledged = True
            except Error:
                acknowledged = False
        named = calls.names[fault.number - 1] if len(calls.names) >= fault.number else "not reached"
        where = f"{name}, {fault} ({named})"
        shutil.copytree(folder, crashed)
        goes_on(operation, connection, folder, where, states)
    if name == "backup" and acknowledged:
        check_backup(folder, states[0], where)
    verify(crashed, operation, states, acknowledged, where)
    shutil.rmtree(crashed)


def copied(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder)
    return folder
