"""Named points of everything that writes, at which tests stop, fail or kill the process.

    failpoint("insert.before_commit")      does nothing unless a test watches

A crash test lets its child process call `kill_at("insert.before_commit", 3)`: when the point is
reached for the third time, the process kills itself with SIGKILL.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from olapdb.errors import BadArguments, InternalError
from olapdb.model.failpoint import FailpointObserver, ignore_failpoint

FAILPOINTS = (
    "store.written",
    "store.flushed",
    "store.renamed",
    "store.synced",
    "catalog.checked",
    "catalog.before_commit",
    "catalog.committed",
    "stage.before_part",
    "stage.part_staged",
    "transaction.before_commit",
    "transaction.committed",
    "insert.source_staged",
    "insert.view_fired",
    "insert.staged",
    "insert.before_commit",
    "insert.committed",
    "delete.part_rewritten",
    "delete.before_commit",
    "attach.part_staged",
    "move.rows_asked",
    "move.committed",
    "update.part_rewritten",
    "update.before_commit",
    "alter.before_commit",
    "rows.chunk_computed",
    "replay.begun",
    "replay.chunk_computed",
    "replay.noted",
    "replay.before_commit",
    "replay.committed",
    "adopt.before_commit",
    "adopt.committed",
    "backfill.planned",
    "backfill.chunk_computed",
    "backfill.before_commit",
    "backfill.chunk_published",
    "modify.before_commit",
    "rebuild.before_start",
    "rebuild.started",
    "rebuild.backfilled",
    "rebuild.reconciled",
    "rebuild.before_swap",
    "rebuild.swapped",
    "rollback.before_commit",
    "merge.started",
    "merge.read",
    "merge.committed",
    "backup.catalog_copied",
    "backup.parts_copied",
    "backup.published",
    "restore.parts_copied",
    "vacuum.revoked",
    "vacuum.marked",
    "vacuum.forgotten",
    "vacuum.file_deleted",
    "vacuum.history_forgotten",
    "vacuum.blocks_compacted",
    "vacuum.space_given_back",
)
"""Every failpoint; reaching an unlisted one while a test watches is an error."""


class _Watch:
    """The process's observer. It is global, because failpoints lie deep in code without access to
    services."""

    def __init__(self) -> None:
        self.observer: FailpointObserver = ignore_failpoint


_watch = _Watch()


def failpoint(stage: str) -> None:
    """Call the observer, if there is one, with the name of the point that was reached."""
    observer = _watch.observer
    if observer is not ignore_failpoint:
        if stage not in FAILPOINTS:
            raise InternalError(f"Stage {stage!r} is not listed in runtime.failpoints.FAILPOINTS.")
        observer(stage)


@contextmanager
def watching(observer: FailpointObserver) -> Iterator[None]:
    """Call `observer` for every failpoint that any thread reaches inside the `with`. What it raises
    is raised at the failpoint."""
    before, _watch.observer = _watch.observer, observer
    try:
        yield
    finally:
        _watch.observer = before


BACKGROUND_THREADS = ("olapdb-merges", "olapdb-vacuum")
"""Threads for which no statement waits."""


@contextmanager
def recording() -> Iterator[list[str]]:
    """Yield a list that collects the failpoints reached inside the `with`, in order. Background
    merges and vacuum are left out: any open warehouse of the process may reach theirs at any time.
    """
    reached: list[str] = []

    def observe(stage: str) -> None:
        """Append the stage to `reached`, unless a background thread reached it."""
        if threading.current_thread().name not in BACKGROUND_THREADS:
            reached.append(stage)

    with watching(observe):
        yield reached


def kill_at(stage: str, count: int = 1) -> None:
    """Send SIGKILL to this process when `stage` is reached for the `count`-th time from now on.

    Raises BadArguments."""
    if stage not in FAILPOINTS:
        raise BadArguments(f"There is no stage {stage!r}.", hint="See FAILPOINTS.")
    lock = threading.Lock()
    remaining = [count]

    def observe(reached: str) -> None:
        """Count when `stage` is reached; kill the process the `count`-th time."""
        if reached != stage:
            return
        with lock:
            remaining[0] -= 1
            if remaining[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    _watch.observer = observe
