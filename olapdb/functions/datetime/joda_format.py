"""formatDateTimeInJodaSyntax: times as text by a Joda format such as `yyyy-MM-dd HH:mm:ss`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, ScalarCall
from olapdb.functions.datetime.components import date_rule, iso_week
from olapdb.functions.datetime.parse_format import JODA_TOKEN
from olapdb.functions.datetime.row_zones import by_row_zone
from olapdb.functions.datetime.zones import own_zone
from olapdb.functions.kernels import calendar, columns
from olapdb.types import STRING, DataType, Date, Date32

_Number = Callable[[np.ndarray], np.ndarray]
_HALF_DAY = 43_200


def _civil(at: int) -> _Number:
    """Return the function from wall clock seconds to the year (0), month (1) or day (2)."""
    return lambda seconds: calendar.civil_from_days(seconds // calendar.DAY)[at]


def _day_of_year(seconds: np.ndarray) -> np.ndarray:
    """Return the day of the year, from 1."""
    days = seconds // calendar.DAY
    return np.asarray(days - calendar.year_start(calendar.civil_from_days(days)[0]) + 1)


_NUMBERS: dict[str, _Number] = {
    "C": lambda s: _civil(0)(s) // 100,
    "y": _civil(0),
    "Y": _civil(0),
    "x": lambda s: iso_week(s // calendar.DAY)[0],
    "w": lambda s: iso_week(s // calendar.DAY)[1],
    "e": lambda s: (s // calendar.DAY + 3) % 7 + 1,
    "D": _day_of_year,
    "M": _civil(1),
    "d": _civil(2),
    "K": lambda s: s % _HALF_DAY // 3_600,
    "h": lambda s: (s % _HALF_DAY // 3_600 + 11) % 12 + 1,
    "H": lambda s: s % calendar.DAY // 3_600,
    "k": lambda s: (s % calendar.DAY // 3_600 + 23) % 24 + 1,
    "m": lambda s: s % 3_600 // 60,
    "s": lambda s: s % 60,
}
"""The letters that are numbers, padded with zeros to as many digits as the letter is repeated."""


def _token(name: str, piece: str) -> Callable[[np.ndarray], Column]:
    """Return the function that formats one token of a format from wall clock seconds. Raises BadArguments and
    NotSupportedError for tokens that it does not have."""
    if piece.startswith("'"):
        if len(piece) < 2:
            raise BadArguments(f"{name}: no closing single quote for literal.")
        quoted = "'" if piece == "''" else piece[1:-1].replace("''", "'")
        return lambda seconds: pa.scalar(quoted)
    letter, count = piece[0], len(piece)
    if not letter.isalpha():
        return lambda seconds: pa.scalar(piece)
    if letter == "G":
        return lambda seconds: pa.scalar("AD" if count < 4 else "Anno Domini")
    words = {"a": "%p", "E": "%a" if count < 4 else "%A"}
    if letter == "M" and count > 2:
        words["M"] = "%b" if count == 3 else "%B"
    if letter in words:
        return lambda seconds: _strftime(seconds, words[letter])
    if letter not in _NUMBERS:
        raise NotSupportedError(
            f"{name} does not know the format {piece}.",
            hint=f"It knows {' '.join(sorted((*_NUMBERS, 'a', 'E', 'G', 'S')))}.",
        )
    number = _NUMBERS[letter]
    if letter in ("y", "Y") and count == 2:
        return lambda seconds: _padded(number(seconds) % 100, 2)
    return lambda seconds: _padded(number(seconds), count)


def _is_zone(piece: str) -> bool:
    """Return whether the token is the name of the zone: `zzzz`, or more letters."""
    return piece.startswith("zzzz")


def _fraction(array: pa.Array, data_type: DataType, digits: int) -> pa.Array:
    """Return the first `digits` digits of the seconds' fractions, 9 at most, as text; digits that the type lacks
    are 0."""
    ticks = calendar.ticks_per_second(data_type)
    fractions = columns.numpy_values(array).astype(np.int64) % ticks
    if isinstance(data_type, Date | Date32):
        fractions = np.zeros_like(fractions)
    kept = min(digits, 9)
    shown = fractions * (10**9 // ticks) // 10 ** (9 - kept)
    return _padded(shown, kept)


def _strftime(seconds: np.ndarray, form: str) -> pa.Array:
    """Format wall clock seconds by a strftime directive that gives a word: a month, a weekday, AM or PM."""
    return pc.strftime(columns.from_values(seconds, pa.timestamp("s")), format=form)


def _padded(numbers: np.ndarray, width: int) -> pa.Array:
    """Return numbers as texts of at least `width` digits, zero padded."""
    text = pa.array(numbers.astype(np.int64)).cast(pa.string())
    return pc.utf8_lpad(text, width=width, padding="0")


def _format(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve formatDateTimeInJodaSyntax(t, format[, zone]) of a date or time; the result is a String. Raises
    NotSupportedError for an unknown letter, BadArguments for a quote that is not closed, IllegalColumn or
    IllegalTypeOfArgument unless the format is a constant text."""
    template = scalar.constant_text(name, arguments, 1, "the format")
    pieces = [match[0] for match in JODA_TOKEN.finditer(template)]
    tokens = [
        None if piece.startswith("S") or _is_zone(piece) else _token(name, piece)
        for piece in pieces
    ]
    zone = scalar.constant_zone(name, arguments, 2) if len(arguments) > 2 else None

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return each timestamp's text: the texts of the format's tokens, joined."""
        seconds = calendar.local_seconds(arrays[0], call.types[0], call.environment.zone, zone)
        start = pa.repeat(pa.scalar(""), len(seconds))
        shown_zone = zone or own_zone(call.types[0]) or call.environment.zone
        texts = [
            token(seconds)
            if token is not None
            else pa.scalar(shown_zone)
            if _is_zone(piece)
            else _fraction(arrays[0], call.types[0], len(piece))
            for token, piece in zip(tokens, pieces, strict=True)
        ]
        return pc.binary_join_element_wise(start, *texts, "")

    return scalar.standard_call(name, arguments, date_rule(STRING), kernel)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("formatDateTimeInJodaSyntax", by_row_zone(_format, 2), count=(2, 3)),
)
