"""system.view_jobs and system.view_job_chunks: running and ended SYSTEM … VIEW statements.

Like leases they describe processes, so they show the present, whatever snapshot the query reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.system.registry import Row, SystemContext, SystemTable, moment_if_any
from olapdb.views.jobs.job_listing import view_jobs


def _jobs(context: SystemContext) -> Iterator[Row]:
    """List the jobs on views, with their chunks counted. A job on a dropped view keeps the name
    that it had."""
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
    """List the chunks of all jobs on views."""
    for row in view_jobs(context.services.catalog):
        for chunk in row.chunks:
            yield (
                row.job.id,
                row.job.query_id,
                chunk.chunk,
                chunk.partition,
                chunk.parts,
                chunk.rows,
                chunk.bytes,
                chunk.state,
                chunk.target_rows,
                chunk.commit or None,
                chunk.elapsed_ms,
                moment_if_any(chunk.finished_ms),
                chunk.error,
            )


TABLES = (
    SystemTable(
        "view_jobs",
        """job String, database String, view String, view_uuid String, kind String, state String,
        chunks UInt64, chunks_done UInt64, chunks_failed UInt64, rows UInt64, rows_done UInt64,
        bytes UInt64, started Nullable(DateTime64(3)), finished Nullable(DateTime64(3)),
        elapsed_ms Nullable(UInt64), error String, executor String, is_staged UInt8,
        query_id String, statement String, process_id UInt64""",
        _jobs,
        "SYSTEM BACKFILL, REPLAY, RECONCILE and ADOPT VIEW of all processes, the newest 1,000.",
    ),
    SystemTable(
        "view_job_chunks",
        """job String, query_id String, chunk UInt64, partition_id String, parts UInt64,
        rows UInt64, bytes UInt64, state String, target_rows UInt64, commit Nullable(UInt64),
        elapsed_ms UInt64, finished Nullable(DateTime64(3)), error String""",
        _chunks,
        "The chunks of those jobs: parts of one partition of the view's source.",
    ),
)
