"""system.view_jobs and system.view_job_chunks: what SYSTEM … VIEW statements do, and did.

Like leases they tell of processes, so they are read as they are now, whatever snapshot the query
has."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.system.registry import Row, SystemContext, SystemTable, moment_if_any
from olapdb.types import STRING, UINT8, UINT64, DataType, DateTime64, Nullable
from olapdb.views.jobs.job_listing import view_jobs

_MAYBE_TIME: DataType = Nullable(DateTime64(3))
_MAYBE_NUMBER: DataType = Nullable(UINT64)


def _jobs(context: SystemContext) -> Iterator[Row]:
    now_ms = context.services.clock_ms()
    for row in view_jobs(context.services.catalog):
        job = row.job
        view = context.snapshot.by_id(job.view_id)
        database, _, name = job.view.partition(".")
        if view is not None:  # it may have been renamed since
            database, name = view.database, view.name
        until = job.finished_ms or (now_ms if row.state == "running" else 0)
        yield (
            job.id,
            database,
            name,
            job.view_id,
            job.kind,
            row.state,
            len(row.chunks),
            row.chunks_done,
            row.chunks_failed,
            row.rows,
            row.rows_done,
            row.bytes,
            moment_if_any(job.started_ms),
            moment_if_any(job.finished_ms),
            max(0, until - job.started_ms) if until else None,
            job.error,
            job.executor,
            int(job.staged),
            job.query_id,
            job.statement,
            job.process_id,
        )


def _chunks(context: SystemContext) -> Iterator[Row]:
    for row in view_jobs(context.services.catalog):
        for one in row.chunks:
            yield (
                row.job.id,
                row.job.query_id,
                one.chunk,
                one.partition,
                one.parts,
                one.rows,
                one.bytes,
                one.state,
                one.target_rows,
                one.commit or None,
                one.elapsed_ms,
                moment_if_any(one.finished_ms),
                one.error,
            )


TABLES = (
    SystemTable(
        "view_jobs",
        (
            ("job", STRING),
            ("database", STRING),
            ("view", STRING),
            ("view_uuid", STRING),
            ("kind", STRING),
            ("state", STRING),
            ("chunks", UINT64),
            ("chunks_done", UINT64),
            ("chunks_failed", UINT64),
            ("rows", UINT64),
            ("rows_done", UINT64),
            ("bytes", UINT64),
            ("started", _MAYBE_TIME),
            ("finished", _MAYBE_TIME),
            ("elapsed_ms", _MAYBE_NUMBER),
            ("error", STRING),
            ("executor", STRING),
            ("is_staged", UINT8),
            ("query_id", STRING),
            ("statement", STRING),
            ("process_id", UINT64),
        ),
        _jobs,
        "SYSTEM BACKFILL, REPLAY, RECONCILE and ADOPT VIEW of all processes, the newest 1,000.",
    ),
    SystemTable(
        "view_job_chunks",
        (
            ("job", STRING),
            ("query_id", STRING),
            ("chunk", UINT64),
            ("partition_id", STRING),
            ("parts", UINT64),
            ("rows", UINT64),
            ("bytes", UINT64),
            ("state", STRING),
            ("target_rows", UINT64),
            ("commit", _MAYBE_NUMBER),
            ("elapsed_ms", UINT64),
            ("finished", _MAYBE_TIME),
            ("error", STRING),
        ),
        _chunks,
        "The chunks of those jobs: parts of one partition of the view's source.",
    ),
)
