"""What the setting `compatibility` says: the defaults that settings had in earlier versions of ClickHouse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from olapdb.errors import BadArguments

_CHANGES = """
26.9: allow_nullable_tuple_in_extracted_subcolumns=0 max_bytes_ratio_before_external_distinct=0
26.8: explain_syntax_single_record=0 input_format_parquet_spatial_filter_push_down=0
    input_format_read_datetime_number_as_raw_value=1 materialized_views_populate_atomically=0
    throw_on_hive_partitioning_resolution_failure=0
26.7: explain_query_plan_default=legacy output_format_arrow_use_native_writer=0
    output_format_csv_header_serialize_tuple_into_separate_columns=0 precise_float_parsing=0
    use_legacy_to_time=1 validate_group_by_all_key_types=0
26.6: allow_replace_partition_from_empty_source=1
    analyzer_compatibility_apply_final_to_all_joined_tables=1
    file_like_engine_default_partition_strategy=wildcard format_avro_schema_registry_max_retries=0
    function_base58_max_input_size=0
26.5: allow_rank_dense_rank_arguments=1 cast_string_to_date_time_mode=basic
    date_time_input_format=basic input_format_column_name_matching_mode=match_case
    max_bytes_ratio_before_external_join=0 recursive_cte_max_steps_in_type_inference=0
26.4: output_format_arrow_unsupported_types_as_binary=0
26.3: defer_partition_pruning_after_final=0
    type_json_allow_duplicated_key_with_literal_and_nested_object=0
26.2: deduplicate_insert=backward_compatible_choice enable_join_runtime_filters=0
    functions_h3_default_if_invalid=1 ignore_format_null_for_explain=0
    output_format_arrow_date_as_uint16=1
26.1: check_conversion_from_numbers_to_enum=0 deduplicate_insert_select=enable_even_for_bad_queries
    input_format_binary_max_type_complexity=0 type_json_use_partial_match_to_skip_paths_by_regexp=0
    use_variant_as_common_type=0 use_variant_default_implementation_for_comparisons=0
25.12: check_query_single_value_result=1 enable_positional_arguments_for_projections=1
    enable_time_time64_type=0 format_capn_proto_max_message_size=0
    output_format_pretty_named_tuples_as_json=0 query_plan_optimize_join_order_limit=1
25.11: allow_special_serialization_kinds_in_output_formats=0
    create_table_empty_primary_key_by_default=0 enable_positional_arguments_for_projections=1
    input_format_parquet_local_time_as_utc=0 output_format_parquet_write_checksums=0
25.10: allow_dynamic_type_in_join_keys=1 enable_positional_arguments_for_projections=1
    schema_inference_make_columns_nullable=1
25.8: analyzer_compatibility_allow_compound_identifiers_in_unflatten_nested=0
    input_format_json_infer_array_of_dynamic_from_array_of_different_types=0
    output_format_json_quote_64bit_integers=1 output_format_orc_compression_block_size=65536
    output_format_parquet_enum_as_byte_array=0
25.7: output_format_parquet_geometadata=0
25.6: count_matches_stop_at_empty_match=1 input_format_parquet_enable_json_parsing=0
25.5: enable_url_encoding=1 formatdatetime_e_with_space_padding=1 geotoh3_argument_order=lon_lat
    input_format_parquet_allow_geoparquet_parser=0 parsedatetime_e_requires_space_padding=1
25.4: allow_materialized_view_with_bad_select=1 allow_special_bool_values_inside_variant=1
    function_date_trunc_return_type_behavior=1
25.2: output_format_parquet_write_bloom_filter=0 output_format_pretty_max_rows=10000
25.1: formatdatetime_f_prints_scale_number_of_digits=1 h3togeo_lon_lat_result_order=1
    max_bytes_ratio_before_external_group_by=0 max_bytes_ratio_before_external_sort=0
    merge_table_max_tables_to_look_for_schema_inference=1 output_format_json_pretty_print=0
    output_format_pretty_fallback_to_vertical=0
    output_format_pretty_fallback_to_vertical_max_rows_per_chunk=0
    output_format_pretty_fallback_to_vertical_min_columns=0
    output_format_pretty_fallback_to_vertical_min_table_width=0
    output_format_pretty_max_column_name_width_cut_to=0
    output_format_pretty_max_column_name_width_min_chars_to_cut=0
    output_format_pretty_multiline_fields=0 use_hive_partitioning=0
24.12: least_greatest_legacy_null_behavior=1 output_format_parquet_date_as_uint16=1
    output_format_parquet_datetime_as_uint32=1
24.11: allow_suspicious_types_in_group_by=1 allow_suspicious_types_in_order_by=1
24.10: input_format_orc_dictionary_as_low_cardinality=0
24.8: input_format_json_max_depth=1000000 input_format_try_infer_datetimes_only_datetime64=1
24.7: output_format_parquet_write_page_index=0
24.6: output_format_pretty_display_footer_column_names=0
    output_format_pretty_display_footer_column_names_min_rows=0
24.5: allow_archive_path_syntax=0 allow_deprecated_error_prone_window_functions=1
24.4: input_format_hive_text_allow_variable_number_of_columns=0
    input_format_json_ignore_unnecessary_fields=0
24.3: default_table_engine=None function_locate_has_mysql_compatible_argument_order=0
    geo_distance_returns_float64_on_float64_arguments=0 output_format_arrow_string_as_string=0
    output_format_orc_compression_method=lz4 output_format_orc_string_as_string=0
    output_format_parquet_compression_method=lz4 output_format_parquet_string_as_string=0
    output_format_pretty_max_value_width_apply_for_single_value=1 output_format_pretty_row_numbers=0
24.2: allow_suspicious_variant_types=1 extract_key_value_pairs_max_pairs_per_row=0
    input_format_try_infer_exponent_floats=1
    output_format_pretty_single_large_number_tip_threshold=0
    validate_experimental_and_suspicious_types_inside_nested_types=0
24.1: function_visible_width_behavior=0 input_format_json_read_bools_as_strings=0
    output_format_arrow_use_signed_indexes_for_dictionary=0 output_format_pretty_color=1
    print_pretty_type_names=0
23.12: input_format_arrow_allow_missing_columns=0 input_format_orc_allow_missing_columns=0
    input_format_parquet_allow_missing_columns=0
23.11: parsedatetime_parse_without_leading_zeros=0
23.9: input_format_json_infer_incomplete_types_as_strings=0
    input_format_json_read_arrays_as_strings=0 input_format_json_read_numbers_as_strings=0
    input_format_json_try_infer_named_tuples_from_objects=0
    input_format_json_try_infer_numbers_from_strings=1
23.7: function_sleep_max_microseconds_per_block=0
23.5: input_format_parquet_preserve_order=1 use_with_fill_by_sorting_prefix=0
23.4: formatdatetime_f_prints_single_zero=1 formatdatetime_parsedatetime_m_is_month_name=0
23.3: input_format_json_ignore_unknown_keys_in_named_tuple=0
    input_format_native_allow_types_conversion=0 output_format_arrow_compression_method=none
    output_format_orc_compression_method=none output_format_parquet_compression_method=snappy
23.2: output_format_arrow_fixed_string_as_fixed_byte_array=0
    output_format_parquet_fixed_string_as_fixed_byte_array=0
23.1: input_format_csv_detect_header=0 input_format_custom_detect_header=0
    input_format_json_defaults_for_missing_elements_in_named_tuple=0
    input_format_json_read_objects_as_strings=0 input_format_tsv_detect_header=0
22.12: format_binary_max_string_size=0
22.11: use_structure_from_insertion_table_in_table_functions=0
22.9: force_grouping_standard_compatibility=0
22.7: enable_positional_arguments=0 format_csv_allow_single_quotes=1
22.6: input_format_skip_unknown_fields=0 output_format_json_named_tuples_as_objects=0
22.4: allow_settings_after_format_in_insert=1
22.3: cast_ipv4_ipv6_default_on_conversion_error=1
21.9: output_format_decimal_trailing_zeros=1
21.7: legacy_column_name_of_tuple_literal=1
21.2: enable_global_with_statement=0
21.1: input_format_null_as_default=0 optimize_on_insert=0
    use_compact_format_in_distributed_parts_names=0
20.10: format_regexp_escaping_rule=Escaped
20.7: show_table_uuid_in_table_create_query_if_not_nil=1
20.5: input_format_with_names_use_header=0
20.4: validate_polygons=0
19.14: any_join_distinct_right_table_keys=1
19.12: input_format_defaults_for_omitted_fields=0
19.5: max_partitions_per_insert_block=0
"""
"""By version, newest first: settings whose default the version changed, with the default before it."""


def known_version(text: str) -> None:
    """Raise BadArguments for a text that is no version, such as 24.8."""
    if text and re.fullmatch(r"[0-9]+(\.[0-9]+){0,3}", text) is None:
        raise BadArguments(
            f"Cannot parse ClickHouse version here: {text}.", hint="It is written 24.8."
        )


@lru_cache(maxsize=64)
def earlier_defaults(version: str) -> Mapping[str, str]:
    """Return the settings whose default was another one in a version, with that default."""
    wanted = _numbers(version)
    defaults: dict[str, str] = {}
    for block in re.split(r"^(?=\S)", _CHANGES.strip(), flags=re.MULTILINE):
        changed_in, _, pairs = block.partition(":")
        if not pairs or _numbers(changed_in) <= wanted:
            continue
        for pair in pairs.split():
            name, _, default = pair.partition("=")
            defaults[name] = default
    return defaults


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, the year and the month."""
    return tuple(int(part) for part in version.split(".")[:2])
