"""system.views, view_coverage, view_invalidations, view_checks, view_dependencies and
query_views_log."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.ingest.view_failure import FAILED
from olapdb.model.schema import MaterializedView, SchemaObject, View
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Invalidation
from olapdb.system.registry import Row, SystemContext, SystemTable, moment, moment_if_any
from olapdb.views.jobs.job_listing import running_jobs
from olapdb.views.proof.coverage import coverage_rows, stores_rows
from olapdb.views.proof.failed_repairs import is_check_current
from olapdb.views.proof.status import view_status
from olapdb.views.proof.verdicts import failures
from olapdb.views.versions.versions import candidate_of


def _views_of(context: SystemContext, name: str = "view") -> Iterator[MaterializedView]:
    """Yield the materialized views that the query can keep; the column `name` has their names."""
    for item in context.objects(name):
        if isinstance(item, MaterializedView):
            yield item


def _names(item: SchemaObject | None) -> tuple[str, str]:
    """Return (database, name); two empty texts for None."""
    return (item.database, item.name) if item is not None else ("", "")


def _views(context: SystemContext) -> Iterator[Row]:
    """List the materialized views with their verdicts, gaps, stale slices and running jobs."""
    snapshot, now_ms = context.snapshot, context.services.clock_ms()
    running: dict[str, list[str]] = {}
    listed = running_jobs(context.services.catalog) if context.needs("running_jobs") else ()
    for job in listed:
        running.setdefault(job.view_id, []).append(job.id)
    for view in _views_of(context, "name"):
        status = view_status(view, snapshot)
        source, target = snapshot.by_id(view.source_id), snapshot.by_id(view.target_id)
        oldest = min((s.since_ms for s in status.stale), default=0)
        yield (
            view.database,
            view.name,
            view.id,
            *_names(source),
            *_names(target),
            view.query,
            view.version,
            int(view.attached),
            status.verdict,
            status.reason,
            status.covered_rows,
            status.gap_rows,
            status.gap_parts,
            status.bypass_rows,
            status.stale_slices,
            moment_if_any(oldest),
            moment_if_any(status.last_check_ms),
            status.mend,
            view.comment,
            status.gap_blocks,
            moment_if_any(status.gap_since_ms),
            max(0, now_ms - status.gap_since_ms) // 1_000 if status.gap_since_ms else 0,
            status.retained_rows,
            moment_if_any(status.last_proof_ms),
            running.get(view.id, []),
            view.standing,
            _full_name(context.snapshot.by_id(view.stands_beside)),
            _candidate_name(view, snapshot) if context.needs("candidate") else "",
        )


def _candidate_name(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return "database.name" of the version that an unfinished REBUILD of the view makes, or ""."""
    return "" if view.standing else _full_name(candidate_of(snapshot, view))


def _full_name(item: SchemaObject | None) -> str:
    """Return "database.name", or "" for None."""
    return "" if item is None else f"{item.database}.{item.name}"


def _coverage(context: SystemContext) -> Iterator[Row]:
    """List which source blocks each view has seen, and which not, by partition."""
    for view in _views_of(context):
        for piece in coverage_rows(view, context.snapshot):
            yield (
                view.database,
                view.name,
                piece.partition,
                piece.status,
                piece.parts,
                piece.rows,
                piece.bytes,
                piece.first_block,
                piece.last_block,
            )


def _invalidations(context: SystemContext) -> Iterator[Row]:
    """List the stale slices of each view, with the statement that caused them."""
    for view in _views_of(context):
        for invalidation in _marks(view, context.snapshot):
            yield (
                view.database,
                view.name,
                invalidation.target_partition,
                invalidation.cause,
                invalidation.statement,
                invalidation.query_id,
                invalidation.commit,
                moment_if_any(invalidation.since_ms),
                invalidation.rows,
                list(invalidation.keys),
            )


def _marks(view: MaterializedView, snapshot: Snapshot) -> Iterator[Invalidation]:
    """Yield the view's invalidations, and failures only while they cause a gap (over a Null source
    always)."""
    failures_last = not stores_rows(snapshot, view.source_id)
    reasons = set(failures(view, snapshot))
    for invalidation in snapshot.invalidations(view.id):
        if invalidation.cause != FAILED or failures_last or invalidation in reasons:
            yield invalidation


def _checks(context: SystemContext) -> Iterator[Row]:
    """List the verdicts of reconciliation by view and target partition. `is_current` is 0 if data
    changed since."""
    for view in _views_of(context):
        for check in context.snapshot.checks(view.id):
            yield (
                view.database,
                view.name,
                check.target_partition,
                check.snapshot,
                check.mode,
                check.verdict,
                int(is_check_current(check, view, context.snapshot)),
                check.keys_compared,
                check.missing,
                check.extra,
                check.differing,
                check.largest_difference,
                list(check.examples),
                moment_if_any(check.checked_ms),
            )


def _dependencies(context: SystemContext) -> Iterator[Row]:
    """List the source, target and dimension tables of each view, and the plain views that it reads
    them through."""
    for view in _views_of(context):
        kinds = [("source", view.source_id), ("target", view.target_id)]
        kinds += [("dimension", i) for i in view.dimension_ids]
        kinds += [("view", i) for i in view.references if _is_plain_view(context, i)]
        for kind, object_id in kinds:
            names = _names(context.snapshot.by_id(object_id))
            mode = view.dimension_mode if kind == "dimension" else ""
            yield view.database, view.name, kind, *names, mode


def _is_plain_view(context: SystemContext, object_id: str) -> bool:
    """Return whether the object is a plain view or a dictionary."""
    return isinstance(context.snapshot.by_id(object_id), View)


def _log(context: SystemContext) -> Iterator[Row]:
    """List the trigger executions of this process that the bounded log still holds."""
    for execution in context.services.view_log.entries():
        at = moment(execution.time_ms)
        status = "ExceptionWhileProcessing" if execution.exception else "QueryFinish"
        yield (
            at.date(),
            at.replace(microsecond=0),
            at,
            execution.duration_ns // 1_000_000,
            execution.query_id,
            execution.view_name,
            execution.view_id,
            "Materialized",
            execution.view_query,
            execution.target_name,
            execution.rows_read,
            execution.bytes_read,
            execution.rows_written,
            execution.bytes_written,
            execution.peak_bytes,
            {},
            status,
            execution.exception_code,
            execution.exception,
            "",
            int(execution.committed),
            execution.parts,
            list(execution.warnings),
        )


TABLES = (
    SystemTable(
        "query_views_log",
        """event_date Date, event_time DateTime, event_time_microseconds DateTime64(6),
        view_duration_ms UInt64, initial_query_id String, view_name String, view_uuid String,
        view_type String, view_query String, view_target String, read_rows UInt64,
        read_bytes UInt64, written_rows UInt64, written_bytes UInt64, peak_memory_usage Int64,
        ProfileEvents Map(String, UInt64), status String, exception_code Int32, exception String,
        stack_trace String, insert_landed UInt8, written_parts UInt64, warnings Array(String)""",
        _log,
        "What views did in INSERTs of this process, the newest 10,000, in memory.",
    ),
    SystemTable(
        "views",
        """database String, name String, uuid String, source_database String, source_table String,
        target_database String, target_table String, as_select String, definition_version UInt64,
        attached UInt8, verdict String, reason String, covered_rows UInt64, gap_rows UInt64,
        gap_parts UInt64, bypass_rows UInt64, stale_slices UInt64,
        oldest_stale Nullable(DateTime64(3)), last_check Nullable(DateTime64(3)), mend String,
        comment String, lag_blocks UInt64, lag_since Nullable(DateTime64(3)), lag_seconds UInt64,
        retained_rows UInt64, last_proof Nullable(DateTime64(3)), running_jobs Array(String),
        standing String, version_of String, candidate String""",
        _views,
    ),
    SystemTable(
        "view_coverage",
        """database String, view String, partition_id String, status String, parts UInt64,
        rows UInt64, bytes UInt64, first_block UInt64, last_block UInt64""",
        _coverage,
    ),
    SystemTable(
        "view_invalidations",
        """database String, view String, partition_id Nullable(String), cause String,
        statement String, query_id String, commit UInt64, since Nullable(DateTime64(3)),
        rows UInt64, keys Array(String)""",
        _invalidations,
    ),
    SystemTable(
        "view_checks",
        """database String, view String, partition_id String, snapshot UInt64, mode String,
        verdict String, is_current UInt8, keys_compared UInt64, missing UInt64, extra UInt64,
        differing UInt64, largest_difference Float64, examples Array(String),
        checked Nullable(DateTime64(3))""",
        _checks,
    ),
    SystemTable(
        "view_dependencies",
        """database String, view String, kind String, depends_on_database String, depends_on String,
        mode String""",
        _dependencies,
    ),
)
