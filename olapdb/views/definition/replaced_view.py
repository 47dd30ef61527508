"""CREATE OR REPLACE of a plain view that materialized views read through.

A trigger runs the query of the plain view as part of its own. So the commit that replaces the plain
view is MODIFY QUERY for each trigger which computes something else from then on:

    before    w reads d (plain view, version 1)
    replace   d version 2; w version 2: all that it made is stale in the same commit
    INSERT    fires w over the new d
    REPLAY    recomputes the stale slices of w
"""

from __future__ import annotations

from dataclasses import replace

from olapdb import errors
from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.model.changes import PutObject
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import NoDependents, RevisionIs
from olapdb.model.schema import MaterializedView, View
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.sql.parser import parse_query
from olapdb.views.definition.definition import ProposedView, ViewDefinition, define
from olapdb.views.definition.judgement import bind_view, invalidate_all_draft


def views_through(view: View, snapshot: Snapshot) -> tuple[MaterializedView, ...]:
    """Return the materialized views that read the plain view, through other plain views too."""
    return tuple(v for v in snapshot.objects_of(MaterializedView) if v.needs(view.id))


def replace_view_draft(origin: CommitOrigin, snapshot: Snapshot, view: View) -> CommitDraft:
    """Return the draft that gives a plain view, which keeps its id, this definition, and makes stale
    what triggers made through the old one.

    Raises HaveDependentObjects if a trigger does not work over the new definition, would have
    another source, or keeps results of source rows that left by retention."""
    existing = snapshot.by_id(view.id)
    assert isinstance(existing, View)
    readers = views_through(view, snapshot)
    after = OverlaySnapshot.of(snapshot, view)
    draft = CommitDraft(
        [
            RevisionIs(view.id, existing.revision),
            NoDependents(view.id, except_ids=tuple(reader.id for reader in readers)),
        ],
        [PutObject(view)],
    )
    for reader in readers:
        definition = _definition_after(reader, existing, after)
        if bind_view(reader, snapshot).root == bind_view(reader, after).root:
            continue
        if any(snapshot.retained(reader.id)):
            raise _refused(
                reader,
                existing,
                "it keeps results of source rows that left by retention, which a replay could not"
                " make again.",
            )
        changed = replace(definition.applied_to(reader), version=reader.version + 1)
        draft.require(RevisionIs(reader.id, reader.revision), *definition.requirements(after))
        draft.change(PutObject(changed))
        draft.merge(invalidate_all_draft(origin, snapshot, reader, "DIMENSION CHANGE"))
    return draft


def definition_over(view: MaterializedView, text: str, snapshot: Snapshot) -> ViewDefinition:
    """Return the definition of an existing view by the query `text` at the snapshot. Raises what
    CREATE raises."""
    target = target_of(snapshot, view)
    proposed = ProposedView(
        f"{view.database}.{view.name}",
        parse_query(text),
        lambda plan: target,
        view.database,
        view.zone,
        dict(view.settings),
    )
    return define(snapshot, proposed)


def _definition_after(
    reader: MaterializedView, existing: View, after: OverlaySnapshot
) -> ViewDefinition:
    """Return the definition of the trigger over the new plain view.

    Raises HaveDependentObjects."""
    try:
        return definition_over(reader, reader.query, after)
    except errors.Error as error:
        raise _refused(reader, existing, error.message) from error


def _refused(reader: MaterializedView, existing: View, why: str) -> errors.HaveDependentObjects:
    """Return the error for a trigger that the replacement would break."""
    name = f"{reader.database}.{reader.name}"
    return errors.HaveDependentObjects(
        f"Cannot replace {existing.database}.{existing.name}: the view {name} reads it, and would"
        f" not go on: {why}",
        hint=f"Keep what {name} reads, ALTER TABLE {name} MODIFY QUERY to a SELECT without it, or"
        f" DROP VIEW {name}.",
    )
