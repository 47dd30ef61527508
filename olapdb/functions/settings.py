"""Functions whose meaning depends on settings, and the calls with those that are not at their defaults.

Such a call has a name of its own, the function's followed by the settings: calls are equal by their
names, and a call that is resolved again keeps its meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from olapdb.config import FUNCTION_SETTINGS, SESSION_SETTINGS, SettingValue
from olapdb.config.function_settings import INFERENCE_SETTINGS
from olapdb.functions.base import Column, Environment, ScalarCall
from olapdb.types import DataType, Dynamic, Json, Variant, any_part, plain

_OF_FORMATTING = (
    "formatdatetime_e_with_space_padding",
    "formatdatetime_f_prints_scale_number_of_digits",
    "formatdatetime_f_prints_single_zero",
    "formatdatetime_format_without_leading_zeros",
    "formatdatetime_parsedatetime_m_is_month_name",
)
_OF_PARSING = (
    "formatdatetime_parsedatetime_m_is_month_name",
    "parsedatetime_e_requires_space_padding",
    "parsedatetime_parse_without_leading_zeros",
)
_OF_CASTS = (
    "date_time_overflow_behavior",
    "cast_string_to_date_time_mode",
    "cast_ipv4_ipv6_default_on_conversion_error",
)
_OF_ALL_CASTS = (*_OF_CASTS, "cast_string_to_variant_use_inference")
_ROUNDED = ("enable_extended_results_for_datetime_functions",)
_PIECES = ("splitby_max_substrings_includes_remaining_string",)


def _read_by() -> Mapping[str, tuple[str, ...]]:
    """Return the names of the settings that each function reads, by the function's name in lower case."""
    suffixes = ("", "ornull", "orzero", "ordefault")
    groups: tuple[tuple[tuple[str, ...], Iterable[str]], ...] = (
        (_OF_FORMATTING, ("formatdatetime", "date_format", "fromunixtimestamp", "from_unixtime")),
        (
            _OF_PARSING,
            (
                *("parsedatetime", "parsedatetimeornull", "parsedatetimeorzero", "str_to_date"),
                "to_unixtime",
                *("parsedatetime64", "parsedatetime64ornull", "parsedatetime64orzero"),
            ),
        ),
        (_OF_ALL_CASTS, ("cast", "accuratecast")),
        (
            _OF_CASTS,
            (
                *(f"todate{suffix}" for suffix in suffixes),
                *(f"todatetime{suffix}" for suffix in suffixes),
                *(f"todatetime64{suffix}" for suffix in suffixes),
                *("todate32", "toipv4", "toipv6"),
            ),
        ),
        (
            (*_OF_CASTS[:2], "cast_string_to_variant_use_inference"),
            ("accuratecastornull", "accuratecastordefault"),
        ),
        (("cast_string_to_date_time_mode",), ("tounixtimestamp",)),
        (
            ("cast_ipv4_ipv6_default_on_conversion_error",),
            ("ipv4stringtonum", "inet_aton", "ipv6stringtonum", "inet6_aton"),
        ),
        (
            _ROUNDED,
            (
                *("tostartofyear", "tostartofquarter", "tostartofmonth", "tostartofisoyear"),
                *("tomonday", "tolastdayofmonth", "last_day", "tostartofweek", "tolastdayofweek"),
                *("tostartofday", "tostartofhour", "tostartofminute", "tostartoffiveminutes"),
                *("tostartoffiveminute", "tostartoftenminutes", "tostartoffifteenminutes"),
                *("timeslot", "tostartofinterval", "date_bin", "time_bucket"),
            ),
        ),
        (
            (
                "function_json_value_return_type_allow_nullable",
                "function_json_value_return_type_allow_complex",
            ),
            ("json_value",),
        ),
        (
            _PIECES,
            (
                *("splitbychar", "splitbystring", "splitbyregexp", "splitbywhitespace"),
                *("splitbynonalpha", "alphatokens", "splitbyalpha"),
            ),
        ),
        (("count_matches_stop_at_empty_match",), ("countmatches", "countmatchescaseinsensitive")),
        (("function_visible_width_behavior",), ("visiblewidth",)),
        (
            ("allow_hyperscan", "max_hyperscan_regexp_length", "max_hyperscan_regexp_total_length"),
            (
                *("multimatchany", "multimatchanyindex", "multimatchallindices"),
                *("multifuzzymatchany", "multifuzzymatchanyindex", "multifuzzymatchallindices"),
            ),
        ),
        (("function_range_max_elements_in_block",), ("range",)),
        (("allow_custom_error_code_in_throwif",), ("throwif",)),
        (("regexp_max_matches_per_row",), ("extractallgroupshorizontal",)),
        (("function_date_trunc_return_type_behavior",), ("datetrunc", "date_trunc")),
        (("h3togeo_lon_lat_result_order",), ("h3togeo",)),
        (("geotoh3_argument_order",), ("geotoh3",)),
        (("validate_polygons",), ("pointinpolygon",)),
        (
            ("extract_key_value_pairs_max_pairs_per_row",),
            ("extractkeyvaluepairs", "extractkeyvaluepairswithescaping"),
        ),
        (("function_sleep_max_microseconds_per_block",), ("sleep", "sleepeachrow")),
    )
    return MappingProxyType({name: read for read, names in groups for name in names})


_READ_BY = _read_by()


_OF_MISMATCHES: tuple[tuple[type[DataType], str], ...] = (
    (Variant, "variant_throw_on_type_mismatch"),
    (Dynamic, "dynamic_throw_on_type_mismatch"),
)
"""Types whose values have several types, and the setting of functions that do not take one of these."""


_OF_TARGETS: tuple[tuple[type[DataType], tuple[str, ...]], ...] = (
    (Json, INFERENCE_SETTINGS),
    (Dynamic, ("cast_string_to_dynamic_use_inference",)),
)
"""Types, and the settings that a CAST to one of them reads."""


def name_with_settings(
    function: str,
    value: Callable[[str], SettingValue],
    arguments: Sequence[DataType] = (),
    target: DataType | None = None,
) -> str:
    """Return the name of a call under settings, whose values `value` returns. A Bool setting is written as its name,
    any other as `name=value`.

    `arguments` has the types of the call's arguments, `target` that of a CAST. A call at the defaults keeps its
    name."""
    read = _READ_BY.get(function.lower(), ())
    for part, names in _OF_TARGETS:
        if target is not None and any_part(target, (part,)):
            read = (*read, *names)
    for kind, setting in _OF_MISMATCHES:
        if any(isinstance(plain(argument), kind) for argument in arguments):
            read = (*read, setting)
    if not read:
        is_legacy = function == "toTime" and value("use_legacy_to_time")
        return "toTimeWithFixedDate" if is_legacy else function
    return " ".join((function, *changed_settings(read, value)))


def changed_settings(names: Iterable[str], value: Callable[[str], SettingValue]) -> tuple[str, ...]:
    """Return which of the settings `names` are not at their defaults, written as in the name of a call and in an
    Environment."""
    given = [(name, value(name)) for name in names]
    changed = [(name, value) for name, value in given if value != SESSION_SETTINGS[name].default]
    return tuple(name if isinstance(value, bool) else f"{name}={value}" for name, value in changed)


def settings_in_name(name: str) -> tuple[str, frozenset[str]]:
    """Split the name of a call: return the function's name, and the settings in it that are not at their defaults."""
    function, *changed = name.split(" ")
    if changed and FUNCTION_SETTINGS.issuperset(setting.partition("=")[0] for setting in changed):
        return function, frozenset(changed)
    return name, frozenset()


def under_settings(call: ScalarCall, name: str, changed: frozenset[str]) -> ScalarCall:
    """Return the call, named `name`, whose kernel finds the settings `changed` in its environment."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Run the kernel with the settings in its environment."""
        return call.kernel(values, rows, replace(environment, changed=changed))

    return replace(call, name=name, kernel=kernel, monotonic=False)
