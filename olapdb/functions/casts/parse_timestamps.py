"""Texts as DateTime and DateTime64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import CannotParse, CannotParseDateTime, DataError, DecimalOverflow
from olapdb.functions.casts.numbers import first_bad, refuse
from olapdb.functions.casts.parse_dates import POWERS, fixed_digits
from olapdb.functions.datetime import best_effort_parser
from olapdb.functions.datetime.best_effort_grammar import FINE, LONGER, WRONG, exist
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.calendar import (
    DATETIME_MAX,
    DAY,
    cut_precision,
    days_from_civil,
    ticks_per_second,
    towards_zero,
    utc_of_text,
    zone_of,
)
from olapdb.types import DateTime, DateTime64

BEYOND = 3
"""A verdict: the moment is too far away for so many digits of a second."""

_INT64_MAX = 2**63 - 1
_BASIC_DATE = r"^(\d{4})\D(0[1-9]|1[0-2])\D(0[1-9]|[12]\d|3[01])"
_BASIC_CLOCK = r"[ T]\d\d:\d\d:\d\d"
_BASIC_UNIX = r"^\d{5,18}$"
_BASIC_UNIX64 = r"^-?\d{5,12}(?:\.\d*)?$|^\d{13}$"


@dataclass(frozen=True)
class _Read:
    """Values of a type, and how each text was read."""

    values: pa.Array
    verdicts: np.ndarray


def parse_datetimes(
    array: pa.Array, target: DateTime | DateTime64, zone: str, *, american: bool = False
) -> pa.Array:
    """Texts without NULL in any format that `best_effort` knows.

    Without an offset a text is wall clock time in the target's zone; the time may run over (25:00).
    CannotParseDateTime for what is no moment, CannotParse where more follows, DecimalOverflow where
    the target has not the room.
    """
    read = _read(array, target, zone, american)
    bad = first_bad(read.verdicts != FINE)
    if bad is not None:
        raise _refusal(int(read.verdicts[bad]), array, bad, target)
    return read.values


def moments_or_null(
    array: pa.Array, target: DateTime | DateTime64, zone: str, *, american: bool = False
) -> pa.Array:
    """As `parse_datetimes`, NULL for what it refuses."""
    read = _read(array, target, zone, american)
    return columns.from_values(
        columns.numpy_values(read.values), target.arrow, read.verdicts == FINE
    )


def basic_or_null(array: pa.Array, target: DateTime | DateTime64, zone: str) -> pa.Array:
    """What toDateTimeOrNull reads: `2024-01-05`, `2024-01-05 06:07:08`, Unix seconds; for DateTime64
    fractions too."""
    finer = isinstance(target, DateTime64)
    clock = _BASIC_CLOCK + (r"(?:\.\d+)?" if finer else "")
    like = np.asarray(pc.match_substring_regex(array, f"{_BASIC_DATE}(?:{clock})?$"))
    texts = pc.replace_substring_regex(array.filter(pa.array(like)), _BASIC_DATE, r"\1-\2-\3")
    dated = columns.scatter(moments_or_null(texts, target, zone), like)
    unix = np.asarray(pc.match_substring_regex(array, _BASIC_UNIX64 if finer else _BASIC_UNIX))
    if not unix.any():
        return dated
    return pc.coalesce(dated, columns.scatter(_unix(array.filter(pa.array(unix)), target), unix))


def _unix(array: pa.Array, target: DateTime | DateTime64) -> pa.Array:
    """Numbers of seconds, of 13 digits: of milliseconds."""
    parts = pc.extract_regex(array, r"^(?P<whole>-?\d+)(?:\.(?P<fraction>\d*))?$")
    whole, fraction = (pc.struct_field(parts, one) for one in ("whole", "fraction"))
    longer = np.asarray(pc.equal(pc.binary_length(whole), 13)) & isinstance(target, DateTime64)
    longer &= ~np.asarray(pc.starts_with(whole, "-"))
    seconds = columns.numpy_values(whole.cast(pa.int64()))
    padded = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, 0, 9), width=9, padding="0")
    nanoseconds = columns.numpy_values(padded.cast(pa.int64())) * np.where(seconds < 0, -1, 1)
    nanoseconds = np.where(longer, seconds % 1_000 * 1_000_000, nanoseconds)
    read = _made(
        np.where(longer, seconds // 1_000, seconds),
        nanoseconds,
        np.full(len(array), FINE, np.uint8),
        target,
    )
    return columns.from_values(
        columns.numpy_values(read.values), target.arrow, read.verdicts == FINE
    )


def _refusal(verdict: int, array: pa.Array, row: int, target: DateTime | DateTime64) -> DataError:
    if verdict == BEYOND:
        return refuse(DecimalOverflow, array, row, target, "it is too far from 1970")
    if verdict == LONGER:
        return refuse(CannotParse, array, row, target, "something follows the moment")
    return refuse(
        CannotParseDateTime,
        array,
        row,
        target,
        "it is no day and time with a year; write YYYY-MM-DD hh:mm:ss",
    )


def _read(array: pa.Array, target: DateTime | DateTime64, zone: str, american: bool) -> _Read:
    own = zone_of(target, zone)
    digits = fixed_digits(array, 19, (4, 7, 10, 13, 16), "-- ::")
    if digits is not None:
        two, year = POWERS[2], digits[:, :4] @ POWERS[4]
        month, day, hour, minute, second = (digits[:, a : a + 2] @ two for a in (5, 8, 11, 14, 17))
        if _all_given(year, month, day):
            exists = exist(year, month, day)
            days = days_from_civil(year, np.where(exists, month, 1), np.where(exists, day, 1))
            seconds = utc_of_text(days * DAY + hour * 3600 + minute * 60 + second, own)
            verdicts = np.where(exists, FINE, WRONG).astype(np.uint8)
            return _made(seconds, np.zeros(len(array), np.int64), verdicts, target)
    finer = isinstance(target, DateTime64)
    moments = best_effort_parser.read(array, own, american=american, subseconds=finer)
    return _made(moments.seconds, moments.nanoseconds, moments.verdicts, target)


def _all_given(*parts: np.ndarray) -> bool:
    return all(bool(part.all()) for part in parts)


def _made(
    seconds: np.ndarray,
    nanoseconds: np.ndarray,
    verdicts: np.ndarray,
    target: DateTime | DateTime64,
) -> _Read:
    if isinstance(target, DateTime):
        return _Read(columns.from_values(np.clip(seconds, 0, DATETIME_MAX), target.arrow), verdicts)
    ticks = ticks_per_second(target)
    limit = _INT64_MAX // ticks - 1
    beyond = (np.abs(seconds) > limit) & (verdicts == FINE)
    scaled = np.clip(seconds, -limit, limit) * ticks + towards_zero(
        nanoseconds, 1_000_000_000 // ticks
    )
    values = columns.from_values(cut_precision(scaled, target), target.arrow)
    return _Read(values, np.where(beyond, BEYOND, verdicts) if beyond.any() else verdicts)
