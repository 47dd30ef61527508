"""The columns that ClickHouse's system tables have, of the tables that olapdb fills differently."""

from __future__ import annotations

from collections.abc import Mapping

COLUMNS: Mapping[str, str] = {
    "processes": """is_initial_query UInt8, user String, query_id String, address IPv6, port UInt16, initial_user String,
        initial_query_id String, initial_address IPv6, initial_port UInt16, interface Enum8('Unknown' = 0,
        'TCP' = 1, 'HTTP' = 2, 'gRPC' = 3, 'MySQL' = 4, 'PostgreSQL' = 5, 'Local' = 6, 'TCP_Interserver' = 7,
        'Prometheus' = 8, 'Background' = 9, 'ArrowFlight' = 10), os_user String, client_hostname String,
        client_name String, client_agent LowCardinality(String), client_revision UInt64, client_version_major
        UInt64, client_version_minor UInt64, client_version_patch UInt64, http_method Enum8('UNKNOWN' = 0,
        'GET' = 1, 'POST' = 2, 'OPTIONS' = 3, 'PUT' = 4, 'DELETE' = 5, 'HEAD' = 6), http_user_agent String,
        http_referer String, forwarded_for String, quota_key String, distributed_depth UInt64, elapsed
        Float64, is_cancelled UInt8, is_all_data_sent UInt8, read_rows UInt64, read_bytes UInt64,
        total_rows_approx UInt64, written_rows UInt64, written_bytes UInt64, memory_usage Int64,
        peak_memory_usage Int64, query String, normalized_query_hash UInt64, query_kind String, thread_ids
        Array(UInt64), peak_threads_usage UInt64, ProfileEvents Map(LowCardinality(String), UInt64), Settings
        Map(LowCardinality(String), LowCardinality(String)), current_database String, is_internal UInt8""",
    "errors": """name String, code Int32, value UInt64, last_error_time DateTime, last_error_message String,
        last_error_format_string String, last_error_trace Array(UInt64), remote UInt8, query_id String""",
    "merges": """database String, table String, elapsed Float64, progress Float64, num_parts UInt64, source_part_names
        Array(String), result_part_name String, source_part_paths Array(String), result_part_path String,
        partition_id String, partition String, is_mutation UInt8, total_size_bytes_compressed UInt64,
        total_size_bytes_uncompressed UInt64, total_size_marks UInt64, bytes_read_uncompressed UInt64,
        rows_read UInt64, bytes_written_uncompressed UInt64, rows_written UInt64, columns_written UInt64,
        memory_usage UInt64, thread_id UInt64, merge_type String, merge_algorithm String, current_projection
        String, current_projection_progress Float64, current_projection_parts_merging UInt64,
        current_projection_parts_remaining UInt64, projections_completed Array(String), projections_remaining
        Array(String)""",
    "databases": """name String, engine String, data_path String, metadata_path String, uuid UUID, engine_full String, comment
        String, is_external UInt8""",
    "dropped_tables": """index UInt32, database String, table String, uuid UUID, engine String, metadata_dropped_path String,
        table_dropped_time DateTime""",
    "tables": """database String, name String, uuid UUID, engine String, is_temporary UInt8, data_paths Array(String),
        metadata_path String, metadata_modification_time DateTime, metadata_version Int32,
        dependencies_database Array(String), dependencies_table Array(String), create_table_query String,
        engine_full String, as_select String, parameterized_view_parameters Array(Tuple(name String, type
        String)), partition_key String, sorting_key String, primary_key String, sampling_key String,
        unique_key String, skipping_indices_types Array(String), storage_policy String, total_rows
        Nullable(UInt64), total_bytes Nullable(UInt64), total_bytes_uncompressed Nullable(UInt64), parts
        Nullable(UInt64), active_parts Nullable(UInt64), total_marks Nullable(UInt64),
        active_on_fly_data_mutations UInt64, active_on_fly_alter_mutations UInt64,
        active_on_fly_metadata_mutations UInt64, columns_descriptions_cache_size UInt64, lifetime_rows
        Nullable(UInt64), lifetime_bytes Nullable(UInt64), comment String, has_own_data UInt8,
        loading_dependencies_database Array(String), loading_dependencies_table Array(String),
        loading_dependent_database Array(String), loading_dependent_table Array(String), target_database
        String, target_table String, definer String""",
    "columns": """database String, table String, name String, type String, position UInt64, default_kind String,
        default_expression String, data_compressed_bytes UInt64, data_uncompressed_bytes UInt64, marks_bytes
        UInt64, comment String, is_in_partition_key UInt8, is_in_sorting_key UInt8, is_in_primary_key UInt8,
        is_in_sampling_key UInt8, compression_codec String, character_octet_length Nullable(UInt64),
        numeric_precision Nullable(UInt64), numeric_precision_radix Nullable(UInt64), numeric_scale
        Nullable(UInt64), datetime_precision Nullable(UInt64), serialization_hint Nullable(String), statistics
        String""",
    "data_skipping_indices": """database String, table String, name String, type String, type_full String, expr String, creation
        Enum8('Explicit' = 0, 'Implicit' = 1), granularity UInt64, data_compressed_bytes UInt64,
        data_uncompressed_bytes UInt64, marks_bytes UInt64""",
    "projection_parts": """partition String, name String, part_type String, parent_name String, parent_uuid UUID, parent_part_type
        String, active UInt8, marks UInt64, rows UInt64, files UInt64, bytes_on_disk UInt64,
        data_compressed_bytes UInt64, data_uncompressed_bytes UInt64, marks_bytes UInt64, parent_marks UInt64,
        parent_rows UInt64, parent_bytes_on_disk UInt64, parent_data_compressed_bytes UInt64,
        parent_data_uncompressed_bytes UInt64, parent_marks_bytes UInt64, modification_time DateTime,
        remove_time DateTime, refcount UInt32, min_date Date, max_date Date, min_time DateTime, max_time
        DateTime, partition_id String, min_block_number Int64, max_block_number Int64, level UInt32,
        data_version UInt64, primary_key_bytes_in_memory UInt64, primary_key_bytes_in_memory_allocated UInt64,
        is_frozen UInt8, database String, table String, engine String, disk_name String, path String,
        hash_of_all_files String, hash_of_uncompressed_files String, uncompressed_hash_of_compressed_files
        String, delete_ttl_info_min DateTime, delete_ttl_info_max DateTime, move_ttl_info.expression
        Array(String), move_ttl_info.min Array(DateTime), move_ttl_info.max Array(DateTime),
        default_compression_codec String, recompression_ttl_info.expression Array(String),
        recompression_ttl_info.min Array(DateTime), recompression_ttl_info.max Array(DateTime),
        group_by_ttl_info.expression Array(String), group_by_ttl_info.min Array(DateTime),
        group_by_ttl_info.max Array(DateTime), rows_where_ttl_info.expression Array(String),
        rows_where_ttl_info.min Array(DateTime), rows_where_ttl_info.max Array(DateTime), is_broken UInt8,
        exception_code Int32, exception String""",
    "dictionaries": """database String, name String, uuid UUID, status Enum8('NOT_LOADED' = 0, 'LOADED' = 1, 'FAILED' = 2, 'LOADING'
        = 3, 'FAILED_AND_RELOADING' = 4, 'LOADED_AND_RELOADING' = 5, 'NOT_EXIST' = 6), origin String, type
        String, key.names Array(String), key.types Array(String), attribute.names Array(String),
        attribute.types Array(String), bytes_allocated UInt64, hierarchical_index_bytes_allocated UInt64,
        query_count UInt64, hit_rate Float64, found_rate Float64, element_count UInt64, load_factor Float64,
        source String, lifetime_min UInt64, lifetime_max UInt64, loading_start_time DateTime,
        last_successful_update_time DateTime, error_count UInt64, loading_duration Float32, last_exception
        String, comment String""",
    "mutations": """database String, table String, mutation_id String, command String, create_time DateTime, finish_time DateTime,
        block_numbers.partition_id Array(String), block_numbers.number Array(Int64), parts_in_progress_names
        Array(String), parts_to_do_names Array(String), parts_to_do Int64, parts_postpone_reasons Map(String,
        String), is_done UInt8, is_killed UInt8, latest_failed_part String, latest_fail_time DateTime,
        latest_fail_reason String, latest_fail_error_code_name String""",
    "parts": """partition String, name String, uuid UUID, part_type String, part_storage_type String, active UInt8, marks
        UInt64, rows UInt64, files UInt64, bytes_on_disk UInt64, data_compressed_bytes UInt64,
        data_uncompressed_bytes UInt64, primary_key_size UInt64, marks_bytes UInt64,
        secondary_indices_compressed_bytes UInt64, secondary_indices_uncompressed_bytes UInt64,
        secondary_indices_marks_bytes UInt64, modification_time DateTime, remove_time DateTime, refcount
        UInt32, min_date Date, max_date Date, min_time DateTime, max_time DateTime, partition_id String,
        min_block_number Int64, max_block_number Int64, level UInt32, data_version UInt64,
        primary_key_bytes_in_memory UInt64, primary_key_bytes_in_memory_allocated UInt64,
        index_granularity_bytes_in_memory UInt64, index_granularity_bytes_in_memory_allocated UInt64,
        is_frozen UInt8, database String, table String, engine String, disk_name String, path String,
        hash_of_all_files String, hash_of_uncompressed_files String, uncompressed_hash_of_compressed_files
        String, delete_ttl_info_min DateTime, delete_ttl_info_max DateTime, move_ttl_info.expression
        Array(String), move_ttl_info.min Array(DateTime), move_ttl_info.max Array(DateTime),
        default_compression_codec String, recompression_ttl_info.expression Array(String),
        recompression_ttl_info.min Array(DateTime), recompression_ttl_info.max Array(DateTime),
        group_by_ttl_info.expression Array(String), group_by_ttl_info.min Array(DateTime),
        group_by_ttl_info.max Array(DateTime), rows_where_ttl_info.expression Array(String),
        rows_where_ttl_info.min Array(DateTime), rows_where_ttl_info.max Array(DateTime), projections
        Array(String), visible UInt8, creation_tid Tuple(UInt64, UInt64, UUID), removal_tid_lock UInt64,
        removal_tid Tuple(UInt64, UInt64, UUID), creation_csn UInt64, removal_csn UInt64,
        has_lightweight_delete UInt8, last_removal_attempt_time DateTime, removal_state String""",
    "parts_columns": """partition String, name String, uuid UUID, part_type String, active UInt8, marks UInt64, rows UInt64,
        bytes_on_disk UInt64, data_compressed_bytes UInt64, data_uncompressed_bytes UInt64, marks_bytes
        UInt64, modification_time DateTime, remove_time DateTime, refcount UInt32, min_date Date, max_date
        Date, min_time DateTime, max_time DateTime, partition_id String, min_block_number Int64,
        max_block_number Int64, level UInt32, data_version UInt64, primary_key_bytes_in_memory UInt64,
        primary_key_bytes_in_memory_allocated UInt64, database String, table String, engine String, disk_name
        String, path String, column String, type String, column_position UInt64, default_kind String,
        default_expression String, column_bytes_on_disk UInt64, column_data_compressed_bytes UInt64,
        column_data_uncompressed_bytes UInt64, column_marks_bytes UInt64, column_modification_time
        Nullable(DateTime), column_ttl_min Nullable(DateTime), column_ttl_max Nullable(DateTime), statistics
        Array(String), estimates.min Nullable(String), estimates.max Nullable(String), estimates.cardinality
        Nullable(UInt64), estimates.null_count Nullable(UInt64), estimates.default_count Nullable(UInt64),
        serialization_kind String, substreams Array(String), filenames Array(String), subcolumns.names
        Array(String), subcolumns.types Array(String), subcolumns.serializations Array(String),
        subcolumns.bytes_on_disk Array(UInt64), subcolumns.data_compressed_bytes Array(UInt64),
        subcolumns.data_uncompressed_bytes Array(UInt64), subcolumns.marks_bytes Array(UInt64)""",
    "detached_parts": """database String, table String, partition_id Nullable(String), name String, bytes_on_disk UInt64,
        modification_time DateTime, disk String, path String, reason Nullable(String), min_block_number
        Nullable(Int64), max_block_number Nullable(Int64), level Nullable(UInt32)""",
    "table_engines": """name String, supports_settings UInt8, supports_skipping_indices UInt8, supports_projections UInt8,
        supports_sort_order UInt8, supports_ttl UInt8, supports_replication UInt8, supports_deduplication
        UInt8, supports_parallel_insert UInt8, description String, syntax String, examples String,
        introduced_in String, related Array(String)""",
    "data_type_families": """name String, case_insensitive UInt8, alias_to String, description String, syntax String, examples String,
        introduced_in String, related Array(String)""",
    "aggregate_function_combinators": """name String, is_internal UInt8, description String, syntax String, examples String, introduced_in String,
        related Array(String)""",
    "formats": """name String, is_input UInt8, is_output UInt8, supports_parallel_parsing UInt8, supports_parallel_formatting
        UInt8, is_tty_friendly UInt8, content_type String, supports_random_access UInt8, has_schema_inference
        UInt8, has_external_schema UInt8, prefers_large_blocks UInt8, supports_append UInt8,
        supports_subsets_of_columns UInt8, description String, examples String, introduced_in String, related
        Array(String)""",
    "view_refreshes": """database String, view String, uuid UUID, status String, last_success_time Nullable(DateTime),
        last_success_duration_ms Nullable(UInt64), last_refresh_time Nullable(DateTime), last_refresh_replica
        String, next_refresh_time Nullable(DateTime), exception String, retry UInt64, progress
        Nullable(Float64), read_rows Nullable(UInt64), read_bytes Nullable(UInt64), total_rows
        Nullable(UInt64), written_rows Nullable(UInt64), written_bytes Nullable(UInt64)""",
    "settings": """name String, value String, changed UInt8, description String, min Nullable(String), max Nullable(String),
        disallowed_values Array(String), readonly UInt8, type String, default String, alias_for String,
        is_obsolete UInt8, tier Enum8('Production' = 0, 'Obsolete' = 4, 'Experimental' = 8, 'Beta' = 12,
        'PrivatePreview' = 16)""",
    "merge_tree_settings": """name String, value String, default String, changed UInt8, description String, min Nullable(String), max
        Nullable(String), disallowed_values Array(String), readonly UInt8, type String, is_obsolete UInt8,
        tier Enum8('Production' = 0, 'Obsolete' = 4, 'Experimental' = 8, 'Beta' = 12, 'PrivatePreview' = 16)""",
    "functions": """name String, is_aggregate UInt8, case_insensitive UInt8, alias_to String, create_query String, origin
        Enum8('System' = 0, 'SQLUserDefined' = 1, 'ExecutableUserDefined' = 2, 'WasmUserDefined' = 3),
        description String, syntax String, arguments String, parameters String, returned_value String,
        examples String, introduced_in String, categories String, deterministic Nullable(UInt8), higher_order
        Nullable(UInt8)""",
    "storage_policies": """policy_name String, volume_name String, volume_priority UInt64, disks Array(String), volume_type Enum8('JBOD'
        = 0, 'SINGLE_DISK' = 1, 'UNKNOWN' = 2), max_data_part_size UInt64, move_factor Float32,
        prefer_not_to_merge UInt8, perform_ttl_move_on_insert UInt8, load_balancing Enum8('ROUND_ROBIN' = 0,
        'LEAST_USED' = 1)""",
}
"""Names and types in ClickHouse's order, without ALIAS columns, by table. A column that a table does not
list among its own is empty in olapdb: docs/differences.md says why."""
