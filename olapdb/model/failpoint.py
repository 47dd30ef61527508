"""Types of failpoints and durability that storage, catalog and runtime share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

Durability: TypeAlias = Literal["full", "process"]
"""full: a commit survives a loss of power; process: only a crash of the process."""

FailpointObserver: TypeAlias = Callable[[str], None]
"""A callback that gets the name of each failpoint reached; tests stop or fail there."""


def ignore_failpoint(stage: str) -> None:
    """Do nothing: the observer of a run that no test watches."""
