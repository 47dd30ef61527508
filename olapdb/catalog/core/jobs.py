"""Jobs of views: those beyond the newest are deleted when one is opened."""

from __future__ import annotations

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P

_JOBS, _CHUNKS = t.view_jobs, t.view_job_chunks
JOB_COLUMNS = tuple(str(c.name) for c in _JOBS.columns if c.name != "chunk_count")
_CHUNK_COLUMNS = [c for c in _CHUNKS.columns if c.name != "job_id"]
_ROW: sa.ColumnElement[int] = sa.literal_column("view_jobs.rowid")
"""Increases as jobs are opened, even if the clock stands still or is set back."""

insert_job = CoreStatement(
    lambda: sa.insert(_JOBS).values({c.name: P(c.name) for c in _JOBS.columns})
)
put_chunk = CoreStatement(
    lambda: (
        sa.insert(_CHUNKS)
        .prefix_with("OR REPLACE")
        .values({c.name: P(c.name) for c in _CHUNKS.columns})
    )
)
count_chunks = CoreStatement(
    lambda: sa.update(_JOBS).where(_JOBS.c.id == P("job")).values(chunk_count=P("chunks"))
)
forget_plan = CoreStatement(
    lambda: sa.delete(_CHUNKS).where(
        _CHUNKS.c.job_id == P("job"), _CHUNKS.c.commit_number == sa.literal_column("0")
    )
)
close_running_job = CoreStatement(
    lambda: (
        sa.update(_JOBS)
        .where(_JOBS.c.id == P("job"), _JOBS.c.state == sa.literal_column("'running'"))
        .values(state=P("new_state"), error=P("reason"), finished_ms=P("now_ms"))
    )
)
state_of_job = CoreStatement(lambda: sa.select(_JOBS.c.state).where(_JOBS.c.id == P("job")))
list_jobs = CoreStatement(
    lambda: sa.select(*(_JOBS.c[name] for name in JOB_COLUMNS)).order_by(_ROW)
)
list_chunks = CoreStatement(
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


forget_surplus_chunks = CoreStatement(
    lambda: sa.delete(_CHUNKS).where(_CHUNKS.c.job_id.in_(_surplus_jobs()))
)
forget_surplus_jobs = CoreStatement(lambda: sa.delete(_JOBS).where(_JOBS.c.id.in_(_surplus_jobs())))
