"""System tables of ClickHouse's server: those about access are refused, the others are empty."""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.errors import AccessDenied
from olapdb.system.absent_tables import no_rows
from olapdb.system.clickhouse_columns import COLUMNS
from olapdb.system.registry import Row, SystemContext, SystemTable


def _denied(context: SystemContext) -> Iterable[Row]:
    """Raise AccessDenied, as ClickHouse in process does: there is one user, who manages no access."""
    raise AccessDenied(
        "There is one user, who may not list users, roles, quotas, policies and profiles.",
        hint="Access is by the file system.",
    )


_OF_QUOTAS = """start_time Nullable(DateTime), end_time Nullable(DateTime), duration
        Nullable(UInt32), queries Nullable(UInt64), max_queries Nullable(UInt64), query_selects
        Nullable(UInt64), max_query_selects Nullable(UInt64), query_inserts Nullable(UInt64),
        max_query_inserts Nullable(UInt64), errors Nullable(UInt64), max_errors Nullable(UInt64), result_rows
        Nullable(UInt64), max_result_rows Nullable(UInt64), result_bytes Nullable(UInt64), max_result_bytes
        Nullable(UInt64), read_rows Nullable(UInt64), max_read_rows Nullable(UInt64), read_bytes
        Nullable(UInt64), max_read_bytes Nullable(UInt64), execution_time Nullable(Float64),
        max_execution_time Nullable(Float64), written_bytes Nullable(UInt64), max_written_bytes
        Nullable(UInt64), failed_sequential_authentications Nullable(UInt64),
        max_failed_sequential_authentications Nullable(UInt64), queries_per_normalized_hash Nullable(UInt64),
        max_queries_per_normalized_hash Nullable(UInt64)"""
"""What is used of a quota, and its limits."""

_COLUMNS = {
    "asynchronous_loader": """job String, job_id UInt64, dependencies Array(UInt64), dependencies_left UInt64, status Enum8('PENDING' = 0,
        'OK' = 1, 'FAILED' = 2, 'CANCELED' = 3), is_executing UInt8, is_blocked UInt8, is_ready UInt8, elapsed
        Float64, pool_id UInt64, pool String, priority Int64, execution_pool_id UInt64, execution_pool String,
        execution_priority Int64, ready_seqno Nullable(UInt64), waiters UInt64, exception Nullable(String),
        schedule_time DateTime64(6), enqueue_time Nullable(DateTime64(6)), start_time Nullable(DateTime64(6)),
        finish_time Nullable(DateTime64(6))""",
    "background_schedule_pool": """pool String, database String, table String, table_uuid UUID, query_id String, elapsed_ms UInt64, log_name
        String, deactivated UInt8, scheduled UInt8, delayed UInt8, executing UInt8""",
    "handlers": """name String, protocol Nullable(String), url_match_type String, url String, methods Array(String), type String,
        query String, create_query String""",
    "user_processes": """user String, memory_usage Int64, peak_memory_usage Int64, ProfileEvents Map(LowCardinality(String), UInt64)""",
    "session_query_ids": "sequence_number UInt64, query_id String",
    "scheduler": """resource String, path String, type String, weight Float64, priority Int64, precedence Int64, is_active
        Nullable(UInt8), active_children Nullable(UInt64), dequeued_requests Nullable(UInt64),
        canceled_requests Nullable(UInt64), rejected_requests Nullable(UInt64), dequeued_cost Nullable(Int64),
        canceled_cost Nullable(Int64), rejected_cost Nullable(Int64), busy_periods Nullable(UInt64),
        throughput Nullable(Float64), vruntime Nullable(Float64), system_vruntime Nullable(Float64),
        queue_length Nullable(UInt64), queue_cost Nullable(Int64), budget Nullable(Int64), is_satisfied
        Nullable(UInt8), inflight_requests Nullable(Int64), inflight_cost Nullable(Int64), max_requests
        Nullable(Int64), max_cost Nullable(Int64), max_speed Nullable(Float64), max_burst Nullable(Float64),
        throttling_us Nullable(Int64), tokens Nullable(Float64), allocated Nullable(Int64), allocations
        Nullable(UInt64), updates Nullable(UInt64), increases Nullable(UInt64), decreases Nullable(UInt64),
        admits Nullable(UInt64), removes Nullable(UInt64), killers Nullable(UInt64), victims Nullable(UInt64),
        rejects Nullable(UInt64), pending Nullable(UInt64)""",
    "resources": """name String, read_disks Array(String), write_disks Array(String), unit String, create_query String""",
    "workloads": "name String, parent String, create_query String",
    "dashboards": "dashboard String, title String, query String",
    "azure_queue_metadata": """zookeeper_path String, processed_nodes_count Nullable(UInt64), processing_nodes_count UInt64,
        failed_nodes_count UInt64, processed_nodes Map(String, String), processing_nodes Map(String, String),
        failed_nodes Map(String, String), processed_path Map(String, String)""",
    "azure_queue_metadata_cache": """zookeeper_path String, file_path String, file_name String, rows_processed UInt64, status String,
        processing_start_time Nullable(DateTime), processing_end_time Nullable(DateTime), exception String,
        processing_observed_in_keeper_time Nullable(DateTime)""",
    "azure_queue_settings": """database String, table String, name String, value String, type String, changed UInt8, description String,
        alterable UInt8""",
    "s3_queue_metadata": """zookeeper_path String, processed_nodes_count Nullable(UInt64), processing_nodes_count UInt64,
        failed_nodes_count UInt64, processed_nodes Map(String, String), processing_nodes Map(String, String),
        failed_nodes Map(String, String), processed_path Map(String, String)""",
    "s3_queue_settings": """database String, table String, name String, value String, type String, changed UInt8, description String,
        alterable UInt8""",
    "s3queue_metadata_cache": """zookeeper_path String, file_path String, file_name String, rows_processed UInt64, status String,
        processing_start_time Nullable(DateTime), processing_end_time Nullable(DateTime), exception String,
        processing_observed_in_keeper_time Nullable(DateTime)""",
    "iceberg_files": """database String, table String, snapshot_id Int64, content Enum8('DATA' = 0, 'POSITION_DELETE' = 1,
        'EQUALITY_DELETE' = 2), file_path String, file_format String, record_count Int64, file_size_in_bytes
        Int64, partition String, schema_id Int32, sequence_number Int64, sort_order_id Nullable(Int32),
        null_value_counts Map(Int32, Int64), column_sizes Map(Int32, Int64), value_counts Map(Int32, Int64),
        equality_ids Array(Int32), first_row_id Nullable(UInt64)""",
    "iceberg_history": """database String, table String, made_current_at Nullable(DateTime64(3)), snapshot_id UInt64, parent_id UInt64,
        is_current_ancestor UInt8, operation Enum8('UNKNOWN' = -1, 'APPEND' = 0, 'OVERWRITE' = 1, 'DELETE' =
        2, 'REPLACE' = 3), summary Map(String, String)""",
    "jemalloc_arena_bins": """arena UInt32, purpose String, index UInt16, large UInt8, size UInt64, allocations Int64, deallocations Int64,
        nregs Int64, curslabs Int64, curregs Int64, slab_size UInt64, nonfull_slabs Int64""",
    "jemalloc_bins": """index UInt16, large UInt8, size UInt64, allocations Int64, deallocations Int64, nregs Int64, curslabs Int64,
        curregs Int64, slab_size UInt64, nonfull_slabs Int64""",
    "jemalloc_profile_text": "line String",
    "jemalloc_sampled_allocations": """trace Array(UInt64), age_ns UInt64, size UInt64, usize UInt64, size_class UInt16, arena UInt32, thr_uid
        UInt64, sample_interval UInt64""",
    "jemalloc_stats": "stats String",
    "stack_trace": """thread_name String, thread_id UInt64, query_id String, trace Array(UInt64), untracked_memory Int64""",
    "symbols": "symbol String, address_begin UInt64, address_end UInt64",
    "fail_points": """name String, type Enum8('once' = 0, 'regular' = 1, 'pauseable_once' = 2, 'pauseable' = 3), enabled UInt8""",
    "hypothetical_indexes": """database String, table String, name String, type String, type_full String, expression String, granularity
        UInt64""",
    "hypothetical_projections": """database String, table String, name String, type Enum8('Normal' = 0, 'Aggregate' = 1), sorting_key
        Array(String), query String, definition String, settings Map(String, String)""",
    "backups": """id String, name String, base_backup_name String, query_id String, status Enum8('CREATING_BACKUP' = 0,
        'BACKUP_CREATED' = 1, 'BACKUP_FAILED' = 2, 'RESTORING' = 3, 'RESTORED' = 4, 'RESTORE_FAILED' = 5,
        'BACKUP_CANCELLED' = 6, 'RESTORE_CANCELLED' = 7), error String, start_time DateTime64(6), end_time
        DateTime64(6), num_files UInt64, total_size UInt64, num_entries UInt64, uncompressed_size UInt64,
        compressed_size UInt64, files_read UInt64, bytes_read UInt64, ProfileEvents
        Map(LowCardinality(String), UInt64), settings Map(LowCardinality(String), String), engine_settings
        Map(LowCardinality(String), String)""",
    "dropped_tables_parts": COLUMNS["parts"],
    "dimensional_metrics": """metric String, value Float64, description String, labels Map(String, String)""",
    "histogram_metrics": """metric String, value Float64, description String, labels Map(String, String)""",
    "replicated_merge_tree_settings": """name String, value String, default String, changed UInt8, description String, min Nullable(String), max
        Nullable(String), disallowed_values Array(String), readonly UInt8, type String, is_obsolete UInt8,
        tier Enum8('Production' = 0, 'Obsolete' = 4, 'Experimental' = 8, 'Beta' = 12, 'PrivatePreview' = 16)""",
    "server_settings": """name String, value String, default String, changed UInt8, description String, type String,
        changeable_without_restart Enum8('No' = 0, 'IncreaseOnly' = 1, 'DecreaseOnly' = 2, 'Yes' = 3),
        is_obsolete UInt8""",
    "settings_changes": """type Enum8('Session' = 0, 'MergeTree' = 1), version String, changes Array(Tuple(name String, previous_value
        String, new_value String, reason String, compatibility_mode String))""",
    "documentation": """name String, type Enum8('Function' = 1, 'Aggregate Function' = 2, 'Table Function' = 3, 'Table Engine' = 4,
        'Database Engine' = 5, 'Data Type' = 6, 'Dictionary Layout' = 7, 'Dictionary Source' = 8, 'Aggregate
        Function Combinator' = 9, 'Data Skipping Index' = 10, 'Disk Type' = 11, 'Setting' = 12, 'MergeTree
        Setting' = 13, 'Server Setting' = 14, 'Format' = 15, 'Compression Codec' = 16, 'Profile Event' = 17,
        'Current Metric' = 18, 'Asynchronous Metric' = 19, 'System Table' = 20, 'Statement' = 21), description
        String, source String""",
    "statements": """name String, syntax String, description String, parent_name String, related Array(String)""",
    "completions": "word String, context String, belongs Nullable(String)",
    "disk_types": """name String, description String, syntax String, examples String, introduced_in String, related Array(String)""",
    "dictionary_layouts": """name String, is_complex UInt8, description String, syntax String, examples String, introduced_in String,
        related Array(String)""",
    "dictionary_sources": """name String, description String, syntax String, examples String, introduced_in String, related Array(String)""",
    "data_skipping_index_types": """name String, description String, syntax String, examples String, introduced_in String, related Array(String)""",
    "licenses": """library_name String, license_type String, license_path String, license_text String""",
    "contributors": "name String",
    "users": """name String, id UUID, storage String, auth_type Array(Enum8('no_password' = 0, 'plaintext_password' = 1,
        'sha256_password' = 2, 'double_sha1_password' = 3, 'ldap' = 4, 'kerberos' = 5, 'ssl_certificate' = 6,
        'bcrypt_password' = 7, 'ssh_key' = 8, 'http' = 9, 'jwt' = 10, 'scram_sha256_password' = 11,
        'no_authentication' = 12)), auth_params Array(String), valid_until Array(DateTime64(0)), auth_grants
        Array(String), host_ip Array(String), host_names Array(String), host_names_regexp Array(String),
        host_names_like Array(String), default_roles_all UInt8, default_roles_list Array(String),
        default_roles_except Array(String), grantees_any UInt8, grantees_list Array(String), grantees_except
        Array(String), default_database String""",
    "roles": "name String, id UUID, storage String",
    "grants": """user_name Nullable(String), role_name Nullable(String), access_type String, access_object String, database Nullable(String), table Nullable(String), column Nullable(String)
        , is_partial_revoke UInt8, grant_option UInt8, is_wildcard UInt8""",
    "role_grants": """user_name Nullable(String), role_name Nullable(String), granted_role_name String, granted_role_id UUID,
        granted_role_is_default UInt8, with_admin_option UInt8""",
    "quotas": """name String, id UUID, storage String, keys Array(Enum8('user_name' = 1, 'ip_address' = 2,
        'forwarded_ip_address' = 3, 'client_key' = 4, 'normalized_query_hash' = 7)), durations Array(UInt32),
        apply_to_all UInt8, apply_to_list Array(String), apply_to_except Array(String), ipv4_prefix_bits
        Nullable(UInt8), ipv6_prefix_bits Nullable(UInt8)""",
    "quota_limits": """quota_name String, duration UInt32, is_randomized_interval UInt8, max_queries Nullable(UInt64),
        max_query_selects Nullable(UInt64), max_query_inserts Nullable(UInt64), max_errors Nullable(UInt64),
        max_result_rows Nullable(UInt64), max_result_bytes Nullable(UInt64), max_read_rows Nullable(UInt64),
        max_read_bytes Nullable(UInt64), max_execution_time Nullable(Float64), max_written_bytes
        Nullable(UInt64), max_failed_sequential_authentications Nullable(UInt64),
        max_queries_per_normalized_hash Nullable(UInt64)""",
    "quota_usage": f"quota_name String, quota_key String, {_OF_QUOTAS}",
    "quotas_usage": f"quota_name String, quota_key String, is_current UInt8, {_OF_QUOTAS}",
    "row_policies": """name String, short_name String, database String, table String, id UUID, storage String, select_filter
        Nullable(String), is_restrictive UInt8, apply_to_all UInt8, apply_to_list Array(String),
        apply_to_except Array(String)""",
    "settings_profiles": """name String, id UUID, storage String, num_elements UInt64, apply_to_all UInt8, apply_to_list Array(String),
        apply_to_except Array(String)""",
    "settings_profile_elements": """profile_name Nullable(String), user_name Nullable(String), role_name Nullable(String), index UInt64,
        setting_name Nullable(String), value Nullable(String), min Nullable(String), max Nullable(String),
        writability Nullable(Enum8('WRITABLE' = 0, 'CONST' = 1, 'CHANGEABLE_IN_READONLY' = 2)),
        inherit_profile Nullable(String)""",
    "masking_policies": """name String, short_name String, database String, table String, id UUID, storage String, update_assignments
        Nullable(String), where_condition Nullable(String), priority Int64, apply_to_all UInt8, apply_to_list
        Array(String), apply_to_except Array(String)""",
}

_COMMENTS = {
    "Empty: there is no server, whose queues and threads they list": (
        "asynchronous_loader background_schedule_pool handlers user_processes session_query_ids scheduler resources workloads dashboards"
    ),
    "Empty: there are no queues of files": (
        "azure_queue_metadata azure_queue_metadata_cache azure_queue_settings s3_queue_metadata s3_queue_settings s3queue_metadata_cache"
    ),
    "Empty: files of Iceberg are not listed": "iceberg_files iceberg_history",
    "Empty: memory is Arrow's, and that of Python": (
        "jemalloc_arena_bins jemalloc_bins jemalloc_profile_text jemalloc_sampled_allocations jemalloc_stats"
    ),
    "Empty: the engine has no symbols or threads of its own to show": (
        "stack_trace symbols fail_points"
    ),
    "Empty: EXPLAIN tries no index that is not there": (
        "hypothetical_indexes hypothetical_projections"
    ),
    "Empty: SYSTEM BACKUP copies a warehouse, and is over when it returns": "backups",
    "Empty: parts of dropped tables are not listed; system.dropped_tables has the tables": (
        "dropped_tables_parts"
    ),
    "Empty: nothing is counted with labels": "dimensional_metrics histogram_metrics",
    "Empty: tables are not replicated": "replicated_merge_tree_settings",
    "Empty: there is no server, and so none of its settings": "server_settings",
    "Empty: the CHANGELOG tells what changed": "settings_changes",
    "Empty: the documentation is in docs/": (
        "documentation statements completions disk_types dictionary_layouts dictionary_sources data_skipping_index_types"
    ),
    "Empty: the project's files name its licenses and authors": "licenses contributors",
}
"""The comments of the tables that have it, by their names."""
_ACCESS = (
    "users roles grants role_grants quotas quota_limits quota_usage quotas_usage "
    "row_policies settings_profiles settings_profile_elements masking_policies"
)

TABLES = tuple(
    SystemTable(name, _COLUMNS[name], no_rows, comment)
    for comment, names in _COMMENTS.items()
    for name in names.split()
) + tuple(
    SystemTable(name, _COLUMNS[name], _denied, "Refused: there is one user, and no access control")
    for name in _ACCESS.split()
)
