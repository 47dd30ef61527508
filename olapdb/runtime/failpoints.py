"""The stages of everything that writes, by name, for tests that stop, fail or kill there.

    reach("insert.before_commit")      does nothing in a process that nobody watches

A crash test lets its child process call `kill_at("insert.before_commit", 3)`: the third time that
the stage is reached, the process kills itself with SIGKILL.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from olapdb.errors import BadArguments, InternalError
from olapdb.model.failpoint import Reach, reach_nothing

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
"""Every stage there is; reaching another one while somebody watches is an error."""


class _Watch:
    """Whom to tell. One a process: a stage is reached deep inside code that knows nothing of it."""

    def __init__(self) -> None:
        self.told: Reach = reach_nothing


_watch = _Watch()


def failpoint(stage: str) -> None:
    """Says that a stage is reached."""
    told = _watch.told
    if told is not reach_nothing:
        if stage not in FAILPOINTS:
            raise InternalError(f"Stage {stage!r} is not listed in transaction.points.STAGES.")
        told(stage)


@contextmanager
def watching(told: Reach) -> Iterator[None]:
    """Tells `told` of every stage that any thread reaches inside the `with`; what it raises is
    raised there."""
    before, _watch.told = _watch.told, told
    try:
        yield
    finally:
        _watch.told = before


BACKGROUND_THREADS = ("olapdb-merges", "olapdb-vacuum")
"""Threads that no statement waits for."""


@contextmanager
def recording() -> Iterator[list[str]]:
    """The stages reached inside the `with`, in their order, but for those of merges and vacuum in the
    background: any warehouse that the process has open may reach these at any time."""
    reached: list[str] = []

    def told(stage: str) -> None:
        if threading.current_thread().name not in BACKGROUND_THREADS:
            reached.append(stage)

    with watching(told):
        yield reached


def kill_at(stage: str, count: int = 1) -> None:
    """From now on: SIGKILL to this process when `stage` is reached for the `count`-th time."""
    if stage not in FAILPOINTS:
        raise BadArguments(f"There is no stage {stage!r}.", hint="See STAGES.")
    lock = threading.Lock()
    left = [count]

    def told(reached: str) -> None:
        if reached != stage:
            return
        with lock:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    _watch.told = told
