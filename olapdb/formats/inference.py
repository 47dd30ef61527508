"""The types of columns that are known as texts only: which type all values of a column have."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.functions.json.index import build_index

_INTEGER = r"^[+-]?[0-9]{1,18}$"
_LONG_INTEGER = r"^[+-]?[0-9]+$"
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(inf|nan)$"
_BOOL = r"^(true|false|True|False|TRUE|FALSE)$"
_DATE = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
_CLOCK = r"([01]?[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_TIME = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[ T]" + _CLOCK
_ZONE = r"(Z|[+-][0-9]{2}:?[0-9]{2})?$"
_ARRAY = r"^\[.*\]$"
_NANOSECONDS = 9


def all_match(texts: pa.Array, pattern: str) -> bool:
    """Return whether every text matches the pattern; NULL does."""
    return pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py() is not False


def type_of_texts(texts: pa.Array, *, numbers: bool = True) -> types.DataType | None:
    """Return the type that all the texts have, None where all are NULL; it is not Nullable.

    `numbers`: also texts of numbers, Bool and arrays are such, as in TabSeparated and in CSV without
    quotes; strings of JSON are not."""
    if texts.null_count == len(texts):
        return None
    if numbers:
        if all_match(texts, _BOOL):
            return types.BOOL
        if all_match(texts, _INTEGER):
            return types.INT64
        if all_match(texts, _LONG_INTEGER):
            return _long_integer(texts)
        if all_match(texts, _FLOAT):
            return types.FLOAT64
        if all_match(texts, _ARRAY):
            return _array_type(texts)
    if all_match(texts, _DATE):
        return types.DATE
    if all_match(texts, _TIME + r"(\.[0-9]{1,9})?" + _ZONE) or _all_times(texts):
        whole = all_match(texts, _TIME + _ZONE) or all_match(texts, _DATE + "|" + _TIME + _ZONE)
        return types.DateTime(None) if whole else types.DateTime64(_NANOSECONDS, None)
    return types.STRING


def _all_times(texts: pa.Array) -> bool:
    """Return whether all texts are dates or times."""
    return all_match(texts, _DATE + "|" + _TIME + r"(\.[0-9]{1,9})?" + _ZONE)


def _long_integer(texts: pa.Array) -> types.DataType:
    """Return the type of integers of which some have more than 18 digits."""
    for candidate in (types.INT64, types.UINT64):
        try:
            pc.utf8_ltrim(texts, "+").cast(candidate.arrow)
        except pa.ArrowInvalid:
            continue
        return candidate
    return types.FLOAT64


def _array_type(texts: pa.Array) -> types.DataType:
    """Return the type of arrays of numbers or of strings, as SQL writes them; else String."""
    json = pc.replace_substring(pc.replace_substring(texts.drop_null(), "'", '"'), "NULL", "null")
    index = build_index(json)
    if not index.valid.all():
        return types.STRING
    inner = pc.replace_substring_regex(json, r"^\[|\]$", "")
    if pc.any(pc.match_substring_regex(inner, r"[\[\](){}]")).as_py():
        return types.STRING
    elements = pc.ascii_trim_whitespace(pc.list_flatten(pc.split_pattern(inner, ",")))
    elements = elements.filter(pc.and_(pc.not_equal(elements, ""), pc.not_equal(elements, "null")))
    if not len(elements):
        return types.Array(types.Nullable(types.STRING))
    quoted = all_match(elements, r'^".*"$')
    if not quoted and pc.any(pc.match_substring(elements, '"')).as_py():
        return types.STRING
    bare = pc.ascii_trim(elements, characters='"') if quoted else elements
    inner_type = type_of_texts(bare, numbers=not quoted)
    return types.Array(types.make_nullable(inner_type or types.STRING))
