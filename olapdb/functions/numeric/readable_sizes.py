"""Sizes from texts for people: parseReadableSize and its variants.

Each distinct text is parsed once; see `by_value`.
"""

from __future__ import annotations

import math
import re

from olapdb.errors import BadArguments, CannotParse, CannotParseNumber, DataError, ProgrammingError
from olapdb.functions.kernels.by_value import define_by_value, text_of
from olapdb.functions.scalar import ScalarDefinition, fixed_rule
from olapdb.types import UINT64, String, make_nullable

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LETTERS = "kmgtpe"
_UNITS: dict[str, int] = {
    "b": 1,
    **{f"{letter}b": 1000**at for at, letter in enumerate(_LETTERS, 1)},
    **{f"{letter}ib": 1024**at for at, letter in enumerate(_LETTERS, 1)},
}
"""The bytes of each unit, in lower case."""


def readable_size(value: bytes) -> int:
    """Return the bytes of a text such as 1.5 KiB, rounded up.

    Raises CannotParseNumber without a number, CannotParse for an unknown unit, and BadArguments
    for a size that is negative or has more than 64 bits."""
    text = text_of(value).lstrip(" \t\n\r\f\v")
    number = _NUMBER.match(text)
    if number is None:
        raise CannotParseNumber(f"parseReadableSize: {text!r} does not begin with a number.")
    size = float(number[0])
    if size < 0:
        raise BadArguments(f"parseReadableSize: negative sizes are not allowed ({text!r}).")
    unit = text[number.end() :].lstrip(" \t\n\r\f\v").lower()
    if unit not in _UNITS:
        raise CannotParse(f"parseReadableSize: unknown unit {unit!r}.")
    total = size * _UNITS[unit]
    if total >= 2.0**64:
        raise BadArguments(f"parseReadableSize: {text!r} is too large.")
    return math.ceil(total)


def _size_or_none(value: bytes) -> int | None:
    """Return the bytes that a text such as 1.5 KiB means; None for a text that is no size."""
    try:
        return readable_size(value)
    except (DataError, ProgrammingError):
        return None


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define_by_value("parseReadableSize", fixed_rule(UINT64, (String,), "a String"), readable_size),
    define_by_value(
        "parseReadableSizeOrNull",
        fixed_rule(make_nullable(UINT64), (String,), "a String"),
        _size_or_none,
    ),
    define_by_value(
        "parseReadableSizeOrZero",
        fixed_rule(UINT64, (String,), "a String"),
        lambda value: _size_or_none(value) or 0,
    ),
)
