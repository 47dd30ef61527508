"""System tables of what olapdb does not have: they are empty, so that queries of tools answer."""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.system.registry import Row, SystemContext, SystemTable


def no_rows(context: SystemContext) -> Iterable[Row]:
    """Return no rows: the table is about a part of ClickHouse that olapdb does not have."""
    return ()


_COLUMNS = {
    "distributed_ddl_queue": """entry String, entry_version Nullable(UInt8), initiator_host Nullable(String),
        initiator_port Nullable(UInt16), cluster String, query String, settings Map(String,
        String), query_create_time DateTime, host Nullable(String), port Nullable(UInt16),
        status Nullable(Enum8('Inactive' = 0, 'Active' = 1, 'Finished' = 2, 'Removing' = 3,
        'Unknown' = 4)), exception_code Nullable(UInt16), exception_text Nullable(String),
        query_finish_time Nullable(DateTime), query_duration_ms Nullable(UInt64)""",
    "distribution_queue": """database String, table String, data_path String, is_blocked UInt8, error_count UInt64,
        data_files UInt64, data_compressed_bytes UInt64, broken_data_files UInt64,
        broken_data_compressed_bytes UInt64, last_exception String, last_exception_time
        DateTime""",
    "replication_queue": """database String, table String, replica_name String, position UInt32, node_name String,
        type String, create_time DateTime, required_quorum UInt32, source_replica String,
        new_part_name String, parts_to_merge Array(String), is_detach UInt8,
        is_currently_executing UInt8, num_tries UInt32, last_exception String,
        last_exception_time DateTime, last_attempt_time DateTime, num_postponed UInt32,
        postpone_reason String, last_postpone_time DateTime, merge_type String""",
    "replicated_fetches": """database String, table String, elapsed Float64, progress Float64, result_part_name
        String, result_part_path String, partition_id String, total_size_bytes_compressed
        UInt64, bytes_read_compressed UInt64, source_replica_path String,
        source_replica_hostname String, source_replica_port UInt16, interserver_scheme String,
        URI String, to_detached UInt8, thread_id UInt64""",
    "part_moves_between_shards": """database String, table String, task_name String, task_uuid UUID, create_time DateTime,
        part_name String, part_uuid UUID, to_shard String, dst_part_name String, update_time
        DateTime, state String, rollback UInt8, num_tries UInt32, last_exception String""",
    "database_replicas": """database String, is_readonly UInt8, max_log_ptr Int32, replica_name String,
        replica_path String, zookeeper_path String, shard_name String, log_ptr Int32,
        total_replicas UInt32, zookeeper_exception String, is_session_expired UInt8""",
    "macros": "macro String, substitution String",
    "dns_cache": """hostname String, ip_address String, ip_family Enum8('IPv4' = 0, 'IPv6' = 1,
        'UNIX_LOCAL' = 2), cached_at DateTime""",
    "certificates": """version Int32, serial_number Nullable(String), signature_algo Nullable(String), issuer
        Nullable(String), not_before Nullable(String), not_after Nullable(String), subject
        Nullable(String), pkey_algo Nullable(String), path String, default UInt8, protocol
        String""",
    "kafka_consumers": """database String, table String, consumer_id String, assignments.topic Array(String),
        assignments.partition_id Array(Int32), assignments.current_offset Array(Int64),
        assignments.intent_size Array(Nullable(Int64)), exceptions.time Array(DateTime),
        exceptions.text Array(String), last_poll_time DateTime, num_messages_read UInt64,
        last_commit_time DateTime, num_commits UInt64, last_rebalance_time DateTime,
        num_rebalance_revocations UInt64, num_rebalance_assignments UInt64, is_currently_used
        UInt8, last_used DateTime64(6), rdkafka_stat String, dependencies
        Array(Array(String)), missing_dependencies Array(Array(String))""",
    "asynchronous_inserts": """query String, database String, table String, format String, first_update
        DateTime64(6), total_bytes UInt64, entries.query_id Array(String), entries.bytes
        Array(UInt64)""",
    "moves": """database String, table String, elapsed Float64, target_disk_name String,
        target_disk_path String, part_name String, part_size UInt64, thread_id UInt64""",
    "remote_data_paths": """disk_name String, path String, metadata_type String, cache_base_path String,
        local_path String, remote_path String, size UInt64, common_prefix_for_blobs String,
        cache_paths Array(String), last_modified DateTime""",
    "filesystem_cache": """cache_name String, cache_base_path String, cache_path String, key String,
        file_segment_range_begin UInt64, file_segment_range_end UInt64, size UInt64, state
        String, finished_download_time DateTime, cache_hits UInt64, references UInt64,
        downloaded_size UInt64, kind String, unbound UInt8, user_id String, segment_type
        String, file_size Nullable(UInt64)""",
    "filesystem_cache_settings": """cache_name String, path String, max_size UInt64, max_elements UInt64,
        max_file_segment_size UInt64, boundary_alignment UInt64, reserve_granularity UInt64,
        cache_on_write_operations UInt8, cache_policy String, slru_size_ratio Float64,
        background_download_threads UInt64, background_download_queue_size_limit UInt64,
        background_download_max_file_segment_size UInt64, load_metadata_threads UInt64,
        load_metadata_asynchronously UInt8, keep_free_space_size_ratio Float64,
        keep_free_space_elements_ratio Float64, keep_free_space_remove_batch UInt64,
        keep_free_space_eviction_threads UInt64, invalidated_entries_cleanup_interval_ms
        UInt64, invalidated_entries_cleanup_threshold UInt64,
        invalidated_entries_cleanup_remove_batch UInt64, enable_filesystem_query_cache_limit
        UInt8, cache_hits_threshold UInt64, enable_bypass_cache_with_threshold UInt8,
        bypass_cache_threshold UInt64, write_cache_per_user_id_directory UInt8,
        allow_dynamic_cache_resize UInt8, dynamic_resize_lock_wait_ms UInt64,
        max_size_ratio_to_total_space Float64, skip_cache_on_disk_failure UInt8,
        use_split_cache UInt8, split_cache_ratio Float64, system_cache_extensions String,
        overcommit_eviction_evict_step UInt64, check_cache_probability Float64,
        idle_client_ttl_sec UInt64, idle_client_check_interval_sec UInt64,
        idle_client_eviction_threads UInt64, expose_prometheus_eviction_metrics UInt8,
        expose_prometheus_eviction_metrics_per_user UInt8, drop_cache_threads UInt64,
        is_initialized UInt8, current_size UInt64, current_elements_num UInt64""",
    "rocksdb": "database String, table String, name String, value UInt64",
    "graphite_retentions": """config_name String, rule_type String, regexp String, function String, age UInt64,
        precision UInt64, priority UInt16, is_default UInt8, Tables.database Array(String),
        Tables.table Array(String)""",
    "query_cache": """query String, query_id String, is_subquery UInt8, result_size UInt64, tag
        LowCardinality(String), stale UInt8, shared UInt8, compressed UInt8, expires_at
        DateTime, key_hash UInt64""",
    "query_condition_cache": "key_hash UInt128, entry_size UInt64, matching_marks String",
    "schema_inference_cache": """storage String, source String, format String, additional_format_info String,
        registration_time DateTime, schema Nullable(String), number_of_rows Nullable(UInt64),
        schema_inference_mode Nullable(String)""",
    "current_roles": "role_name String, with_admin_option UInt8, is_default UInt8",
    "enabled_roles": """role_name String, with_admin_option UInt8, is_current UInt8, is_default UInt8""",
    "user_directories": "name String, type String, params String, precedence UInt64",
    "warnings": "message String, message_format_string LowCardinality(String)",
    "user_defined_functions": """name String, load_status Enum8('Success' = 0, 'Failed' = 1), loading_error_message
        String, last_successful_update_time Nullable(DateTime), loading_duration_ms UInt64,
        type Enum8('executable' = 0, 'executable_pool' = 1), command String, format String,
        return_type String, return_name String, argument_types Array(String), argument_names
        Array(String), max_command_execution_time UInt64, command_termination_timeout UInt64,
        command_read_timeout UInt64, command_write_timeout UInt64, pool_size UInt64,
        send_chunk_header UInt8, execute_direct UInt8, lifetime UInt64, deterministic UInt8""",
}
_COMMENTS = {
    "Empty: there are no servers, replicas or queues between them": "distributed_ddl_queue distribution_queue replication_queue replicated_fetches part_moves_between_shards database_replicas macros dns_cache certificates kafka_consumers",
    "Empty: an INSERT is written by its statement": "asynchronous_inserts",
    "Empty: a warehouse has one disk": "moves remote_data_paths filesystem_cache filesystem_cache_settings",
    "Empty: there is no such engine": "rocksdb graphite_retentions",
    "Empty: results and schemas of files are not cached": "query_cache query_condition_cache schema_inference_cache",
    "Empty: there is one user, and no access control": "current_roles enabled_roles user_directories",
    "Empty: nothing is warned about beside the results of statements": "warnings",
    "Empty: there are no executable functions of a configuration": "user_defined_functions",
}

TABLES = tuple(
    SystemTable(name, _COLUMNS[name], no_rows, comment)
    for comment, names in _COMMENTS.items()
    for name in names.split()
)
