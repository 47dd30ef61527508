"""A statement that changes the schema is run again when another one was faster.

What it read is required by its commit (rule 10), so a lost race changes nothing: it looks anew, and
does its work, or says what is there now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from olapdb.commit.fair_retry import FairRetry
from olapdb.errors import CommitConflict
from olapdb.model.changes import Change, Commit, Requirement
from olapdb.model.snapshot import Snapshot
from olapdb.statements.context import StatementContext

ATTEMPTS_MAX = 10

_Answer = TypeVar("_Answer")


def attempted(context: StatementContext, attempt: Callable[[Snapshot], _Answer]) -> _Answer:
    """`attempt(newest snapshot)`, which makes one commit of what it reads there; again, bounded,
    after each CommitConflict. Raises what it raises, CommitConflict after the last attempt."""
    turns = FairRetry(context.services, context.text[:60])
    for _ in range(ATTEMPTS_MAX):
        try:
            with turns.attempt():
                return attempt(context.snapshot())
        except CommitConflict as conflict:
            lost = conflict
    raise CommitConflict(
        f"Other statements changed the same objects {ATTEMPTS_MAX} times while this one ran.",
        hint="Nothing was changed; run it again.",
    ) from lost


def commit(
    context: StatementContext,
    kind: str,
    requirements: Sequence[Requirement],
    changes: Sequence[Change],
) -> None:
    """Publishes a change of the schema."""
    context.services.catalog.apply(
        Commit(tuple(requirements), tuple(changes), kind, context.query_id, context.text[:65_536])
    )
