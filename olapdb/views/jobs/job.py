"""The job that runs a BACKFILL, REPLAY, RECONCILE or ADOPT statement: it makes chunk tasks from a
snapshot, runs them and reports progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from functools import cached_property
from typing import Literal, TypeAlias

from olapdb.commit.origin import CommitOrigin
from olapdb.config import Settings
from olapdb.errors import QueryNotSupportedInMaterializedView, QueryWasCancelled, UnknownTable
from olapdb.functions.base import Environment
from olapdb.ingest.read_parts import discard
from olapdb.ingest.view_guardrails import SETTINGS as GUARDRAILS
from olapdb.model.changes import Change
from olapdb.model.frozen import freeze
from olapdb.model.job import ChunkState, JobChunk, JobKind
from olapdb.model.part import Part
from olapdb.model.requirements import DataVersionIs, Requirement, SchemaIs, ViewIs
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.sql.literals import quote_name
from olapdb.threads import cores
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, Purpose, StagedChunk
from olapdb.views.jobs.executor import Executor, InProcessExecutor, cancelled_error
from olapdb.views.jobs.finishing import Finishing
from olapdb.views.jobs.job_record import JobRecord

ATTEMPTS_MAX = 8
"""Attempts at a chunk or a replay whose input concurrent commits change."""

THREADS_DEFAULT_MAX = 4


@dataclass(frozen=True, slots=True)
class ChunkEvent:
    """A progress event of a job, about chunk `index` of `total` chunks. `rows` are source rows; in
    the phase "compared" they are compared keys."""

    phase: Literal["planned", "computed", "published", "conflict", "failed", "compared"]
    operation: JobKind
    view: str
    index: int = 0
    total: int = 0
    partition: str = ""
    parts: int = 0
    rows: int = 0
    target_rows: int = 0
    commit: int | None = None
    elapsed_ms: int = 0


Progress: TypeAlias = Callable[[ChunkEvent], None]


def no_progress(event: ChunkEvent) -> None:
    """Ignore the event: the `progress` of callers that pass none."""


@dataclass(frozen=True)
class ViewJob:
    """A running SYSTEM … VIEW statement: its origin, executor, progress callback and catalog
    record."""

    origin: CommitOrigin
    operation: JobKind
    executor: Executor
    progress: Progress
    record: JobRecord
    finishing: Finishing | None = None
    started: float = field(default_factory=time.monotonic)

    @staticmethod
    def of(
        origin: CommitOrigin,
        operation: JobKind,
        executor: Executor | None,
        progress: Progress | None,
        finishing: Finishing | None = None,
    ) -> ViewJob:
        """Return the job of the origin's statement. Without an executor, chunks run in threads of
        this process (see `default_executor`)."""
        origin = origin.of_kind(operation)
        settings = Settings.of(origin.settings)
        record = JobRecord(
            origin,
            operation,
            executor=settings.text("engine"),
            staged=operation == "BACKFILL" and settings.boolean("backfill_staging"),
        )
        return ViewJob(
            origin,
            operation,
            executor or default_executor(origin.services, origin.settings),
            progress or no_progress,
            record,
            finishing,
        )

    @property
    def services(self) -> Services:
        """Return the database's services."""
        return self.origin.services

    @property
    def settings(self) -> Mapping[str, object]:
        """Return the settings of the statement."""
        return self.origin.settings

    @cached_property
    def _task_settings(self) -> tuple[tuple[str, object], ...]:
        """The settings of all chunks, which may be thousands."""
        return _without_guardrails(self.settings)

    @property
    def query_id(self) -> str:
        """Return the id of the query that runs the job."""
        return self.origin.query_id

    def recorded(self) -> AbstractContextManager[None]:
        """Close the job's record when the block ends: as done, failed or cancelled."""
        return self.record.recorded()

    def plan(self, view: MaterializedView, tasks: Iterable[ChunkTask]) -> None:
        """Record the planned chunks. The job can be cancelled from here on, so call this before
        reporting the plan to `progress`."""
        self.record.plan(view, [planned_chunk(task) for task in tasks])

    def run(self, tasks: Sequence[ChunkTask]) -> Iterator[StagedChunk | FailedChunk]:
        """Compute chunks that one commit publishes together; record and yield each once it is
        computed. Raises QueryWasCancelled once the job is cancelled, after deleting the staged
        files."""
        staged: list[str] = []
        try:
            for outcome in self.executor.run(tasks, self.record.stop_requested):
                if isinstance(outcome, FailedChunk):
                    self.record.note(outcome.index, "failed", error=str(outcome.error))
                else:
                    staged += outcome.staged.paths if outcome.staged is not None else ()
                    self.record.note(
                        outcome.index,
                        "computed",
                        target_rows=outcome.target_rows,
                        elapsed_ms=outcome.elapsed_ms,
                    )
                yield outcome
        except QueryWasCancelled:
            discard(self.services, staged)
            raise

    def closing_changes(self, state: ChunkState = "published") -> list[Change]:
        """Return the changes of the commit that ends the job. Computed chunks get `state`."""
        return self.record.closing_changes(state)

    def refuse_cancelled(self) -> None:
        """Raise QueryWasCancelled if the job was cancelled. Call it after a CommitConflict: a
        commit that requires the job to run conflicts once the job is cancelled."""
        if self.record.stop_requested(now=True):
            raise cancelled_error()

    @property
    def elapsed_ms(self) -> int:
        """Return the milliseconds since the job started."""
        return int((time.monotonic() - self.started) * 1000)

    def environment(self) -> Environment:
        """Return the environment of the statement's query: time zone, start time, query id."""
        return self.services.environment(self.query_id)

    def task(
        self,
        snapshot: Snapshot,
        view: MaterializedView,
        partition: str,
        parts: Sequence[Part],
        index: int,
        purpose: Purpose,
        target_partitions: frozenset[str] | None = None,
    ) -> ChunkTask:
        """Return a task for these parts of the view's source, with all data that computing it
        needs. The result records the parts' own blocks."""
        tables = (view.target_id,) if purpose == "backfill" else ()
        frozen_snapshot = freeze(
            snapshot, tables, parts={view.source_id: tuple(parts)}, view_ids=(view.id,)
        )
        return ChunkTask(
            index,
            purpose,
            frozen_snapshot,
            view.id,
            partition,
            frozenset(part.id for part in parts),
            self.services.lease_id,
            self._task_settings,
            self.environment(),
            target_partitions,
        )

    def read_requirements(
        self, snapshot: Snapshot, view: MaterializedView, partitions: Iterable[str]
    ) -> list[Requirement]:
        """Return the requirements of a commit that publishes results of these source partitions:
        their rows, the source's schema and the view's definition are unchanged. New blocks are
        allowed. The lease must be live and the job not cancelled."""
        source = snapshot.by_id(view.source_id)
        requirements: list[Requirement] = [
            self.origin.lease,
            ViewIs(view.id, view.version),
            *self.record.requirements(),
        ]
        if source is not None:
            requirements.append(SchemaIs(source.id, source.version))
        requirements += [
            DataVersionIs(
                view.source_id, partition, snapshot.data_version(view.source_id, partition)
            )
            for partition in partitions
        ]
        return requirements


def default_executor(services: Services, settings: Mapping[str, object]) -> Executor:
    """Return an executor that uses threads of this process (see `chunk_threads`)."""
    return InProcessExecutor(services.store, services.cache, chunk_threads(settings))


def chunk_threads(settings: Mapping[str, object]) -> int:
    """Return how many chunks are computed at a time: `backfill_threads`, or one per core, at most
    four. Each chunk holds a block of its source and the rows made from it in memory."""
    return Settings.of(settings).integer("backfill_threads") or min(cores(), THREADS_DEFAULT_MAX)


def planned_chunk(task: ChunkTask) -> JobChunk:
    """Return the task as the job's record lists it before it is computed."""
    parts = task.parts
    return JobChunk(
        task.index,
        task.partition,
        len(parts),
        sum(part.rows for part in parts),
        sum(part.bytes for part in parts),
    )


def _without_guardrails(settings: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """Return the changed settings without the guardrails, which limit INSERTs: a chunk may take longer."""
    changed = Settings.of(settings).changed
    return tuple((name, changed[name]) for name in changed if name not in GUARDRAILS)


def find_view(snapshot: Snapshot, view_id: str) -> MaterializedView:
    """Return the materialized view. Raise UnknownTable if it was dropped."""
    view = snapshot.by_id(view_id)
    if not isinstance(view, MaterializedView):
        raise UnknownTable("The materialized view does not exist any more.")
    return view


def view_name(view: MaterializedView) -> str:
    """Return "database.view", quoted: statements in hints and in `mend` must run unchanged."""
    return f"{quote_name(view.database)}.{quote_name(view.name)}"


def readable_source(snapshot: Snapshot, view: MaterializedView, operation: str) -> Table:
    """Return the view's source table. Raise UnknownTable if it was dropped, and
    QueryNotSupportedInMaterializedView if it is a Null table. Errors name the `operation`."""
    source = snapshot.by_id(view.source_id)
    if not isinstance(source, Table):
        raise UnknownTable(
            f"{operation} VIEW {view_name(view)}: its source does not exist any more.",
            hint=f"DROP VIEW {view_name(view)}, or create the source and the view anew.",
        )
    if source.engine.name == "Null":
        raise QueryNotSupportedInMaterializedView(
            f"{operation} VIEW {view_name(view)}: its source {source.database}.{source.name} is a"
            " Null table, which keeps no rows to read again.",
            hint="A view over a Null source is unverifiable; store the source in a MergeTree"
            " table to have it backfilled and proven.",
        )
    return source


def by_partition(parts: Iterable[Part]) -> dict[str, tuple[Part, ...]]:
    """Return the parts by partition id, with the ids sorted."""
    grouped: dict[str, list[Part]] = {}
    for part in parts:
        grouped.setdefault(part.partition_id, []).append(part)
    return {partition: tuple(grouped[partition]) for partition in sorted(grouped)}
