"""A live part whose bytes cannot be had: what met it, and when."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """`part_id` is a part of `table_id`, `part` its name; `reason` is the error's message.

    It is a fact about the disk as it is now, not about a snapshot; it counts for as long as the
    part is live, until CHECK TABLE finds the part sound."""

    part_id: str
    table_id: str
    part: str
    reason: str
    found_ms: int
