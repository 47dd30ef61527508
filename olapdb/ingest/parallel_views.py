"""parallel_view_processing: the sibling views of one table fire in threads.

Each view fires into a stager of its own, a branch, with all that it cascades to.  Afterwards the
branches are joined in the order in which the views would have fired one by one, so the commit is the
same: blocks have the same numbers, parts the same rows, and of several failures the first one's
view is named.
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
    """Fires all branches, then absorbs them in their order, up to and including the first that
    failed; its error is raised. The caller drops what the others have staged."""
    threads = Settings.of(settings).threads
    with ThreadPool(min(threads, len(branches)), "olapdb-view") as pool:
        futures: list[Future[None]] = [pool.submit(fire, one) for one in branches]
    for branch, future in zip(branches, futures, strict=True):
        absorb(branch)
        future.result()
