"""Shared targets: the verdict about a view when other views write the same target.

Rows of different views lie in separate parts: merges never join them
(`olapdb.maintenance.merge_policy`). Readers see the rows combined. So views that can be compared
with their sources (*peers*) are compared together, and repaired together. A view that cannot be
compared is left out:

    proven, covered   the peers' parts equal what they make of the source rows that each has seen
    stale             a peer's slice is stale; REPLAY recomputes all views whose sources keep rows
    bypassed          the target has rows that none of its views made
    partial           the view itself has a gap
    unproven          the view itself cannot be compared
"""

from __future__ import annotations

from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.views.definition.judgement import unproven_reason
from olapdb.views.proof.coverage import stores_rows


def incomparable_reason(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return why the view's rows cannot be compared with a recomputation, or ""."""
    if reason := unproven_reason(view, snapshot):
        return reason
    if not has_source(view, snapshot):
        return "Its source keeps no rows that could be read again."
    if not stores_rows(snapshot, view.target_id):
        return "Its target keeps no rows that could be compared."
    return ""


def has_source(view: MaterializedView, snapshot: Snapshot) -> bool:
    """Return whether the view's source stores its rows, so that a job can read them again."""
    source = snapshot.by_id(view.source_id)
    return isinstance(source, Table) and stores_rows(snapshot, view.source_id)


def peers(view: MaterializedView, snapshot: Snapshot) -> tuple[MaterializedView, ...]:
    """Return the views that are compared together: the view itself first, then the other comparable
    writers of its target by name. An incomparable view is alone."""
    others = [
        writer
        for writer in snapshot.views_into(view.target_id)
        if writer.id != view.id and not incomparable_reason(writer, snapshot)
    ]
    if incomparable_reason(view, snapshot):
        return (view,)
    return (view, *sorted(others, key=lambda writer: (writer.database, writer.name)))


def recomputable_writers(
    view: MaterializedView, snapshot: Snapshot
) -> tuple[MaterializedView, ...]:
    """Return the writers of the view's target whose sources keep rows: a replay recomputes them."""
    return tuple(item for item in snapshot.views_into(view.target_id) if has_source(item, snapshot))


def compared_parts(view: MaterializedView, snapshot: Snapshot) -> tuple[Part, ...]:
    """Return the target's parts with rows that a comparison of the view reads: those of its peers,
    and those that no view made."""
    peer_ids = {writer.id for writer in peers(view, snapshot)}
    other_ids = {writer.id for writer in snapshot.views_into(view.target_id)} - peer_ids
    return tuple(
        part
        for part in snapshot.parts(view.target_id)
        if part.rows and (part.written_by(peer_ids) or not part.written_by(other_ids))
    )
