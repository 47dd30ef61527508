"""ALTER TABLE view MODIFY QUERY: another definition for the same view, in one commit.

    version 1: SELECT k, sum(x) …      blocks 1..7 are covered by it
    MODIFY QUERY SELECT k, sum(2 * x)  version 2; all that version 1 made is stale, in the same commit
    block 8                            fires version 2
    SYSTEM REPLAY VIEW v STALE         recomputes the slices by version 2

What the view has seen stays seen.  An INSERT, a chunk or a replay that was computed with the old
version requires it, and so fires anew or fails (rules 1, 3 and 6); old rows never count as the new
definition's (rule 11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from olapdb.errors import CommitConflict, QueryNotSupportedInMaterializedView
from olapdb.model.changes import Commit, PutObject, RevisionIs
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.views.definition.definition import ViewDefinition, define, kept_settings
from olapdb.views.definition.judgement import all_stale, rows_made
from olapdb.views.jobs.job import find_view, view_name

ATTEMPTS_MAX = 10


@dataclass(frozen=True, slots=True)
class ModifiedView:
    """`changed` is False where the query means what it meant; `stale_rows` are the target's rows
    that the old definition made."""

    view: MaterializedView
    changed: bool
    stale_rows: int


def modify_query(
    services: Services,
    view_id: str,
    query: nodes.Query,
    *,
    database: str,
    settings: Mapping[str, object] | None = None,
    query_id: str = "",
    statement: str = "",
) -> ModifiedView:
    """Gives the view another SELECT over the same source, checked as at CREATE. Its settings stay,
    but for those that differ from the default in `settings`, or that the query names.

    Raises what CREATE raises; QueryNotSupportedInMaterializedView for another source; UnknownTable
    where the view, or its target, is gone.  The same query again changes nothing.
    """
    for _ in range(ATTEMPTS_MAX):
        snapshot = services.catalog.snapshot()
        view = find_view(snapshot, view_id)
        definition = _defined(services, snapshot, view, query, database, settings or {})
        if _means_the_same(definition, view):
            return ModifiedView(view, False, 0)
        changed = replace(definition.applied_to(view), version=view.version + 1)
        requirements = [RevisionIs(view.id, view.revision), *definition.requirements(snapshot)]
        rows = rows_made(snapshot, view)
        stale, needed = all_stale(services, snapshot, view, "MODIFY QUERY", query_id, statement)
        failpoint("modify.before_commit")
        try:
            services.catalog.apply(
                Commit(
                    (*requirements, *needed),
                    (PutObject(changed), *stale),
                    "MODIFY QUERY",
                    query_id,
                    statement,
                )
            )
        except CommitConflict:
            continue
        return ModifiedView(changed, True, rows)
    raise CommitConflict(
        f"The tables of view {view_name(view)} changed {ATTEMPTS_MAX} times meanwhile.",
        hint="Nothing was changed; run it again.",
    )


def _defined(
    services: Services,
    snapshot: Snapshot,
    view: MaterializedView,
    query: nodes.Query,
    database: str,
    settings: Mapping[str, object],
) -> ViewDefinition:
    name = view_name(view)
    kept = target_of(snapshot, view)
    definition = define(
        snapshot,
        name,
        query,
        lambda plan: kept,
        database=database,
        zone=services.zone,
        session_settings=kept_settings(view, settings),
        position=query.position,
    )
    if definition.source.id != view.source_id:
        source = snapshot.by_id(view.source_id)
        old = f"{source.database}.{source.name}" if source is not None else "a table that is gone"
        new = f"{definition.source.database}.{definition.source.name}"
        raise QueryNotSupportedInMaterializedView(
            f"MODIFY QUERY of view {name}: the query reads FROM {new}, the view is fired by {old};"
            " what it has seen of one says nothing about the other.",
            hint=f"SYSTEM REBUILD VIEW {name} AS SELECT … FROM {new} builds it anew beside the old"
            " one, and swaps the two when it is proven.",
            position=query.position,
        )
    return definition


def _means_the_same(definition: ViewDefinition, view: MaterializedView) -> bool:
    return definition.applied_to(view) == view
