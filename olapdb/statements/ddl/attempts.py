"""A statement that changes the schema is run again when another one was faster.

What it read is required by its commit (rule 10), so a lost race changes nothing: it looks anew, and
does its work, or says what is there now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.retry import ATTEMPTS_MAX, Outcome, RetryPolicy, retry_commit
from olapdb.model.changes import Change, Requirement
from olapdb.model.snapshot import Snapshot
from olapdb.statements.context import StatementContext


def attempted(context: StatementContext, attempt: Callable[[Snapshot], Outcome]) -> Outcome:
    """`attempt(newest snapshot)`, which makes one commit of what it reads there; again, bounded,
    after each CommitConflict. Raises what it raises, CommitConflict after the last attempt."""
    policy = RetryPolicy(
        context.text[:60],
        f"Other statements changed the same objects {ATTEMPTS_MAX} times while this one ran.",
    )
    return retry_commit(context.services, attempt, policy, first=context.snapshot())


def commit(
    context: StatementContext,
    kind: str,
    requirements: Sequence[Requirement],
    changes: Sequence[Change],
) -> None:
    """Publishes a change of the schema."""
    publish(CommitDraft(requirements, changes), context.origin(kind))
