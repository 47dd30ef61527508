"""parallel_view_processing: the sibling views of one table fire in threads.

Each view fires into a stager of its own, a branch, with all that it cascades to.  The branches are
then joined in the order in which the views would have fired one by one.  So the commit is the same:
blocks have the same numbers, parts the same rows, and of several failures the first one is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from olapdb.config import Settings
from olapdb.threads import ThreadPool

Branch = TypeVar("Branch")


def run_branches(
    branches: Sequence[Branch],
    fire: Callable[[Branch], None],
    absorb: Callable[[Branch], None],
    settings: Mapping[str, object],
) -> None:
    """Fire all branches in threads, then absorb them in their order.

    Absorbs up to and including the first branch that failed, and raises its error.  The caller
    deletes what the other branches staged."""
    threads = Settings.of(settings).threads
    with ThreadPool(min(threads, len(branches)), "olapdb-view") as pool:
        futures: list[Future[None]] = [pool.submit(fire, branch) for branch in branches]
    for branch, future in zip(branches, futures, strict=True):
        absorb(branch)
        future.result()
