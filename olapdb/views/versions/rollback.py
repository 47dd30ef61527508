"""ROLLBACK VIEW: the version that the last swap replaced gets its name back, in one commit."""

from __future__ import annotations

from olapdb import errors
from olapdb.commit.draft import publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.views.jobs.job import find_view, view_name
from olapdb.views.proof.status import view_status
from olapdb.views.versions.exchange import NameExchange
from olapdb.views.versions.versions import previous_of

ATTEMPTS_MAX = 20


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The result of a ROLLBACK. The version `view` has the original name again; the version
    `replaced`, which had it, is kept. `verdict` and `mend` describe `view` after the commit."""

    view: str
    replaced: str
    target: str
    kept_target: str
    verdict: str
    mend: str
    commit: int


def rollback(origin: CommitOrigin, view_id: str) -> tuple[RolledBack, ...]:
    """Give the name back to the version that the last swap replaced: one commit, which computes
    nothing. A second rollback undoes the first.

    Raises UnknownTable if no previous version is kept, and the errors of `NameExchange.refuse`:
    BypassRows, HaveDependentObjects."""
    services, origin = origin.services, origin.of_kind("ROLLBACK VIEW")

    def attempt(snapshot: Snapshot) -> tuple[RolledBack, ...]:
        """Exchange the view with its previous version in one commit; UnknownTable without one.

        Raises UnknownTable."""
        old = find_view(snapshot, view_id)
        new = previous_of(snapshot, old)
        if new is None:
            raise errors.UnknownTable(
                f"No previous version of {view_name(old)} is kept.",
                hint="SYSTEM REBUILD VIEW keeps the version that it replaces, until it is dropped"
                " or the next REBUILD replaces its successor.",
            )
        exchange = NameExchange(snapshot, old, new, steps_back=True)
        exchange.refuse()
        draft = exchange.draft((origin.lease,), origin)
        failpoint("rollback.before_commit")
        committed = publish(draft, origin)
        return (_rolled_back(services.catalog.snapshot(), old.id, new.id, committed.number),)

    first = services.catalog.snapshot()
    policy = RetryPolicy(
        "ROLLBACK VIEW",
        f"View {view_name(find_view(first, view_id))} was changed by others {ATTEMPTS_MAX} times"
        " meanwhile.",
        attempts_max=ATTEMPTS_MAX,
    )
    return retry_commit(services, attempt, policy, first=first)


def _rolled_back(snapshot: Snapshot, old_id: str, new_id: str, commit: int) -> RolledBack:
    """Return the result of a rollback in which the version `new_id` took the name of `old_id`."""
    old, new = find_view(snapshot, old_id), find_view(snapshot, new_id)
    status = view_status(new, snapshot)
    old_target, new_target = target_of(snapshot, old), target_of(snapshot, new)
    return RolledBack(
        view_name(new),
        view_name(old),
        f"{new_target.database}.{new_target.name}",
        f"{old_target.database}.{old_target.name}",
        status.verdict,
        status.mend,
        commit,
    )
