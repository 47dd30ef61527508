"""What storage, catalog and transactions share about a commit's stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

Durability: TypeAlias = Literal["full", "process"]
"""full: what was committed survives a loss of power; process: a crash of the process only."""

Reach: TypeAlias = Callable[[str], None]
"""Told the name of each stage that is about to happen, or has; tests stop or fail there."""


def reach_nothing(stage: str) -> None:
    """The stages of a run that nobody watches."""
