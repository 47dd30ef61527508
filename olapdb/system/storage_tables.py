"""system.disks, storage_policies, asynchronous_metrics and uncompressed_cache: the warehouse's place
and size, and what of it is in memory."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator

from olapdb.model.schema import Table
from olapdb.storage.shared_codes import is_dictionary
from olapdb.storage.store import LocalStore
from olapdb.system.registry import Row, SystemContext, SystemTable


def _disks(context: SystemContext) -> Iterator[Row]:
    """Yield the one disk, `default`; for an in-memory warehouse without path and size."""
    store = context.services.store
    path, kind, read_only, free, total = "", "Memory", 0, 0, 0
    if isinstance(store, LocalStore):
        usage = shutil.disk_usage(store.root)
        path, kind, read_only = f"{store.root.absolute()}/", "Local", int(store.read_only)
        free, total = usage.free, usage.total
    yield ("default", path, free, total, free, 0, kind, "None", "None", 0, read_only, 0, 0, 0, "")


def _storage_policies(context: SystemContext) -> Iterator[Row]:
    """List the only policy, which has the only disk."""
    yield "default", "default", 1, ["default"], "JBOD", 0, 0.0, 0, 0, "ROUND_ROBIN"


def _asynchronous_metrics(context: SystemContext) -> Iterator[Row]:
    """Yield metrics computed at the read, as of the query's snapshot."""
    snapshot = context.snapshot
    tables = [item for item in snapshot.objects() if isinstance(item, Table)]
    sorted_tables = [table for table in tables if table.engine.is_merge_tree]
    parts = [p for table in sorted_tables for p in snapshot.parts(table.id) if p.rows]
    per_partition = Counter((part.table_id, part.partition_id) for part in parts)
    for name, value, description in (
        ("NumberOfDatabases", len(snapshot.databases), "Databases."),
        ("NumberOfTables", sum(1 for _ in snapshot.objects()), "Tables and views."),
        ("TotalPartsOfMergeTreeTables", len(parts), "Parts of MergeTree tables."),
        ("TotalRowsOfMergeTreeTables", sum(p.rows for p in parts), "Their rows."),
        ("TotalBytesOfMergeTreeTables", sum(p.bytes for p in parts), "Their bytes."),
        (
            "MaxPartCountForPartition",
            max(per_partition.values(), default=0),
            "The most parts that a partition has.",
        ),
    ):
        yield name, float(value), description


def _uncompressed_cache(context: SystemContext) -> Iterator[Row]:
    """Yield one row for each column of a part and form that the column cache holds row groups of.

    Parts that the snapshot lacks, replaced or not committed, have empty database and table."""
    snapshot = context.snapshot
    tables = [item for item in snapshot.objects() if isinstance(item, Table)]
    owners = {part.path: (table, part) for table in tables for part in snapshot.parts(table.id)}
    sums: dict[tuple[str, int, bool], list[int]] = {}
    columns = context.services.store.cache.columns
    for path, key, _, rows, size in columns.shared.entries(columns.store):
        total = sums.setdefault((path, key.column_id, key.coded), [0, 0, 0])
        for at, value in enumerate((1, 0 if is_dictionary(key) else rows, size)):
            total[at] += value
    for (path, column_id, coded), (cells, rows, size) in sorted(sums.items()):
        database = table_name = part_name = column_name = ""
        if path in owners:
            table, part = owners[path]
            database, table_name, part_name = table.database, table.name, part.name
            column_name = next((c.name for c in table.columns if c.id == column_id), "")
        yield database, table_name, part_name, column_name, path, int(coded), cells, rows, size


TABLES = (
    SystemTable(
        "uncompressed_cache",
        """database String, table String, part_name String, column String, path String,
        is_dictionary UInt8, cells UInt64, rows UInt64, bytes UInt64""",
        _uncompressed_cache,
        "What the process's cache of decoded columns holds of this warehouse",
    ),
    SystemTable(
        "disks",
        """name String, path String, free_space UInt64, total_space UInt64, unreserved_space UInt64,
        keep_free_space UInt64, type String, object_storage_type String, metadata_type String,
        is_encrypted UInt8, is_read_only UInt8, is_write_once UInt8, is_remote UInt8,
        is_broken UInt8, cache_path String""",
        _disks,
        "Where the warehouse lies",
    ),
    SystemTable(
        "storage_policies",
        """policy_name String, volume_name String, volume_priority UInt64, disks Array(String),
        volume_type String, max_data_part_size UInt64, move_factor Float32,
        prefer_not_to_merge UInt8, perform_ttl_move_on_insert UInt8, load_balancing String""",
        _storage_policies,
        "The one policy: all parts lie on the one disk",
    ),
    SystemTable(
        "asynchronous_metrics",
        "metric String, value Float64, description String",
        _asynchronous_metrics,
        "Sizes of the warehouse",
    ),
)
