"""system.disks, storage_policies and asynchronous_metrics: where the warehouse lies, its size."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator

from olapdb.model.schema import Table
from olapdb.storage.store import LocalStore
from olapdb.system.registry import Row, SystemContext, SystemTable
from olapdb.types import FLOAT32, FLOAT64, STRING, UINT8, UINT64, Array, DataType

_NAMES: DataType = Array(STRING)


def _disks(context: SystemContext) -> Iterator[Row]:
    """One, `default`; of an in-memory warehouse without a path and without bounds."""
    store = context.services.store
    path, kind, read_only, free, total = "", "Memory", 0, 0, 0
    if isinstance(store, LocalStore):
        usage = shutil.disk_usage(store.root)
        path, kind, read_only = f"{store.root.absolute()}/", "Local", int(store.read_only)
        free, total = usage.free, usage.total
    yield ("default", path, free, total, free, 0, kind, "None", "None", 0, read_only, 0, 0, 0, "")


def _storage_policies(context: SystemContext) -> Iterator[Row]:
    yield "default", "default", 1, ["default"], "JBOD", 0, 0.0, 0, 0, "ROUND_ROBIN"


def _asynchronous_metrics(context: SystemContext) -> Iterator[Row]:
    """Computed when they are read: as of the snapshot of the query."""
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


TABLES = (
    SystemTable(
        "disks",
        (
            ("name", STRING),
            ("path", STRING),
            ("free_space", UINT64),
            ("total_space", UINT64),
            ("unreserved_space", UINT64),
            ("keep_free_space", UINT64),
            ("type", STRING),
            ("object_storage_type", STRING),
            ("metadata_type", STRING),
            ("is_encrypted", UINT8),
            ("is_read_only", UINT8),
            ("is_write_once", UINT8),
            ("is_remote", UINT8),
            ("is_broken", UINT8),
            ("cache_path", STRING),
        ),
        _disks,
        "Where the warehouse lies",
    ),
    SystemTable(
        "storage_policies",
        (
            ("policy_name", STRING),
            ("volume_name", STRING),
            ("volume_priority", UINT64),
            ("disks", _NAMES),
            ("volume_type", STRING),
            ("max_data_part_size", UINT64),
            ("move_factor", FLOAT32),
            ("prefer_not_to_merge", UINT8),
            ("perform_ttl_move_on_insert", UINT8),
            ("load_balancing", STRING),
        ),
        _storage_policies,
        "The one policy: all parts lie on the one disk",
    ),
    SystemTable(
        "asynchronous_metrics",
        (("metric", STRING), ("value", FLOAT64), ("description", STRING)),
        _asynchronous_metrics,
        "Sizes of the warehouse",
    ),
)
