"""The settings that change what a scalar function or a CAST means; see functions/settings.py."""

from __future__ import annotations

from olapdb.config.definition import SettingDefinition

FUNCTION_DEFINITIONS = (
    SettingDefinition(
        "allow_custom_error_code_in_throwif",
        False,
        "The third argument of throwIf is the code of its error.",
    ),
    SettingDefinition(
        "regexp_max_matches_per_row",
        1000,
        "More matches of extractAllGroupsHorizontal in a row are an error.",
        minimum=0,
    ),
    SettingDefinition(
        "function_date_trunc_return_type_behavior",
        0,
        "1: dateTrunc of a Date32 or DateTime64 is a Date or a DateTime, as of a Date or DateTime.",
        only=(0, 1),
    ),
    SettingDefinition("h3togeo_lon_lat_result_order", False, "h3ToGeo is (longitude, latitude)."),
    SettingDefinition(
        "geotoh3_argument_order",
        "lat_lon",
        "The order of the degrees that geoToH3 takes: lat_lon or lon_lat.",
        only=("lat_lon", "lon_lat"),
    ),
    SettingDefinition(
        "validate_polygons",
        True,
        "pointInPolygon refuses a constant polygon that crosses itself or is no area.",
    ),
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
        "cast_string_to_variant_use_inference",
        True,
        "CAST of a text to a Variant is a value of the type that reads the text, else a String.",
    ),
    SettingDefinition(
        "cast_string_to_dynamic_use_inference",
        False,
        "CAST of a text to a Dynamic is a number, a Bool, a date, a time or an array where it is one.",
    ),
    SettingDefinition(
        "variant_throw_on_type_mismatch",
        True,
        "A function of a Variant fails at a value whose type it does not take; 0: NULL.",
    ),
    SettingDefinition(
        "dynamic_throw_on_type_mismatch",
        True,
        "A function of a Dynamic fails at a value whose type it does not take; 0: NULL.",
    ),
    SettingDefinition(
        "allow_hyperscan",
        True,
        "Off: multiMatchAny, multiFuzzyMatchAny and their kin are not allowed.",
    ),
    SettingDefinition(
        "max_hyperscan_regexp_length",
        0,
        "A longer pattern of multiMatchAny and its kin, in bytes, is an error; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "max_hyperscan_regexp_total_length",
        0,
        "Longer patterns of multiMatchAny and its kin together are an error; 0 means no limit.",
        minimum=0,
    ),
    SettingDefinition(
        "use_legacy_to_time", False, "toTime is toTimeWithFixedDate: the time on 1970-01-02."
    ),
)

INFERENCE_SETTINGS = (
    "input_format_try_infer_dates",
    "input_format_try_infer_datetimes",
    "input_format_json_read_bools_as_numbers",
    "schema_inference_make_columns_nullable",
)
"""Settings of formats that also change the types of paths in a JSON, wherever it is read."""
