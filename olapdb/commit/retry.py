"""The one loop that repeats a statement's work after a conflict with a concurrent commit.

    attempt 1..3   takes the newest snapshot, computes, commits; CommitConflict: a rival was faster
    attempt 4      takes the catalog's turn first: rivals wait while it computes and commits

The turn is the exclusive right to commit, which one thread of one process holds at a time.
Without it a statement that needs longer than the pauses between its rivals' commits would never
succeed.  A statement whose attempts are so slow that rivals would give up waiting never gets the
turn, and goes on trying.  A revoked lease raises Aborted, not CommitConflict, so it ends the loop
at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from typing import TypeVar

from olapdb.errors import CommitConflict
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.services import Services

ATTEMPTS_MAX = 10
"""The most attempts of a statement, unless its policy sets another limit."""
FREE_ATTEMPTS_MAX = 3
"""The attempts of a statement before it requests the catalog's turn."""
HELD_SECONDS_MAX = 10.0
"""A statement with a slower attempt than this never holds the turn."""

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class RetryPolicy:
    """How a statement is retried, and the CommitConflict that it ends with.

    `what` names the statement for writers that wait for its turn.  `message` and `hint` belong to
    the final error; "" raises the last conflict itself.  `pinned` keeps the parts of each attempt's
    snapshot from vacuum, for long reads.  `fair` False never takes the turn. `on_conflict` runs
    after each lost attempt, outside of its pin and turn; an exception that it raises ends the loop.
    """

    what: str
    message: str = ""
    hint: str = "Nothing was changed; run it again."
    attempts_max: int = ATTEMPTS_MAX
    pinned: bool = False
    fair: bool = True
    on_conflict: Callable[[CommitConflict], None] = field(default=lambda conflict: None)


def retry_commit(
    services: Services,
    attempt: Callable[[Snapshot], Outcome],
    policy: RetryPolicy,
    *,
    first: Snapshot | None = None,
) -> Outcome:
    """Return `attempt(newest snapshot)`, which commits once; repeat it after each CommitConflict.

    `first` is the first attempt's snapshot where the caller has it already.  Every repetition
    counts as the event CommitRetry.  Raises the attempt's errors, CatalogBusy where the turn does
    not come, and CommitConflict after `attempts_max` attempts.
    """
    turns = FairRetry(services, policy.what)
    for number in range(policy.attempts_max):
        if number:
            services.activity.count("CommitRetry")
        try:
            with (
                turns.attempt() if policy.fair else nullcontext(),
                _snapshot(services, policy, None if number else first) as snapshot,
            ):
                return attempt(snapshot)
        except CommitConflict as conflict:
            policy.on_conflict(conflict)
            lost = conflict
    if not policy.message:
        raise lost
    raise CommitConflict(policy.message, hint=policy.hint) from lost


def _snapshot(
    services: Services, policy: RetryPolicy, first: Snapshot | None
) -> AbstractContextManager[Snapshot]:
    """Return a context with `first`, or the newest snapshot if None. The policy may pin it."""
    if policy.pinned:
        return services.catalog.pinned(None if first is None else first.number)
    return nullcontext(services.catalog.snapshot() if first is None else first)


@dataclass
class FairRetry:
    """The attempts of one statement; `what` names it for writers that wait for its turn."""

    services: Services
    what: str
    _attempts: int = 0
    _slowest_seconds: float = 0.0

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Make one attempt of the statement in the body, from its snapshot to its commit.

        After `FREE_ATTEMPTS_MAX` attempts the body holds the catalog's turn, unless an earlier
        attempt took more than `HELD_SECONDS_MAX`. Raises CatalogBusy if the turn does not come.
        """
        held = self._attempts >= FREE_ATTEMPTS_MAX and self._slowest_seconds <= HELD_SECONDS_MAX
        self._attempts += 1
        with self.services.catalog.turn(self.what) if held else nullcontext():
            began = time.monotonic()
            try:
                yield
            finally:
                self._slowest_seconds = max(self._slowest_seconds, time.monotonic() - began)
