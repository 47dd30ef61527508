"""Draws calls of Python handles of views, from a random source of their own: the other seeds keep their
scripts. Handles are kept from call to call, as a program keeps them, so they meet renamed, rebuilt and dropped
views."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.definitions.steps import handle_step

CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("backfill", {}),
    ("backfill", {"staged": True}),
    ("backfill", {"discard_bypass": True}),
    ("replay", {}),
    ("replay", {"stale": True}),
    ("replay", {"stale": True, "discard_bypass": True}),
    ("replay", {"where": "1"}),
    ("replay", {"discard_retained": True}),
    ("reconcile", {}),
    ("reconcile", {"stale": True}),
    ("reconcile", {"oldest": 2}),
    ("reconcile", {"sample": 1}),
    ("check_ledger", {}),
    ("adopt", {}),
    ("rebuild", {}),
    ("rollback", {}),
    ("cancel_rebuild", {}),
    ("status", {}),
    ("coverage", {}),
    ("invalidations", {}),
    ("backfill_plan", {}),
    ("jobs", {}),
    ("cancel", {}),
)


class Handles:
    """A source of such calls for one script; a fifth of the scripts have some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"handles {seed}")
        self.used = self.chance.random() < 0.2

    def step(self, views: Sequence[tuple[str, str]]) -> list[str]:
        """Return the calls of a step; mostly none. `views` are names and queries of views."""
        if not self.used or not views or self.chance.random() >= 0.4:
            return []
        name, query = self.chance.choice(views)
        if self.chance.random() < 0.15:
            return [handle_step(name, self.chance.choice(("modify", "rebuild")), {"query": query})]
        return [handle_step(name, *self.chance.choice(CALLS))]
