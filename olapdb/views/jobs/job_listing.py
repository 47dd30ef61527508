"""The list of view jobs (running, ended or dead), and how to cancel one.

A job is cancelled in the catalog, so from any process. Its statement notices within a fraction of a
second, between chunks and batches. Each of its commits requires that the job runs, so the job
publishes nothing once the cancel has returned.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from olapdb.catalog.protocol import Catalog
from olapdb.errors import BadArguments
from olapdb.model.job import JobChunk, JobEntry
from olapdb.model.schema import MaterializedView
from olapdb.records import dataclass
from olapdb.runtime.services import Services

ShownState: TypeAlias = Literal["running", "done", "failed", "cancelled", "dead"]
"""dead: the job's process ended while it ran. What it published stays; run the statement again."""

_UNFINISHED = ("planned", "computed")


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job and its progress: planned `rows`, `bytes` and `chunks`, and how many of them are
    done."""

    job: JobEntry
    state: ShownState
    chunks: tuple[JobChunk, ...]

    @property
    def chunks_done(self) -> int:
        """Return how many chunks have ended, failed ones included."""
        return sum(chunk.state not in _UNFINISHED for chunk in self.chunks)

    @property
    def chunks_failed(self) -> int:
        """Return how many chunks failed."""
        return sum(chunk.state == "failed" for chunk in self.chunks)

    @property
    def rows(self) -> int:
        """Return the planned number of source rows."""
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def rows_done(self) -> int:
        """Return the source rows of chunks that ended without failing."""
        return sum(
            chunk.rows for chunk in self.chunks if chunk.state not in (*_UNFINISHED, "failed")
        )

    @property
    def bytes(self) -> int:
        """Return the planned bytes of source parts on disk."""
        return sum(chunk.bytes for chunk in self.chunks)


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
    chunks_by_job: dict[str, list[JobChunk]] = {}
    for job_id, chunk in catalog.job_chunks():
        chunks_by_job.setdefault(job_id, []).append(chunk)
    live_leases = catalog.living_leases()
    return tuple(
        JobRow(job, _shown_state(job, live_leases), tuple(chunks_by_job.get(job.id, ())))
        for job in jobs
        if view_id in (None, job.view_id)
    )


def running_jobs(catalog: Catalog) -> tuple[JobEntry, ...]:
    """Return the running jobs whose process lives. Cheaper than `view_jobs`."""
    jobs = [job for job in catalog.jobs() if job.state == "running"]
    live_leases = catalog.living_leases() if jobs else frozenset[str]()
    return tuple(job for job in jobs if job.lease_id in live_leases)


def cancel_jobs(
    services: Services, view: MaterializedView, job_id: str | None = None
) -> tuple[CancelRow, ...]:
    """Cancel the view's running jobs, or only the job `job_id`; return a row for each. Raises
    BadArguments if the view has no such job."""
    rows = view_jobs(services.catalog, view.id)
    if job_id is None:
        chosen_rows = [row for row in rows if row.state == "running"]
    else:
        chosen_rows = [row for row in rows if row.job.id == job_id]
        if not chosen_rows:
            running = ", ".join(row.job.id for row in rows if row.state == "running")
            raise BadArguments(
                f"{view.database}.{view.name} has no job {job_id}.",
                hint=f"Running are: {running or 'none'}. system.view_jobs lists all.",
            )
    return tuple(_cancel(services.catalog, row) for row in chosen_rows)


def _cancel(catalog: Catalog, row: JobRow) -> CancelRow:
    """Cancel the job, unless it has ended, and return its state."""
    job, state = row.job, row.state
    if state in ("running", "dead"):
        if catalog.close_job(job.id, "cancelled", "Cancelled by SYSTEM CANCEL VIEW."):
            state = "cancelled"
        else:
            state = catalog.job_state(job.id) or "cancelled"
    return CancelRow(job.id, job.kind, state, job.query_id)


def _shown_state(job: JobEntry, living: frozenset[str]) -> ShownState:
    """Return the job's state: dead if it is running and its lease has expired."""
    if job.state == "running" and job.lease_id not in living:
        return "dead"
    return job.state
