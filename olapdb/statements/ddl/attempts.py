"""Retries of statements that change the schema.

The commit requires that the objects which the statement read are unchanged (rule 10). A statement
that loses a race changes nothing. It runs again on the newest snapshot, and either does its work or
raises the error that now applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.retry import ATTEMPTS_MAX, Outcome, RetryPolicy, retry_commit
from olapdb.model.changes import Change
from olapdb.model.requirements import Requirement
from olapdb.model.snapshot import Snapshot
from olapdb.statements.context import StatementContext


def retry_on_conflict(context: StatementContext, attempt: Callable[[Snapshot], Outcome]) -> Outcome:
    """Call `attempt(snapshot)`, which commits once, on the newest snapshot, and again after each
    CommitConflict, at most ATTEMPTS_MAX times. Return its result; its errors propagate."""
    policy = RetryPolicy(
        context.text[:60],
        f"Other statements changed the same objects {ATTEMPTS_MAX} times while this one ran.",
    )
    return retry_commit(context.services, attempt, policy, first=context.snapshot())


def commit_schema_change(
    context: StatementContext,
    kind: str,
    requirements: Sequence[Requirement],
    changes: Sequence[Change],
) -> None:
    """Publish a change of the schema, in one commit of this kind."""
    publish(CommitDraft(requirements, changes), context.origin(kind))
