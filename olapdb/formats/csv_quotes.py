"""The quoted values of CSV: which bytes are within quotes, and what follows from that for some rows."""

from __future__ import annotations

import re

import numpy as np

from olapdb.native.csv import csv_shape
from olapdb.native.library import library
from olapdb.native.memory import empty
from olapdb.records import dataclass

_QUOTE, _NEWLINE, _RETURN = ord('"'), ord("\n"), ord("\r")
_BLANKS = (ord(" "), ord("\t"))


@dataclass(frozen=True)
class CsvShape:
    """Facts about the bytes of some rows of CSV."""

    end_of_rows: int
    """The number of bytes up to and including the last line feed outside quotes."""
    is_open: bool
    """Whether the closing quote of the last quoted value is missing."""
    text_behind_quotes: int | None
    """The position of the first closing quote behind which text follows instead of a delimiter or the end of the line; None
    without one."""
    has_blanks: bool
    """Whether a value has blanks around it that are not in its quotes."""


def shape_of(data: bytes, delimiter: str) -> CsvShape:
    """Return the facts about the bytes of some rows."""
    values = np.frombuffer(data, np.uint8)
    if library() is not None:
        return CsvShape(*csv_shape(values, delimiter))
    inside = inside_quotes(data, delimiter)
    feeds = np.flatnonzero((values == _NEWLINE) & ~inside)
    return CsvShape(
        int(feeds[-1]) + 1 if len(feeds) else 0,
        bool(len(inside) and inside[-1]),
        _text_behind_quotes(values, inside, delimiter),
        _has_blanks(values, inside, delimiter),
    )


def inside_quotes(data: bytes, delimiter: str) -> np.ndarray:
    """Return a mask of the bytes inside quoted values, the opening quote included, the closing one not. A quote
    within an unquoted value has no meaning. Of a quote that is written twice the first one may be outside."""
    values = np.frombuffer(data, np.uint8)
    if library() is not None:
        mask = empty(len(values), np.uint8)
        csv_shape(values, delimiter, mask)
        return mask.view(bool)
    quotes = values == _QUOTE
    inside = np.bitwise_xor.accumulate(quotes)
    opening = np.flatnonzero(quotes & inside)
    if not len(opening):
        return inside
    blank = np.isin(values, _BLANKS) & ~inside & (values != ord(delimiter))
    solid = np.maximum.accumulate(np.where(blank, -1, np.arange(len(values))))
    before = np.where(opening > 0, solid[opening - 1], -1)
    doubled = (opening > 0) & (values[opening - 1] == _QUOTE)
    if (doubled | (before < 0) | np.isin(values[before], _edges(delimiter))).all():
        return inside
    inside = np.zeros(len(values), bool)
    edge = re.escape(delimiter.encode())
    quoted = rb"(?:\A|(?<=[\n\r])|(?<=" + edge + rb'))[ \t]*("[^"]*(?:""[^"]*)*)(?:"|\Z)'
    for match in re.finditer(quoted, data):
        inside[match.start(1) : match.end(1)] = True
    return inside


def _edges(delimiter: str) -> tuple[int, ...]:
    """Return the bytes between which a value stands."""
    return (ord(delimiter), _NEWLINE, _RETURN)


def _text_behind_quotes(values: np.ndarray, inside: np.ndarray, delimiter: str) -> int | None:
    """Return the first closing quote behind which text follows; None without one."""
    closing = np.flatnonzero((values[1:] == _QUOTE) & ~inside[1:] & inside[:-1]) + 1
    edges = np.isin(values, [*_edges(delimiter), _QUOTE])
    blank = np.isin(values, _BLANKS) & (values != ord(delimiter))
    position = np.arange(len(values))
    solid = np.minimum.accumulate(np.where(blank, len(values), position)[::-1])[::-1]
    behind = np.append(solid, len(values))[closing + 1]
    junk = np.flatnonzero((behind < len(values)) & ~np.append(edges, True)[behind])
    return int(closing[junk[0]]) if len(junk) else None


def _has_blanks(values: np.ndarray, inside: np.ndarray, delimiter: str) -> bool:
    """Return whether a blank outside quotes is beside a delimiter, or at the start or end of a line."""
    blank = np.isin(values, _BLANKS) & (values != ord(delimiter)) & ~inside
    if not blank.any():
        return False
    edge = np.isin(values, _edges(delimiter)) & ~inside
    padded = np.concatenate(([True], edge, [True]))
    return bool((blank & (padded[:-2] | padded[2:])).any())
