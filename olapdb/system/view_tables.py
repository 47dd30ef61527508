"""system.views, view_coverage, view_invalidations, view_checks, view_dependencies and
query_views_log."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb import types
from olapdb.ingest.view_failure import FAILED
from olapdb.model.schema import MaterializedView, SchemaObject
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Invalidation
from olapdb.system.registry import Row, SystemContext, SystemTable, moment, moment_if_any
from olapdb.views.jobs.job_listing import running_jobs
from olapdb.views.proof.coverage import coverage_rows, stores_rows
from olapdb.views.proof.failed_repairs import still_holds
from olapdb.views.proof.status import view_status
from olapdb.views.proof.verdicts import failures

_MAYBE_TIME: types.DataType = types.Nullable(types.DateTime64(3))


def _views_of(context: SystemContext) -> Iterator[MaterializedView]:
    for item in context.snapshot.objects():
        if isinstance(item, MaterializedView):
            yield item


def _names(item: SchemaObject | None) -> tuple[str, str]:
    return (item.database, item.name) if item is not None else ("", "")


def _views(context: SystemContext) -> Iterator[Row]:
    snapshot, now_ms = context.snapshot, context.services.clock_ms()
    running: dict[str, list[str]] = {}
    for job in running_jobs(context.services.catalog):
        running.setdefault(job.view_id, []).append(job.id)
    for view in _views_of(context):
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
        )


def _full_name(item: SchemaObject | None) -> str:
    """ "" for none."""
    return "" if item is None else f"{item.database}.{item.name}"


def _coverage(context: SystemContext) -> Iterator[Row]:
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
    for view in _views_of(context):
        for one in _marks(view, context.snapshot):
            yield (
                view.database,
                view.name,
                one.target_partition,
                one.cause,
                one.statement,
                one.query_id,
                one.commit,
                moment_if_any(one.since_ms),
                one.rows,
                list(one.keys),
            )


def _marks(view: MaterializedView, snapshot: Snapshot) -> Iterator[Invalidation]:
    """Failures only as long as they are the reason of a gap; over a Null source for good."""
    for_good = not stores_rows(snapshot, view.source_id)
    reasons = set(failures(view, snapshot))
    for one in snapshot.invalidations(view.id):
        if one.cause != FAILED or for_good or one in reasons:
            yield one


def _checks(context: SystemContext) -> Iterator[Row]:
    for view in _views_of(context):
        for one in context.snapshot.checks(view.id):
            yield (
                view.database,
                view.name,
                one.target_partition,
                one.snapshot,
                one.mode,
                one.verdict,
                int(still_holds(one, view, context.snapshot)),
                one.keys_compared,
                one.missing,
                one.extra,
                one.differing,
                one.largest_difference,
                list(one.examples),
                moment_if_any(one.checked_ms),
            )


def _dependencies(context: SystemContext) -> Iterator[Row]:
    for view in _views_of(context):
        kinds = [("source", view.source_id), ("target", view.target_id)]
        kinds += [("dimension", i) for i in view.dimension_ids]
        for kind, object_id in kinds:
            names = _names(context.snapshot.by_id(object_id))
            mode = view.dimension_mode if kind == "dimension" else ""
            yield view.database, view.name, kind, *names, mode


def _log(context: SystemContext) -> Iterator[Row]:
    for one in context.services.view_log.entries():
        at = moment(one.time_ms)
        status = "ExceptionWhileProcessing" if one.exception else "QueryFinish"
        yield (
            at.date(),
            at.replace(microsecond=0),
            at,
            one.duration_ns // 1_000_000,
            one.query_id,
            one.view_name,
            one.view_id,
            "Materialized",
            one.view_query,
            one.target_name,
            one.rows_read,
            one.bytes_read,
            one.rows_written,
            one.bytes_written,
            one.peak_bytes,
            {},
            status,
            one.exception_code,
            one.exception,
            "",
            int(one.lands),
            one.parts,
            list(one.warnings),
        )


TABLES = (
    SystemTable(
        "query_views_log",
        (
            ("event_date", types.Date()),
            ("event_time", types.DateTime()),
            ("event_time_microseconds", types.DateTime64(6)),
            ("view_duration_ms", types.UINT64),
            ("initial_query_id", types.STRING),
            ("view_name", types.STRING),
            ("view_uuid", types.STRING),
            ("view_type", types.STRING),
            ("view_query", types.STRING),
            ("view_target", types.STRING),
            ("read_rows", types.UINT64),
            ("read_bytes", types.UINT64),
            ("written_rows", types.UINT64),
            ("written_bytes", types.UINT64),
            ("peak_memory_usage", types.INT64),
            ("ProfileEvents", types.Map(types.STRING, types.UINT64)),
            ("status", types.STRING),
            ("exception_code", types.INT32),
            ("exception", types.STRING),
            ("stack_trace", types.STRING),
            ("insert_landed", types.UINT8),
            ("written_parts", types.UINT64),
            ("warnings", types.Array(types.STRING)),
        ),
        _log,
        "What views did in INSERTs of this process, the newest 10,000, in memory.",
    ),
    SystemTable(
        "views",
        (
            ("database", types.STRING),
            ("name", types.STRING),
            ("uuid", types.STRING),
            ("source_database", types.STRING),
            ("source_table", types.STRING),
            ("target_database", types.STRING),
            ("target_table", types.STRING),
            ("as_select", types.STRING),
            ("definition_version", types.UINT64),
            ("attached", types.UINT8),
            ("verdict", types.STRING),
            ("reason", types.STRING),
            ("covered_rows", types.UINT64),
            ("gap_rows", types.UINT64),
            ("gap_parts", types.UINT64),
            ("bypass_rows", types.UINT64),
            ("stale_slices", types.UINT64),
            ("oldest_stale", _MAYBE_TIME),
            ("last_check", _MAYBE_TIME),
            ("mend", types.STRING),
            ("comment", types.STRING),
            ("lag_blocks", types.UINT64),
            ("lag_since", _MAYBE_TIME),
            ("lag_seconds", types.UINT64),
            ("retained_rows", types.UINT64),
            ("last_proof", _MAYBE_TIME),
            ("running_jobs", types.Array(types.STRING)),
            ("standing", types.STRING),
            ("version_of", types.STRING),
        ),
        _views,
    ),
    SystemTable(
        "view_coverage",
        (
            ("database", types.STRING),
            ("view", types.STRING),
            ("partition_id", types.STRING),
            ("status", types.STRING),
            ("parts", types.UINT64),
            ("rows", types.UINT64),
            ("bytes", types.UINT64),
            ("first_block", types.UINT64),
            ("last_block", types.UINT64),
        ),
        _coverage,
    ),
    SystemTable(
        "view_invalidations",
        (
            ("database", types.STRING),
            ("view", types.STRING),
            ("partition_id", types.Nullable(types.STRING)),
            ("cause", types.STRING),
            ("statement", types.STRING),
            ("query_id", types.STRING),
            ("commit", types.UINT64),
            ("since", _MAYBE_TIME),
            ("rows", types.UINT64),
            ("keys", types.Array(types.STRING)),
        ),
        _invalidations,
    ),
    SystemTable(
        "view_checks",
        (
            ("database", types.STRING),
            ("view", types.STRING),
            ("partition_id", types.STRING),
            ("snapshot", types.UINT64),
            ("mode", types.STRING),
            ("verdict", types.STRING),
            ("is_current", types.UINT8),
            ("keys_compared", types.UINT64),
            ("missing", types.UINT64),
            ("extra", types.UINT64),
            ("differing", types.UINT64),
            ("largest_difference", types.FLOAT64),
            ("examples", types.Array(types.STRING)),
            ("checked", _MAYBE_TIME),
        ),
        _checks,
    ),
    SystemTable(
        "view_dependencies",
        (
            ("database", types.STRING),
            ("view", types.STRING),
            ("kind", types.STRING),
            ("depends_on_database", types.STRING),
            ("depends_on", types.STRING),
            ("mode", types.STRING),
        ),
        _dependencies,
    ),
)
