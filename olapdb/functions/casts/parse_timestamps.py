"""Parsing of texts as DateTime and DateTime64."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import CannotParse, CannotParseDateTime, DataError, DecimalOverflow
from olapdb.functions.casts.numbers import conversion_error, first_bad
from olapdb.functions.casts.parse_dates import POWERS, fixed_digits
from olapdb.functions.datetime.best_effort_parts import FINE, LONGER, WRONG, exist
from olapdb.functions.kernels import columns, regexes
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
from olapdb.lazy import LazyModule
from olapdb.records import dataclass
from olapdb.types import DateTime, DateTime64
from olapdb.types.arrow_values import from_numpy, to_numpy

if TYPE_CHECKING:
    from olapdb.functions.datetime import best_effort_parser
else:
    best_effort_parser = LazyModule("olapdb.functions.datetime.best_effort_parser")

BEYOND = 3
"""A verdict: the timestamp is too far from 1970 for so many digits of a second."""

_INT64_MAX = 2**63 - 1
_BASIC_DATE = r"^(\d{4})\D(0[1-9]|1[0-2])\D(0[1-9]|[12]\d|3[01])"
_BASIC_CLOCK = r"[ T]\d\d:\d\d:\d\d"
_BASIC_UNIX = r"^\d{5,18}$"
_BASIC_UNIX64 = r"^-?\d{5,12}(?:\.\d*)?$|^\d{13}$"


@dataclass(frozen=True)
class _Parsed:
    """Parsed values, and a verdict for each text: FINE, WRONG (no timestamp), LONGER (text follows) or BEYOND (out
    of range)."""

    values: pa.Array
    verdicts: np.ndarray


def parse_datetimes(
    array: pa.Array, target: DateTime | DateTime64, zone: str, *, american: bool = False
) -> pa.Array:
    """Parse texts without NULL in any format of ClickHouse's best effort parser.

    A text without an offset is wall clock time in the target's zone; hours may exceed 23 (25:00).
    Raises CannotParseDateTime for a text that is no timestamp, CannotParse if more text follows
    one, DecimalOverflow if the target cannot hold it.
    """
    read = _parse(array, target, zone, american)
    bad = first_bad(read.verdicts != FINE)
    if bad is not None:
        raise _parse_error(int(read.verdicts[bad]), array, bad, target)
    return read.values


def timestamps_or_null(
    array: pa.Array, target: DateTime | DateTime64, zone: str, *, american: bool = False
) -> pa.Array:
    """Parse as `parse_datetimes`, with NULL for each text that it refuses."""
    read = _parse(array, target, zone, american)
    return columns.from_values(
        columns.numpy_values(read.values), target.arrow, read.verdicts == FINE
    )


def basic_timestamps_or_null(array: pa.Array, target: DateTime | DateTime64, zone: str) -> pa.Array:
    """Parse as toDateTimeOrNull: `2024-01-05`, `2024-01-05 06:07:08`, Unix seconds; else NULL.

    A DateTime64 also accepts fractions.
    """
    finer = isinstance(target, DateTime64)
    clock = _BASIC_CLOCK + (r"(?:\.\d+)?" if finer else "")
    plausible = to_numpy(pc.match_substring_regex(array, f"{_BASIC_DATE}(?:{clock})?$"))
    texts = regexes.replaced(array.filter(from_numpy(plausible)), _BASIC_DATE, r"\1-\2-\3")
    from_dates = columns.scatter(timestamps_or_null(texts, target, zone), plausible)
    is_unix = to_numpy(pc.match_substring_regex(array, _BASIC_UNIX64 if finer else _BASIC_UNIX))
    if not is_unix.any():
        return from_dates
    return pc.coalesce(
        from_dates, columns.scatter(_parse_unix(array.filter(from_numpy(is_unix)), target), is_unix)
    )


def basic_timestamps(array: pa.Array, target: DateTime | DateTime64, zone: str) -> pa.Array:
    """Parse as `basic_timestamps_or_null`. Raise CannotParse with its row for a text with more behind a
    timestamp, CannotParseDateTime for any other text."""
    timestamps = basic_timestamps_or_null(array, target, zone)
    if not timestamps.null_count:
        return timestamps
    row = int(np.argmin(to_numpy(timestamps.is_valid())))
    text = array[row].as_py()
    incomplete = re.fullmatch(r"\d{4}\D\d\d\D\d\d[ T].{0,7}", text) is not None
    begins = re.match(r"\d{4}-\d", text) is not None
    kind = CannotParse if begins and not incomplete else CannotParseDateTime
    raise kind(
        f"Cannot parse {text!r} as {target}.",
        hint="It is written YYYY-MM-DD hh:mm:ss; other forms need"
        " cast_string_to_date_time_mode = 'best_effort'.",
    ).at_row(row)


def _parse_unix(array: pa.Array, target: DateTime | DateTime64) -> pa.Array:
    """Return Unix seconds as timestamps of the target type; NULL where they do not fit a DateTime64.

    Each text has digits, with a sign or a fraction for a DateTime64; there, 13 digits are
    milliseconds. A DateTime is clipped to its range."""
    parts = regexes.extracted(array, r"^(?P<whole>-?\d+)(?:\.(?P<fraction>\d*))?$")
    whole, fraction = (pc.struct_field(parts, field) for field in ("whole", "fraction"))
    is_milliseconds = to_numpy(pc.equal(pc.binary_length(whole), 13)) & isinstance(
        target, DateTime64
    )
    is_milliseconds &= ~to_numpy(pc.starts_with(whole, "-"))
    seconds = columns.numpy_values(whole.cast(pa.int64()))
    padded = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, 0, 9), width=9, padding="0")
    nanoseconds = columns.numpy_values(padded.cast(pa.int64())) * np.where(seconds < 0, -1, 1)
    nanoseconds = np.where(is_milliseconds, seconds % 1_000 * 1_000_000, nanoseconds)
    parsed = _to_timestamps(
        np.where(is_milliseconds, seconds // 1_000, seconds),
        nanoseconds,
        np.full(len(array), FINE, np.uint8),
        target,
    )
    return columns.from_values(
        columns.numpy_values(parsed.values), target.arrow, parsed.verdicts == FINE
    )


def _parse_error(
    verdict: int, array: pa.Array, row: int, target: DateTime | DateTime64
) -> DataError:
    """Return the error about the text of `row`, whose verdict is WRONG, LONGER or BEYOND."""
    if verdict == BEYOND:
        return conversion_error(DecimalOverflow, array, row, target, "it is too far from 1970")
    if verdict == LONGER:
        return conversion_error(CannotParse, array, row, target, "something follows the moment")
    return conversion_error(
        CannotParseDateTime,
        array,
        row,
        target,
        "it is no day and time with a year; write YYYY-MM-DD hh:mm:ss",
    )


def _parse(array: pa.Array, target: DateTime | DateTime64, zone: str, american: bool) -> _Parsed:
    """Parse texts; those that all are YYYY-MM-DD hh:mm:ss take a fast path."""
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
            return _to_timestamps(seconds, np.zeros(len(array), np.int64), verdicts, target)
    subseconds = isinstance(target, DateTime64)
    parsed = best_effort_parser.parse(array, own, american=american, subseconds=subseconds)
    return _to_timestamps(parsed.seconds, parsed.nanoseconds, parsed.verdicts, target)


def _all_given(*parts: np.ndarray) -> bool:
    """Return whether no part is 0 in any row: the best effort parser takes a month or day of 0 as missing."""
    return all(bool(part.all()) for part in parts)


def _to_timestamps(
    seconds: np.ndarray,
    nanoseconds: np.ndarray,
    verdicts: np.ndarray,
    target: DateTime | DateTime64,
) -> _Parsed:
    """Return seconds and nanoseconds as timestamps of the target type; FINE verdicts become BEYOND where a DateTime64
    does not hold them.

    A DateTime is clipped to its range."""
    if isinstance(target, DateTime):
        return _Parsed(
            columns.from_values(np.clip(seconds, 0, DATETIME_MAX), target.arrow), verdicts
        )
    ticks = ticks_per_second(target)
    limit, most_ticks = divmod(_INT64_MAX, ticks)
    # Before 1970 too the digits are cut as they are written: a sum with the seconds would be cut the other way.
    fractions = cut_precision(towards_zero(nanoseconds, 1_000_000_000 // ticks), target)
    beyond = (
        (seconds > limit) | (seconds <= -limit) | ((seconds == limit) & (fractions > most_ticks))
    )
    beyond &= verdicts == FINE
    scaled = np.where(beyond, 0, np.clip(seconds, 1 - limit, limit) * ticks + fractions)
    values = columns.from_values(scaled, target.arrow)
    return _Parsed(values, np.where(beyond, BEYOND, verdicts) if beyond.any() else verdicts)
