"""The list of view jobs (running, ended or dead), and how to cancel one.

A job is cancelled in the catalog, so from any process. Its statement notices within a fraction of a
second, between chunks and batches. Each of its commits requires that the job runs, so the job
publishes nothing once the cancel has returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from olapdb.catalog.protocol import Catalog
from olapdb.errors import BadArguments
from olapdb.model.job import JobChunk, ViewJob
from olapdb.model.schema import MaterializedView
from olapdb.runtime.services import Services

ShownState: TypeAlias = Literal["running", "done", "failed", "cancelled", "dead"]
"""dead: the job's process ended while it ran. What it published stays; run the statement again."""

_UNFINISHED = ("planned", "computed")


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job and its progress: planned `rows`, `bytes` and `chunks`, and how many of them are
    done."""

    job: ViewJob
    state: ShownState
    chunks: tuple[JobChunk, ...]

    @property
    def chunks_done(self) -> int:
        """Return how many chunks have ended, failed ones included."""
        return sum(one.state not in _UNFINISHED for one in self.chunks)

    @property
    def chunks_failed(self) -> int:
        """Return how many chunks failed."""
        return sum(one.state == "failed" for one in self.chunks)

    @property
    def rows(self) -> int:
        """Return the planned number of source rows."""
        return sum(one.rows for one in self.chunks)

    @property
    def rows_done(self) -> int:
        """Return the source rows of chunks that ended without failing."""
        return sum(one.rows for one in self.chunks if one.state not in (*_UNFINISHED, "failed"))

    @property
    def bytes(self) -> int:
        """Return the planned bytes of source parts on disk."""
        return sum(one.bytes for one in self.chunks)


@dataclass(frozen=True, slots=True)
class CancelRow:
    """A job that a cancel addressed. `state` is "cancelled", or how the job had ended before."""

    job: str
    kind: str
    state: ShownState
    query_id: str


def view_jobs(catalog: Catalog, view_id: str | None = None) -> tuple[JobRow, ...]:
    """Return the jobs in the catalog, oldest first; only those of `view_id`, if given."""
    jobs = catalog.jobs()
    if not jobs:
        return ()
    chunks: dict[str, list[JobChunk]] = {}
    for job_id, chunk in catalog.job_chunks():
        chunks.setdefault(job_id, []).append(chunk)
    living = catalog.living_leases()
    return tuple(
        JobRow(one, _shown_state(one, living), tuple(chunks.get(one.id, ())))
        for one in jobs
        if view_id in (None, one.view_id)
    )


def running_jobs(catalog: Catalog) -> tuple[ViewJob, ...]:
    """Return the running jobs whose process lives. Cheaper than `view_jobs`."""
    jobs = [one for one in catalog.jobs() if one.state == "running"]
    living = catalog.living_leases() if jobs else frozenset[str]()
    return tuple(one for one in jobs if one.lease_id in living)


def cancel_jobs(
    services: Services, view: MaterializedView, job_id: str | None = None
) -> tuple[CancelRow, ...]:
    """Cancel the view's running jobs, or only the job `job_id`; return a row for each. Raises
    BadArguments if the view has no such job."""
    jobs = view_jobs(services.catalog, view.id)
    if job_id is None:
        chosen = [one for one in jobs if one.state == "running"]
    else:
        chosen = [one for one in jobs if one.job.id == job_id]
        if not chosen:
            running = ", ".join(one.job.id for one in jobs if one.state == "running")
            raise BadArguments(
                f"{view.database}.{view.name} has no job {job_id}.",
                hint=f"Running are: {running or 'none'}. system.view_jobs lists all.",
            )
    return tuple(_cancel(services.catalog, one) for one in chosen)


def _cancel(catalog: Catalog, row: JobRow) -> CancelRow:
    """Cancel the job, unless it has ended, and return its state."""
    job, state = row.job, row.state
    if state in ("running", "dead"):
        if catalog.close_job(job.id, "cancelled", "Cancelled by SYSTEM CANCEL VIEW."):
            state = "cancelled"
        else:
            state = catalog.job_state(job.id) or "cancelled"
    return CancelRow(job.id, job.kind, state, job.query_id)


def _shown_state(job: ViewJob, living: frozenset[str]) -> ShownState:
    """Return the job's state: dead if it is running and its lease has expired."""
    if job.state == "running" and job.lease_id not in living:
        return "dead"
    return job.state
