"""Functions whose meaning depends on settings, and the calls with those that are not at their defaults.

Such a call has a name of its own, the function's followed by the settings: calls are equal by their
names, and a call that is resolved again keeps its meaning."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from olapdb.config import FUNCTION_SETTINGS, SESSION_SETTINGS

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
_READ_BY = MappingProxyType(
    {
        **dict.fromkeys(
            ("formatdatetime", "date_format", "fromunixtimestamp", "from_unixtime"), _OF_FORMATTING
        ),
        **dict.fromkeys(
            (
                *("parsedatetime", "parsedatetimeornull", "parsedatetimeorzero", "str_to_date"),
                *("parsedatetime64", "parsedatetime64ornull", "parsedatetime64orzero"),
            ),
            _OF_PARSING,
        ),
    }
)
"""The settings that a function reads, by its name in lower case; all are Bools."""


def name_with_settings(function: str, flag: Callable[[str], bool]) -> str:
    """Return the name of a call under settings, whose values `flag` returns."""
    read = _READ_BY.get(function.lower())
    if read is None:
        return function
    return " ".join(
        (function, *(name for name in read if flag(name) != SESSION_SETTINGS[name].default))
    )


def settings_in_name(name: str) -> tuple[str, frozenset[str]]:
    """Return the function's name in a call's, and the settings that are not at their defaults."""
    function, *changed = name.split(" ")
    if changed and FUNCTION_SETTINGS.issuperset(changed):
        return function, frozenset(changed)
    return name, frozenset()
