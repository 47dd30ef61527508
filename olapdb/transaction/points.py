"""Named stages of writing, where tests stop, fail or kill the process."""

from __future__ import annotations

from collections.abc import Callable

_watchers: list[Callable[[str], None]] = []


def reach(stage: str) -> None:
    """Says that `stage` is about to happen, or has; does nothing unless a test watches."""
    for watcher in _watchers:
        watcher(stage)
