"""CREATE OR REPLACE of a plain view that materialized views read through, by a view or a table, and
of a dimension by a plain view.

A trigger runs the query of a plain view as part of its own. So the commit that replaces it is
MODIFY QUERY for each trigger which computes something else from then on:

    before    w reads d (plain view, version 1)
    replace   d version 2; w version 2: all that it made is stale in the same commit
    INSERT    fires w over the new d
    REPLAY    recomputes the stale slices of w
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from olapdb import errors
from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.model.changes import PutObject
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import NoDependents, Requirement, RevisionIs, SchemaIs
from olapdb.model.schema import MaterializedView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.sql.parser import parse_query
from olapdb.views.definition.column_dependencies import hint_of_unfit
from olapdb.views.definition.definition import ProposedView, ViewDefinition, define
from olapdb.views.definition.judgement import bind_view, invalidate_all_draft


def followers_of(existing: SchemaObject, snapshot: Snapshot) -> tuple[MaterializedView, ...]:
    """Return the materialized views that can be defined anew over what replaces the object: those
    that read it as a dimension, or read a dimension through it. Return none if one of its readers
    is fired by it or writes it."""
    readers = [v for v in snapshot.objects_of(MaterializedView) if v.needs(existing.id)]
    if any(existing.id in (view.source_id, view.target_id) for view in readers):
        return ()
    return tuple(readers)


def redefine_followers(
    origin: CommitOrigin, snapshot: Snapshot, existing: View | Table, made: View | Table
) -> CommitDraft:
    """Return the draft that defines the followers of an object anew over the one that takes its
    name, and makes stale what they made. The draft requires that there are no other readers.

    `made` may have the id of `existing`; then a follower whose query computes the same stays as it
    is. Raises HaveDependentObjects if a view does not work over the new definition, or keeps
    results of source rows that left by retention."""
    followers = followers_of(existing, snapshot)
    keeps_id = made.id == existing.id
    removed = frozenset[str]() if keeps_id else frozenset((existing.id,))
    after = OverlaySnapshot(snapshot, {made.id: made}, removed)
    draft = CommitDraft([NoDependents(existing.id, except_ids=tuple(v.id for v in followers))])
    for view in followers:
        definition = _definition_after(view, existing, after)
        if keeps_id and bind_view(view, snapshot).root == bind_view(view, after).root:
            continue
        if any(snapshot.retained(view.id)):
            raise _refused(
                view,
                existing,
                "it keeps results of source rows that left by retention, which a replay could not"
                " make again.",
            )
        changed = replace(definition.applied_to(view), version=view.version + 1)
        draft.require(RevisionIs(view.id, view.revision))
        draft.require(*_of_others(definition.requirements(after), made, keeps_id))
        draft.change(PutObject(changed))
        draft.merge(invalidate_all_draft(origin, snapshot, view, "DIMENSION CHANGE"))
    return draft


def _of_others(
    requirements: Iterable[Requirement], made: View | Table, keeps_id: bool
) -> Iterator[Requirement]:
    """Yield the requirements, without those that the object `made` has its own revision: this
    commit creates it. Yield all if it `keeps_id` of the object that it replaces."""
    own = (RevisionIs(made.id, made.revision), SchemaIs(made.id, made.version))
    return (entry for entry in requirements if keeps_id or entry not in own)


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
        added_keys=view.added_keys,
    )
    return define(snapshot, proposed)


def _definition_after(
    view: MaterializedView, existing: View | Table, after: OverlaySnapshot
) -> ViewDefinition:
    """Return the definition of the view over the new object.

    Raises HaveDependentObjects."""
    try:
        return definition_over(view, view.query, after)
    except errors.Error as error:
        raise _refused(view, existing, error.message) from error


def _refused(
    view: MaterializedView, existing: View | Table, why: str
) -> errors.HaveDependentObjects:
    """Return the error for a view that the replacement would break."""
    name = f"{view.database}.{view.name}"
    return errors.HaveDependentObjects(
        f"Cannot replace {existing.database}.{existing.name}: the view {name} reads it, and would"
        f" not go on: {why}",
        hint=hint_of_unfit(view),
    )
