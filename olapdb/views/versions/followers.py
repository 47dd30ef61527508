"""What reads a view's target by name, and what becomes of it when two versions exchange names.

    before   v -> t       v__v2 -> t__v2 (candidate)       w reads t, fired by its INSERTs
    swap     v -> t       v__v1 -> t__v1 (previous)        w reads t: the new version's table

A materialized view knows its tables by id. So the commit of the exchange defines each reader of
the name anew over the version that gets it. A reader's rows of older blocks were made from the
other version, so they are stale until its own replay. A reader whose query does not fit that
version stays with the table that it reads. Both versions fire, so neither reader misses an INSERT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from olapdb import errors
from olapdb.bind.analysis import rename_tables
from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.lineage.invalidation import invalidate
from olapdb.model.changes import CoverSource, PutObject
from olapdb.model.requirements import Requirement, RevisionIs, SchemaIs
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.views.definition.definition import ViewDefinition
from olapdb.views.definition.drop_attach import Name, dependents
from olapdb.views.definition.judgement import invalidate_all_draft, view_rows
from olapdb.views.definition.replaced_view import definition_over
from olapdb.views.jobs.job import view_name


@dataclass(frozen=True, slots=True)
class Follower:
    """A reader of one of the exchanged targets. `before` is its live form, `after` that of the
    commit. `stays` is the reason why it keeps its table, "" if it reads the other one now.
    `requirements` are those of its new definition."""

    before: MaterializedView
    after: MaterializedView
    stays: str = ""
    requirements: tuple[Requirement, ...] = ()

    @property
    def moves(self) -> bool:
        """Return whether the view reads other tables than before."""
        return self.after.version != self.before.version

    def draft(self, origin: CommitOrigin, snapshot: Snapshot) -> CommitDraft:
        """Return the change of the view. One that moves is stale as a whole; one with another
        source counts all blocks of it as seen, for the replay to read."""
        draft = CommitDraft([RevisionIs(self.before.id, self.before.revision), *self.requirements])
        draft.change(PutObject(self.after))
        if not self.moves:
            return draft
        if self.after.source_id == self.before.source_id:
            draft.merge(invalidate_all_draft(origin, snapshot, self.before, "UPSTREAM REBUILD"))
            return draft
        rows = view_rows(snapshot, self.before)
        draft.change(
            CoverSource(self.after.id),
            invalidate(origin, self.after.id, None, "UPSTREAM REBUILD", rows),
        )
        return draft


def readers(
    snapshot: Snapshot, view: MaterializedView, but: Iterable[str]
) -> tuple[MaterializedView, ...]:
    """Return the materialized views that depend on the view or its target, but these ids."""
    excluded = {view.id, *but}
    by_id = {
        other.id: other
        for object_id in (view.target_id, view.id)
        for other in dependents(snapshot, object_id)
        if other.id not in excluded
    }
    return tuple(by_id.values())


def readers_of(snapshot: Snapshot, object_id: str) -> tuple[MaterializedView, ...]:
    """Return the materialized views that read the object, through plain views too."""
    return tuple(
        item
        for item in snapshot.objects()
        if isinstance(item, MaterializedView) and object_id in item.references
    )


def follow(
    view: MaterializedView, snapshot: Snapshot, after: Snapshot, kept: Mapping[Name, Name]
) -> Follower:
    """Return the form that a reader of the exchanged name has after the exchange.

    The reader moves to the new version. It stays with the old table if its query does not fit the
    new one, or if it holds results of retained rows. `after` is the snapshot with the exchanged
    names. `kept` maps each exchanged name to the one that the old table gets. Raises
    HaveDependentObjects if it cannot stay either, because it reads through a plain view.
    Also raises RetainedRows."""
    try:
        if any(snapshot.retained(view.id)):
            raise errors.RetainedRows(
                "it holds results of source rows that left by retention, which the new version"
                " cannot make again."
            )
        definition = definition_over(view, view.query, after)
    except errors.Error as error:
        return _staying(view, after, kept, error)
    applied = definition.applied_to(view)
    if applied == view:
        return Follower(view, view)
    moved = replace(applied, version=view.version + 1)
    if moved.source_id != view.source_id:
        moved = replace(moved, first_block=snapshot.next_block(definition.source))
    return Follower(view, moved, "", tuple(_unchanged_inputs(definition)))


def renamed(view: MaterializedView, names: Mapping[Name, Name]) -> Follower:
    """Return a reader that keeps its table, which has another name afterwards."""
    text = to_sql(rename_tables(parse_query(view.query), names))
    return Follower(view, replace(view, query=text))


def _staying(
    view: MaterializedView, after: Snapshot, kept: Mapping[Name, Name], reason: errors.Error
) -> Follower:
    """Return the reader over its table's new name. Raise HaveDependentObjects if it would read
    other tables, since a plain view stands between."""
    text = to_sql(rename_tables(parse_query(view.query), kept))
    tables = (view.source_id, *sorted(view.dimension_ids))
    try:
        definition = definition_over(view, text, after)
        fits = (definition.source.id, *sorted(definition.dimension_ids)) == tables
    except errors.Error:
        fits = False
    if not fits:
        raise errors.HaveDependentObjects(
            f"{view_name(view)}, which reads this through a plain view, would not work over the new"
            f" version: {reason.message}",
            hint=f"DROP VIEW {view_name(view)}, and create it afterwards.",
        )
    return Follower(view, replace(view, query=text), reason.message)


def _unchanged_inputs(definition: ViewDefinition) -> Iterable[Requirement]:
    """Return the requirements that the tables which the definition names are unchanged."""
    yield from (RevisionIs(*table_revision) for table_revision in definition.plan.tables)
    yield SchemaIs(definition.source.id, definition.source.version)
    yield SchemaIs(definition.target.id, definition.target.version)
