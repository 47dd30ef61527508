"""SYSTEM REFRESH | WAIT | STOP | START | CANCEL VIEW of refreshable views, and the refreshes that
their schedules make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from olapdb.config import Settings
from olapdb.errors import RefreshFailed
from olapdb.model.changes import PutObject
from olapdb.model.requirements import RevisionIs
from olapdb.model.schema import RefreshableView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.sql.parser import parse_query
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict
from olapdb.statements.dml.insert import result_blocks
from olapdb.statements.query.select import run_at
from olapdb.views.refresh.refreshing import is_due, refresh


def refresh_now(view_id: str, context: StatementContext, *, only_if_due: bool = False) -> int:
    """Refresh the view in one commit; return the number of rows written. See `refreshing.refresh`
    for `only_if_due` and errors."""

    def read(view: RefreshableView, target: Table, snapshot: Snapshot) -> Iterable[pa.Table]:
        """Return the rows of the view's query at the snapshot as blocks of the target."""
        own = replace(
            context,
            text=view.query,
            database=view.database,
            settings=Settings(dict(view.settings)),
            environment=replace(context.environment, zone=view.zone, database=view.database),
            parameters=None,
        )
        result = run_at(parse_query(view.query), own, snapshot)
        names = [column.name for column in view.columns]
        return result_blocks(target, names, result, own, snapshot)

    return refresh(context.origin(), view_id, read, only_if_due=only_if_due)


def due_views(context: StatementContext) -> list[RefreshableView]:
    """Return the refreshable views whose refresh is due now."""
    snapshot, now_ms = context.snapshot(), context.services.clock_ms()
    views = snapshot.objects_of(RefreshableView)
    return [view for view in views if is_due(view, snapshot, now_ms)]


def wait_for(view: RefreshableView, context: StatementContext) -> None:
    """Wait until no refresh of the view runs in this process. Raise RefreshFailed if the last
    attempt failed."""
    context.services.refreshes.wait(view.id, context.origin().refuse_cancelled)
    now = context.snapshot().by_id(view.id)
    if isinstance(now, RefreshableView) and now.exception:
        raise RefreshFailed(
            f"Refresh of {now.database}.{now.name} failed: {now.exception}",
            hint="The view keeps the rows that it had.",
        )


def set_stopped(view_id: str, stopped: bool, context: StatementContext) -> None:
    """Suspend or resume the view's schedule, in all processes and until it is changed again. A
    refresh in progress is not ended; SYSTEM CANCEL VIEW does that."""

    def attempt(snapshot: Snapshot) -> None:
        """Store the state in one commit; commit nothing if it is so already."""
        view = snapshot.by_id(view_id)
        if isinstance(view, RefreshableView) and view.stopped != stopped:
            changed = PutObject(replace(view, stopped=stopped))
            kind = "STOP VIEW" if stopped else "START VIEW"
            commit_schema_change(context, kind, [RevisionIs(view.id, view.revision)], [changed])

    retry_on_conflict(context, attempt)


def set_all_stopped(stopped: bool, context: StatementContext) -> None:
    """Suspend or resume the schedules of all refreshable views."""
    for view in context.snapshot().objects_of(RefreshableView):
        set_stopped(view.id, stopped, context)


def cancel(view: RefreshableView, context: StatementContext) -> None:
    """End the refresh of the view if one runs in this process; its rows stay as they are."""
    context.services.refreshes.cancel(view.id)
