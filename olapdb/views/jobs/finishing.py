"""What the last commit of a backfill does besides: it creates the plain view of READ VIEW, so that
nobody reads a view before its history is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb.commit.draft import CommitDraft
from olapdb.model.requirements import RevisionIs
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass


@dataclass
class Finishing:
    """A draft that joins the commit which ends a job, once. `draft` makes it at a snapshot.

    CREATE makes it, too, to refuse a wrong query before anything exists. `kept` is that draft, with
    what it requires once the view and its target exist."""

    draft: Callable[[Snapshot], CommitDraft]
    kept: CommitDraft | None = None
    done: bool = False

    def keep(self, draft: CommitDraft, created_ids: Sequence[str], commit: int) -> None:
        """Keep a draft for the first attempt, if the objects with these ids still are as the commit
        made them."""
        draft.require(*(RevisionIs(created_id, commit) for created_id in created_ids))
        self.kept = draft

    def draft_once(self, snapshot: Snapshot) -> CommitDraft:
        """Return the draft at the snapshot; an empty one after its commit."""
        if self.done:
            return CommitDraft()
        kept, self.kept = self.kept, None
        if kept is not None and all(
            (item := snapshot.by_id(required.object_id)) and item.revision == required.revision
            for required in kept.requirements
            if isinstance(required, RevisionIs)
        ):
            return kept
        return self.draft(snapshot)
