"""A statement that keeps losing races takes the catalog's turn: nobody commits while it computes.

    attempt 1..3   computes, commits, is refused: others were faster
    attempt 4      takes the turn, computes from the newest snapshot, commits; others wait

Without this, whoever needs longer than the others' pauses would never come in.  Who needs so long
that the others would give up waiting is not given the turn: it goes on trying.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from olapdb.runtime.services import Services

ATTEMPTS_MAX = 10
"""A commit that conflicts is tried this often, unless its statement says otherwise."""
FREE_ATTEMPTS_MAX = 3
"""So many attempts are made while others may commit."""
HELD_SECONDS_MAX = 10.0
"""A statement whose attempts take longer never holds the turn."""


@dataclass
class FairRetry:
    """The attempts of one statement; `what` is told to those who wait for it."""

    services: Services
    what: str
    _attempts: int = 0
    _slowest_seconds: float = 0.0

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Around one attempt, from its snapshot to its commit. Raises CatalogBusy where the turn
        does not come."""
        held = self._attempts >= FREE_ATTEMPTS_MAX and self._slowest_seconds <= HELD_SECONDS_MAX
        self._attempts += 1
        with self.services.catalog.turn(self.what) if held else nullcontext():
            began = time.monotonic()
            try:
                yield
            finally:
                self._slowest_seconds = max(self._slowest_seconds, time.monotonic() - began)
