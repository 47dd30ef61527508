"""The one commit in which two versions of a view exchange names: a swap, or a ROLLBACK.

    before     v   -> t         v__v2 -> t__v2    candidate, equal to a recomputation
    SWAP       v   -> t         v__v1 -> t__v1    previous: v and t now name the new version
    ROLLBACK   v   -> t         v__v2 -> t__v2    the first version again, at once

Names change places, identities do not: each view keeps its target, its coverage and its verdicts,
and every INSERT fires all versions. So the previous version also has the rows inserted since the
swap. A query on `t` reads one version, never both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from olapdb import errors
from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.model.changes import DropObject, PutObject
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import (
    NameIsFree,
    NoBypass,
    NoDependents,
    NoViewSince,
    Requirement,
    RevisionIs,
    VersionsAre,
)
from olapdb.model.schema import MaterializedView, SchemaObject, View
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.records import dataclass
from olapdb.views.definition.drop_attach import Name, rewrite_references, versions_of
from olapdb.views.jobs.job import view_name
from olapdb.views.versions.exchange_checks import (
    refuse_broken_views,
    refuse_bypass,
    refuse_readers,
    refuse_writers,
    superseded_versions,
)
from olapdb.views.versions.followers import Follower, follow, readers, readers_of, renamed
from olapdb.views.versions.plain_views import columns_of
from olapdb.views.versions.versions import version_name


@dataclass(frozen=True)
class NameExchange:
    """An exchange of names: `old` has the name, `new` gets it. With `steps_back` it is a ROLLBACK,
    else a swap."""

    snapshot: Snapshot
    old: MaterializedView
    new: MaterializedView
    steps_back: bool = False

    def refuse(self) -> None:
        """Raise if the exchange would lose something: HaveDependentObjects if another view writes a
        target, reads the version to drop or would break, BypassRows if a target holds rows that no
        view made."""
        for view in (self.old, self.new):
            refuse_writers(self.snapshot, view)
            refuse_bypass(self.snapshot, view)
        refuse_readers(self.snapshot, self._superseded, self.old)
        refuse_broken_views(self.snapshot, self._changed, self._superseded_ids)

    def draft(self, requirements: Iterable[Requirement], origin: CommitOrigin) -> CommitDraft:
        """Return the changes of the exchange, with its own requirements and these. Call `refuse`
        first."""
        old, new = self.old, self.new
        if old.standing or new.stands_beside != old.id:
            raise errors.InternalError(f"{view_name(new)} is no version of {view_name(old)}.")
        versions = versions_of(self.snapshot, old)
        draft = CommitDraft()
        draft.require(
            RevisionIs(old.id, old.revision),
            RevisionIs(new.id, new.revision),
            VersionsAre(old.id, tuple(sorted(version.id for version in versions))),
            VersionsAre(new.id, ()),
            NoViewSince(self.snapshot.number),
            *requirements,
        )
        follower_ids = tuple(follower.before.id for follower in self.followers)
        for view in (old, new):
            table = target_of(self.snapshot, view)
            draft.require(
                RevisionIs(table.id, table.revision),
                NoDependents(view.id, except_ids=follower_ids),
                NoDependents(table.id, except_ids=(view.id, *follower_ids)),
                NoBypass(table.id, (view.id,)),
            )
        superseded_ids = tuple(superseded.id for superseded in self._superseded)
        for superseded in self._superseded:
            table = target_of(self.snapshot, superseded)
            draft.require(
                RevisionIs(superseded.id, superseded.revision),
                NoDependents(superseded.id, except_ids=superseded_ids),
                NoDependents(table.id, except_ids=superseded_ids),
            )
            draft.change(DropObject(superseded.id), DropObject(table.id))
        draft.require(
            *(
                NameIsFree(item.database, item.name)
                for item in self._exchanged
                if self.snapshot.find(item.database, item.name) is None
            )
        )
        draft.change(*(PutObject(item) for item in (*self._exchanged, *self._plain_views)))
        for follower in self.followers:
            draft.merge(follower.draft(origin, self.snapshot))
        return draft

    @cached_property
    def followers(self) -> tuple[Follower, ...]:
        """The materialized views that read either target, or the plain view that gets another
        query, as the commit leaves them."""
        versions = {v.id for v in (self.old, *versions_of(self.snapshot, self.old))}
        versions |= self._superseded_ids
        of_old = {v.id: v for v in readers(self.snapshot, self.old, versions)}
        if self._read_view is not None:
            of_old |= {v.id: v for v in readers_of(self.snapshot, self._read_view.id)}
        of_new = readers(self.snapshot, self.new, {*versions, *of_old})
        after = self._after((*self._exchanged, *self._plain_views))
        followers = (
            *(follow(view, self.snapshot, after, self._kept_names) for view in of_old.values()),
            *(renamed(view, self._taken_names) for view in of_new),
        )
        return tuple(follower for follower in followers if follower.after != follower.before)

    def _after(self, changed: Iterable[SchemaObject]) -> OverlaySnapshot:
        """Return the snapshot with these objects in their new forms, and without the dropped
        version."""
        return OverlaySnapshot(
            self.snapshot, {item.id: item for item in changed}, frozenset(self._superseded_ids)
        )

    def _kept_name(self, database: str, name: str) -> str:
        """Return the new name of the old version, or its target: that of its generation, with a
        number if another object has that name."""
        new_name = version_name(name, self.old.generation)
        for number in itertools.count(2):
            holder = self.snapshot.find(database, new_name)
            if holder is None or holder.id in self._superseded_ids:
                break
            new_name = f"{version_name(name, self.old.generation)}_{number}"
        return new_name

    @cached_property
    def _superseded(self) -> tuple[MaterializedView, ...]:
        """The versions to drop: a swap drops the version before the one that it replaces."""
        return () if self.steps_back else superseded_versions(self.snapshot, self.old)

    @cached_property
    def _superseded_ids(self) -> frozenset[str]:
        """Return the ids of the versions to drop and of their targets."""
        return frozenset(
            object_id
            for version in self._superseded
            for object_id in (version.id, version.target_id)
        )

    @cached_property
    def _kept_names(self) -> dict[Name, Name]:
        """The names that the old version gives up, each with the one that it gets: of the view, and
        of its target unless that is an inner table."""
        old = self.old
        names = {(old.database, old.name): (old.database, self._kept_name(old.database, old.name))}
        if not self.new.inner:
            table = target_of(self.snapshot, old)
            kept = self._kept_name(table.database, table.name)
            names[table.database, table.name] = (table.database, kept)
        return names

    @cached_property
    def _taken_names(self) -> dict[Name, Name]:
        """The names that the new version has so far, each with the one that it gets: of the view,
        and of its target unless that is an inner table."""
        old, new = self.old, self.new
        names = {(new.database, new.name): (old.database, old.name)}
        if not new.inner:
            old_target, new_target = target_of(self.snapshot, old), target_of(self.snapshot, new)
            names[new_target.database, new_target.name] = (old_target.database, old_target.name)
        return names

    @cached_property
    def _read_view(self) -> View | None:
        """The plain view of READ VIEW, whose query changes with the versions; None without one, or
        if it was dropped."""
        view = self.snapshot.by_id(self.new.read_view_id) if self.new.read_view_id else None
        return view if isinstance(view, View) else None

    @cached_property
    def _exchanged(self) -> tuple[SchemaObject, ...]:
        """The versions and their targets under their new names."""
        old, new, read_view = self.old, self.new, self._read_view
        exchanged: list[SchemaObject] = [
            replace(
                new.renamed(old.database, old.name),
                standing="",
                stands_beside="",
                comment=new.comment or old.comment,
                read_view_id="",
                read_query="",
            ),
            replace(
                old.renamed(*self._kept_names[old.database, old.name]),
                standing="previous",
                stands_beside=new.id,
                read_view_id="" if read_view is None else read_view.id,
                read_query="" if read_view is None else read_view.query,
            ),
        ]
        if not new.inner:
            old_target, new_target = target_of(self.snapshot, old), target_of(self.snapshot, new)
            kept = self._kept_names[old_target.database, old_target.name]
            exchanged.append(new_target.renamed(old_target.database, old_target.name))
            exchanged.append(old_target.renamed(*kept))
        exchanged += [
            replace(view, stands_beside=new.id)
            for view in versions_of(self.snapshot, old)
            if view.id != new.id and view not in self._superseded
        ]
        return tuple(exchanged)

    @cached_property
    def _plain_views(self) -> tuple[View, ...]:
        """The plain views whose text changes, in their new forms.

        A view that reads the new version by its old name reads it by its new one. The read view
        gets the new version's query. A view that reads the exchanged name keeps its text. Raises
        HaveDependentObjects if the new query of the read view does not bind."""
        rewritten = rewrite_references(self.snapshot, self._taken_names)
        plain_views = {view.id: view for view in rewritten if isinstance(view, View)}
        read_view = self._read_view
        if read_view is not None:
            queried = replace(read_view, query=self.new.read_query, version=read_view.version + 1)
            after = self._after((*self._exchanged, *plain_views.values(), queried))
            plain_views[read_view.id] = replace(queried, columns=columns_of(queried, after))
        return tuple(plain_views.values())

    @cached_property
    def _changed(self) -> tuple[SchemaObject, ...]:
        """All objects that the commit changes, in their new forms."""
        followers = (follower.after for follower in self.followers)
        return (*self._exchanged, *self._plain_views, *followers)
