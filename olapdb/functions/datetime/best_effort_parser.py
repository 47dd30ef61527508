"""Texts of moments in any of the formats that ClickHouse's best effort parser knows.

https://clickhouse.com/docs/sql-reference/functions/type-conversion-functions#parsedatetimebesteffort

What a text means hangs on its shape: where its digits are, and what all else is.  So the texts of
one shape are read at once, the digits being columns of a matrix; a column decides only where some
of its numbers are 0, which stands for a part that was not given, and then the rows part.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.datetime.best_effort_grammar import NAMES, TimestampLayout
from olapdb.functions.datetime.best_effort_parts import WRONG, Mixed, Moments, Wrong
from olapdb.functions.kernels import columns


def read(array: pa.Array, zone: str, *, american: bool, subseconds: bool) -> Moments:
    """Of texts without NULL; without an offset they are wall clock time in the zone.

    `american`: the month comes before the day.  `subseconds`: Unix seconds may have a fraction.
    A text without a year is wrong: which one it is would depend on when it is read.
    """
    rows = len(array)
    made = Moments(
        np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.full(rows, WRONG, np.uint8)
    )
    if not rows:
        return made
    offsets, data = columns.bytes_of(array)
    shapes = columns.strings_from(offsets, _SHAPES[data]).cast(pa.binary()).dictionary_encode()
    likely = np.asarray(_may_be_moments(shapes.dictionary))
    codes = columns.numpy_values(shapes.indices)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(likely)))
    for at in np.flatnonzero(likely):
        positions = order[ends[at - 1] if at else 0 : ends[at]]
        shape = shapes.dictionary[int(at)].as_py()
        digits = _digits(offsets, data, positions, len(shape))
        _read_shape(TimestampLayout(shape, american, subseconds), digits, positions, zone, made)
    return made


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


def _may_be_moments(shapes: pa.Array) -> pa.Array:
    """False for shapes that surely are none, so that not each is looked at: those without a year,
    and those with letters that are of no word, T, Z or between the parts of a date."""
    text = columns.text(shapes)
    dated = pc.match_substring_regex(text, "00")
    valid = np.asarray(pc.string_is_ascii(text))
    plain = pc.if_else(pa.array(valid), text, "")
    apart = pc.replace_substring_regex(plain, "0000[A-Za-z]0", "0000 0")
    apart = pc.replace_substring_regex(apart, "(0000 00?)[A-Za-z]0", r"\1 0")
    words = pc.replace_substring_regex(apart, f"(?i:{_WORDS})", " ")
    strange = pc.match_substring_regex(words, "[A-SU-Ya-z]")
    return pc.and_(dated, pc.or_(pa.array(~valid), pc.invert(strange)))


def _digits(offsets: np.ndarray, data: np.ndarray, positions: np.ndarray, width: int) -> np.ndarray:
    """The bytes of texts of one width less those of 0, shape (rows, width)."""
    first = int(offsets[positions[0]])
    if len(positions) * width == int(offsets[positions[-1]]) + width - first:
        taken = data[first : first + len(positions) * width].reshape(len(positions), width)
    else:
        taken = data[offsets[positions][:, None] + np.arange(width)]
    return taken - np.uint8(ord("0"))


def _read_shape(
    shape: TimestampLayout, digits: np.ndarray, positions: np.ndarray, zone: str, made: Moments
) -> None:
    """Fills in the rows at the positions, parted where only some of a number are 0."""
    waiting = [np.arange(len(positions))]
    while waiting:
        rows = waiting.pop()
        try:
            parts = shape.parts(digits if len(rows) == len(digits) else digits[rows])
        except Wrong:
            continue
        except Mixed as mixed:
            waiting += [rows[mixed.given], rows[~mixed.given]]
            continue
        parts.fill(made, positions[rows], zone)
