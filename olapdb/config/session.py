"""The settings of queries and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from olapdb.config.definition import SettingDefinition, known_settings
from olapdb.config.fixed_settings import FIXED_AT_DEFAULT, OF_WHAT_IS_REFUSED, ONE_WAY
from olapdb.config.formats import FORMAT_SETTINGS
from olapdb.config.neutral import NEUTRAL_SETTINGS
from olapdb.config.server_settings import SERVER_SETTINGS
from olapdb.errors import SupportIsDisabled
from olapdb.lazy import LazyModule
from olapdb.types import known_zone_or_none

if TYPE_CHECKING:
    from olapdb.config import compatibility
else:
    compatibility = LazyModule("olapdb.config.compatibility")

_OF_FUNCTIONS = (
    SettingDefinition(
        "formatdatetime_e_with_space_padding", False, "%e of formatDateTime is two characters wide."
    ),
    SettingDefinition(
        "formatdatetime_f_prints_scale_number_of_digits",
        False,
        "%f of formatDateTime has the digits of the DateTime64, not six.",
    ),
    SettingDefinition(
        "formatdatetime_f_prints_single_zero",
        False,
        "%f of formatDateTime is 0 for a time without fractions, else the digits of its type.",
    ),
    SettingDefinition(
        "formatdatetime_format_without_leading_zeros",
        False,
        "%c, %k and %l of formatDateTime have no leading zeros.",
    ),
    SettingDefinition(
        "formatdatetime_parsedatetime_m_is_month_name",
        True,
        "%M of formatDateTime and parseDateTime is the month's name, else the minute.",
    ),
    SettingDefinition(
        "parsedatetime_e_requires_space_padding",
        False,
        "%e of parseDateTime takes two characters: a day below 10 has a space or a zero.",
    ),
    SettingDefinition(
        "parsedatetime_parse_without_leading_zeros",
        True,
        "%c, %k and %l of parseDateTime take one digit too.",
    ),
    SettingDefinition(
        "date_time_overflow_behavior",
        "ignore",
        "What a day or time beyond Date, DateTime or DateTime64 becomes: another one (ignore), the"
        " nearest one (saturate), or an error (throw).",
        only=("ignore", "saturate", "throw"),
    ),
    SettingDefinition(
        "cast_string_to_date_time_mode",
        "best_effort",
        "How CAST and toDateTime read texts: as parseDateTimeBestEffort, …BestEffortUS, or YYYY-MM-DD"
        " hh:mm:ss and Unix seconds alone (basic).",
        only=("best_effort", "best_effort_us", "basic"),
    ),
    SettingDefinition(
        "cast_ipv4_ipv6_default_on_conversion_error",
        False,
        "Texts that are no address are 0.0.0.0 and ::, not an error, in CAST, toIPv4 and toIPv6.",
    ),
    SettingDefinition(
        "enable_extended_results_for_datetime_functions",
        False,
        "toStartOfYear and its kin give Date32 for Date32 and DateTime64, toStartOfDay, toStartOfHour"
        " and theirs DateTime64.",
    ),
    SettingDefinition(
        "function_json_value_return_type_allow_nullable",
        False,
        "JSON_VALUE is NULL, not '', where there is no value.",
    ),
    SettingDefinition(
        "function_json_value_return_type_allow_complex",
        False,
        "JSON_VALUE returns objects and arrays as texts.",
    ),
    SettingDefinition(
        "splitby_max_substrings_includes_remaining_string",
        False,
        "The last of the pieces that splitBy… may return has all that remains.",
    ),
    SettingDefinition(
        "count_matches_stop_at_empty_match", False, "countMatches ends at the first empty match."
    ),
    SettingDefinition(
        "function_visible_width_behavior",
        1,
        "0: visibleWidth counts characters; 1: those of East Asia have two columns.",
        only=(0, 1),
    ),
    SettingDefinition(
        "function_range_max_elements_in_block",
        500_000_000,
        "More elements of the arrays of range in a block are an error.",
        minimum=0,
    ),
    SettingDefinition(
        "extract_key_value_pairs_max_pairs_per_row",
        1000,
        "More pairs of a row in extractKeyValuePairs are an error; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "function_sleep_max_microseconds_per_block",
        3_000_000,
        "A longer wait of sleep and sleepEachRow for a block is an error; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "use_legacy_to_time", False, "toTime is toTimeWithFixedDate: the time on 1970-01-02."
    ),
)
FUNCTION_SETTINGS = frozenset(definition.name for definition in _OF_FUNCTIONS)
"""The settings that change what a scalar function means; see functions/settings.py."""


def _external(operation: str, title: str) -> tuple[SettingDefinition, SettingDefinition]:
    """Return the settings that say when an operation spills to disk."""
    return (
        SettingDefinition(
            f"max_bytes_before_external_{operation}",
            0,
            f"Bytes that {title} may hold before it spills to disk; 0: the ratio alone decides.",
            minimum=0,
        ),
        SettingDefinition(
            f"max_bytes_ratio_before_external_{operation}",
            0.5,
            f"The same as a fraction of max_memory_usage; both 0: {title} never spills.",
            minimum=0,
            below=1.0,
        ),
    )


def _limits() -> tuple[SettingDefinition, ...]:
    """Return the settings whose excess is an error; 0 means no limit."""
    texts = {
        "max_result_bytes": "Bytes of a result.",
        "max_bytes_to_read": "Bytes that a query reads.",
        "max_rows_to_read_leaf": "Rows that a query reads.",
        "max_bytes_to_read_leaf": "Bytes that a query reads.",
        "max_columns_to_read": "Columns of a table that a query reads.",
        "max_rows_in_set": "Rows of the set of an IN.",
        "max_rows_in_distinct": "Distinct rows of a DISTINCT.",
        "max_rows_in_join": "Rows of a join's right side.",
        "max_rows_to_group_by": "Groups of a GROUP BY.",
        "max_rows_to_sort": "Rows that an ORDER BY without LIMIT sorts.",
        "max_bytes_in_set": "Bytes of the set of an IN.",
        "max_bytes_in_distinct": "Bytes of the rows that a DISTINCT returns.",
        "max_bytes_in_join": "Bytes of a join's right side.",
        "max_bytes_to_sort": "Bytes of the rows that an ORDER BY without LIMIT sorts.",
    }
    return tuple(
        SettingDefinition(name, 0, f"{text} More are an error; 0 means no limit.", minimum=0)
        for name, text in texts.items()
    )


SYNTAX_LIMITS = {
    "max_query_size": 262_144,
    "max_ast_depth": 1_000,
    "max_ast_elements": 50_000,
    "max_expanded_ast_elements": 500_000,
    "max_subquery_depth": 100,
}
"""The limits of a query's text and syntax tree, with ClickHouse's defaults."""


def _syntax_limits() -> tuple[SettingDefinition, ...]:
    """Return the limits of a query's text and syntax tree, which limit where they are set."""
    return tuple(
        SettingDefinition(
            name, default, "A query whose text or syntax tree is larger is an error.", minimum=0
        )
        for name, default in SYNTAX_LIMITS.items()
    )


def _overflow_modes() -> tuple[SettingDefinition, ...]:
    """Return the settings that say what happens past a limit: an answer without some of its rows is
    none here, so each mode fails."""
    names = ("distinct", "group_by", "join", "read", "set", "sort", "timeout")
    return tuple(
        SettingDefinition(
            name,
            "throw",
            "Past the limit a query fails in every mode: an answer without some of its rows is none.",
            only=("throw", "break", "any") if name.startswith("group") else ("throw", "break"),
        )
        for name in (*(f"{name}_overflow_mode" for name in names), "read_overflow_mode_leaf")
    )


def _check_version(text: str) -> None:
    """Raise BadArguments for a text that is no version of ClickHouse."""
    compatibility.known_version(text)


_DEFAULT_ENGINES = ("MergeTree", "ReplacingMergeTree", "Log", "StripeLog", "Memory", "None")

_DEFINED = (
    SettingDefinition(
        "max_insert_block_size",
        1_048_576,
        "Rows of a block: what one trigger firing sees.",
        minimum=1,
    ),
    SettingDefinition(
        "min_insert_block_size_rows",
        1_048_576,
        "Smaller blocks of one INSERT are joined up to this.",
        minimum=0,
    ),
    SettingDefinition(
        "min_insert_block_size_bytes",
        268_402_944,
        "Smaller blocks of one INSERT are joined up to this.",
        minimum=0,
    ),
    SettingDefinition("max_block_size", 65_409, "Rows of a batch inside a query.", minimum=1),
    SettingDefinition(
        "max_threads", 0, "Threads of a query; 0 means the number of cores.", minimum=0
    ),
    SettingDefinition(
        "max_memory_usage",
        0,
        "Bytes that a query may hold; 0 means half of the machine's.",
        minimum=0,
    ),
    *_external("group_by", "GROUP BY"),
    *_external("sort", "ORDER BY and window functions"),
    *_external("join", "JOIN"),
    *_external("distinct", "DISTINCT, EXCEPT, INTERSECT and LIMIT BY"),
    SettingDefinition(
        "max_temporary_data_on_disk_size_for_query",
        0,
        "Bytes that a query may have in temporary files at a time; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "min_free_disk_space_for_temporary_data",
        0,
        "Bytes of the disk that temporary files must leave free.",
        minimum=0,
    ),
    SettingDefinition(
        "temporary_files_codec",
        "LZ4",
        "Compression of temporary files.",
        only=("LZ4", "ZSTD", "NONE"),
    ),
    SettingDefinition(
        "tmp_path",
        "",
        "The folder of temporary files; '' is tmp in the warehouse, or the system's for a warehouse"
        " in memory or opened read-only.",
    ),
    SettingDefinition(
        "max_execution_time",
        0.0,
        "Seconds after which a query ends with TIMEOUT_EXCEEDED; 0 means never.",
    ),
    SettingDefinition(
        "max_result_rows", 0, "More rows in a result are an error; 0 means no limit.", minimum=0
    ),
    SettingDefinition(
        "max_rows_to_read", 0, "More rows read are an error; 0 means no limit.", minimum=0
    ),
    SettingDefinition(
        "join_use_nulls", False, "Rows without a partner get NULL, not default values."
    ),
    SettingDefinition(
        "window_use_nulls",
        False,
        "lag, lead and nth_value give NULL, not default values, where there is no row.",
    ),
    SettingDefinition(
        "enable_order_by_all",
        True,
        "ORDER BY ALL means every column of the SELECT, not one of the name.",
    ),
    SettingDefinition(
        "enable_unaligned_array_join",
        False,
        "ARRAY JOIN takes arrays of several lengths: the shorter ones get default values.",
    ),
    SettingDefinition("final", False, "Every table of a merging engine is read FINAL."),
    SettingDefinition(
        "do_not_merge_across_partitions_select_final",
        False,
        "FINAL combines rows of each partition apart.",
    ),
    SettingDefinition(
        "union_default_mode",
        "",
        "What a bare UNION means: ALL, DISTINCT, or '' (an error).",
        only=("", "ALL", "DISTINCT"),
    ),
    SettingDefinition(
        "except_default_mode", "ALL", "What a bare EXCEPT means.", only=("ALL", "DISTINCT")
    ),
    SettingDefinition(
        "intersect_default_mode", "ALL", "What a bare INTERSECT means.", only=("ALL", "DISTINCT")
    ),
    SettingDefinition(
        "data_type_default_nullable",
        False,
        "Columns of CREATE TABLE are Nullable unless said otherwise.",
    ),
    SettingDefinition(
        "enable_positional_arguments", True, "GROUP BY 1 and ORDER BY 1 mean the first column."
    ),
    SettingDefinition(
        "extremes", False, "Texts of results end with the least and greatest values of each column."
    ),
    SettingDefinition(
        "prefer_column_name_to_alias", False, "A column wins over an alias of the same name."
    ),
    SettingDefinition(
        "allow_deprecated_error_prone_window_functions",
        False,
        "neighbor, runningDifference and runningAccumulate may be called; they see one block.",
    ),
    SettingDefinition(
        "enable_time_series_aggregate_functions",
        False,
        "Aggregates named timeSeries… may be called; ClickHouse has them in private preview.",
    ),
    SettingDefinition(
        "aggregate_functions_null_for_empty", False, "Aggregates over nothing are NULL."
    ),
    SettingDefinition(
        "empty_result_for_aggregation_by_empty_set",
        False,
        "Aggregates without GROUP BY over nothing give no row.",
    ),
    SettingDefinition(
        "empty_result_for_aggregation_by_constant_keys_on_empty_set",
        True,
        "GROUP BY constants alone over nothing gives no row.",
    ),
    SettingDefinition(
        "join_default_strictness",
        "ALL",
        "What a join without ANY or ALL is; '' makes it an error.",
        only=("ALL", "ANY", ""),
    ),
    SettingDefinition(
        "ignore_data_skipping_indices",
        "",
        "Skip indexes, separated by commas, that SELECT does not use.",
    ),
    SettingDefinition(
        "result_overflow_mode",
        "throw",
        "Past max_result_rows or max_result_bytes: throw fails, break ends the result behind the"
        " batch that passes it.",
        only=("throw", "break"),
    ),
    SettingDefinition(
        "compatibility",
        "",
        "A version of ClickHouse, 24.8: settings that are not set have its defaults, as far as olapdb"
        " has them.",
        check=_check_version,
    ),
    *(
        SettingDefinition(
            f"{bound}_execution_speed{suffix}",
            0,
            f"{what} that a query reads a second: {said}. 0 means no limit.",
            minimum=0,
        )
        for bound, said in (("min", "fewer are an error"), ("max", "more make it wait"))
        for suffix, what in (("", "Rows"), ("_bytes", "Bytes"))
    ),
    SettingDefinition(
        "max_partitions_to_read",
        -1,
        "Partitions of a table that a query reads; more are an error. Below 1: no limit.",
    ),
    SettingDefinition(
        "throw_on_max_partitions_per_insert_block",
        True,
        "Whether more than max_partitions_per_insert_block is an error.",
    ),
    *_limits(),
    *_syntax_limits(),
    *_overflow_modes(),
    SettingDefinition(
        "default_table_engine",
        "MergeTree",
        "The engine of a CREATE TABLE that names none.",
        only=_DEFAULT_ENGINES,
    ),
    SettingDefinition(
        "default_temporary_table_engine",
        "Memory",
        "The engine of a CREATE TEMPORARY TABLE that names none.",
        only=_DEFAULT_ENGINES,
    ),
    SettingDefinition(
        "limit", 0, "Rows of a query's result, behind its LIMIT; 0 for all.", minimum=0
    ),
    SettingDefinition(
        "offset", 0, "Rows that are left out at the start of a query's result.", minimum=0
    ),
    SettingDefinition(
        "additional_table_filters",
        "{}",
        "Conditions of tables, by name or alias, beside those of the query: {'t': 'x > 1'}.",
    ),
    SettingDefinition(
        "additional_result_filter", "", "A condition of the query's result, over its columns."
    ),
    SettingDefinition(
        "enable_named_columns_in_function_tuple",
        False,
        "tuple(a, b) has the names of its arguments, if each has one of its own.",
    ),
    SettingDefinition(
        "function_locate_has_mysql_compatible_argument_order",
        True,
        "locate takes the text to find first, else the text to search.",
    ),
    *_OF_FUNCTIONS,
    SettingDefinition("transform_null_in", False, "NULL IN (NULL) is true."),
    SettingDefinition(
        "allow_python_functions",
        False,
        "CREATE FUNCTION … LANGUAGE python, and calls that run the code stored in the warehouse.",
    ),
    SettingDefinition("cast_keep_nullable", False, "CAST keeps Nullable."),
    SettingDefinition(
        "single_join_prefer_left_table",
        True,
        "A column that both sides of a join have is the left's, not an error.",
    ),
    SettingDefinition(
        "count_distinct_implementation",
        "uniqExact",
        "What count(DISTINCT x) is.",
        only=("uniqExact", "uniq", "uniqCombined", "uniqCombined64", "uniqHLL12"),
    ),
    SettingDefinition(
        "group_by_use_nulls",
        False,
        "Keys that are not in a row's grouping set are NULL instead of their type's default.",
    ),
    SettingDefinition(
        "dialect",
        "clickhouse",
        "The language of statements: ClickHouse's SQL alone.",
        only=("clickhouse",),
        refused_as=SupportIsDisabled,
    ),
    SettingDefinition(
        "allow_ddl",
        True,
        "Statements may define and change databases, tables and views; false cannot be taken back.",
    ),
    SettingDefinition(
        "use_with_fill_by_sorting_prefix",
        True,
        "WITH FILL fills the values of each prefix, which is the keys of ORDER BY before it.",
        only=(True,),
    ),
    SettingDefinition(
        "max_recursive_cte_evaluation_depth",
        1000,
        "More steps of a WITH RECURSIVE are an error.",
        minimum=0,
    ),
    SettingDefinition(
        "totals_mode",
        "after_having_exclusive",
        "Whether WITH TOTALS is about all groups (before_having) or about those that HAVING keeps.",
        only=(
            "before_having",
            "after_having_exclusive",
            "after_having_inclusive",
            "after_having_auto",
        ),
    ),
    SettingDefinition(
        "force_grouping_standard_compatibility",
        True,
        "grouping() is 1 where the key is not in the row's set, as in the standard; else 0.",
    ),
    SettingDefinition(
        "input_format_null_as_default",
        True,
        "An inserted NULL becomes a non-Nullable column's default.",
    ),
    SettingDefinition(
        "insert_null_as_default", True, "As input_format_null_as_default, for INSERT SELECT."
    ),
    SettingDefinition(
        "insert_allow_lossy_conversion",
        False,
        "Inserted values that a column cannot hold are converted as CAST does: integers wrap, fractions are cut, dates stop at their type's end; else they are an error.",
    ),
    SettingDefinition(
        "optimize_on_insert", True, "A block of a merging engine is combined before it is written."
    ),
    SettingDefinition(
        "insert_deduplication_token",
        "",
        "Names the whole INSERT; a second one with it does nothing.",
    ),
    SettingDefinition("insert_deduplicate", True, "Whether insert_deduplication_token is heeded."),
    SettingDefinition(
        "source_offsets",
        "",
        'Where the rows of an INSERT lie in their streams, as JSON: {"orders-0": [4711, 4730]}.',
    ),
    SettingDefinition(
        "materialized_views_ignore_errors",
        False,
        "A failing view leaves a gap, by name, instead of failing the INSERT.",
    ),
    SettingDefinition(
        "dimensions",
        "current",
        "Whether a change of a joined table makes what new views made with it stale.",
        only=("current", "at_insert"),
    ),
    SettingDefinition(
        "dimension_lookup_rows_max",
        50_000_000,
        "Rows of a view's source that a change of its dimension reads to find what is stale; beyond, all of it is.",
        minimum=0,
    ),
    SettingDefinition(
        "log_query_views",
        True,
        "Whether system.query_views_log shows the views that an INSERT fires.",
    ),
    SettingDefinition(
        "parallel_view_processing", False, "Views of one table in parallel; the result is the same."
    ),
    SettingDefinition(
        "max_partitions_per_insert_block",
        100,
        "More partitions in one block are an error; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "lock_acquire_timeout_ms", 30_000, "How long a commit waits for the catalog.", minimum=1
    ),
    SettingDefinition(
        "session_timezone",
        "",
        "The zone of times without one in queries and INSERTs; '' is the warehouse's.",
        check=known_zone_or_none,
    ),
    SettingDefinition(
        "snapshot",
        0,
        "The commit as of which a SELECT reads, see system.snapshots; 0 means the newest.",
        minimum=0,
    ),
    SettingDefinition(
        "optimize_use_projections",
        True,
        "Whether SELECT reads projections of parts in place of the parts where that is less.",
    ),
    SettingDefinition(
        "use_query_condition_cache",
        True,
        "Whether SELECT remembers which rows of a part a condition keeps, and takes what was remembered.",
    ),
    SettingDefinition(
        "use_skip_indexes", True, "Whether SELECT skips granules by the skip indexes."
    ),
    SettingDefinition(
        "query_plan_optimize_join_order_limit",
        10,
        "Relations, at most 12, up to which every order of inner joins is considered; 0 keeps the "
        "written order.",
        minimum=0,
    ),
    SettingDefinition(
        "enable_join_runtime_filters",
        True,
        "Whether the keys of a join's right side drop rows where its left side is read.",
    ),
    SettingDefinition(
        "share_common_subplans",
        True,
        "Whether a costly subplan (of a CTE, a view, a subquery) that a query has several times runs "
        "once.",
    ),
    SettingDefinition("optimizer", True, "Whether plans are optimized; for tests that compare."),
    SettingDefinition(
        "engine",
        "in_process",
        "Where SYSTEM BACKFILL, REPLAY, RECONCILE, ADOPT and REBUILD VIEW run: in_process or spark.",
        only=("in_process", "spark"),
    ),
    SettingDefinition(
        "backfill_threads",
        0,
        "Chunks computed at a time; 0 means the number of cores, at most 4.",
        minimum=0,
    ),
    SettingDefinition(
        "backfill_chunk_rows_max",
        16_777_216,
        "A backfill cuts a partition with more source rows into several chunks.",
        minimum=1,
    ),
    SettingDefinition(
        "backfill_chunk_bytes_max",
        1_073_741_824,
        "As backfill_chunk_rows_max, in uncompressed bytes; less where max_memory_usage is.",
        minimum=1,
    ),
    SettingDefinition(
        "backfill_staging",
        False,
        "A backfill publishes all of its chunks in one commit, when all are there.",
    ),
    SettingDefinition(
        "view_limits_mode",
        "throw",
        "What a view beyond a max_view_… setting does: throw fails the INSERT, warn says so.",
        only=("throw", "warn"),
    ),
    SettingDefinition(
        "max_view_milliseconds",
        0,
        "Time that one view may take of an INSERT; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "max_view_rows_expansion",
        0.0,
        "Rows that a view may make of each row of a block; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "max_view_parts",
        0,
        "Parts that one view may write in an INSERT; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "max_view_memory_usage",
        0,
        "Bytes that one view may hold while it makes a block; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "inline_bytes_max",
        262_144,
        "Smaller blocks are kept in the catalog until they are merged.",
        minimum=0,
    ),
    SettingDefinition(
        "materialize_ttl_after_modify", True, "MODIFY TTL removes at once what has expired by it."
    ),
    SettingDefinition(
        "retain",
        False,
        "DROP, DETACH and MOVE PARTITION are retention: what views made of the rows is frozen, not stale.",
    ),
    SettingDefinition(
        "discard_retained",
        False,
        "REPLAY, DELETE, TRUNCATE and DROP PARTITION may remove what was made of rows that left by retention.",
    ),
    SettingDefinition("allow_drop_detached", False, "Whether DROP DETACHED PARTITION is allowed."),
    SettingDefinition(
        "allow_replace_partition_from_empty_source",
        False,
        "REPLACE PARTITION from a table without the partition empties it, instead of failing.",
    ),
    SettingDefinition(
        "allow_suspicious_low_cardinality_types",
        False,
        "Columns may be LowCardinality of numbers, dates and times, which gains nothing.",
    ),
    SettingDefinition(
        "check_query_single_value_result",
        False,
        "CHECK TABLE gives one row, whether all parts passed.",
    ),
    SettingDefinition(
        "create_if_not_exists", False, "CREATE TABLE means CREATE TABLE IF NOT EXISTS."
    ),
    SettingDefinition(
        "use_variant_as_common_type",
        True,
        "Values without a common type are a Variant (if, multiIf, coalesce, array, map, UNION); else an error.",
    ),
    SettingDefinition(
        "allow_suspicious_variant_types",
        False,
        "A Variant may have types whose values one of them could hold, as UInt8 and UInt64.",
    ),
    SettingDefinition(
        "allow_suspicious_types_in_group_by", False, "GROUP BY takes keys of type Variant."
    ),
    SettingDefinition(
        "allow_suspicious_types_in_order_by", False, "ORDER BY takes keys of type Variant."
    ),
    SettingDefinition(
        "joined_subquery_requires_alias", True, "A joined subquery without an alias is an error."
    ),
    SettingDefinition(
        "least_greatest_legacy_null_behavior", False, "least and greatest are NULL if one is."
    ),
    SettingDefinition(
        "allow_suspicious_fixed_string_types",
        False,
        "Columns may be FixedString of more than 256 bytes.",
    ),
    SettingDefinition(
        "flatten_nested",
        True,
        "A column of type Nested is one array for each of its elements, else one of tuples.",
    ),
    SettingDefinition(
        "describe_include_virtual_columns",
        False,
        "DESCRIBE TABLE lists virtual columns too, marked is_virtual.",
    ),
    SettingDefinition(
        "print_pretty_type_names",
        True,
        "toTypeName and DESCRIBE show the elements of named tuples on lines of their own.",
        only=(True,),
    ),
    SettingDefinition("describe_compact_output", False, "DESCRIBE gives names and types only."),
    SettingDefinition("describe_include_subcolumns", False, "DESCRIBE lists subcolumns."),
    SettingDefinition(
        "asterisk_include_materialized_columns", False, "* stands for MATERIALIZED columns too."
    ),
    SettingDefinition(
        "asterisk_include_alias_columns",
        False,
        "* stands for ALIAS columns too, behind the others.",
    ),
    SettingDefinition(
        "force_primary_key",
        False,
        "A SELECT whose conditions cannot use a table's primary key is an error.",
    ),
    SettingDefinition(
        "force_index_by_date",
        False,
        "A SELECT whose conditions cannot use a table's partition key is an error.",
    ),
    SettingDefinition(
        "force_data_skipping_indices",
        "",
        "Skip indexes, separated by commas: a SELECT that does not use each is an error.",
    ),
    SettingDefinition(
        "stop_refreshable_materialized_views_on_startup",
        False,
        "SYSTEM STOP VIEWS suspends schedules, and is stored.",
        only=(False,),
    ),
    SettingDefinition(
        "allow_materialized_view_with_bad_select",
        False,
        "A view whose query does not bind would never fire: CREATE its tables first.",
        only=(False,),
    ),
    SettingDefinition(
        "materialized_views_populate_atomically",
        True,
        "POPULATE is a backfill of what was there before the view: no row is missed or doubled.",
        only=(True,),
    ),
    SettingDefinition(
        "min_insert_block_size_rows_for_materialized_views",
        0,
        "A view fires on the blocks of its source; min_insert_block_size_rows says how large they are.",
        only=(0,),
    ),
    SettingDefinition(
        "min_insert_block_size_bytes_for_materialized_views",
        0,
        "A view fires on the blocks of its source; min_insert_block_size_bytes says how large they are.",
        only=(0,),
    ),
    SettingDefinition(
        "wait_for_part_commit_in_dependent_materialized_views",
        False,
        "An INSERT and all that its views make are one commit: a view never reads it half done.",
        only=(False,),
    ),
    SettingDefinition(
        "readonly",
        0,
        "1: statements that change something, and changes of settings, are refused; 2: settings but"
        " this one may be changed.",
        only=(0, 1, 2),
    ),
    SettingDefinition(
        "date_time_input_format",
        "best_effort",
        "How data have times: as parseDateTimeBestEffort reads them, …BestEffortUS, or YYYY-MM-DD hh:mm:ss"
        " and Unix seconds alone (basic).",
        only=("best_effort", "best_effort_us", "basic"),
    ),
)

_OWN = {
    definition.name: definition for definition in (*_DEFINED, *FORMAT_SETTINGS, *NEUTRAL_SETTINGS)
}
_KNOWN = (
    *(
        SettingDefinition(name, default, "Accepted; it means nothing in process.", neutral=True)
        for name, default in known_settings(SERVER_SETTINGS)
    ),
    *(
        SettingDefinition(
            name, default, "Accepted; what it is about is refused by its own name.", neutral=True
        )
        for name, default in known_settings(OF_WHAT_IS_REFUSED)
    ),
    *(
        SettingDefinition(
            name, default, "Accepted; olapdb has one way, with the same rows.", neutral=True
        )
        for name, default in known_settings(ONE_WAY)
    ),
    *(
        SettingDefinition(
            name, default, "Another value would change answers, formats or limits.", only=(default,)
        )
        for name, default in known_settings(FIXED_AT_DEFAULT)
    ),
)
SESSION_SETTINGS: Mapping[str, SettingDefinition] = MappingProxyType(
    {definition.name: definition for definition in _KNOWN} | _OWN
)
"""The settings of queries and sessions by name."""
