"""Judgement of existing views, at a snapshot or with a table as an ALTER would leave it.

`MaterializedView.unprovable` stores the reason with the view. Each commit that changes a table of a
view judges the view again (`judgement_change`). From that commit on an unprovable view shows its
reason. A view that becomes provable is stale from that commit on: nothing proved the rows that it
made before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from olapdb.bind import BindScope, bind_query
from olapdb.commit.draft import CommitDraft, publish_if_current
from olapdb.commit.origin import CommitOrigin
from olapdb.config import Settings
from olapdb.errors import Error, QueryNotSupportedInMaterializedView
from olapdb.functions.base import Environment
from olapdb.lineage.invalidation import invalidate
from olapdb.model.changes import PutObject
from olapdb.model.requirements import NothingCovered, RevisionIs
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause
from olapdb.plan.nodes import Plan
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.sql.parser import parse_query
from olapdb.views.definition.changed_functions import changed_functions, loosely_judged_columns
from olapdb.views.provability import RULES, BoundDefinition, JudgedItem, Judgement, judge


def bind_view(view: MaterializedView, snapshot: Snapshot, query: str | None = None) -> Plan:
    """Bind the view's frozen query, or `query`, as its trigger does, without optimizing it."""
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
    """Return the judgement of the view, None if a table is gone or the query does not bind."""
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
    """Return the input of a judgement of the view at the snapshot; None if a table is gone. Raises
    Error if the query does not bind any more."""
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
        view.added_keys,
    )


def unproven_reason_now(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return the stored reason why the view is unproven, else the reason of a judgement at the
    snapshot; "" for a provable view."""
    if view.unprovable:
        return view.unprovable
    judgement = judgement_of(view, snapshot)
    return "" if judgement is None else judgement.reason


def unproven_reason(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return the stored reason why the view is unproven, "" for a provable view. Judge again if
    older rules judged it, as in a warehouse that is open for reading only."""
    if view.unprovable or view.judged_by >= RULES:
        return view.unprovable
    reason = unproven_reason_now(view, snapshot)
    stale_reason = _stale_by_older_rules(view, snapshot)
    return reason or (f"{stale_reason} Open it for writing, then replay." if stale_reason else "")


def functions_changed_since(view: MaterializedView, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the functions of the view whose answers changed since the release that judged it."""
    try:
        parts = bound_definition(view, snapshot)
    except Error:
        parts = None
    return changed_functions(view, snapshot, None if parts is None else parts.plan)


def _stale_by_older_rules(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return why a view that older rules judged is stale as a whole, a sentence; "" if it is not."""
    changed = functions_changed_since(view, snapshot)
    if changed:
        return f"Older releases gave other answers of {', '.join(changed)}."
    columns = loosely_judged_columns(view, snapshot)
    if columns:
        return f"Older releases judged {', '.join(columns)} less exactly."
    return ""


def judge_older_views(services: Services) -> None:
    """Judge the views that older rules judged, and store the results in one commit. A view of a
    function whose answers changed meanwhile is stale as a whole.

    Store nothing on a concurrent change of a view: the next opening of the warehouse tries again.
    """
    snapshot = services.catalog.snapshot()
    views = snapshot.objects_of(MaterializedView)
    older = [view for view in views if view.judged_by < RULES]
    if not older:
        return
    draft = CommitDraft()
    for view in older:
        draft.require(RevisionIs(view.id, view.revision))
        reason = unproven_reason_now(view, snapshot)
        draft.change(PutObject(replace(view, unprovable=reason, judged_by=RULES)))
        stale_reason = _stale_by_older_rules(view, snapshot)
        if stale_reason:
            origin = CommitOrigin(services, "ALTER", statement=stale_reason)
            draft.merge(invalidate_all_draft(origin, snapshot, view, "FUNCTION CHANGED"))
    publish_if_current(draft, CommitOrigin(services, "ALTER"))


def judged_items(view: MaterializedView, snapshot: Snapshot) -> tuple[JudgedItem, ...]:
    """Return the view's items, and one for a stored reason that the judgement no longer gives."""
    judgement = judgement_of(view, snapshot)
    if judgement is None:
        reason = "A table that it needs is gone, or its query does not fit it any more."
        return (JudgedItem("query", False, reason, "DROP VIEW, or ALTER TABLE … MODIFY QUERY."),)
    if view.unprovable and judgement.provable:
        fix = "ALTER TABLE … MODIFY QUERY with the same query judges it anew."
        return (*judgement.items, JudgedItem("what it made so far", False, view.unprovable, fix))
    return judgement.items


# --- judgements that an ALTER changes -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rejudged:
    """A view that an ALTER changes: `view` has the new reason.

    `stale` is the cause for which all its rows are stale: "ALTER" if it was unproven and is
    provable now, "TARGET CHANGED" if its target fills a column differently, else "".
    """

    view: MaterializedView
    stale: Cause | Literal[""] = ""


def judgement_change(
    view: MaterializedView, before: Judgement | None, after: Judgement, fills_otherwise: bool
) -> Rejudged | None:
    """Return the change of the view, None if it stays the same. `fills_otherwise`: its target gives
    its own columns other values than before."""
    old_reason = view.unprovable or ("" if before is None else before.reason)
    proves_again = bool(old_reason) and not after.reason
    stale: Cause | Literal[""] = "ALTER" if proves_again else ""
    if fills_otherwise and not stale:
        stale = "TARGET CHANGED"
    if after.reason == view.unprovable and bool(old_reason) == bool(after.reason) and not stale:
        return None
    return Rejudged(replace(view, unprovable=after.reason, judged_by=RULES), stale)


def rejudged_draft(
    origin: CommitOrigin, snapshot: Snapshot, rejudged: tuple[Rejudged, ...]
) -> CommitDraft:
    """Return the draft for these views, to be merged into the commit that alters the table."""
    draft = CommitDraft()
    for item in rejudged:
        draft.change(PutObject(item.view))
        draft.require(RevisionIs(item.view.id, item.view.revision))
        if item.stale:
            draft.merge(invalidate_all_draft(origin, snapshot, item.view, item.stale))
    return draft


def invalidate_all_draft(
    origin: CommitOrigin, snapshot: Snapshot, view: MaterializedView, cause: Cause
) -> CommitDraft:
    """Return the draft that invalidates all rows that the view made. If the view has seen no source
    rows yet, the draft only requires that its coverage is still empty at the commit."""
    coverage = snapshot.coverage(view.id)
    if not coverage.everywhere and not any(coverage.by_partition.values()):
        return CommitDraft([NothingCovered(view.id)])
    return CommitDraft((), [invalidate(origin, view.id, None, cause, view_rows(snapshot, view))])


def view_rows(snapshot: Snapshot, view: MaterializedView) -> int:
    """Return the number of rows of the view's target that the view made."""
    view_ids = frozenset((view.id,))
    return sum(part.rows for part in snapshot.parts(view.target_id) if part.written_by(view_ids))


def store_unproven_reason(origin: CommitOrigin, view: MaterializedView, reason: str) -> None:
    """Store a newly known reason with the view. Store nothing on a concurrent change of the view:
    the next comparison judges it again."""
    if not reason or reason == view.unprovable:
        return
    draft = CommitDraft(
        [RevisionIs(view.id, view.revision)],
        [PutObject(replace(view, unprovable=reason, judged_by=RULES))],
    )
    publish_if_current(draft, replace(origin, kind="RECONCILE", statement=""))
