"""The one entry for the effects on views of a commit that changes rows.

    draft = CommitDraft(…, [RemoveParts(s, …), AddPart(…)])
    draft.merge(effects_of(origin, snapshot, write, draft.changes, sources))

    views on the table        slices that the replaced rows had reached become stale (`SourceChange`)
    views that join it        slices that the changed rows reach become stale (`dimension_change`)
    views that write it       row_removal and target_deletion, which know how the rows leave

The draft requires everything that the answer depends on: a view that is created, or processes a
part, meanwhile makes the commit conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.ingest.dimension_requirements import dimension_requirements
from olapdb.lineage.dimension_change import TableWrite, dimension_effects
from olapdb.lineage.invalidation import StaleSlices, processed_parts, require_same_views
from olapdb.model.changes import Change
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause
from olapdb.records import dataclass

__all__ = ["ProcessedParts", "SourceChange", "TableWrite", "effects_of", "processed_by_views"]


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Parts of a table that a commit replaces or removes, and the slices that their rows reached.

    `slices` belong to the views on the table, by the view's id; a view that has processed none of
    the parts has none.  `joins` says that the slices come from running the views at the snapshot,
    so that the tables that they join must be unchanged.
    """

    table_id: str
    parts: Sequence[Part]
    cause: Cause
    slices: Mapping[str, StaleSlices] = field(default_factory=dict)
    joins: bool = True


@dataclass(frozen=True, slots=True)
class ProcessedParts:
    """A view, and the parts of its source that it has processed."""

    view: MaterializedView
    parts: Sequence[Part]


def effects_of(
    origin: CommitOrigin,
    snapshot: Snapshot,
    write: TableWrite,
    changes: Sequence[Change],
    sources: Sequence[SourceChange] = (),
) -> CommitDraft:
    """Return the changes of views that follow from a commit with these changes, and their
    requirements.

    `changes` are all that the commit does to parts.  `sources` are the tables whose rows it
    replaces after views processed them. New rows need no source: triggers have processed them, or
    they are the views' gap.
    """
    draft = CommitDraft()
    for source in sources:
        processed, requirements = processed_by_views(
            snapshot, source.table_id, source.parts, source.joins
        )
        draft.merge(requirements)
        for seen in processed:
            if seen.view.id in source.slices:
                draft.change(*source.slices[seen.view.id].invalidations(origin, source.cause))
    draft.merge(dimension_effects(origin, snapshot, write, changes))
    return draft


def processed_by_views(
    snapshot: Snapshot, table_id: str, parts: Sequence[Part], joins: bool = True
) -> tuple[list[ProcessedParts], CommitDraft]:
    """Return the views on the table with the parts that each has processed, maybe none.

    The draft requires that no other view is on the table, and that no view has processed more of
    the parts. With `joins` it also requires that the dimensions of views with such parts are
    unchanged.
    """
    draft = CommitDraft([require_same_views(snapshot, table_id)])
    processed: list[ProcessedParts] = []
    for view in snapshot.views_on(table_id):
        seen, unseen = processed_parts(view, parts, snapshot)
        draft.require(*unseen)
        if seen and joins:
            draft.require(*(needed for needed, _ in dimension_requirements(view, snapshot)))
        processed.append(ProcessedParts(view, seen))
    return processed, draft
