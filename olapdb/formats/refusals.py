"""Names of errors of values that were read: which part of a text ClickHouse's reader stops at."""

from __future__ import annotations

from olapdb import errors
from olapdb.types import Array, DataType, plain

_BY_CHARACTER = ("CSV", "TabSeparated", "TSKV", "JSON", "PrettyJSON")
"""How the names of formats begin whose values are read character by character."""


def refusal_of(
    error: errors.DataError, format_name: str, column_type: DataType | None, is_last: bool
) -> errors.DataError:
    """Return the error for a bad value as ClickHouse's reader of the format names it. That reader takes the
    characters that fit a value, `12` of `12x`, and then misses a line end (last column of CSV), a delimiter or a
    quote. `is_last`: the column is the last one."""
    if type(error) is not errors.CannotParse or not format_name.startswith(_BY_CHARACTER):
        return error
    kind: type[errors.DataError] = errors.CannotParseInput
    if column_type is not None and isinstance(plain(column_type), Array):
        if "JSON" not in format_name:
            return error
        kind = errors.CannotReadArray
    elif is_last and format_name.startswith("CSV"):
        kind = errors.IncorrectData
    named = kind(error.message, hint=error.hint)
    named.row, named.column = error.row, error.column
    return named
