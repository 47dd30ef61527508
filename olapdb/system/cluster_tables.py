"""system.clusters and system.replicas: a warehouse has neither, so they are empty."""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.system.registry import Row, SystemContext, SystemTable


def _none(context: SystemContext) -> Iterable[Row]:
    """Return no rows: there is no cluster."""
    return ()


TABLES = (
    SystemTable(
        "clusters",
        """cluster String, shard_num UInt32, shard_name String, shard_weight UInt32,
        internal_replication UInt8, replica_num UInt32, host_name String, host_address String,
        port UInt16, is_local UInt8, user String, default_database String, errors_count UInt32,
        slowdowns_count UInt32, estimated_recovery_time UInt32, database_shard_name String,
        database_replica_name String, is_shared_catalog_cluster UInt8, is_active Nullable(UInt8),
        unsynced_after_recovery Nullable(UInt8), replication_lag Nullable(UInt32),
        recovery_time Nullable(UInt64)""",
        _none,
        "Empty: a warehouse is shared by opening its folder",
    ),
    SystemTable(
        "replicas",
        """database String, table String, uuid UUID, engine String, is_leader UInt8,
        can_become_leader UInt8, is_readonly UInt8, readonly_start_time Nullable(DateTime),
        is_session_expired UInt8, future_parts UInt32, parts_to_check UInt32, zookeeper_name
        String, zookeeper_path String, replica_name String, replica_path String, columns_version
        Int32, queue_size UInt32, inserts_in_queue UInt32, merges_in_queue UInt32,
        part_mutations_in_queue UInt32, queue_oldest_time DateTime, inserts_oldest_time
        DateTime, merges_oldest_time DateTime, part_mutations_oldest_time DateTime,
        oldest_part_to_get String, oldest_part_to_merge_to String, oldest_part_to_mutate_to
        String, log_max_index UInt64, log_pointer UInt64, last_queue_update DateTime,
        absolute_delay UInt64, total_replicas UInt32, active_replicas UInt32, lost_part_count
        UInt64, last_queue_update_exception String, zookeeper_exception String,
        replica_is_active Map(String, UInt8)""",
        _none,
        "Empty: a warehouse has no replicas",
    ),
)
