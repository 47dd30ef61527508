"""system.processes, query_log, errors, events, metrics, merges and part_log.

All but the last are of this process, since it opened the warehouse; part_log is the warehouse's.
Column names are ClickHouse's where it has the column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from olapdb import types
from olapdb.catalog.protocol import PartChange
from olapdb.maintenance.vacuum import backlog
from olapdb.model.schema import Table
from olapdb.system.registry import Row, SystemContext, SystemTable, moment

_SETTINGS: types.DataType = types.Map(types.STRING, types.STRING)
_NAMES: types.DataType = types.Array(types.STRING)
_MOMENT: types.DataType = types.DateTime64(6)

EVENTS: Mapping[str, str] = {
    "Query": "Statements begun.",
    "SelectQuery": "SELECTs begun.",
    "InsertQuery": "INSERTs begun.",
    "FailedQuery": "Statements that ended with an error.",
    "FailedSelectQuery": "SELECTs that ended with an error.",
    "FailedInsertQuery": "INSERTs that ended with an error.",
    "SelectedRows": "Rows read by statements.",
    "SelectedBytes": "Bytes read by statements.",
    "InsertedRows": "Rows inserted.",
    "Merge": "Merges committed in the background.",
    "MergedRows": "Rows that they read.",
    "VacuumedParts": "Dropped parts that vacuum has forgotten.",
    "VacuumMicroseconds": "How long that took.",
    "CommitConflict": "Commits refused because a concurrent commit changed what they require.",
    "CommitRetry": "Attempts of statements after a lost race.",
    "FailedMerge": "Merges and vacuums in the background that ended with an error.",
}


def _settings_text(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: str(int(v) if isinstance(v, bool) else v) for name, v in settings.items()}


def _processes(context: SystemContext) -> Iterator[Row]:
    for one in context.services.activity.running():
        read = one.statistics
        yield (
            1,
            one.query_id,
            one.elapsed_seconds,
            int(one.cancelled.is_set()),
            read.rows_read,
            read.bytes_read,
            read.rows_written,
            read.memory_peak_bytes,
            one.query,
            one.kind,
            one.database,
            _settings_text(one.settings),
            one.query_id,
            read.memory_peak_bytes,
        )


def _query_log(context: SystemContext) -> Iterator[Row]:
    for one in context.services.activity.ended():
        ended_ms = one.started_ms + one.duration_seconds * 1000
        yield (
            "ExceptionWhileProcessing" if one.exception else "QueryFinish",
            moment(ended_ms).date(),
            moment(ended_ms),
            moment(ended_ms),
            moment(one.started_ms),
            int(one.duration_seconds * 1000),
            one.read_rows,
            one.read_bytes,
            one.written_rows,
            one.memory_peak_bytes,
            one.database,
            one.query,
            one.kind,
            one.exception_code,
            one.exception,
            one.query_id,
            _settings_text(one.settings),
            moment(one.started_ms),
            1,
            one.query_id,
            moment(one.started_ms),
        )


def _errors(context: SystemContext) -> Iterator[Row]:
    for one in sorted(context.services.activity.errors(), key=lambda e: e.name):
        yield (
            one.name,
            one.code,
            one.count,
            moment(one.last_ms),
            one.last_message,
            one.last_query_id,
            0,
        )


def _events(context: SystemContext) -> Iterator[Row]:
    for name, value in sorted(context.services.activity.events().items()):
        yield name, value, EVENTS.get(name, ""), name


def _metrics(context: SystemContext) -> Iterator[Row]:
    snapshot = context.snapshot
    tables = [item for item in snapshot.objects() if isinstance(item, Table)]
    parts = [part for table in tables for part in snapshot.parts(table.id) if part.rows]
    leases = context.services.catalog.leases()
    behind = backlog(context.services)
    for name, value, description in (
        ("Query", len(context.services.activity.running()), "Statements that run in this process."),
        ("Commit", snapshot.number, "The newest commit of the warehouse."),
        ("AttachedDatabase", len(snapshot.databases), "Databases."),
        ("AttachedTable", len(tables), "Tables, those inside of views too."),
        ("PartsActive", len(parts), "Parts with rows that the newest snapshot has."),
        ("PartsInline", sum(part.inline for part in parts), "Those that lie in the catalog."),
        (
            "VacuumBacklogParts",
            behind.parts,
            "Dropped parts older than old_parts_lifetime that vacuum has not forgotten yet.",
        ),
        ("VacuumBacklogSeconds", math.ceil(behind.seconds), "The work that they are, in seconds."),
        ("Lease", sum(one.state == "live" for one in leases), "Live leases of all processes."),
    ):
        yield name, value, description, name


HISTORY_MAX = 10_000
_MERGES = ("MERGE", "OPTIMIZE")
_MUTATIONS = ("DELETE", "UPDATE", "DEDUPLICATE", "ALTER", "TTL", "MATERIALIZE")


def _part_log(context: SystemContext) -> Iterator[Row]:
    changes = context.services.catalog.part_changes(context.snapshot.number, HISTORY_MAX)
    merged: dict[int, list[str]] = {}
    for change in changes:
        if change.dropped:
            merged.setdefault(change.commit.number, []).append(change.part.name)
    for change in reversed(changes):
        item = context.snapshot.by_id(change.part.table_id)
        database, name = (item.database, item.name) if item is not None else ("", "")
        event = _part_event(change)
        rewritten = event in ("MergeParts", "MutatePart")
        yield (
            change.commit.query_id,
            event,
            moment(change.commit.time_ms).date(),
            moment(change.commit.time_ms),
            database,
            name,
            change.part.table_id,
            change.part.name,
            change.part.partition_id,
            change.part.rows,
            change.part.bytes,
            merged.get(change.commit.number, []) if rewritten else [],
            change.part.path,
            change.commit.kind,
            change.commit.number,
        )


def _part_event(change: PartChange) -> str:
    if change.dropped:
        return "RemovePart"
    if change.commit.kind in _MERGES:
        return "MergeParts"
    if change.commit.kind.split()[0] in _MUTATIONS:
        return "MutatePart"
    return "NewPart"


def _merges(context: SystemContext) -> Iterator[Row]:
    for one in context.services.activity.merges():
        table = context.snapshot.by_id(one.table_id)
        if isinstance(table, Table):
            yield (
                table.database,
                table.name,
                one.elapsed_seconds,
                len(one.part_names),
                list(one.part_names),
                one.partition_id,
                0,
                one.rows,
                one.bytes,
                "Regular",
            )


TABLES = (
    SystemTable(
        "processes",
        (
            ("is_initial_query", types.UINT8),
            ("query_id", types.STRING),
            ("elapsed", types.FLOAT64),
            ("is_cancelled", types.UINT8),
            ("read_rows", types.UINT64),
            ("read_bytes", types.UINT64),
            ("written_rows", types.UINT64),
            ("peak_memory_usage", types.INT64),
            ("query", types.STRING),
            ("query_kind", types.STRING),
            ("current_database", types.STRING),
            ("Settings", _SETTINGS),
            ("initial_query_id", types.STRING),
            ("memory_usage", types.INT64),
        ),
        _processes,
    ),
    SystemTable(
        "query_log",
        (
            ("type", types.STRING),
            ("event_date", types.DATE),
            ("event_time", types.DATETIME),
            ("event_time_microseconds", _MOMENT),
            ("query_start_time", types.DATETIME),
            ("query_duration_ms", types.UINT64),
            ("read_rows", types.UINT64),
            ("read_bytes", types.UINT64),
            ("written_rows", types.UINT64),
            ("memory_usage", types.UINT64),
            ("current_database", types.STRING),
            ("query", types.STRING),
            ("query_kind", types.STRING),
            ("exception_code", types.INT32),
            ("exception", types.STRING),
            ("query_id", types.STRING),
            ("Settings", _SETTINGS),
            ("query_start_time_microseconds", _MOMENT),
            ("is_initial_query", types.UINT8),
            ("initial_query_id", types.STRING),
            ("initial_query_start_time", types.DATETIME),
        ),
        _query_log,
    ),
    SystemTable(
        "errors",
        (
            ("name", types.STRING),
            ("code", types.INT32),
            ("value", types.UINT64),
            ("last_error_time", types.DATETIME),
            ("last_error_message", types.STRING),
            ("query_id", types.STRING),
            ("remote", types.UINT8),
        ),
        _errors,
    ),
    SystemTable(
        "events",
        (
            ("event", types.STRING),
            ("value", types.UINT64),
            ("description", types.STRING),
            ("name", types.STRING),
        ),
        _events,
    ),
    SystemTable(
        "metrics",
        (
            ("metric", types.STRING),
            ("value", types.INT64),
            ("description", types.STRING),
            ("name", types.STRING),
        ),
        _metrics,
    ),
    SystemTable(
        "part_log",
        (
            ("query_id", types.STRING),
            ("event_type", types.STRING),
            ("event_date", types.DATE),
            ("event_time", types.DATETIME),
            ("database", types.STRING),
            ("table", types.STRING),
            ("table_uuid", types.STRING),
            ("part_name", types.STRING),
            ("partition_id", types.STRING),
            ("rows", types.UINT64),
            ("size_in_bytes", types.UINT64),
            ("merged_from", _NAMES),
            ("path_on_disk", types.STRING),
            ("commit_kind", types.STRING),
            ("commit", types.UINT64),
        ),
        _part_log,
    ),
    SystemTable(
        "merges",
        (
            ("database", types.STRING),
            ("table", types.STRING),
            ("elapsed", types.FLOAT64),
            ("num_parts", types.UINT64),
            ("source_part_names", _NAMES),
            ("partition_id", types.STRING),
            ("is_mutation", types.UINT8),
            ("rows_read", types.UINT64),
            ("total_size_bytes_compressed", types.UINT64),
            ("merge_type", types.STRING),
        ),
        _merges,
    ),
)
