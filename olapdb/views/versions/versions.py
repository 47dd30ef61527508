"""The versions of a view, and the one commit in which two of them exchange names.

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
from dataclasses import dataclass, replace

from olapdb import errors
from olapdb.bind import BindScope, bind_query
from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.functions.base import Environment
from olapdb.model.changes import Change, DropObject, PutObject
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
from olapdb.runtime.failpoints import failpoint
from olapdb.sql.parser import parse_query
from olapdb.views.definition.drop_attach import dependents, rewrite_references, versions_of
from olapdb.views.jobs.job import find_view, view_name
from olapdb.views.proof.coverage import bypass
from olapdb.views.proof.status import view_status

ATTEMPTS_MAX = 20


def version_name(name: str, generation: int) -> str:
    """Return the name of a view, or its target, while another version has the original name."""
    return f"{name}__v{generation}"


def candidate_of(snapshot: Snapshot, view: MaterializedView) -> MaterializedView | None:
    """Return the version that an unfinished REBUILD makes; None if there is none."""
    candidates = (
        version for version in versions_of(snapshot, view) if version.standing == "candidate"
    )
    return next(candidates, None)


def previous_of(snapshot: Snapshot, view: MaterializedView) -> MaterializedView | None:
    """Return the version that the last REBUILD replaced; None if it is not kept."""
    previous_versions = (
        version for version in versions_of(snapshot, view) if version.standing == "previous"
    )
    return next(previous_versions, None)


@dataclass(frozen=True)
class NameExchange:
    """An exchange of names: `old` has the name, `new` gets it. With `steps_back` it is a ROLLBACK,
    else a swap."""

    snapshot: Snapshot
    old: MaterializedView
    new: MaterializedView
    steps_back: bool = False

    def refuse(self) -> None:
        """Raise if the exchange would lose something: HaveDependentObjects if materialized views
        depend on a version or a plain view would break, BypassRows if a target holds rows that no
        view made."""
        for view in (self.old, self.new):
            refuse_dependents(self.snapshot, view)
            refuse_bypass(self.snapshot, view)
        superseded_ids = {
            object_id
            for version in self._superseded()
            for object_id in (version.id, version.target_id)
        }
        refuse_broken_views(self.snapshot, self._changed(), superseded_ids)

    def draft(self, requirements: Iterable[Requirement]) -> CommitDraft:
        """Return the changes of the exchange, with its own requirements and these. Call `refuse`
        first."""
        old, new = self.old, self.new
        if old.standing or new.stands_beside != old.id:
            raise errors.InternalError(f"{view_name(new)} is no version of {view_name(old)}.")
        versions = versions_of(self.snapshot, old)
        needed: list[Requirement] = [
            RevisionIs(old.id, old.revision),
            RevisionIs(new.id, new.revision),
            VersionsAre(old.id, tuple(sorted(version.id for version in versions))),
            VersionsAre(new.id, ()),
            NoViewSince(self.snapshot.number),
            *requirements,
        ]
        for view in (old, new):
            table = target_of(self.snapshot, view)
            needed += [
                RevisionIs(table.id, table.revision),
                NoDependents(view.id),
                NoDependents(table.id, except_ids=(view.id,)),
                NoBypass(table.id, (view.id,)),
            ]
        changes: list[Change] = []
        for superseded in self._superseded():
            table = target_of(self.snapshot, superseded)
            needed += [RevisionIs(superseded.id, superseded.revision), NoDependents(superseded.id)]
            needed.append(NoDependents(table.id, except_ids=(superseded.id,)))
            changes += [DropObject(superseded.id), DropObject(table.id)]
        changed = self._changed()
        needed += [
            NameIsFree(item.database, item.name)
            for item in changed
            if self.snapshot.find(item.database, item.name) is None
        ]
        return CommitDraft(needed, [*changes, *(PutObject(item) for item in changed)])

    def _kept_name(self, database: str, name: str) -> str:
        """Return the new name of the old version, or its target: that of its generation, with a
        number if another object has that name."""
        superseded_ids = {
            object_id
            for version in self._superseded()
            for object_id in (version.id, version.target_id)
        }
        new_name = version_name(name, self.old.generation)
        for number in itertools.count(2):
            holder = self.snapshot.find(database, new_name)
            if holder is None or holder.id in superseded_ids:
                break
            new_name = f"{version_name(name, self.old.generation)}_{number}"
        return new_name

    def _superseded(self) -> tuple[MaterializedView, ...]:
        """Return the version to drop: a swap drops the version before the one that it replaces."""
        if self.steps_back:
            return ()
        previous = previous_of(self.snapshot, self.old)
        return () if previous is None else (previous,)

    def _changed(self) -> list[SchemaObject]:
        """Return the views and targets with their new names, and the plain views to rewrite. Plain
        views that read the new version by its old name follow it. Those that read the exchanged
        name now read the new version."""
        old, new = self.old, self.new
        changed: list[SchemaObject] = [
            replace(
                new.renamed(old.database, old.name),
                standing="",
                stands_beside="",
                comment=new.comment or old.comment,
            ),
            replace(
                old.renamed(old.database, self._kept_name(old.database, old.name)),
                standing="previous",
                stands_beside=new.id,
            ),
        ]
        names = {(new.database, new.name): (old.database, old.name)}
        if not new.inner:
            old_target, new_target = target_of(self.snapshot, old), target_of(self.snapshot, new)
            names[new_target.database, new_target.name] = (old_target.database, old_target.name)
            changed.append(new_target.renamed(old_target.database, old_target.name))
            changed.append(
                old_target.renamed(
                    old_target.database, self._kept_name(old_target.database, old_target.name)
                )
            )
        changed_ids = {item.id for item in changed}
        changed += [
            replace(view, stands_beside=new.id)
            for view in versions_of(self.snapshot, old)
            if view.id not in changed_ids and view not in self._superseded()
        ]
        followers = rewrite_references(self.snapshot, names)
        changed += [view for view in followers if isinstance(view, View)]
        return changed


# --- refusals ------------------------------------------------------------------------------------


def refuse_dependents(snapshot: Snapshot, view: MaterializedView) -> None:
    """Raise HaveDependentObjects if other materialized views read or write the target: they refer
    to it by id, and would stay with the old version's rows."""
    target = target_of(snapshot, view)
    other_views = [other for other in dependents(snapshot, target.id) if other.id != view.id]
    other_views += [other for other in dependents(snapshot, view.id) if other.id != view.id]
    if not other_views:
        return
    name = f"{target.database}.{target.name}"
    verb = "writes" if other_views[0].target_id == target.id else "reads"
    raise errors.HaveDependentObjects(
        f"{view_name(view)} cannot change places with another version: {view_name(other_views[0])}"
        f" {verb} its target {name}, and would stay with the old one.",
        hint=f"ALTER TABLE {view_name(view)} MODIFY QUERY keeps the target, and SYSTEM REPLAY VIEW"
        f" … STALE what is below it; or DROP VIEW {view_name(other_views[0])}, and create it afterwards.",
    )


def refuse_bypass(snapshot: Snapshot, view: MaterializedView) -> None:
    """Raise BypassRows if the target holds rows that no view made: no other version has them."""
    bypass_rows = bypass(view, snapshot)
    if not bypass_rows:
        return
    target = target_of(snapshot, view)
    listed = ", ".join(
        f"{partition or 'all'}: {row_count}" for partition, row_count in bypass_rows.items()
    )
    raise errors.BypassRows(
        f"The target {target.database}.{target.name} of {view_name(view)} holds rows that no view"
        f" made (rows by partition: {listed}); no other version has them.",
        hint=f"SYSTEM ADOPT VIEW {view_name(view)} where they are what the view makes, SYSTEM REPLAY"
        f" VIEW {view_name(view)} DISCARD BYPASS where they are not wanted.",
    )


def refuse_broken_views(
    snapshot: Snapshot, changed: Iterable[SchemaObject], gone: Iterable[str] = ()
) -> None:
    """Raise HaveDependentObjects if a plain view that works would fail once the objects in
    `changed` replace their old forms and those with the ids `gone` are dropped."""
    after = OverlaySnapshot(snapshot, {item.id: item for item in changed}, frozenset(gone))
    for item in after.objects():
        if not isinstance(item, View):
            continue
        before = snapshot.by_id(item.id)
        if isinstance(before, View) and _bind_error(before, snapshot) is None:
            error = _bind_error(item, after)
            if error is not None:
                name = f"{item.database}.{item.name}"
                raise errors.HaveDependentObjects(
                    f"The view {name} would not work any more: {error.message}",
                    hint=f"CREATE OR REPLACE VIEW {name} so that it fits both versions, or DROP it"
                    " and create it afterwards.",
                )


def _bind_error(view: View, snapshot: Snapshot) -> errors.Error | None:
    """Return the error that binding the view's query raises; None if it binds."""
    scope = BindScope(
        snapshot=snapshot, database=view.database, environment=Environment(database=view.database)
    )
    try:
        bind_query(parse_query(view.query), scope)
    except errors.Error as error:
        return error
    return None


# --- rolling back --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The result of a ROLLBACK. The version `view` has the original name again; the version
    `replaced`, which had it, is kept. `verdict` and `mend` describe `view` after the commit."""

    view: str
    replaced: str
    target: str
    kept_target: str
    verdict: str
    mend: str
    commit: int


def rollback(origin: CommitOrigin, view_id: str) -> tuple[RolledBack, ...]:
    """Give the name back to the version that the last swap replaced: one commit, which computes
    nothing. A second rollback undoes the first.

    Raises UnknownTable if no previous version is kept, and the errors of `NameExchange.refuse`:
    BypassRows, HaveDependentObjects."""
    services, origin = origin.services, origin.of_kind("ROLLBACK VIEW")

    def attempt(snapshot: Snapshot) -> tuple[RolledBack, ...]:
        """Exchange the view with its previous version in one commit; UnknownTable without one."""
        old = find_view(snapshot, view_id)
        new = previous_of(snapshot, old)
        if new is None:
            raise errors.UnknownTable(
                f"No previous version of {view_name(old)} is kept.",
                hint="SYSTEM REBUILD VIEW keeps the version that it replaces, until it is dropped"
                " or the next REBUILD replaces its successor.",
            )
        exchange = NameExchange(snapshot, old, new, steps_back=True)
        exchange.refuse()
        draft = exchange.draft((origin.lease,))
        failpoint("rollback.before_commit")
        committed = publish(draft, origin)
        return (_rolled_back(services.catalog.snapshot(), old.id, new.id, committed.number),)

    first = services.catalog.snapshot()
    policy = RetryPolicy(
        "ROLLBACK VIEW",
        f"View {view_name(find_view(first, view_id))} was changed by others {ATTEMPTS_MAX} times"
        " meanwhile.",
        attempts_max=ATTEMPTS_MAX,
    )
    return retry_commit(services, attempt, policy, first=first)


def _rolled_back(snapshot: Snapshot, old_id: str, new_id: str, commit: int) -> RolledBack:
    """Return the result of a rollback in which the version `new_id` took the name of `old_id`."""
    old, new = find_view(snapshot, old_id), find_view(snapshot, new_id)
    status = view_status(new, snapshot)
    old_target, new_target = target_of(snapshot, old), target_of(snapshot, new)
    return RolledBack(
        view_name(new),
        view_name(old),
        f"{new_target.database}.{new_target.name}",
        f"{old_target.database}.{old_target.name}",
        status.verdict,
        status.mend,
        commit,
    )
