"""Runs work in a process of its own that is forked from one which has loaded olapdb.

A kill -9 needs a process for each stage. A new Python loads olapdb in most of a second; a fork of the server has
it at once. Nothing but modules is loaded before the fork: no warehouse is open and no thread runs.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

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

server = multiprocessing.get_context("forkserver")


def forked(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process that calls the function of a module with the arguments; the caller joins and closes it."""
    server.set_forkserver_preload(list(LOADED))
    process = server.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def run_module(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `main` of a module as `python -m` does, and return what it printed and the code that it ended with.

    A code below 0 is the signal that ended it. Raises TimeoutExpired after SECONDS_MAX.
    """
    command = [name, *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        printed = [Path(folder, stream) for stream in ("stdout", "stderr")]
        process = forked(_run, command, *map(str, printed))
        process.join(SECONDS_MAX)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(command, SECONDS_MAX)
        texts = [path.read_text() if path.exists() else "" for path in printed]
        done = subprocess.CompletedProcess(command, process.exitcode, *texts)
        process.close()
        return done


def _run(command: list[str], *printed: str) -> None:
    """Call the module's `main`; what it prints goes to the files."""
    for path, stream in zip(printed, (1, 2), strict=True):
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.argv = command
    importlib.import_module(command[0]).main()
    sys.stdout.flush()
