"""ALTER TABLE view MODIFY QUERY: another definition for the same view, in one commit.

    version 1: SELECT k, sum(x) …      blocks 1..7 are covered by it
    MODIFY QUERY SELECT k, sum(2 * x)  version 2; all that version 1 made is stale, in the same commit
    block 8                            fires version 2
    SYSTEM REPLAY VIEW v STALE         recomputes the slices by version 2

The coverage of the view stays. An INSERT, a chunk or a replay that used the old version requires
it, so it fires again or fails (rules 1, 3 and 6). Old rows never count as rows of the new
definition (rule 11).
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import ATTEMPTS_MAX, RetryPolicy, retry_commit
from olapdb.errors import QueryNotSupportedInMaterializedView
from olapdb.model.changes import PutObject
from olapdb.model.requirements import RevisionIs
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.sql import nodes
from olapdb.views.definition.definition import (
    ProposedView,
    ViewDefinition,
    define,
    inherited_settings,
)
from olapdb.views.definition.judgement import invalidate_all_draft, view_rows
from olapdb.views.jobs.job import find_view, view_name


@dataclass(frozen=True, slots=True)
class ModifiedView:
    """The result of MODIFY QUERY. `changed` is False if the query means the same as before;
    `stale_rows` are the target's rows that the old definition made."""

    view: MaterializedView
    changed: bool
    stale_rows: int


def modify_query(
    origin: CommitOrigin, view_id: str, query: nodes.Query, *, database: str
) -> ModifiedView:
    """Give the view another SELECT over the same source, checked as at CREATE. The view keeps its
    settings, except those that the origin changes from the default or the query names. The same commit makes the whole
    target stale and raises the view's version.

    Raises what CREATE raises; QueryNotSupportedInMaterializedView for another source; UnknownTable
    if the view or its target is gone. An equal definition changes nothing.
    """
    origin = origin.of_kind("MODIFY QUERY")

    def attempt(snapshot: Snapshot) -> ModifiedView:
        """Give the view its new definition and make its target stale, in one commit."""
        view = find_view(snapshot, view_id)
        definition = _new_definition(origin, snapshot, view, query, database)
        if _is_unchanged(definition, view):
            return ModifiedView(view, False, 0)
        changed = replace(definition.applied_to(view), version=view.version + 1)
        draft = CommitDraft(
            [RevisionIs(view.id, view.revision), *definition.requirements(snapshot)],
            [PutObject(changed)],
        )
        draft.merge(invalidate_all_draft(origin, snapshot, view, "MODIFY QUERY"))
        failpoint("modify.before_commit")
        publish(draft, origin)
        return ModifiedView(changed, True, view_rows(snapshot, view))

    snapshot = origin.services.catalog.snapshot()
    name = view_name(find_view(snapshot, view_id))
    policy = RetryPolicy(
        "MODIFY QUERY", f"The tables of view {name} changed {ATTEMPTS_MAX} times meanwhile."
    )
    return retry_commit(origin.services, attempt, policy, first=snapshot)


def _new_definition(
    origin: CommitOrigin,
    snapshot: Snapshot,
    view: MaterializedView,
    query: nodes.Query,
    database: str,
) -> ViewDefinition:
    """Return the checked definition; refuse another source
    (QueryNotSupportedInMaterializedView)."""
    name = view_name(view)
    target = target_of(snapshot, view)
    settings = inherited_settings(view, origin.settings)
    proposed = ProposedView(
        name,
        query,
        lambda plan: target,
        database,
        origin.services.zone,
        settings,
        position=query.position,
    )
    definition = define(snapshot, proposed)
    if definition.source.id != view.source_id:
        source = snapshot.by_id(view.source_id)
        old_source = (
            f"{source.database}.{source.name}" if source is not None else "a table that is gone"
        )
        new_source = f"{definition.source.database}.{definition.source.name}"
        raise QueryNotSupportedInMaterializedView(
            f"MODIFY QUERY of view {name}: the query reads FROM {new_source}, the view is"
            f" fired by {old_source}; what it has seen of one says nothing about the other.",
            hint=f"SYSTEM REBUILD VIEW {name} AS SELECT … FROM {new_source} builds it anew beside"
            " the old one, and swaps the two when it is proven.",
            position=query.position,
        )
    return definition


def _is_unchanged(definition: ViewDefinition, view: MaterializedView) -> bool:
    """Return whether the view already has this definition."""
    return definition.applied_to(view) == view
