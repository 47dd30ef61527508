"""materialized_views_ignore_errors: the note about a view that failed on a block.

The block is not in the view's coverage, so it is a gap of the view.  A note in the ledger, an
invalidation of no partition, gives the reason.  The block stager writes the note, and the commit
adds the statement.
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
"""The partition of a note: the failed view wrote no rows to any partition of its target."""
REASON_LENGTH_MAX = 1_000


def failure_note(view: MaterializedView, rows: int, error: Error) -> Invalidate:
    """Return the note that the view failed on a block of `rows` rows; its only key is the
    reason."""
    reason = str(error)[:REASON_LENGTH_MAX]
    return Invalidate(Invalidation(view.id, NO_PARTITION, FAILED, "", "", rows, 0, (reason,)))


def with_statements(changes: Iterable[Change], origin: CommitOrigin) -> list[Change]:
    """Return the changes with the statement of the origin in each failure note.

    Several notes of one view become one, with the first reason and the rows of all."""
    signed_changes: list[Change] = []
    notes: dict[str, Invalidation] = {}
    for change in changes:
        if not is_failure_note(change):
            signed_changes.append(change)
            continue
        assert isinstance(change, Invalidate)
        note = change.invalidation
        before = notes.get(note.view_id)
        rows = note.rows + (before.rows if before else 0)
        notes[note.view_id] = replace(before or note, rows=rows)
    signed_changes += [
        Invalidate(
            replace(
                note, statement=origin.statement, query_id=origin.query_id, since_ms=origin.now_ms()
            )
        )
        for note in notes.values()
    ]
    return signed_changes


def is_failure_note(change: Change) -> bool:
    """Return whether the change is the note of a view that failed."""
    return isinstance(change, Invalidate) and change.invalidation.cause == FAILED
