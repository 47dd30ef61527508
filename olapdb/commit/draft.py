"""The draft of a commit: its requirements and changes, gathered from several sources.

draft = CommitDraft()
draft.require(origin.lease, SchemaIs(table.id, table.version))
draft.change(RemoveParts(table.id, ids), *staged)
draft.merge(consequences)                  # another draft
committed = publish(draft, origin)
"""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.commit.origin import CommitOrigin
from olapdb.errors import CommitConflict
from olapdb.model.changes import AddPart, Change, Commit, Committed, RemoveParts
from olapdb.model.part import is_detached
from olapdb.model.requirements import Requirement


class CommitDraft:
    """Distinct requirements and changes, both in the order in which they were added."""

    def __init__(
        self, requirements: Iterable[Requirement] = (), changes: Iterable[Change] = ()
    ) -> None:
        self._requirements: dict[Requirement, None] = dict.fromkeys(requirements)
        self.changes: list[Change] = list(changes)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Return the distinct requirements, in the order in which they were added."""
        return tuple(self._requirements)

    def require(self, *requirements: Requirement) -> None:
        """Add requirements; one that the draft has already is not repeated."""
        self._requirements.update(dict.fromkeys(requirements))

    def change(self, *changes: Change) -> None:
        """Append changes."""
        self.changes += changes

    def merge(self, other: CommitDraft) -> None:
        """Add all requirements and changes of the other draft."""
        self._requirements.update(other._requirements)
        self.changes += other.changes

    def commit(self, origin: CommitOrigin) -> Commit:
        """Return the commit, of the origin's kind."""
        return Commit(
            self.requirements, tuple(self.changes), origin.kind, origin.query_id, origin.statement
        )


def publish(draft: CommitDraft, origin: CommitOrigin, *, notify: bool = True) -> Committed:
    """Apply the draft as one commit, and wake the merges of the tables whose parts it changes.

    A merge passes `notify` False: it must not wake itself.  Raises the errors of `Catalog.apply`; a
    CommitConflict counts as the event CommitConflict.
    """
    services = origin.services
    try:
        committed = services.catalog.apply(draft.commit(origin))
    except CommitConflict:
        services.activity.count("CommitConflict")
        raise
    if notify:
        for table_id in dict.fromkeys(map(_written_table, draft.changes)):
            if table_id is not None and not is_detached(table_id):
                services.notify_written(table_id)
    return committed


def publish_if_current(draft: CommitDraft, origin: CommitOrigin) -> Committed | None:
    """Apply the draft once; return None, with nothing changed, on CommitConflict.

    For notes about a state: when a concurrent commit ended that state, the note is obsolete.
    """
    try:
        return publish(draft, origin)
    except CommitConflict:
        return None


def _written_table(change: Change) -> str | None:
    """Return the id of the table whose parts the change adds or removes; None for others."""
    if isinstance(change, AddPart):
        return change.part.table_id
    return change.table_id if isinstance(change, RemoveParts) else None
