"""Runs a step in a process of its own, which dies by SIGKILL at a named stage."""

from __future__ import annotations

import signal
from multiprocessing.connection import Connection as Pipe

import olapdb
from olapdb.runtime.failpoints import kill_at
from tests.harness.child import SECONDS_MAX, forked, server
from tests.schedules.operation import Answer, Operation


def run_and_die(
    folder: str, operation: Operation, text: str, stage: str, count: int
) -> Answer | None:
    """Run the statement in a process that dies when it reaches the stage for the `count`-th
    time. Return None if it died, else the statement's answer."""
    ours, theirs = server.Pipe(duplex=False)
    process = forked(_work, theirs, folder, operation, text, stage, count)
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
