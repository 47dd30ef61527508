"""DROP, DETACH and ATTACH of views, and RENAME of tables in their text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from olapdb.bind.analysis import rename_tables
from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import ATTEMPTS_MAX, RetryPolicy, retry_commit
from olapdb.errors import CommitConflict, HaveDependentObjects
from olapdb.model.changes import DropObject, PutObject
from olapdb.model.requirements import NoDependents, RevisionIs, VersionsAre
from olapdb.model.schema import MaterializedView, RefreshableView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.views.jobs.job import find_view, view_name

Name = tuple[str, str]
"""(database, name)"""


def drop_view(origin: CommitOrigin, view_id: str) -> None:
    """Drop the view with its ledger, and with its inner table if it has one. A TO target stays.

    Versions that a REBUILD made of the view, or kept, are dropped with it, and so are their
    targets. Such a version may also be dropped alone. Raises CommitConflict if the view exchanged
    places with another version during the statement.
    """
    first = origin.services.catalog.snapshot()
    named_view = find_view(first, view_id)

    def attempt(snapshot: Snapshot) -> CommitConflict | None:
        """Drop the view in one commit and return None; return the conflict, and drop nothing, if it
        changed places with a version."""
        view = find_view(snapshot, view_id)
        if view.standing != named_view.standing:  # a raised CommitConflict would be retried
            return CommitConflict(
                f"{view_name(view)} changed places with another version meanwhile.",
                hint="Nothing was dropped; run it again.",
            )
        publish(drop_draft(snapshot, view), origin.of_kind("DROP VIEW"))
        return None

    changed = retry_commit(
        origin.services, attempt, _retry_policy("DROP VIEW", named_view), first=first
    )
    if changed is not None:
        raise changed


def drop_draft(snapshot: Snapshot, view: MaterializedView) -> CommitDraft:
    """Return the draft that drops a view, its versions and the targets that belong to them. Raises
    HaveDependentObjects if another view reads or writes one of those targets."""
    dropped_views = (view, *versions_of(snapshot, view))
    dropped_ids = tuple(dropped.id for dropped in dropped_views)
    draft = CommitDraft()
    for dropped in dropped_views:
        draft.require(RevisionIs(dropped.id, dropped.revision), NoDependents(dropped.id))
        draft.change(DropObject(dropped.id))
    for dropped in dropped_views:
        target = snapshot.by_id(dropped.target_id)
        if (dropped.inner or dropped.standing) and isinstance(target, Table):
            _refuse_dependents(snapshot, view, target, dropped_ids)
            draft.require(NoDependents(target.id, except_ids=dropped_ids))
            draft.change(DropObject(target.id))
    if not view.standing:  # a concurrent REBUILD's version would be orphaned
        draft.require(VersionsAre(view.id, tuple(sorted(dropped_ids[1:]))))
    return draft


def versions_of(snapshot: Snapshot, view: MaterializedView) -> tuple[MaterializedView, ...]:
    """Return the versions beside a view: the one that REBUILD builds, and the one it replaced."""
    return tuple(
        item
        for item in snapshot.objects()
        if isinstance(item, MaterializedView) and item.standing and item.stands_beside == view.id
    )


def _refuse_dependents(
    snapshot: Snapshot, view: MaterializedView, table: Table, but: tuple[str, ...]
) -> None:
    """Raise HaveDependentObjects if a view reads or writes `table`, a target that is dropped with
    `view`. The views whose ids are in `but` are dropped too and do not count."""
    remaining = [
        dependent for dependent in dependents(snapshot, table.id) if dependent.id not in but
    ]
    if remaining:
        first = view_name(remaining[0])
        dropped_name = "its inner table" if view.inner else f"{table.database}.{table.name}"
        raise HaveDependentObjects(
            f"Cannot drop {view_name(view)}: {first} depends on {dropped_name}.",
            hint=f"DROP VIEW {first} first.",
        )


def set_attached(origin: CommitOrigin, view_id: str, attached: bool) -> None:
    """Set whether INSERTs fire the view; blocks inserted while detached are its gap. Idempotent."""
    kind = "ATTACH VIEW" if attached else "DETACH VIEW"

    def attempt(snapshot: Snapshot) -> None:
        """Attach or detach the view in one commit; commit nothing if it is so already."""
        view = find_view(snapshot, view_id)
        if view.attached != attached:
            draft = CommitDraft(
                [RevisionIs(view.id, view.revision)], [PutObject(replace(view, attached=attached))]
            )
            publish(draft, origin.of_kind(kind))

    first = origin.services.catalog.snapshot()
    policy = _retry_policy(kind, find_view(first, view_id))
    retry_commit(origin.services, attempt, policy, first=first)


def _retry_policy(kind: str, view: MaterializedView) -> RetryPolicy:
    """Return the retry policy of a statement about the view."""
    return RetryPolicy(
        kind, f"View {view_name(view)} was changed by others {ATTEMPTS_MAX} times.", "Run it again."
    )


def rewrite_references(
    snapshot: Snapshot, renamed: Mapping[Name, Name]
) -> tuple[MaterializedView | RefreshableView | View, ...]:
    """Return the views whose text names a renamed table, with their new text. The commit of the
    RENAME stores them.

    An EXCHANGE gives both directions. A view knows its tables by id, so after an EXCHANGE its text
    follows the table, not the name. The definition keeps its version, since it means the same.
    """
    changed: list[MaterializedView | RefreshableView | View] = []
    for item in snapshot.objects():
        if isinstance(item, Table):
            continue
        rewritten = replace(item, query=_renamed_text(item.query, renamed))
        if isinstance(rewritten, MaterializedView) and rewritten.read_query:
            read_query = _renamed_text(rewritten.read_query, renamed)
            rewritten = replace(rewritten, read_query=read_query)
        if rewritten != item:
            changed.append(rewritten)
    return tuple(changed)


def _renamed_text(text: str, renamed: Mapping[Name, Name]) -> str:
    """Return the query's text with tables renamed; the same text if it names none of them."""
    query = parse_query(text)
    changed = to_sql(rename_tables(query, renamed))
    return text if changed == to_sql(query) else changed


def dependents(snapshot: Snapshot, table_id: str) -> tuple[MaterializedView, ...]:
    """Return the materialized views that read or write the table; they prevent its DROP."""
    return tuple(
        item
        for item in snapshot.objects()
        if isinstance(item, MaterializedView) and item.needs(table_id)
    )
