"""A dbt run that dies by SIGKILL, and a writer that inserts meanwhile, as processes of their own.

A run dies at the N-th time at a stage: a failpoint of the engine, or `STATEMENT`, whose points are
the moments before and after each statement that dbt sends. A fork server has dbt loaded, since that
takes longer than most runs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import olapdb
from olapdb.runtime.failpoints import kill_at

PAUSE_S = 0.1
"""The writer's pace: it leaves time to dbt, and some hundred blocks in a test."""
SECONDS_MAX = 300
STATEMENT = "statement"
LOADED = ("dbt.cli.main", "dbt.adapters.olapdb", "olapdb.database", "olapdb.maintenance.scheduler")
"""Modules that the fork server loads once for all processes."""

_processes = multiprocessing.get_context("forkserver")


class StatementPoints:
    """Counts the moments before and after the statements of this process, and kills it at one."""

    def __init__(self, killed_at: int) -> None:
        self.reached = 0
        self._killed_at = killed_at
        self._lock = threading.Lock()

    def watch(self) -> None:
        """Count from now on, in every session of the process."""
        from olapdb.runtime.tracking import QueryTracker  # loads the engine, as `connect` does

        run: Callable[..., object] = QueryTracker.run

        def counted(*args: object, **options: object) -> object:
            """Run the statement between its two points."""
            self._reach()
            result = run(*args, **options)
            self._reach()
            return result

        QueryTracker.run = counted  # type: ignore[method-assign,assignment]

    def _reach(self) -> None:
        with self._lock:
            self.reached += 1
            if self.reached == self._killed_at:
                os.kill(os.getpid(), signal.SIGKILL)


def run_dbt(project: Path, stage: str, count: int, arguments: Sequence[str]) -> int:
    """Run dbt in a process that dies at the `count`-th time at the stage; return its exit code.

    What it printed is in PROJECT/printed."""
    process = _start(_run_dbt, project, stage, count, arguments)
    process.join(SECONDS_MAX)
    assert process.exitcode is not None, (project / "printed").read_text()[-3_000:]
    return process.exitcode


@contextmanager
def writing(project: Path) -> Iterator[None]:
    """Insert rows into the source in another process, one block after the other.

    PROJECT/acknowledged has a line for each INSERT that returned."""
    acknowledged = project / "acknowledged"
    process = _start(_write, project)
    try:
        while not acknowledged.exists() and process.is_alive():
            time.sleep(PAUSE_S)
        yield
    finally:
        (project / "stop").touch()
        process.join(SECONDS_MAX)
    assert process.exitcode == 0, (project / "printed").read_text()[-3_000:]


def _start(work: Callable[..., None], project: Path, *arguments: object) -> BaseProcess:
    _processes.set_forkserver_preload(list(LOADED))
    process = _processes.Process(target=work, args=(project, *arguments), daemon=True)
    process.start()
    return process


def _write(project: Path) -> None:
    """Insert until the stop file is there."""
    with (
        olapdb.connect(str(project / "db")) as connection,
        (project / "acknowledged").open("w") as acknowledged,
    ):
        number = 0
        while not (project / "stop").exists():
            month = 1 + number % 3
            connection.execute(
                f"INSERT INTO raw.orders VALUES ('2024-0{month}-02 10:00:00', 'w', {number})"
            )
            print(number, file=acknowledged, flush=True)
            number += 1
            time.sleep(PAUSE_S)


def _run_dbt(project: Path, stage: str, count: int, arguments: Sequence[str]) -> None:
    """Run dbt on the project, and exit with 1 if it failed."""
    with (project / "printed").open("w") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    os.environ["SHOP_WAREHOUSE"] = str(project / "db")
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "0"
    from dbt.cli.main import dbtRunner  # the fork server has loaded it

    if stage == STATEMENT:
        StatementPoints(count).watch()
    else:
        kill_at(stage, count)
    folders = ["--project-dir", "--profiles-dir", "--log-path", "--target-path"]
    places = (project, project, project / "logs", project / "target")
    options = [text for pair in zip(folders, map(str, places), strict=True) for text in pair]
    result = dbtRunner().invoke([*arguments, *options])
    sys.exit(0 if result.success else 1)
