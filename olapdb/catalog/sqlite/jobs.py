"""Jobs of views in tables of the catalog, written beside commits or within them.

The rows are not versioned: they describe processes, as leases do.  Opening a job deletes old ones,
so that the tables stay small however often a schedule runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, replace

from olapdb.catalog.sqlite.statements import jobs as sql
from olapdb.model.job import JobChunk, JobEntry, JobState

JOBS_KEPT_MAX = 1_000
CHUNKS_KEPT_MAX = 100_000
"""The newest ended jobs, and their chunks, that the catalog keeps."""


# --- writing, inside a transaction ----------------------------------------------------------------


def open_job(connection: sqlite3.Connection, job: JobEntry, chunks: Iterable[JobChunk]) -> None:
    """Add the job with its plan, and delete the oldest of too many."""
    sql.insert_job(connection, **asdict(job), chunk_count=0)
    plan_job(connection, job.id, chunks)
    limits = {"jobs_max": JOBS_KEPT_MAX, "chunks_max": CHUNKS_KEPT_MAX}
    sql.forget_surplus_chunks(connection, **limits)
    sql.forget_surplus_jobs(connection, **limits)


def plan_job(connection: sqlite3.Connection, job_id: str, chunks: Iterable[JobChunk]) -> None:
    """Replace the planned chunks of a job. Chunks that are published already stay."""
    planned = list(chunks)
    sql.forget_plan(connection, job=job_id)
    note_chunks(connection, job_id, planned)
    sql.count_chunks(connection, job=job_id, chunks=len(planned))


def note_chunks(
    connection: sqlite3.Connection,
    job_id: str,
    chunks: Iterable[JobChunk],
    commit: int = 0,
    now_ms: int = 0,
) -> None:
    """Store the state of chunks. Within a commit, `commit` is its number, given to chunks it
    publishes."""
    for chunk in chunks:
        if commit and chunk.state == "published" and not chunk.commit:
            chunk = replace(chunk, commit=commit, finished_ms=now_ms)
        sql.put_chunk(
            connection,
            job_id=job_id,
            chunk=chunk.chunk,
            partition_id=chunk.partition,
            parts=chunk.parts,
            row_count=chunk.rows,
            byte_count=chunk.bytes,
            state=chunk.state,
            target_rows=chunk.target_rows,
            commit_number=chunk.commit,
            elapsed_ms=chunk.elapsed_ms,
            finished_ms=chunk.finished_ms,
            error=chunk.error,
        )


def close_job(
    connection: sqlite3.Connection, job_id: str, state: JobState, error: str, now_ms: int
) -> bool:
    """End a running job; return False, without a change, if it had ended before."""
    done = sql.close_running_job(
        connection, job=job_id, new_state=state, reason=error, now_ms=now_ms
    )
    return done.rowcount > 0


# --- reading --------------------------------------------------------------------------------------


def job_state(connection: sqlite3.Connection, job_id: str) -> JobState | None:
    """Return the job's state, None if the catalog has deleted the job."""
    state: JobState | None = sql.state_of_job.value(connection, job=job_id)
    return state


def all_jobs(connection: sqlite3.Connection) -> tuple[JobEntry, ...]:
    """Return all jobs, oldest first."""
    jobs = []
    for row in sql.list_jobs(connection):
        facts = dict(zip(sql.JOB_COLUMNS, row, strict=True))
        jobs.append(JobEntry(**{**facts, "staged": bool(facts["staged"])}))
    return tuple(jobs)


def all_chunks(connection: sqlite3.Connection) -> tuple[tuple[str, JobChunk], ...]:
    """Return (job id, chunk), ordered by both."""
    return tuple((job_id, JobChunk(*rest)) for job_id, *rest in sql.list_chunks(connection))
