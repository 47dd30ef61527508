"""Runs a step in a process of its own, which dies by SIGKILL at a named stage."""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection as Pipe

import olapdb
from olapdb.runtime.failpoints import kill_at
from tests.schedules.operation import Answer, Operation

SECONDS_MAX = 120

LOADED = (
    "tests.schedules.schedule",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyarrow.acero",
    "olapdb.database",
    "olapdb.dml.insert",
    "olapdb.dml.delete",
    "olapdb.maintenance.merger",
    "olapdb.maintenance.scheduler",
    "olapdb.storage.store",
    "olapdb.catalog.sqlite.catalog",
    "olapdb.sql.parser",
    "olapdb.views.definition.create",
    "olapdb.views.jobs.backfill",
    "olapdb.views.jobs.replay",
    "olapdb.views.jobs.adopt",
    "olapdb.views.proof.reconcile",
    "olapdb.views.jobs.executor",
    "olapdb.views.proof.status",
    "olapdb.functions",
    "olapdb.execute",
)
"""Modules that the fork server loads once for all processes."""

_processes = multiprocessing.get_context("forkserver")


def run_and_die(
    folder: str, operation: Operation, text: str, stage: str, count: int
) -> Answer | None:
    """Run the statement in a process that dies when it reaches the stage for the `count`-th
    time. Return None if it died, else the statement's answer."""
    _processes.set_forkserver_preload(list(LOADED))
    ours, theirs = _processes.Pipe(duplex=False)
    process = _processes.Process(
        target=_work, args=(theirs, folder, operation, text, stage, count), daemon=True
    )
    process.start()
    theirs.close()
    try:
        answer: Answer | None = ours.recv() if ours.poll(SECONDS_MAX) else None
    except EOFError:
        answer = None
    process.join(SECONDS_MAX)
    ours.close()
    code = process.exitcode
    process.close()
    if code not in (0, -signal.SIGKILL):
        raise AssertionError(f"The process of {text!r} ended with {code}.")
    return answer if code == 0 else None


def _work(pipe: Pipe, folder: str, operation: Operation, text: str, stage: str, count: int) -> None:
    with olapdb.connect(folder) as connection:
        connection.execute("SYSTEM STOP MERGES")
        kill_at(stage, count)
        pipe.send(operation.perform(connection, text))
    pipe.close()
