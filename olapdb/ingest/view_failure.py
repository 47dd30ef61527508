"""materialized_views_ignore_errors: what is kept of a view that failed on a block.

Its block is no part of its coverage, so it is the view's gap; why that is so is a note in the
ledger, beside the invalidations of no partition.  The block stager writes the note, and whoever
commits gives it the statement's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from olapdb.commit.origin import CommitOrigin
from olapdb.errors import Error
from olapdb.model.changes import Change, Invalidate
from olapdb.model.schema import MaterializedView
from olapdb.model.view_state import Cause, Invalidation

FAILED: Cause = "VIEW FAILED"
NO_PARTITION = ""
"""A failed view made no rows, so the note is about no partition of its target."""
REASON_LENGTH_MAX = 1_000


def failure_note(view: MaterializedView, rows: int, error: Error) -> Invalidate:
    """The view failed on a block of `rows` rows; the reason is the note's only key."""
    reason = str(error)[:REASON_LENGTH_MAX]
    return Invalidate(Invalidation(view.id, NO_PARTITION, FAILED, "", "", rows, 0, (reason,)))


def signed(changes: Iterable[Change], origin: CommitOrigin) -> list[Change]:
    """The same changes, each failure signed by its statement; a view's several are one, with the
    first reason and the rows of all."""
    kept: list[Change] = []
    notes: dict[str, Invalidation] = {}
    for change in changes:
        if not is_failure_note(change):
            kept.append(change)
            continue
        assert isinstance(change, Invalidate)
        one = change.invalidation
        before = notes.get(one.view_id)
        rows = one.rows + (before.rows if before else 0)
        notes[one.view_id] = replace(before or one, rows=rows)
    kept += [
        Invalidate(
            replace(
                one, statement=origin.statement, query_id=origin.query_id, since_ms=origin.now_ms()
            )
        )
        for one in notes.values()
    ]
    return kept


def is_failure_note(change: Change) -> bool:
    return isinstance(change, Invalidate) and change.invalidation.cause == FAILED
