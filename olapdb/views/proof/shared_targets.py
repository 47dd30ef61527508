"""Targets that several views write: what can be said of one view where others share its target.

Rows of different views lie in parts of their own: merges never join them (`olapdb.maintenance.merge_policy`).
Readers see them combined, so views that can be compared with their sources (*peers*) are compared
together, and any of them is mended with the others.  One that cannot be is left out of it:

    proven, covered   the peers' parts are what they give of the source rows that each has seen
    stale             a slice of a peer is; REPLAY recomputes all views whose sources keep rows
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


def incomparable(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return why what the view made cannot be compared with a recomputation, or ""."""
    if reason := unproven_reason(view, snapshot):
        return reason
    if not has_source(view, snapshot):
        return "Its source keeps no rows that could be read again."
    if not stores_rows(snapshot, view.target_id):
        return "Its target keeps no rows that could be compared."
    return ""


def has_source(view: MaterializedView, snapshot: Snapshot) -> bool:
    """Return whether the rows that the view read can be read again."""
    source = snapshot.by_id(view.source_id)
    return isinstance(source, Table) and stores_rows(snapshot, view.source_id)


def peers(view: MaterializedView, snapshot: Snapshot) -> tuple[MaterializedView, ...]:
    """Return the views that are compared together with this one, itself first, then by name."""
    others = [
        one
        for one in snapshot.views_into(view.target_id)
        if one.id != view.id and not incomparable(one, snapshot)
    ]
    if incomparable(view, snapshot):
        return (view,)
    return (view, *sorted(others, key=lambda one: (one.database, one.name)))


def recomputed(view: MaterializedView, snapshot: Snapshot) -> tuple[MaterializedView, ...]:
    """Return the writers of the view's target that a replay recomputes: of what the others made,
    nothing could be."""
    return tuple(one for one in snapshot.views_into(view.target_id) if has_source(one, snapshot))


def compared_parts(view: MaterializedView, snapshot: Snapshot) -> tuple[Part, ...]:
    """Return the target's parts with rows that the view's comparison is about: those of its peers,
    and those that no view made."""
    mine = {one.id for one in peers(view, snapshot)}
    others = {one.id for one in snapshot.views_into(view.target_id)} - mine
    return tuple(
        part
        for part in snapshot.parts(view.target_id)
        if part.rows and (part.made_by(mine) or not part.made_by(others))
    )
