"""What every INSERT does around its commit: wait where parts pile up, and log its views."""

from __future__ import annotations

import time

from olapdb.commit.insert_throttle import insert_delay_ms
from olapdb.commit.origin import CommitOrigin
from olapdb.config import Settings
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.model.changes import AddPart
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.view_log import ViewExecution


def wait_for_merges(staged: StagedInsert, snapshot: Snapshot, settings: Settings) -> None:
    """Sleep where parts pile up; raise TooManyParts if too many have."""
    partitions: dict[str, set[str]] = {}
    for change in staged.changes:
        if isinstance(change, AddPart) and change.part.rows:
            partitions.setdefault(change.part.table_id, set()).add(change.part.partition_id)
    wait_ms = 0
    for table_id, ids in partitions.items():
        table = snapshot.by_id(table_id)
        if isinstance(table, Table) and table.engine.is_merge_tree:
            wait_ms = max(wait_ms, insert_delay_ms(snapshot, table, ids, settings))
    if wait_ms:
        time.sleep(wait_ms / 1000)


def log_executions(
    origin: CommitOrigin, staged: StagedInsert, snapshot: Snapshot, *, committed: bool
) -> None:
    """Record the executions of views for system.query_views_log, if the setting asks for it.

    `committed` is False for an INSERT that failed; then only the views that raised are recorded.
    """
    if not staged.views or not Settings.of(origin.settings).boolean("log_query_views"):
        return
    now_ms = origin.services.clock_ms()
    for write in staged.views:
        view = snapshot.by_id(write.view_id)
        if not isinstance(view, MaterializedView) or not (committed or write.exception):
            continue
        target = snapshot.by_id(view.target_id)
        origin.services.view_log.add(
            ViewExecution(
                now_ms,
                write.elapsed_ns,
                origin.query_id,
                view.id,
                f"{view.database}.{view.name}",
                view.query,
                "" if target is None else f"{target.database}.{target.name}",
                write.rows_read,
                write.bytes_read,
                write.rows_written,
                write.bytes_written,
                write.exception_code,
                write.exception,
                committed,
                write.parts,
                write.peak_bytes,
                write.warnings,
            )
        )
