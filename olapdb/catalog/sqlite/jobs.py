"""Jobs of views in tables of the catalog, written beside commits or within them.

The rows are not versioned: they describe processes, as leases do.  Opening a job deletes old ones,
so that the tables stay small however often a schedule runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, replace

import sqlalchemy as sa

from olapdb.catalog.sqlite import tables as t
from olapdb.catalog.sqlite.statements import CatalogStatement
from olapdb.model.job import JobChunk, JobState, ViewJob

JOBS_KEPT_MAX = 1_000
CHUNKS_KEPT_MAX = 100_000
"""The newest ended jobs, and their chunks, that the catalog keeps."""

P = sa.bindparam
_JOBS, _CHUNKS = t.view_jobs, t.view_job_chunks
_JOB_COLUMNS = [c for c in _JOBS.columns if c.name != "chunk_count"]
_CHUNK_COLUMNS = [c for c in _CHUNKS.columns if c.name != "job_id"]
_ROW: sa.ColumnElement[int] = sa.literal_column("view_jobs.rowid")
"""Increases as jobs are opened, even if the clock stands still or is set back."""

_insert_job = CatalogStatement(
    lambda: sa.insert(_JOBS).values({c.name: P(c.name) for c in _JOBS.columns})
)
_put_chunk = CatalogStatement(
    lambda: (
        sa.insert(_CHUNKS)
        .prefix_with("OR REPLACE")
        .values({c.name: P(c.name) for c in _CHUNKS.columns})
    )
)
_count_chunks = CatalogStatement(
    lambda: sa.update(_JOBS).where(_JOBS.c.id == P("job")).values(chunk_count=P("chunks"))
)
_forget_plan = CatalogStatement(
    lambda: sa.delete(_CHUNKS).where(
        _CHUNKS.c.job_id == P("job"), _CHUNKS.c.commit_number == sa.literal_column("0")
    )
)
_close = CatalogStatement(
    lambda: (
        sa.update(_JOBS)
        .where(_JOBS.c.id == P("job"), _JOBS.c.state == sa.literal_column("'running'"))
        .values(state=P("new_state"), error=P("reason"), finished_ms=P("now_ms"))
    )
)
_state_of = CatalogStatement(lambda: sa.select(_JOBS.c.state).where(_JOBS.c.id == P("job")))
_all_jobs = CatalogStatement(lambda: sa.select(*_JOB_COLUMNS).order_by(_ROW))
_all_chunks = CatalogStatement(
    lambda: sa.select(_CHUNKS.c.job_id, *_CHUNK_COLUMNS).order_by(_CHUNKS.c.job_id, _CHUNKS.c.chunk)
)


def _surplus_jobs() -> sa.Select[tuple[str]]:
    """Return the query of jobs to delete: those beyond the newest :jobs_max jobs or :chunks_max
    chunks, unless they run under a live lease."""
    live = sa.select(t.leases.c.id).where(t.leases.c.state == sa.literal_column("'live'"))
    newest_first = _ROW.desc()
    ranked = sa.select(
        _JOBS.c.id,
        _JOBS.c.state,
        _JOBS.c.lease_id,
        sa.func.row_number().over(order_by=newest_first).label("place"),
        sa.func.sum(_JOBS.c.chunk_count).over(order_by=newest_first).label("chunks"),
    ).subquery()
    return sa.select(ranked.c.id).where(
        sa.or_(ranked.c.place > P("jobs_max"), ranked.c.chunks > P("chunks_max")),
        sa.or_(ranked.c.state != sa.literal_column("'running'"), ranked.c.lease_id.not_in(live)),
    )


_forget_chunks = CatalogStatement(
    lambda: sa.delete(_CHUNKS).where(_CHUNKS.c.job_id.in_(_surplus_jobs()))
)
_forget_jobs = CatalogStatement(lambda: sa.delete(_JOBS).where(_JOBS.c.id.in_(_surplus_jobs())))


# --- writing, inside a transaction ----------------------------------------------------------------


def open_job(connection: sqlite3.Connection, job: ViewJob, chunks: Iterable[JobChunk]) -> None:
    """Add the job with its plan, and delete the oldest of too many."""
    _insert_job(connection, **asdict(job), chunk_count=0)
    plan_job(connection, job.id, chunks)
    limits = {"jobs_max": JOBS_KEPT_MAX, "chunks_max": CHUNKS_KEPT_MAX}
    _forget_chunks(connection, **limits)
    _forget_jobs(connection, **limits)


def plan_job(connection: sqlite3.Connection, job_id: str, chunks: Iterable[JobChunk]) -> None:
    """Replace the planned chunks of a job. Chunks that are published already stay."""
    planned = list(chunks)
    _forget_plan(connection, job=job_id)
    note_chunks(connection, job_id, planned)
    _count_chunks(connection, job=job_id, chunks=len(planned))


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
        _put_chunk(
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
    done = _close(connection, job=job_id, new_state=state, reason=error, now_ms=now_ms)
    return done.rowcount > 0


# --- reading --------------------------------------------------------------------------------------


def job_state(connection: sqlite3.Connection, job_id: str) -> JobState | None:
    """Return the job's state, None if the catalog has deleted the job."""
    state: JobState | None = _state_of.value(connection, job=job_id)
    return state


def all_jobs(connection: sqlite3.Connection) -> tuple[ViewJob, ...]:
    """Return all jobs, oldest first."""
    names = [c.name for c in _JOB_COLUMNS]
    jobs = []
    for row in _all_jobs(connection):
        facts = dict(zip(names, row, strict=True))
        jobs.append(ViewJob(**{**facts, "staged": bool(facts["staged"])}))
    return tuple(jobs)


def all_chunks(connection: sqlite3.Connection) -> tuple[tuple[str, JobChunk], ...]:
    """Return (job id, chunk), ordered by both."""
    return tuple((job_id, JobChunk(*rest)) for job_id, *rest in _all_chunks(connection))
