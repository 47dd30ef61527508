"""The judgement of views that exist: of what their tables are now, or would be after an ALTER.

`MaterializedView.unprovable` keeps the reason with the view.  Each commit that changes a table
around a view judges the view anew (`after_alter`): a view that is no longer provable says so from
the same commit on, and one that is provable again is stale from it, since nobody vouched for what
was made meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from olapdb.bind import BindScope, bind_query
from olapdb.commit.draft import CommitDraft, publish_if_current
from olapdb.commit.origin import CommitOrigin
from olapdb.config import Settings
from olapdb.errors import Error, QueryNotSupportedInMaterializedView
from olapdb.functions.base import Environment
from olapdb.lineage.invalidation import invalidate
from olapdb.model.changes import NothingCovered, PutObject, RevisionIs
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause
from olapdb.plan.nodes import Plan
from olapdb.runtime.services import Services
from olapdb.sql.parser import parse_query
from olapdb.views.provability import RULES, BoundDefinition, JudgedItem, Judgement, judge


def bind_view(view: MaterializedView, snapshot: Snapshot, query: str | None = None) -> Plan:
    """Bind the view's frozen query (or another text) as its trigger does, not optimized."""
    scope = BindScope(
        snapshot=snapshot,
        database=view.database,
        settings=Settings(dict(view.settings)),
        environment=Environment(zone=view.zone, database=view.database),
    )
    return bind_query(parse_query(view.query if query is None else query), scope)


def judgement_of(
    view: MaterializedView, snapshot: Snapshot, plan: Plan | None = None
) -> Judgement | None:
    """Return the judgement of the view at the snapshot; None where a table is gone, or its query does not
    bind any more."""
    try:
        parts = bound_definition(view, snapshot, plan)
        return None if parts is None else judge(parts)
    except QueryNotSupportedInMaterializedView as error:
        return Judgement((JudgedItem("query", False, error.message, error.hint or ""),))
    except Error:
        return None


def bound_definition(
    view: MaterializedView, snapshot: Snapshot, plan: Plan | None = None
) -> BoundDefinition | None:
    """Return what is judged of the view at the snapshot, None where a table is gone; raises Error
    where the query does not bind any more."""
    source, target = snapshot.by_id(view.source_id), snapshot.by_id(view.target_id)
    if not isinstance(source, Table) or not isinstance(target, Table):
        return None
    return BoundDefinition(
        f"{view.database}.{view.name}",
        bind_view(view, snapshot) if plan is None else plan,
        source,
        target,
        snapshot,
        dict(view.settings),
        Environment(zone=view.zone, database=view.database),
    )


def reason_of(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return why the view is unproven, as it is stored or else as its tables are now; "" for a
    provable one."""
    if view.unprovable:
        return view.unprovable
    found = judgement_of(view, snapshot)
    return "" if found is None else found.reason


def unproven_reason(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return why the view is unproven, "" for a provable one: as it is stored, unless older rules
    judged it (in a warehouse that is open for reading only)."""
    if view.unprovable or view.judged_by >= RULES:
        return view.unprovable
    return reason_of(view, snapshot)


def judge_older_views(services: Services) -> None:
    """Judge the views that older rules judged, and store the answers in one commit.

    Nothing is stored where a view changes meanwhile: the next one to open the warehouse does it."""
    snapshot = services.catalog.snapshot()
    views = [one for one in snapshot.objects() if isinstance(one, MaterializedView)]
    older = [view for view in views if view.judged_by < RULES]
    if not older:
        return
    judged = [
        replace(view, unprovable=reason_of(view, snapshot), judged_by=RULES) for view in older
    ]
    draft = CommitDraft(
        [RevisionIs(view.id, view.revision) for view in older], [PutObject(view) for view in judged]
    )
    publish_if_current(draft, CommitOrigin(services, "ALTER"))


def judged_items(view: MaterializedView, snapshot: Snapshot) -> tuple[JudgedItem, ...]:
    """Return the items of the view's judgement, and one for the stored reason where that is older."""
    found = judgement_of(view, snapshot)
    if found is None:
        why = "A table that it needs is gone, or its query does not fit it any more."
        return (JudgedItem("query", False, why, "DROP VIEW, or ALTER TABLE … MODIFY QUERY."),)
    if view.unprovable and found.provable:
        fix = "ALTER TABLE … MODIFY QUERY with the same query judges it anew."
        return (*found.items, JudgedItem("what it made so far", False, view.unprovable, fix))
    return found.items


# --- what an ALTER makes of it --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rejudged:
    """A view that an ALTER changes: `view` has the reason that is kept from now on.

    `stale` is the cause for which all that it made is stale: "ALTER" where it was unproven and is
    not any more, "TARGET CHANGED" where its target fills a column otherwise, "" else."""

    view: MaterializedView
    stale: Cause | Literal[""] = ""


def after_alter(
    view: MaterializedView, before: Judgement | None, after: Judgement, fills_otherwise: bool
) -> Rejudged | None:
    """Return what becomes of the view, None where it stays as it is; `fills_otherwise` tells that
    its target gives its own columns other values than before."""
    had = view.unprovable or ("" if before is None else before.reason)
    proves_again = bool(had) and not after.reason
    stale: Cause | Literal[""] = "ALTER" if proves_again else ""
    if fills_otherwise and not stale:
        stale = "TARGET CHANGED"
    if after.reason == view.unprovable and bool(had) == bool(after.reason) and not stale:
        return None
    return Rejudged(replace(view, unprovable=after.reason, judged_by=RULES), stale)


def rejudged_draft(
    origin: CommitOrigin, snapshot: Snapshot, rejudged: tuple[Rejudged, ...]
) -> CommitDraft:
    """Return what the commit that alters the table says of these views."""
    draft = CommitDraft()
    for one in rejudged:
        draft.change(PutObject(one.view))
        draft.require(RevisionIs(one.view.id, one.view.revision))
        if one.stale:
            draft.merge(all_stale(origin, snapshot, one.view, one.stale))
    return draft


def all_stale(
    origin: CommitOrigin, snapshot: Snapshot, view: MaterializedView, cause: Cause
) -> CommitDraft:
    """Return what makes all stale that the view made. A view that has seen nothing yet made nothing,
    and the commit requires that this stays so."""
    coverage = snapshot.coverage(view.id)
    if not coverage.everywhere and not any(coverage.by_partition.values()):
        return CommitDraft([NothingCovered(view.id)])
    return CommitDraft((), [invalidate(origin, view.id, None, cause, rows_made(snapshot, view))])


def rows_made(snapshot: Snapshot, view: MaterializedView) -> int:
    """Return how many rows of its target the view made."""
    mine = frozenset((view.id,))
    return sum(part.rows for part in snapshot.parts(view.target_id) if part.made_by(mine))


def keep_reason(origin: CommitOrigin, view: MaterializedView, reason: str) -> None:
    """Store the reason with a view that was made before the rule was known. A view that changes
    meanwhile is judged anew the next time."""
    if not reason or reason == view.unprovable:
        return
    draft = CommitDraft(
        [RevisionIs(view.id, view.revision)],
        [PutObject(replace(view, unprovable=reason, judged_by=RULES))],
    )
    publish_if_current(draft, replace(origin, kind="RECONCILE", statement=""))
