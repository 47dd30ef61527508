"""Settings of ClickHouse that mean nothing in process: each group says why."""

from __future__ import annotations

from olapdb.config.definition import SettingDefinition, SettingValue
from olapdb.config.neutral_ways import WAYS
from olapdb.errors import SettingConstraintViolation

_NEUTRAL: tuple[tuple[str, SettingValue], ...] = (
    ("mutations_sync", 2),
    ("alter_sync", 2),
    ("insert_quorum", 0),
    ("log_queries", True),
    ("insert_distributed_sync", False),
    ("distributed_foreground_insert", False),
    ("select_sequential_consistency", True),
    ("replicated_deduplication_window", 0),
    ("database_replicated_enforce_synchronous_settings", False),
    ("async_insert", False),
    ("wait_for_async_insert", True),
    ("allow_nondeterministic_mutations", False),
    ("allow_experimental_lightweight_delete", True),
    ("enable_lightweight_delete", True),
    ("lightweight_deletes_sync", 2),
    # Names of columns come from the text, as ClickHouse's analyzer makes them.
    ("legacy_column_name_of_tuple_literal", False),
    # There are no users, no other servers, and no sessions of a server.
    ("max_memory_usage_for_user", 0),
    ("max_concurrent_queries_for_user", 0),
    ("max_temporary_data_on_disk_size_for_user", 0),
    ("max_network_bandwidth_for_user", 0),
    ("max_rows_to_transfer", 0),
    ("max_bytes_to_transfer", 0),
    ("use_query_cache", False),
    ("send_progress_in_http_headers", False),
    ("deduplicate_blocks_in_dependent_materialized_views", True),
    # A query that is used several times runs once anyway; a part always has its indexes.
    ("enable_materialized_cte", False),
    ("exclude_materialize_skip_indexes_on_insert", ""),
    # VALUES are read in one way, expressions among them or not.
    ("input_format_values_interpret_expressions", True),
)

_NEUTRAL_OF_VIEWS: tuple[tuple[str, SettingValue], ...] = (
    # The same whatever they say: plain views are always inlined, nothing has a definer, a target
    # cannot be dropped before its views, and there are no replicas.
    ("analyzer_inline_views", False),
    ("default_materialized_view_sql_security", "DEFINER"),
    ("default_normal_view_sql_security", "INVOKER"),
    ("default_view_definer", "CURRENT_USER"),
    ("ignore_materialized_views_with_dropped_target_table", False),
    ("materialized_views_squash_parallel_inserts", True),
    ("optimize_trivial_view_pushdown_to_distributed", True),
    ("os_threads_nice_value_materialized_view", 0),
    ("parallel_replicas_allow_materialized_views", True),
    ("parallel_replicas_allow_view_over_mergetree", False),
    ("use_async_executor_for_materialized_views", False),
    # ClickHouse has them still, without meaning.
    ("allow_experimental_alter_materialized_view_structure", True),
    ("allow_experimental_live_view", False),
    ("allow_experimental_refreshable_materialized_view", True),
    ("allow_experimental_window_view", False),
    ("live_view_heartbeat_interval", 15),
    ("max_live_view_insert_blocks_before_refresh", 64),
    ("periodic_live_view_refresh", 60),
    ("temporary_live_view_timeout", 1),
    ("throw_if_deduplication_in_dependent_materialized_views_enabled_with_async_insert", False),
    ("update_insert_deduplication_token_in_dependent_materialized_views", False),
    ("wait_for_window_view_fire_signal_timeout", 10),
    ("window_view_clean_interval", 60),
    ("window_view_heartbeat_interval", 15),
)

# What ClickHouse permits only on request: olapdb has it without the request, or refuses it by name.
_PERMISSIONS: tuple[tuple[str, SettingValue], ...] = (
    ("allow_correlated_subqueries", True),
    ("allow_create_index_without_type", False),
    ("allow_experimental_cleanup_old_data_files_compaction", False),
    ("allow_experimental_correlated_subqueries", True),
    ("allow_experimental_database_materialized_mysql", False),
    ("allow_experimental_database_replicated", True),
    ("allow_experimental_expire_snapshots", False),
    ("allow_experimental_full_text_index", True),
    ("allow_experimental_funnel_functions", False),
    ("allow_experimental_hash_functions", False),
    ("allow_experimental_join_right_table_sorting", False),
    ("allow_experimental_json_lazy_type_hints", False),
    ("allow_experimental_lightweight_update", True),
    ("allow_experimental_nlp_functions", False),
    ("allow_experimental_nullable_tuple_type", True),
    ("allow_experimental_object_storage_queue_hive_partitioning", False),
    ("allow_experimental_projection_optimization", True),
    ("allow_experimental_shared_merge_tree", True),
    ("allow_experimental_shared_set_join", True),
    ("allow_experimental_statistics", True),
    ("allow_experimental_time_series_table", False),
    ("allow_experimental_unique_key", False),
    ("allow_fuzz_query_functions", False),
    ("allow_introspection_functions", False),
    ("allow_minmax_index_for_json", False),
    ("allow_nonconst_timezone_arguments", False),
    ("allow_suspicious_codecs", False),
    ("allow_suspicious_indices", False),
    ("allow_suspicious_primary_key", False),
    ("allow_suspicious_ttl_expressions", False),
    ("enable_alp_codec", False),
    ("enable_full_text_index", True),
    ("enable_funnel_functions", False),
    ("enable_lightweight_update", True),
    ("enable_nullable_tuple_type", True),
    ("enable_quantized_codec", False),
    ("enable_sz3_codec", False),
    ("enable_time_series_table", False),
    ("enable_zxc_codec", False),
)

# What ClickHouse itself accepts without meaning.
_OBSOLETE: tuple[tuple[str, SettingValue], ...] = (
    ("allow_deprecated_snowflake_conversion_functions", False),
    ("allow_experimental_ai_functions", False),
    ("allow_experimental_alias_table_engine", False),
    ("allow_experimental_annoy_index", False),
    ("allow_experimental_bfloat16_type", True),
    ("allow_experimental_bigint_types", True),
    ("allow_experimental_codecs", False),
    ("allow_experimental_database_atomic", True),
    ("allow_experimental_dynamic_type", True),
    ("allow_experimental_geo_types", True),
    ("allow_experimental_inverted_index", False),
    ("allow_experimental_join_condition", False),
    ("allow_experimental_json_type", True),
    ("allow_experimental_map_type", True),
    ("allow_experimental_object_type", False),
    ("allow_experimental_qbit_type", True),
    ("allow_experimental_query_cache", True),
    ("allow_experimental_query_deduplication", False),
    ("allow_experimental_s3queue", True),
    ("allow_experimental_statistic", False),
    ("allow_experimental_text_index_lazy_apply", True),
    ("allow_experimental_undrop_table_query", True),
    ("allow_experimental_usearch_index", False),
    ("allow_experimental_variant_type", True),
    ("allow_experimental_vector_similarity_index", True),
    ("allow_experimental_window_functions", True),
    ("allow_not_comparable_types_in_comparison_functions", False),
    ("allow_not_comparable_types_in_order_by", False),
    ("annoy_index_search_k_nodes", -1),
    ("async_insert_cleanup_timeout_ms", 1000),
    ("async_insert_stale_timeout_ms", 0),
    ("azure_sdk_use_native_client", True),
    ("background_buffer_flush_schedule_pool_size", 16),
    ("background_common_pool_size", 8),
    ("background_distributed_schedule_pool_size", 16),
    ("background_fetches_pool_size", 8),
    ("background_merges_mutations_concurrency_ratio", 2.0),
    ("background_message_broker_schedule_pool_size", 16),
    ("background_move_pool_size", 8),
    ("background_pool_size", 16),
    ("background_schedule_pool_size", 128),
    ("backup_threads", 16),
    ("cloud_mode_database_engine", 1),
    ("database_replicated_ddl_output", True),
    ("default_database_engine", "Atomic"),
    ("describe_extend_object_types", False),
    ("distributed_cache_read_alignment", 0),
    ("distributed_cache_use_clients_cache_for_write", False),
    ("drain_timeout", 3),
    ("enable_debug_queries", False),
    ("enable_deflate_qpl_codec", False),
    ("enable_dynamic_type", True),
    ("enable_json_type", True),
    ("enable_qbit_type", True),
    ("enable_sharding_aggregator", False),
    ("enable_variant_type", True),
    ("enable_vector_similarity_index", True),
    ("enable_zstd_qat_codec", False),
    ("function_implementation", ""),
    ("handle_kafka_error_mode", "default"),
    ("http_max_chunk_size", 107374182400),
    ("iceberg_engine_ignore_schema_evolution", False),
    ("input_format_arrow_import_nested", False),
    ("input_format_arrow_use_native_reader", True),
    ("input_format_orc_import_nested", False),
    ("input_format_orc_use_fast_decoder", True),
    ("input_format_parquet_import_nested", False),
    ("input_format_parquet_use_native_reader", False),
    ("input_format_parquet_use_native_reader_v3", True),
    ("insert_select_deduplicate", "auto"),
    ("lightweight_mutation_projection_mode", "throw"),
    ("max_alter_threads", "auto(2)"),
    ("max_limit_for_ann_queries", -1),
    ("max_memory_usage_for_all_queries", 0),
    ("max_pipeline_depth", 0),
    ("max_remote_read_network_bandwidth_for_server", 0),
    ("max_remote_write_network_bandwidth_for_server", 0),
    ("max_replicated_fetches_network_bandwidth_for_server", 0),
    ("max_replicated_sends_network_bandwidth_for_server", 0),
    ("max_threads_for_annoy_index_creation", 4),
    ("merge_tree_clear_old_parts_interval_seconds", 1),
    ("merge_tree_clear_old_temporary_directories_interval_seconds", 60),
    ("min_external_sort_block_bytes", 104857600),
    ("multiple_joins_rewriter_version", 0),
    ("odbc_max_field_size", 0),
    ("optimize_duplicate_order_by_and_distinct", False),
    ("optimize_fuse_sum_count_avg", False),
    ("optimize_monotonous_functions_in_order_by", False),
    ("optimize_move_functions_out_of_any", False),
    ("output_format_enable_streaming", False),
    ("output_format_parquet_compliant_nested_types", True),
    ("output_format_parquet_unsupported_types_as_binary", False),
    ("output_format_parquet_use_custom_encoder", True),
    ("output_format_parquet_version", "2.latest"),
    ("parallel_replicas_custom_key_filter_type", "default"),
    ("parallel_replicas_min_number_of_granules_to_enable", 0),
    ("parallel_replicas_single_task_marks_count_multiplier", 2.0),
    ("partial_merge_join_optimizations", 0),
    ("query_cache_store_results_of_queries_with_nondeterministic_functions", False),
    ("query_condition_cache_store_conditions_as_plaintext", False),
    ("query_plan_optimize_primary_key", True),
    ("query_plan_optimize_projection", True),
    ("query_plan_use_logical_join_step", True),
    ("query_plan_use_new_logical_join_step", True),
    ("read_through_distributed_cache", False),
    ("replication_alter_columns_timeout", 60),
    ("restore_threads", 16),
    ("s3_disable_checksum", False),
    ("s3_max_redirects", 10),
    ("s3_retry_attempts", 500),
    ("s3_slow_all_threads_after_retryable_error", False),
    ("s3queue_allow_experimental_sharded_mode", False),
    ("text_index_use_bloom_filter", True),
    ("use_json_alias_for_old_object_type", False),
    ("use_local_cache_for_remote_storage", False),
    ("use_mysql_types_in_show_columns", False),
    ("use_projection_index_in_read_pools", False),
    ("use_text_index_dictionary_cache", False),
    ("write_through_distributed_cache", False),
)

_OTHER_OBSOLETE = """
allow_experimental_alter_materialized_view_structure
allow_experimental_analyzer
allow_experimental_database_materialized_mysql
allow_experimental_database_replicated
allow_experimental_live_view
allow_experimental_refreshable_materialized_view
allow_experimental_shared_merge_tree
allow_experimental_shared_set_join
allow_experimental_window_view
async_insert_threads
enable_analyzer
live_view_heartbeat_interval
max_entries_for_hash_table_stats
max_live_view_insert_blocks_before_refresh
periodic_live_view_refresh
temporary_live_view_timeout
throw_if_deduplication_in_dependent_materialized_views_enabled_with_async_insert
update_insert_deduplication_token_in_dependent_materialized_views
wait_for_window_view_fire_signal_timeout
window_view_clean_interval
window_view_heartbeat_interval
"""
"""Settings of other groups that ClickHouse calls obsolete too."""
OBSOLETE = frozenset((*(name for name, _ in _OBSOLETE), *_OTHER_OBSOLETE.split()))
"""The names of the settings that ClickHouse only accepts: `is_obsolete` of system.settings."""

# The format HiveText is refused by its own name.
_HIVE_TEXT: tuple[tuple[str, SettingValue], ...] = (
    ("format_hive_text_rows_delimiter", "\n"),
    ("input_format_hive_text_collection_items_delimiter", "\x02"),
    ("input_format_hive_text_fields_delimiter", "\x01"),
    ("input_format_hive_text_map_keys_delimiter", "\x03"),
)


def _definitions(
    settings: tuple[tuple[str, SettingValue], ...], description: str
) -> tuple[SettingDefinition, ...]:
    """Return a definition for each (name, default) pair of settings that are accepted without effect; `description` is
    that of each."""
    return tuple(
        SettingDefinition(name, default, description, neutral=True) for name, default in settings
    )


NEUTRAL_SETTINGS = (
    *_definitions((*_NEUTRAL, *_NEUTRAL_OF_VIEWS), "Accepted; it means nothing in process."),
    *_definitions(WAYS, "Accepted; it chooses among ClickHouse's ways to the same answer."),
    *_definitions(
        _PERMISSIONS, "Accepted; olapdb permits this without it, or refuses it whatever it says."
    ),
    *_definitions(_HIVE_TEXT, "Accepted; what it is about is refused by its own name."),
    *_definitions(_OBSOLETE, "Accepted; ClickHouse gives it no meaning either."),
    *(
        SettingDefinition(
            name,
            True,
            "Queries are analyzed in one way, as ClickHouse's analyzer does; it cannot be disabled.",
            only=(True,),
            neutral=True,
            refused_as=SettingConstraintViolation,
        )
        for name in ("allow_experimental_analyzer", "enable_analyzer")
    ),
)
