"""What the last commit of a backfill does besides: it creates the plain view of READ VIEW, so that
nobody reads a view before its history is there."""

from __future__ import annotations

from collections.abc import Callable

from olapdb.commit.draft import CommitDraft
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass


@dataclass
class Finishing:
    """A draft that joins the commit which ends a job, once. `draft` makes it at a snapshot."""

    draft: Callable[[Snapshot], CommitDraft]
    done: bool = False

    def draft_once(self, snapshot: Snapshot) -> CommitDraft:
        """Return the draft at the snapshot; an empty one after its commit."""
        return CommitDraft() if self.done else self.draft(snapshot)
