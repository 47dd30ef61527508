"""The one loop that repeats a statement's work when a concurrent commit came first.

    attempt 1..3   take the newest snapshot, compute, commit; a concurrent commit: CommitConflict
    attempt 4      take the catalog's turn first: other writers wait until the commit

Without the turn a statement that needs longer than the pauses between concurrent commits would
never succeed.  A statement with attempts so slow that waiting writers would time out never gets
the turn, and retries without it.  A revoked lease is Aborted, not CommitConflict, so it ends the
loop at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from olapdb.errors import CommitConflict
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.services import Services

ATTEMPTS_MAX = 10
"""The most attempts of a statement, unless its policy has another limit."""
FREE_ATTEMPTS_MAX = 3
"""How many attempts a statement makes before it asks for the catalog's turn."""
HELD_SECONDS_MAX = 10.0
"""A statement with a slower attempt than this never holds the turn."""

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class RetryPolicy:
    """The retries of a statement, and the CommitConflict after the last of them.

    `what` names the statement for writers that wait for its turn.  `message` and `hint` are those of
    the final error; "" raises the last conflict itself.  `pinned` keeps the parts of each attempt's
    snapshot from vacuum, for work that reads them for long.  `fair` False never takes the turn.
    `on_conflict` runs after each lost attempt, outside of its pin and turn; an error that it raises
    ends the loop.
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

    `first` is the first attempt's snapshot, if the caller has it already.  Each retry is counted as
    the event CommitRetry.  Raises the attempt's errors, CatalogBusy if the wait for the turn times
    out, and CommitConflict after `attempts_max` attempts.
    """
    fair_retry = FairRetry(services, policy.what)
    for number in range(policy.attempts_max):
        if number:
            services.activity.count("CommitRetry")
        try:
            with (
                fair_retry.attempt() if policy.fair else nullcontext(),
                _snapshot(services, policy, None if number else first) as snapshot,
            ):
                return attempt(snapshot)
        except CommitConflict as conflict:
            policy.on_conflict(conflict)
            last_conflict = conflict
    if not policy.message:
        raise last_conflict
    raise CommitConflict(policy.message, hint=policy.hint) from last_conflict


def _snapshot(
    services: Services, policy: RetryPolicy, first: Snapshot | None
) -> AbstractContextManager[Snapshot]:
    """Return a block around `first` or the newest snapshot, pinned if the policy says so."""
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
        """Hold the catalog's turn around one attempt, from its snapshot to its commit, if the
        statement has lost `FREE_ATTEMPTS_MAX` races. Raise CatalogBusy if the wait for the turn
        times out."""
        takes_turn = (
            self._attempts >= FREE_ATTEMPTS_MAX and self._slowest_seconds <= HELD_SECONDS_MAX
        )
        self._attempts += 1
        with self.services.catalog.turn(self.what) if takes_turn else nullcontext():
            started = time.monotonic()
            try:
                yield
            finally:
                self._slowest_seconds = max(self._slowest_seconds, time.monotonic() - started)
