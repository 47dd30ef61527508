"""What a commit survives."""

from typing import Literal, TypeAlias

Durability: TypeAlias = Literal["full", "process"]
"""full: what was committed survives a loss of power; process: a crash of the process only."""
