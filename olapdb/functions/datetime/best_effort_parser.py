"""Parsing of timestamps in all formats of ClickHouse's best effort parser.

https://clickhouse.com/docs/sql-reference/functions/type-conversion-functions#parsedatetimebesteffort

The meaning of a text depends on its shape: the text with each digit replaced by 0.  So all texts of
one shape are parsed at once, with the digits as columns of a matrix.  A digit's value matters only
if a number is 0, which means an absent part: rows that differ in this are parsed apart.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.datetime.best_effort_grammar import NAMES, TimestampLayout
from olapdb.functions.datetime.best_effort_parts import WRONG, Mixed, ParsedTimestamps, Wrong
from olapdb.functions.kernels import columns, regexes
from olapdb.types.arrow_values import from_numpy, scalar_of, to_numpy


def parse(array: pa.Array, zone: str, *, american: bool, subseconds: bool) -> ParsedTimestamps:
    """Parse texts without NULL; without an offset they are wall clock time in the zone.

    `american`: the month comes before the day.  `subseconds`: Unix seconds may have a fraction.
    A text that is no timestamp has the verdict WRONG; nothing is raised. So has a text without a year: its year
    would depend on the time of parsing."""
    rows = len(array)
    timestamps = ParsedTimestamps(
        np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.full(rows, WRONG, np.uint8)
    )
    if not rows:
        return timestamps
    offsets, data = columns.bytes_of(array)
    shapes = columns.strings_from(offsets, _SHAPES[data]).cast(pa.binary()).dictionary_encode()
    plausible = to_numpy(_may_be_timestamps(shapes.dictionary))
    codes = columns.numpy_values(shapes.indices)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(plausible)))
    for number in np.flatnonzero(plausible):
        positions = order[ends[number - 1] if number else 0 : ends[number]]
        shape = shapes.dictionary[int(number)].as_py()
        digits = _digits(offsets, data, positions, len(shape))
        _read_shape(
            TimestampLayout(shape, american, subseconds), digits, positions, zone, timestamps
        )
    return timestamps


_SHAPES = np.arange(256, dtype=np.uint8)
_SHAPES[ord("0") : ord("9") + 1] = ord("0")
_WORDS = "|".join(
    (
        *sorted((name.decode() for name in NAMES), key=len, reverse=True),
        *sorted({name[:3].decode() for name in NAMES}),
        "utc",
        "gmt",
        "msk",
        "msd",
        "am",
        "pm",
    )
)


def _may_be_timestamps(shapes: pa.Array) -> pa.Array:
    """Return False for shapes that surely are no timestamps, so that they are skipped.

    These are shapes without a year, and those with letters other than names, T, Z or a separator
    between the parts of a date.
    """
    text = columns.text(shapes)
    dated = pc.match_substring_regex(text, "00")
    valid = to_numpy(pc.string_is_ascii(text))
    ascii_only = pc.if_else(from_numpy(valid), text, scalar_of("", text.type))
    separated = regexes.replaced(ascii_only, "0000[A-Za-z]0", "0000 0")
    separated = regexes.replaced(separated, "(0000 00?)[A-Za-z]0", r"\1 0")
    words = regexes.replaced(separated, f"(?i:{_WORDS})", " ")
    has_other_letters = pc.match_substring_regex(words, "[A-SU-Ya-z]")
    return pc.and_(dated, pc.or_(from_numpy(~valid), pc.invert(has_other_letters)))


def _digits(offsets: np.ndarray, data: np.ndarray, positions: np.ndarray, width: int) -> np.ndarray:
    """Return the digits of texts of equal width, shape (rows, width).

    Other characters give other values.
    """
    first = int(offsets[positions[0]])
    if len(positions) * width == int(offsets[positions[-1]]) + width - first:
        characters = data[first : first + len(positions) * width].reshape(len(positions), width)
    else:
        characters = data[offsets[positions][:, None] + np.arange(width)]
    return characters - np.uint8(ord("0"))


def _read_shape(
    shape: TimestampLayout,
    digits: np.ndarray,
    positions: np.ndarray,
    zone: str,
    timestamps: ParsedTimestamps,
) -> None:
    """Parse the texts of one shape, and write them at `positions` of the result."""
    pending = [np.arange(len(positions))]
    while pending:
        rows = pending.pop()
        try:
            parts = shape.parts(digits if len(rows) == len(digits) else digits[rows])
        except Wrong:
            continue
        except Mixed as mixed:
            pending += [rows[mixed.given], rows[~mixed.given]]
            continue
        parts.fill(timestamps, positions[rows], zone)
