"""A process that ends while olapdb works in it ends soon, with its own exit status.

Background work stops before Arrow is taken down, which would abort the process.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import olapdb
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.faults.exit_child import PREPARED, WORK

pytestmark = pytest.mark.feature("crashes")

ENDINGS = {
    "end": 0,
    "exit": 3,
    "error": 1,
    "interrupt": -signal.SIGINT,
    "before atexit": 0,
    "fork": 0,
    "fork and leave": 0,
    "multiprocessing fork": 0,
    "multiprocessing spawn": 0,
    "thread exits": 3,
}
CHILD_SECONDS_MAX = 600
"""A limit far above a child's time, also on a busy machine."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exit") / "w"
    with olapdb.connect(str(folder), settings={"inline_bytes_max": 0}) as connection:
        for statement in PREPARED:
            connection.execute(statement)
    return folder


def end(prepared: Path, folder: Path, work: str, ending: str, delay: float) -> None:
    """Run a child on a copy of the warehouse; require its exit status and a sound copy."""
    shutil.copytree(prepared, folder)
    child = Path(__file__).with_name("exit_child.py")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(child), str(folder), work, ending, str(delay)],
        capture_output=True,
        text=True,
        timeout=CHILD_SECONDS_MAX,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    where = f"{work}, {ending}, after {delay} s: {done.stderr[-6_000:]}"
    assert done.stdout == "at work\n", where
    assert done.returncode == ENDINGS[ending], where
    assert "Fatal" not in done.stderr, where
    assert "cannot schedule new futures" not in done.stderr, where
    with olapdb.connect(str(folder)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        services = connection.database.services
        vacuum(services, lifetime_seconds=0)
        assert check_database(services.catalog, services.store) == [], where
        if work == "own threads":
            inserts = "SELECT count() FROM system.snapshots WHERE kind = 'INSERT'"
            assert connection.execute(inserts).fetchone() == (4 + 4,), where
    shutil.rmtree(folder)


PAIRS = [(list(WORK)[number % len(WORK)], ending) for number, ending in enumerate(ENDINGS)]
"""Each kind of work and each ending at least once; the soak has all pairs, many times."""


@pytest.mark.slow
@pytest.mark.parametrize(("work", "ending"), PAIRS)
def test_a_process_ends_with_its_own_status(
    work: str, ending: str, prepared: Path, tmp_path: Path
) -> None:
    end(prepared, tmp_path / "w", work, ending, random.Random(work).uniform(0, 0.3))


@pytest.mark.soak
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("work", WORK)
def test_every_work_and_ending(work: str, ending: str, prepared: Path, tmp_path: Path) -> None:
    until = time.monotonic() + float(os.environ.get("OLAPDB_SOAK_SECONDS", "20"))
    picked = random.Random(f"{work} {ending}")
    while time.monotonic() < until:
        end(prepared, tmp_path / "w", work, ending, picked.uniform(0, 1.0))
