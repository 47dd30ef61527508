"""The settings that say what a query means, and which ways it may take to its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olapdb.config.definition import SettingDefinition
from olapdb.errors import SupportIsDisabled
from olapdb.lazy import LazyModule
from olapdb.types import known_zone_or_none

if TYPE_CHECKING:
    from olapdb.config import compatibility
else:
    compatibility = LazyModule("olapdb.config.compatibility")


def _check_version(text: str) -> None:
    """Raise BadArguments for a text that is no version of ClickHouse."""
    compatibility.known_version(text)


QUERY_DEFINITIONS = (
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
        "compatibility",
        "",
        "A version of ClickHouse, 24.8: settings that are not set have its defaults, as far as olapdb"
        " has them.",
        check=_check_version,
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
        "explain_syntax_single_record",
        True,
        "EXPLAIN SYNTAX returns one row; 0: a row for each line.",
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
        "use_with_fill_by_sorting_prefix",
        True,
        "WITH FILL fills the values of each prefix, which is the keys of ORDER BY before it.",
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
    SettingDefinition(
        "query_plan_convert_outer_join_to_inner_join",
        True,
        "Whether outer joins become inner ones, or ANTI joins, where conditions on the result allow it.",
    ),
    SettingDefinition(
        "query_plan_propagate_predicate_across_join",
        True,
        "Whether conditions on the keys of one side of an outer, SEMI or ANTI join filter the other side too.",
    ),
    SettingDefinition(
        "use_semi_joins",
        True,
        "Whether an inner join of which only the presence of partners counts makes no pairs.",
    ),
    SettingDefinition(
        "push_aggregates_below_joins",
        True,
        "Whether rows are grouped before they are joined where fewer rows are then joined.",
    ),
    SettingDefinition("optimizer", True, "Whether plans are optimized; for tests that compare."),
    SettingDefinition(
        "use_variant_as_common_type",
        True,
        "Values without a common type are a Variant (if, multiIf, coalesce, array, map, UNION); else an error.",
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
        "readonly",
        0,
        "1: statements that change something, and changes of settings, are refused; 2 or more:"
        " settings but this one may be changed.",
        minimum=0,
    ),
    SettingDefinition(
        "date_time_input_format",
        "best_effort",
        "How data have times: as parseDateTimeBestEffort reads them, …BestEffortUS, or YYYY-MM-DD hh:mm:ss"
        " and Unix seconds alone (basic).",
        only=("best_effort", "best_effort_us", "basic"),
    ),
)
"""The settings of SELECT, DESCRIBE and SHOW, and of a session."""
