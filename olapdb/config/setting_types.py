"""ClickHouse's names of the types of settings, as system.settings and SHOW SETTINGS list them.

A setting that is not named here has the type of its definition: Bool, UInt64 or String.
"""

from __future__ import annotations

from collections.abc import Mapping

_SESSION: Mapping[str, str] = {
    "AggregateFunctionInputFormat": "aggregate_function_input_format",
    "AlterUpdateMode": "alter_update_mode",
    "ArrowCompression": "output_format_arrow_compression_method",
    "ArrowFlightDescriptorType": "arrow_flight_request_descriptor_type",
    "BoolAuto": """
        dictionary_lazy_load force_read_through_distributed_cache
        force_write_through_distributed_cache insert_select_deduplicate
        query_plan_join_swap_table
    """,
    "CapnProtoEnumComparingMode": "format_capn_proto_enum_comparising_mode",
    "Char": """
        format_csv_delimiter format_hive_text_rows_delimiter
        input_format_hive_text_collection_items_delimiter input_format_hive_text_fields_delimiter
        input_format_hive_text_map_keys_delimiter
    """,
    "DateTimeInputFormat": "cast_string_to_date_time_mode date_time_input_format",
    "DateTimeOutputFormat": "date_time_output_format",
    "DateTimeOverflowBehavior": "date_time_overflow_behavior",
    "DecorrelationJoinKind": "correlated_subqueries_default_join_kind",
    "DeduplicateInsertMode": "deduplicate_insert",
    "DeduplicateInsertSelectMode": "deduplicate_insert_select",
    "DefaultDatabaseEngine": "default_database_engine",
    "DefaultTableEngine": "default_table_engine default_temporary_table_engine",
    "Dialect": "dialect",
    "DistributedCacheLogMode": "distributed_cache_log_mode",
    "DistributedCachePoolBehaviourOnLimit": "distributed_cache_pool_behaviour_on_limit",
    "DistributedDDLOutputMode": "distributed_ddl_output_mode",
    "DistributedProductMode": "distributed_product_mode",
    "Double": """
        async_insert_busy_timeout_decrease_rate async_insert_busy_timeout_increase_rate
        join_runtime_bloom_filter_max_ratio_of_set_bits
        join_runtime_filter_pass_ratio_threshold_for_disabling limit
        max_bytes_ratio_before_external_distinct max_bytes_ratio_before_external_group_by
        max_bytes_ratio_before_external_join max_bytes_ratio_before_external_sort
        min_rows_ratio_for_hash_join_row_store offset
        output_format_orc_dictionary_key_size_threshold
        output_format_parquet_bloom_filter_bits_per_value page
        short_circuit_function_evaluation_for_nulls_threshold
    """,
    "EscapingRule": "format_custom_escaping_rule format_regexp_escaping_rule",
    "ExplainQueryPlanDefault": "explain_query_plan_default",
    "FileLikeEngineDefaultPartitionStrategy": "file_like_engine_default_partition_strategy",
    "FloatAuto": """
        evaluation_time opentelemetry_start_keeper_trace_probability promql_evaluation_time
    """,
    "GeoJSONUnsupportedGeometryHandling": "input_format_geojson_unsupported_geometry_handling",
    "GeoToH3ArgumentOrder": "geotoh3_argument_order",
    "IcebergMetadataLogLevel": "iceberg_metadata_log_level",
    "IdentifierQuotingRule": "show_create_query_identifier_quoting_rule",
    "IdentifierQuotingStyle": "show_create_query_identifier_quoting_style",
    "InputFormatColumnMatchingCaseSensitivity": "input_format_column_name_matching_mode",
    "Int32": """
        os_thread_priority os_threads_nice_value_materialized_view os_threads_nice_value_query
    """,
    "Int64": """
        annoy_index_search_k_nodes delta_lake_snapshot_end_version
        delta_lake_snapshot_start_version delta_lake_snapshot_version
        distributed_ddl_task_timeout http_zlib_compression_level
        iceberg_expire_default_max_ref_age_ms iceberg_expire_default_max_snapshot_age_ms
        iceberg_expire_default_min_snapshots_to_keep iceberg_snapshot_id iceberg_timestamp_ms
        ignore_cold_parts_seconds input_format_orc_row_batch_size max_limit_for_ann_queries
        max_partitions_to_read network_zstd_compression_level optimize_const_name_size
        paimon_target_snapshot_id pandas_analyze_sample prefer_warmed_unmerged_parts_seconds
        query_metric_log_interval read_priority replication_wait_for_inactive_replica_timeout
        zstd_window_log_max
    """,
    "IntervalOutputFormat": "interval_output_format",
    "JemallocProfileFormat": "jemalloc_profile_text_output_format",
    "JoinAlgorithm": "join_algorithm",
    "JoinOrderAlgorithm": "query_plan_optimize_join_order_algorithm",
    "JoinOrderConflictDetector": "query_plan_optimize_join_order_conflict_detector",
    "JoinStrictness": "join_default_strictness",
    "LightweightDeleteMode": "lightweight_delete_mode",
    "LightweightMutationProjectionMode": "lightweight_mutation_projection_mode",
    "LoadBalancing": "load_balancing",
    "LocalFSReadMethod": "storage_file_read_method",
    "LogQueriesType": "log_queries_min_type",
    "LogsLevel": "send_logs_level",
    "Map": "additional_table_filters http_response_headers",
    "MaxThreads": """
        max_alter_threads max_download_threads max_final_threads max_insert_threads
        max_parsing_threads max_threads
    """,
    "Milliseconds": """
        async_insert_busy_timeout_max_ms async_insert_busy_timeout_min_ms
        async_insert_busy_timeout_ms async_insert_cleanup_timeout_ms
        async_insert_poll_timeout_ms async_insert_stale_timeout_ms
        connect_timeout_with_failover_ms connect_timeout_with_failover_secure_ms
        connection_pool_max_wait_ms distributed_background_insert_max_sleep_time_ms
        distributed_background_insert_sleep_time_ms
        distributed_directory_monitor_max_sleep_time_ms
        distributed_directory_monitor_sleep_time_ms handshake_timeout_ms
        hedged_connection_timeout_ms insert_quorum_timeout kafka_max_wait_ms
        log_queries_min_query_duration_ms low_priority_query_wait_time_ms
        parallel_replicas_connect_timeout_ms query_cache_min_query_duration queue_max_wait_ms
        rabbitmq_max_wait_ms read_backoff_min_interval_between_events_ms
        read_backoff_min_latency_ms receive_data_timeout_ms replace_running_query_max_wait_ms
        sleep_after_receiving_query_ms sleep_in_send_data_ms sleep_in_send_tables_status_ms
        storage_system_stack_trace_pipe_read_timeout_ms stream_flush_interval_ms
        stream_poll_timeout_ms workload_admission_timeout_ms
    """,
    "MsgPackUUIDRepresentation": "output_format_msgpack_uuid_representation",
    "MySQLDataTypesSupport": "mysql_datatypes_support_level",
    "NonZeroUInt64": """
        ai_function_embedding_max_batch_size apply_patch_parts_join_cache_buckets
        azure_max_blocks_in_multipart_upload delta_lake_insert_max_bytes_in_data_file
        delta_lake_insert_max_rows_in_data_file distributed_plan_default_reader_bucket_count
        distributed_plan_default_shuffle_join_bucket_count filesystem_prefetch_max_memory_usage
        format_avro_schema_registry_connection_timeout
        format_avro_schema_registry_receive_timeout
        format_avro_schema_registry_retry_initial_backoff_ms
        format_avro_schema_registry_send_timeout grace_hash_join_initial_buckets
        grace_hash_join_max_buckets iceberg_delete_manifest_decode_concurrency
        iceberg_file_entries_queue_size iceberg_manifest_decode_concurrency
        input_format_parquet_max_block_size max_block_size max_insert_block_size
        max_insert_block_size_rows max_parallel_replicas max_read_buffer_size
        merge_tree_min_read_task_size min_chunk_bytes_for_parallel_parsing
        output_format_parquet_batch_size temporary_files_buffer_size
    """,
    "ORCCompression": "output_format_orc_compression_method",
    "ObjectStorageGranularityLevel": "cluster_table_function_split_granularity",
    "OverflowMode": """
        distinct_overflow_mode join_overflow_mode read_overflow_mode read_overflow_mode_leaf
        result_overflow_mode set_overflow_mode sort_overflow_mode timeout_overflow_mode
        timeout_overflow_mode_leaf transfer_overflow_mode
    """,
    "OverflowModeGroupBy": "group_by_overflow_mode",
    "ParallelReplicasCustomKeyFilterType": "parallel_replicas_custom_key_filter_type",
    "ParallelReplicasMode": "parallel_replicas_mode",
    "ParquetCompression": "output_format_parquet_compression_method",
    "ParquetVersion": "output_format_parquet_version",
    "QueryResultCacheNondeterministicFunctionHandling": "query_cache_nondeterministic_function_handling",
    "QueryResultCacheSystemTableHandling": "query_cache_system_table_handling",
    "S3UriStyle": "s3_uri_style",
    "SQLSecurityType": """
        default_materialized_view_sql_security default_normal_view_sql_security
    """,
    "SchemaInferenceMode": "schema_inference_mode",
    "Seconds": """
        connect_timeout distributed_replica_error_half_life drain_timeout
        http_connection_timeout http_headers_read_timeout http_receive_timeout http_send_timeout
        iceberg_compaction_data_cleanup iceberg_compaction_delay_bias
        live_view_heartbeat_interval lock_acquire_timeout max_estimated_execution_time
        max_execution_time max_execution_time_leaf periodic_live_view_refresh query_cache_ttl
        receive_timeout send_timeout tcp_keep_alive_timeout temporary_live_view_timeout
        timeout_before_checking_execution_speed wait_for_async_insert_timeout
        wait_for_window_view_fire_signal_timeout window_view_clean_interval
        window_view_heartbeat_interval
    """,
    "SetOperationMode": "except_default_mode intersect_default_mode union_default_mode",
    "ShortCircuitFunctionEvaluation": "short_circuit_function_evaluation",
    "SkipUnavailableShardsMode": "skip_unavailable_shards_mode",
    "SnappyMode": "snappy_mode",
    "StreamingHandleErrorMode": "handle_kafka_error_mode",
    "TextIndexPostingListApplyMode": "text_index_posting_list_apply_mode",
    "Timezone": "session_timezone",
    "TotalsMode": "totals_mode",
    "TransactionsWaitCSNMode": "wait_changes_become_visible_after_commit_mode",
    "UInt64": """
        output_format_pretty_display_footer_column_names
        output_format_pretty_max_value_width_apply_for_single_value
        select_sequential_consistency
    """,
    "UInt64Auto": """
        insert_quorum max_dynamic_subcolumns_in_json_type_parsing output_format_pretty_color
        output_format_pretty_glue_chunks schema_inference_make_columns_nullable
    """,
    "URI": "format_avro_schema_registry_url",
    "UniqueKeyProbeImplementation": "unique_key_probe_implementation",
    "UpdateParallelMode": "update_parallel_mode",
    "VectorSearchFilterStrategy": "vector_search_filter_strategy",
}
_MERGE_TREE: Mapping[str, str] = {
    "AlterColumnSecondaryIndexMode": "alter_column_secondary_index_mode",
    "CleanDeletedRows": "clean_deleted_rows",
    "DeduplicateMergeProjectionMode": "deduplicate_merge_projection_mode",
    "Int64": """
        max_partitions_to_read merge_with_recompression_ttl_timeout merge_with_ttl_timeout
        shared_merge_tree_memo_ids_remove_timeout_seconds
    """,
    "LightweightMutationProjectionMode": "lightweight_mutation_projection_mode",
    "MaxThreads": "max_part_loading_threads max_part_removal_threads",
    "MergeCoordinatorDistributionAlgorithm": "shared_merge_tree_merge_coordinator_distribution_algorithm",
    "MergeSelectorAlgorithm": "merge_selector_algorithm",
    "MergeTreeDynamicSerializationVersion": "dynamic_serialization_version",
    "MergeTreeMapBucketsStrategy": "map_buckets_strategy",
    "MergeTreeMapSerializationVersion": """
        map_serialization_version map_serialization_version_for_zero_level_parts
    """,
    "MergeTreeNullableSerializationVersion": "nullable_serialization_version",
    "MergeTreeObjectSerializationVersion": "object_serialization_version",
    "MergeTreeObjectSharedDataSerializationVersion": """
        object_shared_data_serialization_version
        object_shared_data_serialization_version_for_zero_level_parts
    """,
    "MergeTreePartMinMaxIndexColumns": "part_minmax_index_columns",
    "MergeTreePatchPartsVersion": "patch_parts_version",
    "MergeTreeSerializationInfoVersion": "serialization_info_version",
    "MergeTreeStringSerializationVersion": "string_serialization_version",
    "MergeTreeTextIndexSerializationVersion": "text_index_serialization_version",
    "Milliseconds": """
        async_block_ids_cache_update_wait_ms background_task_preferred_step_execution_time_ms
        deduplication_hashes_cache_update_wait_ms
        shared_merge_tree_merge_coordinator_election_check_period_ms
        shared_merge_tree_merge_coordinator_fetch_fresh_metadata_period_ms
        shared_merge_tree_merge_coordinator_max_period_ms
        shared_merge_tree_merge_coordinator_min_period_ms
        shared_merge_tree_merge_worker_fast_timeout_ms
        shared_merge_tree_merge_worker_regular_timeout_ms
        shared_merge_tree_update_replica_flags_delay_ms
        sleep_before_commit_local_part_in_replicated_table_ms
        wait_for_unique_parts_send_before_shutdown_ms
    """,
    "NonZeroUInt64": """
        adaptive_write_buffer_initial_size clone_replica_zookeeper_create_get_part_batch_size
        compact_parts_max_granules_to_buffer marks_compress_block_size max_buckets_in_map
        max_replicated_logs_to_keep merge_max_block_size
        object_shared_data_buckets_for_compact_part object_shared_data_buckets_for_wide_part
        object_shared_data_target_chunk_rows primary_key_compress_block_size
        text_index_dictionary_block_size text_index_max_memory_usage_before_flush
        text_index_max_processed_tokens_before_flush text_index_posting_list_block_size
    """,
    "SearchOrphanedPartsDisks": "search_orphaned_parts_disks",
    "Seconds": """
        execute_merges_on_single_replica_time_threshold initialization_retry_period
        lock_acquire_timeout_for_background_operations old_parts_lifetime
        prefer_fetch_merged_part_time_threshold refresh_parts_interval
        refresh_statistics_interval remote_fs_execute_merges_on_single_replica_time_threshold
        replicated_fetches_http_connection_timeout replicated_fetches_http_receive_timeout
        replicated_fetches_http_send_timeout shared_merge_tree_empty_partition_lifetime
        shared_merge_tree_inactive_replica_cutoff_seconds
        shared_merge_tree_replica_set_max_lifetime_seconds temporary_directories_lifetime
        try_fetch_recompressed_part_timeout zookeeper_session_expiration_check_period
    """,
    "TextIndexPostingListCodec": "text_index_posting_list_codec",
    "UInt32": "min_level_for_full_part_storage min_level_for_wide_part",
    "UInt64Auto": """
        merge_max_dynamic_subcolumns_in_compact_part merge_max_dynamic_subcolumns_in_wide_part
        shared_merge_tree_merge_coordinator_merges_prepare_count
    """,
}


def _by_name(names_by_type: Mapping[str, str]) -> Mapping[str, str]:
    """Return the ClickHouse type of each setting by the setting's name; the mapping given has the names, separated by
    blanks, by type."""
    return {name: kind for kind, names in names_by_type.items() for name in names.split()}


SESSION_TYPES = _by_name(_SESSION)
TABLE_TYPES = _by_name(_MERGE_TREE)
