"""system.processes, query_log, errors, events, metrics, merges and part_log.

All but the last are about this process, since it opened the warehouse; part_log is about the
warehouse.  Column names are ClickHouse's where it has the column.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from olapdb.catalog.protocol import PartChange
from olapdb.maintenance.vacuum import backlog
from olapdb.model.schema import Table
from olapdb.system.registry import Row, SystemContext, SystemTable, moment

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
    "ExternalProcessingFilesTotal": "Temporary files of queries.",
    "ExternalProcessingCompressedBytesTotal": "Bytes that queries wrote to them.",
    "ExternalProcessingUncompressedBytesTotal": "The size of these in memory.",
    "FailedMerge": "Merges and vacuums in the background that ended with an error.",
    "UncompressedCacheHits": "Row groups of columns that the column cache had.",
    "UncompressedCacheMisses": "Row groups of columns that it had not.",
    "UncompressedCacheWeightLost": "Bytes that it evicted.",
}


def _settings_text(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the values as text; booleans as "0" and "1"."""
    return {name: str(int(v) if isinstance(v, bool) else v) for name, v in settings.items()}


_USER = "default"
"""The one user that there is, as currentUser() gives it."""


def _processes(context: SystemContext) -> Iterator[Row]:
    """List the statements that run in this process."""
    for query in context.services.activity.running():
        statistics = query.statistics
        yield (
            1,
            query.query_id,
            query.elapsed_seconds,
            int(query.cancelled.is_set()),
            statistics.rows_read,
            statistics.bytes_read,
            statistics.rows_written,
            statistics.memory_peak_bytes,
            query.query,
            query.kind,
            query.database,
            _settings_text(query.settings),
            query.query_id,
            statistics.memory_peak_bytes,
            _USER,
            _USER,
        )


def _query_log(context: SystemContext) -> Iterator[Row]:
    """List the ended statements of this process that the bounded log still holds."""
    for query in context.services.activity.ended():
        ended_ms = query.started_ms + query.duration_seconds * 1000
        yield (
            "ExceptionWhileProcessing" if query.exception else "QueryFinish",
            moment(ended_ms).date(),
            moment(ended_ms),
            moment(ended_ms),
            moment(query.started_ms),
            int(query.duration_seconds * 1000),
            query.read_rows,
            query.read_bytes,
            query.written_rows,
            query.memory_peak_bytes,
            query.database,
            query.query,
            query.kind,
            query.exception_code,
            query.exception,
            query.query_id,
            _settings_text(query.settings),
            moment(query.started_ms),
            1,
            query.query_id,
            moment(query.started_ms),
            _USER,
            _USER,
        )


def _errors(context: SystemContext) -> Iterator[Row]:
    """List the errors of this process's statements by name, with their counts."""
    for error in sorted(context.services.activity.errors(), key=lambda e: e.name):
        yield (
            error.name,
            error.code,
            error.count,
            moment(error.last_ms),
            error.last_message,
            error.last_query_id,
            0,
        )


def _events(context: SystemContext) -> Iterator[Row]:
    """List this process's counters by name."""
    cached = context.services.store.cache.columns.shared.statistics()
    counted = {
        **context.services.activity.events(),
        "UncompressedCacheHits": cached.hits,
        "UncompressedCacheMisses": cached.misses,
        "UncompressedCacheWeightLost": cached.evicted_bytes,
    }
    for name, value in sorted((name, value) for name, value in counted.items() if value):
        yield name, value, EVENTS.get(name, "")


def _metrics(context: SystemContext) -> Iterator[Row]:
    """List current figures of the warehouse (tables, parts, leases, vacuum's backlog) and of this
    process."""
    snapshot = context.snapshot
    tables = [item for item in snapshot.objects() if isinstance(item, Table)]
    parts = [part for table in tables for part in snapshot.parts(table.id) if part.rows]
    leases = context.services.catalog.leases()
    behind = backlog(context.services)
    cached = context.services.store.cache.columns.shared.statistics()
    yield from (
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
        ("Lease", sum(lease.state == "live" for lease in leases), "Live leases of all processes."),
        ("UncompressedCacheBytes", cached.bytes, "Bytes of the process's cache of columns."),
        ("UncompressedCacheCells", cached.entries, "Its entries: row groups of columns."),
        ("UncompressedCacheSizeLimit", cached.bytes_max, "The most bytes that it keeps."),
        *_temporary_files(context),
    )


def _temporary_files(context: SystemContext) -> Iterator[tuple[str, int, str]]:
    """Yield the number of open temporary files of running statements, by what they are for."""
    open_files: Counter[str] = Counter()
    for query in context.services.activity.running():
        open_files.update(query.statistics.open_temporary_files)
    yield "TotalTemporaryFiles", open_files.total(), "Open temporary files of queries."
    for purpose in ("Sort", "Aggregation", "Join", "Distinct"):
        yield f"TemporaryFilesFor{purpose}", open_files[purpose], f"Those of external {purpose}."


HISTORY_MAX = 10_000
_MERGES = ("MERGE", "OPTIMIZE")
_MUTATIONS = ("DELETE", "UPDATE", "DEDUPLICATE", "ALTER", "TTL", "MATERIALIZE")


def _part_log(context: SystemContext) -> Iterator[Row]:
    """List additions and removals of parts, the oldest first; at most HISTORY_MAX of the newest. A
    merge or mutation names the parts that it replaced."""
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
    """Return ClickHouse's name of the event: RemovePart, MergeParts, MutatePart or NewPart."""
    if change.dropped:
        return "RemovePart"
    if change.commit.kind in _MERGES:
        return "MergeParts"
    if change.commit.kind.split()[0] in _MUTATIONS:
        return "MutatePart"
    return "NewPart"


def _merges(context: SystemContext) -> Iterator[Row]:
    """List the merges that run in this process; those of dropped tables are left out."""
    for merge in context.services.activity.merges():
        table = context.snapshot.by_id(merge.table_id)
        if isinstance(table, Table):
            yield (
                table.database,
                table.name,
                merge.elapsed_seconds,
                len(merge.part_names),
                list(merge.part_names),
                merge.partition_id,
                0,
                merge.rows,
                merge.bytes,
                "Regular",
            )


TABLES = (
    SystemTable(
        "processes",
        """is_initial_query UInt8, query_id String, elapsed Float64, is_cancelled UInt8,
        read_rows UInt64, read_bytes UInt64, written_rows UInt64, peak_memory_usage Int64,
        query String, query_kind String, current_database String, Settings Map(String, String),
        initial_query_id String, memory_usage Int64, user String, initial_user String""",
        _processes,
    ),
    SystemTable(
        "query_log",
        """type String, event_date Date, event_time DateTime, event_time_microseconds DateTime64(6),
        query_start_time DateTime, query_duration_ms UInt64, read_rows UInt64, read_bytes UInt64,
        written_rows UInt64, memory_usage UInt64, current_database String, query String,
        query_kind String, exception_code Int32, exception String, query_id String,
        Settings Map(String, String), query_start_time_microseconds DateTime64(6),
        is_initial_query UInt8, initial_query_id String, initial_query_start_time DateTime,
        user String, initial_user String""",
        _query_log,
    ),
    SystemTable(
        "errors",
        """name String, code Int32, value UInt64, last_error_time DateTime,
        last_error_message String, query_id String, remote UInt8""",
        _errors,
    ),
    SystemTable("events", "event String, value UInt64, description String", _events),
    SystemTable("metrics", "metric String, value Int64, description String", _metrics),
    SystemTable(
        "part_log",
        """query_id String, event_type String, event_date Date, event_time DateTime,
        database String, table String, table_uuid String, part_name String, partition_id String,
        rows UInt64, size_in_bytes UInt64, merged_from Array(String), path_on_disk String,
        commit_kind String, commit UInt64""",
        _part_log,
    ),
    SystemTable(
        "merges",
        """database String, table String, elapsed Float64, num_parts UInt64,
        source_part_names Array(String), partition_id String, is_mutation UInt8,
        rows_read UInt64, total_size_bytes_compressed UInt64, merge_type String""",
        _merges,
    ),
)
