"""DROP, DETACH and ATTACH of views, and what RENAME does to their text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from olapdb.bind.analysis import rename_tables
from olapdb.errors import CommitConflict, HaveDependentObjects
from olapdb.model.changes import (
    Change,
    Commit,
    DropObject,
    NoDependents,
    PutObject,
    Requirement,
    RevisionIs,
    VersionsAre,
)
from olapdb.model.schema import MaterializedView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.services import Services
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.views.jobs.job import find_view, view_name

ATTEMPTS_MAX = 10

Name = tuple[str, str]
"""(database, name)"""


def drop_view(services: Services, view_id: str, *, query_id: str = "", statement: str = "") -> None:
    """Drops the view with its ledger, and its inner table where it has one; a TO target stays.

    Versions that a REBUILD made of it, or kept, go with it and with their targets; such a version
    may be dropped alone."""
    standing: str | None = None
    for _ in range(ATTEMPTS_MAX):
        snapshot = services.catalog.snapshot()
        view = find_view(snapshot, view_id)
        if standing not in (None, view.standing):
            raise CommitConflict(
                f"{view_name(view)} changed places with another version meanwhile.",
                hint="Nothing was dropped; run it again.",
            )
        standing = view.standing
        requirements, changes = dropping(snapshot, view)
        if _applied(services, requirements, changes, "DROP VIEW", query_id, statement):
            return
    raise _busy(view_name(view))


def dropping(snapshot: Snapshot, view: MaterializedView) -> tuple[list[Requirement], list[Change]]:
    """What drops a view, its versions and the targets that are theirs. HaveDependentObjects where
    another view reads or writes one of those targets."""
    going = (view, *versions_of(snapshot, view))
    mine = tuple(one.id for one in going)
    requirements: list[Requirement] = []
    changes: list[Change] = []
    for one in going:
        requirements += [RevisionIs(one.id, one.revision), NoDependents(one.id)]
        changes.append(DropObject(one.id))
    for one in going:
        target = snapshot.by_id(one.target_id)
        if (one.inner or one.standing) and isinstance(target, Table):
            _refuse_dependents(snapshot, view, target, mine)
            requirements.append(NoDependents(target.id, but=mine))
            changes.append(DropObject(target.id))
    if not view.standing:  # a version that another statement begins meanwhile would be orphaned
        requirements.append(VersionsAre(view.id, tuple(sorted(mine[1:]))))
    return requirements, changes


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


def set_attached(
    services: Services, view_id: str, attached: bool, *, query_id: str = "", statement: str = ""
) -> None:
    """Whether INSERTs fire the view; blocks inserted while they do not are its gap. Idempotent."""
    kind = "ATTACH VIEW" if attached else "DETACH VIEW"
    for _ in range(ATTEMPTS_MAX):
        snapshot = services.catalog.snapshot()
        view = find_view(snapshot, view_id)
        if view.attached == attached:
            return
        requirements: list[Requirement] = [RevisionIs(view.id, view.revision)]
        changes: list[Change] = [PutObject(replace(view, attached=attached))]
        if _applied(services, requirements, changes, kind, query_id, statement):
            return
    raise _busy(view_name(view))


def _applied(
    services: Services,
    requirements: list[Requirement],
    changes: list[Change],
    kind: str,
    query_id: str,
    statement: str,
) -> bool:
    try:
        services.catalog.apply(
            Commit(tuple(requirements), tuple(changes), kind, query_id, statement)
        )
    except CommitConflict:
        return False
    return True


def _busy(name: str) -> CommitConflict:
    return CommitConflict(
        f"View {name} was changed by others {ATTEMPTS_MAX} times.", hint="Run it again."
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
