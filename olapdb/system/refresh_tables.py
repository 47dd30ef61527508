"""system.view_refreshes: the refreshable views, their state and their next refresh."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.model.schema import RefreshableView
from olapdb.system.registry import Row, SystemContext, SystemTable, moment_if_any
from olapdb.views.refresh.refreshing import awaited_views, missing_dependencies
from olapdb.views.refresh.schedule import Schedule


def _refreshes(context: SystemContext) -> Iterator[Row]:
    """List the refreshable views by database and name."""
    for item in context.objects("view"):
        if not isinstance(item, RefreshableView):
            continue
        status = _status(item, context)
        next_ms = Schedule.of(item).next_ms(item) or item.created_ms
        succeeded = bool(item.last_success_ms)
        yield (
            item.database,
            item.name,
            item.id,
            status,
            moment_if_any(item.last_success_ms),
            item.last_success_duration_ms if succeeded else None,
            moment_if_any(item.last_attempt_ms),
            None if status in ("Disabled", "MissingDependencies") else moment_if_any(next_ms),
            item.exception,
            item.retry,
            item.written_rows if succeeded else None,
            item.refresh,
            [f"{v.database}.{v.name}" for v in awaited_views(item, context.snapshot)],
        )


def _status(view: RefreshableView, context: SystemContext) -> str:
    """Return ClickHouse's name for the state of the view's schedule."""
    if context.services.refreshes.is_running(view.id):
        return "Running"
    if view.stopped:
        return "Disabled"
    if missing_dependencies(view, context.snapshot):
        return "MissingDependencies"
    is_late = Schedule.of(view).next_ms(view) <= context.services.clock_ms()
    if is_late and awaited_views(view, context.snapshot):
        return "WaitingForDependencies"
    return "Scheduled"


TABLES = (
    SystemTable(
        "view_refreshes",
        """database String, view String, uuid String, status String,
        last_success_time Nullable(DateTime), last_success_duration_ms Nullable(UInt64),
        last_refresh_time Nullable(DateTime), next_refresh_time Nullable(DateTime),
        exception String, retry UInt64, written_rows Nullable(UInt64), refresh String,
        waits_for Array(String)""",
        _refreshes,
        "Materialized views with REFRESH: the last attempt, and when the next one is due.",
    ),
)
