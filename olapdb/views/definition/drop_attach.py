"""DROP, DETACH and ATTACH of views, and what RENAME does to their text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from olapdb.bind.analysis import rename_tables
from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import ATTEMPTS_MAX, RetryPolicy, retry_commit
from olapdb.errors import CommitConflict, HaveDependentObjects
from olapdb.model.changes import DropObject, NoDependents, PutObject, RevisionIs, VersionsAre
from olapdb.model.schema import MaterializedView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.views.jobs.job import find_view, view_name

Name = tuple[str, str]
"""(database, name)"""


def drop_view(origin: CommitOrigin, view_id: str) -> None:
    """Drops the view with its ledger, and its inner table where it has one; a TO target stays.

    Versions that a REBUILD made of it, or kept, go with it and with their targets; such a version
    may be dropped alone."""
    first = origin.services.catalog.snapshot()
    named = find_view(first, view_id)

    def attempt(snapshot: Snapshot) -> CommitConflict | None:
        view = find_view(snapshot, view_id)
        if (
            view.standing != named.standing
        ):  # returned, as a CommitConflict that is raised is retried
            return CommitConflict(
                f"{view_name(view)} changed places with another version meanwhile.",
                hint="Nothing was dropped; run it again.",
            )
        publish(dropping(snapshot, view), origin.of_kind("DROP VIEW"))
        return None

    changed = retry_commit(origin.services, attempt, _busy("DROP VIEW", named), first=first)
    if changed is not None:
        raise changed


def dropping(snapshot: Snapshot, view: MaterializedView) -> CommitDraft:
    """What drops a view, its versions and the targets that are theirs. HaveDependentObjects where
    another view reads or writes one of those targets."""
    going = (view, *versions_of(snapshot, view))
    mine = tuple(one.id for one in going)
    draft = CommitDraft()
    for one in going:
        draft.require(RevisionIs(one.id, one.revision), NoDependents(one.id))
        draft.change(DropObject(one.id))
    for one in going:
        target = snapshot.by_id(one.target_id)
        if (one.inner or one.standing) and isinstance(target, Table):
            _refuse_dependents(snapshot, view, target, mine)
            draft.require(NoDependents(target.id, but=mine))
            draft.change(DropObject(target.id))
    if not view.standing:  # a version that another statement begins meanwhile would be orphaned
        draft.require(VersionsAre(view.id, tuple(sorted(mine[1:]))))
    return draft


def versions_of(snapshot: Snapshot, view: MaterializedView) -> tuple[MaterializedView, ...]:
    """The versions beside a view: the one that is being built, and the one that it replaced."""
    return tuple(
        item
        for item in snapshot.objects()
        if isinstance(item, MaterializedView) and item.standing and item.stands_beside == view.id
    )


def _refuse_dependents(
    snapshot: Snapshot, view: MaterializedView, table: Table, but: tuple[str, ...]
) -> None:
    """The table goes with its view: no other view may read or write it."""
    others = [one for one in dependents(snapshot, table.id) if one.id not in but]
    if others:
        first = view_name(others[0])
        what = "its inner table" if view.inner else f"{table.database}.{table.name}"
        raise HaveDependentObjects(
            f"Cannot drop {view_name(view)}: {first} depends on {what}.",
            hint=f"DROP VIEW {first} first.",
        )


def set_attached(origin: CommitOrigin, view_id: str, attached: bool) -> None:
    """Whether INSERTs fire the view; blocks inserted while they do not are its gap. Idempotent."""
    kind = "ATTACH VIEW" if attached else "DETACH VIEW"

    def attempt(snapshot: Snapshot) -> None:
        view = find_view(snapshot, view_id)
        if view.attached != attached:
            draft = CommitDraft(
                [RevisionIs(view.id, view.revision)], [PutObject(replace(view, attached=attached))]
            )
            publish(draft, origin.of_kind(kind))

    first = origin.services.catalog.snapshot()
    policy = _busy(kind, find_view(first, view_id))
    retry_commit(origin.services, attempt, policy, first=first)


def _busy(kind: str, view: MaterializedView) -> RetryPolicy:
    return RetryPolicy(
        kind, f"View {view_name(view)} was changed by others {ATTEMPTS_MAX} times.", "Run it again."
    )


def rewrite_references(
    snapshot: Snapshot, renamed: Mapping[Name, Name]
) -> tuple[MaterializedView | View, ...]:
    """The views whose text names a renamed table, with the new name; for the RENAME's commit.

    An EXCHANGE gives both directions: for a view its tables are ids, so after EXCHANGE its text
    follows the table, not the name.  The definition's version stays: it means the same.
    """
    changed: list[MaterializedView | View] = []
    for item in snapshot.objects():
        if not isinstance(item, MaterializedView | View):
            continue
        query = parse_query(item.query)
        text = to_sql(rename_tables(query, renamed))
        if text != to_sql(query):
            changed.append(replace(item, query=text))
    return tuple(changed)


def dependents(snapshot: Snapshot, table_id: str) -> tuple[MaterializedView, ...]:
    """Materialized views that read or write the table; DROP is refused while there are any."""
    return tuple(
        item
        for item in snapshot.objects()
        if isinstance(item, MaterializedView) and item.needs(table_id)
    )
