"""One refresh of a view: its rows and its new state are one commit.

    due?  ->  the query's rows at a snapshot  ->  commit: the target's rows exchanged, or added, and
              the view's state; it requires the view to be as it was read

So a refresh is made once, whichever process made it: another one that was at it too conflicts, sees
the new state and finds that nothing is due.  An attempt that fails leaves the rows, and stores its
error in a commit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.dml.replace_rows import replace_rows
from olapdb.errors import (
    CatalogBusy,
    CommitConflict,
    Error,
    QueryWasCancelled,
    RefreshFailed,
    UnknownTable,
)
from olapdb.model.changes import PutObject
from olapdb.model.requirements import RevisionIs
from olapdb.model.schema import RefreshableView, Table
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.sql import nodes
from olapdb.views.refresh.schedule import Schedule

Read: TypeAlias = Callable[[RefreshableView, Table, Snapshot], Iterable[pa.Table]]
"""A function from a view, its target and a snapshot to the rows of the view's query there, as
blocks of the target."""

EVERY_ROW = nodes.Replacing(where=nodes.Literal(1))
NO_ROW = nodes.Replacing(where=nodes.Literal(0))


class _NotDue(Exception):
    """Another process has made the refresh, or the view was stopped or dropped."""


def refresh(origin: CommitOrigin, view_id: str, read: Read, *, only_if_due: bool = False) -> int:
    """Refresh the view in one commit; return the number of rows written.

    With `only_if_due` nothing happens unless its schedule says so: then the result is 0. Raises
    UnknownTable for a view that is gone and RefreshFailed for what the query or the commit raised;
    the view keeps its rows, and `system.view_refreshes` shows the error.
    """
    origin = origin.of_kind("REFRESH VIEW")
    started_ms = origin.now_ms()
    begun = _find(origin.services.catalog.snapshot(), view_id)
    with origin.services.refreshes.refreshing(view_id, origin.cancelled, origin.refuse_cancelled):
        try:
            return _exchange_rows(origin, view_id, read, started_ms, only_if_due)
        except _NotDue:
            return 0
        except Exception as error:
            cancelled = isinstance(error, QueryWasCancelled)
            if cancelled and origin.services.refreshes.closing:
                raise  # not an attempt that failed: the slot is still due at the next start
            view = _find(origin.services.catalog.snapshot(), view_id)
            if view is None:
                raise
            # Another process that refreshed it meanwhile has served the slot.
            if begun is None or view.last_success_ms == begun.last_success_ms:
                _record_failure(origin, view_id, error, started_ms)
            if cancelled or not isinstance(error, Error):
                raise
            raise RefreshFailed(
                f"Refresh of {view.database}.{view.name} failed: {error}",
                hint="The view keeps the rows that it had.",
            ) from error


def is_due(view: RefreshableView, snapshot: Snapshot, now_ms: int) -> bool:
    """Return whether the schedule wants a refresh now."""
    return (
        not view.stopped
        and not missing_dependencies(view, snapshot)
        and Schedule.of(view).next_ms(view) <= now_ms
        and not awaited_views(view, snapshot)
    )


def missing_dependencies(view: RefreshableView, snapshot: Snapshot) -> bool:
    """Return whether a view that must refresh before this one does not exist any more."""
    return any(_find(snapshot, view_id) is None for view_id in view.depends_on)


def awaited_views(view: RefreshableView, snapshot: Snapshot) -> tuple[RefreshableView, ...]:
    """Return the views that must refresh before this one does: for EVERY since its slot began, for
    AFTER since its own last success, for its first refresh at all."""
    schedule = Schedule.of(view)
    since = schedule.slot_of(view) if schedule.clause.kind == "EVERY" else view.last_success_ms + 1
    needed = (_find(snapshot, view_id) for view_id in view.depends_on)
    return tuple(
        item for item in needed if item is not None and item.last_success_ms < max(since, 1)
    )


def _find(snapshot: Snapshot, view_id: str) -> RefreshableView | None:
    """Return the refreshable view; None if it is gone."""
    item = snapshot.by_id(view_id)
    return item if isinstance(item, RefreshableView) else None


def _exchange_rows(
    origin: CommitOrigin, view_id: str, read: Read, started_ms: int, only_if_due: bool
) -> int:
    """Make the refresh's commit. Raise _NotDue if nothing is due."""
    first = _require(origin.services.catalog.snapshot(), view_id)
    if only_if_due and not is_due(first, origin.services.catalog.snapshot(), started_ms):
        raise _NotDue

    written = 0

    def blocks(snapshot: Snapshot) -> Iterable[pa.Table]:
        """Return the rows of the query at the snapshot."""
        view = _require(snapshot, view_id)
        if view.target_id != first.target_id or (
            only_if_due and not is_due(view, snapshot, started_ms)
        ):
            raise _NotDue
        return count(read(view, target_of(snapshot, view), snapshot))

    def count(blocks: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Pass the blocks on and count their rows; equal rows that stay count too."""
        nonlocal written
        written = 0
        for block in blocks:
            written += block.num_rows
            yield block

    def state(snapshot: Snapshot, _: int) -> CommitDraft:
        """Return the draft that records in the view that this refresh succeeded."""
        view, now_ms = _require(snapshot, view_id), origin.now_ms()
        every = Schedule.of(view).clause.kind == "EVERY"
        refreshed = replace(
            view,
            scheduled_from_ms=Schedule.of(view).served_ms(view, started_ms) if every else now_ms,
            last_attempt_ms=started_ms,
            last_success_ms=started_ms,
            last_success_duration_ms=max(now_ms - started_ms, 0),
            written_rows=written,
            retry=0,
            exception="",
        )
        return CommitDraft([RevisionIs(view.id, view.revision)], [PutObject(refreshed)])

    leaving = NO_ROW if first.append else EVERY_ROW
    replace_rows(origin, first.target_id, leaving, blocks, also=state)
    return written


def _require(snapshot: Snapshot, view_id: str) -> RefreshableView:
    """Return the view. Raise UnknownTable if it was dropped."""
    view = _find(snapshot, view_id)
    if view is None:
        raise UnknownTable("The view was dropped while it was refreshed.")
    return view


def _record_failure(origin: CommitOrigin, view_id: str, error: Exception, started_ms: int) -> None:
    """Store the failed attempt: another one follows after the backoff, or, after the last one or a
    cancelled one, at the next slot. Concurrent commits may keep it from being stored."""

    def attempt(snapshot: Snapshot) -> None:
        """Store the failure in the view, unless the view was dropped."""
        view = _find(snapshot, view_id)
        if view is None:
            return
        failures = view.retry + 1
        ends = isinstance(error, QueryWasCancelled) or Schedule.of(view).gives_up(failures)
        failed = replace(
            view,
            last_attempt_ms=started_ms,
            scheduled_from_ms=(
                Schedule.of(view).served_ms(view, started_ms) if ends else view.scheduled_from_ms
            ),
            retry=0 if ends else failures,
            exception=str(error),
        )
        publish(CommitDraft([RevisionIs(view.id, view.revision)], [PutObject(failed)]), origin)

    with suppress(CommitConflict, CatalogBusy):  # the error of the refresh itself is raised
        retry_commit(origin.services, attempt, RetryPolicy(origin.kind))
