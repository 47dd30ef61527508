"""The jobs of views as they are shown: running, ended, or dead; and how one is cancelled.

A job is cancelled in the catalog, so from any process.  Its statement notices within a fraction of
a second, between chunks and batches; and since each of its commits requires that the job runs,
nothing more of it is published once the cancel has returned.
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
"""dead: it was running when its process ended. What it published stays; run it again."""

_OPEN = ("planned", "computed")


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job and how far it is: `rows` and `chunks` as planned, and those of them that are done."""

    job: ViewJob
    state: ShownState
    chunks: tuple[JobChunk, ...]

    @property
    def chunks_done(self) -> int:
        return sum(one.state not in _OPEN for one in self.chunks)

    @property
    def chunks_failed(self) -> int:
        return sum(one.state == "failed" for one in self.chunks)

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.chunks)

    @property
    def rows_done(self) -> int:
        return sum(one.rows for one in self.chunks if one.state not in (*_OPEN, "failed"))

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.chunks)


@dataclass(frozen=True, slots=True)
class CancelRow:
    """A job that was asked to be cancelled, and its state now: "cancelled", or how it had ended
    before."""

    job: str
    kind: str
    state: ShownState
    query_id: str


def view_jobs(catalog: Catalog, view_id: str | None = None) -> tuple[JobRow, ...]:
    """The jobs that the catalog remembers, oldest first."""
    jobs = catalog.jobs()
    if not jobs:
        return ()
    chunks: dict[str, list[JobChunk]] = {}
    for job_id, chunk in catalog.job_chunks():
        chunks.setdefault(job_id, []).append(chunk)
    living = catalog.living_leases()
    return tuple(
        JobRow(one, _shown(one, living), tuple(chunks.get(one.id, ())))
        for one in jobs
        if view_id in (None, one.view_id)
    )


def running_jobs(catalog: Catalog) -> tuple[ViewJob, ...]:
    """Those whose process lives; cheaper than `view_jobs`."""
    jobs = [one for one in catalog.jobs() if one.state == "running"]
    living = catalog.living_leases() if jobs else frozenset[str]()
    return tuple(one for one in jobs if one.lease_id in living)


def cancel_jobs(
    services: Services, view: MaterializedView, job_id: str | None = None
) -> tuple[CancelRow, ...]:
    """Cancels the view's running jobs, or the one of that id; a row for each.

    Raises BadArguments where the view has no such job."""
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
    job, state = row.job, row.state
    if state in ("running", "dead"):
        if catalog.close_job(job.id, "cancelled", "Cancelled by SYSTEM CANCEL VIEW."):
            state = "cancelled"
        else:
            state = catalog.job_state(job.id) or "cancelled"
    return CancelRow(job.id, job.kind, state, job.query_id)


def _shown(job: ViewJob, living: frozenset[str]) -> ShownState:
    if job.state == "running" and job.lease_id not in living:
        return "dead"
    return job.state
