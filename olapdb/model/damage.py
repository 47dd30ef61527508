"""A live part whose bytes cannot be read."""

from __future__ import annotations

from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged part: its id, its table's id, its name, and the error's message.

    It is a fact about the present disk, not about a snapshot. It holds while the part is live,
    until CHECK TABLE finds the part sound.
    """

    part_id: str
    table_id: str
    part: str
    reason: str
    found_ms: int
