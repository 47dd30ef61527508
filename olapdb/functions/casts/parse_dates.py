"""Parsing of texts as Date and Date32."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import CannotConvertType, CannotParse, CannotParseDate
from olapdb.functions.casts.numbers import conversion_error, first_bad
from olapdb.functions.kernels import calendar, columns, regexes
from olapdb.types.arrow_values import from_numpy, to_numpy

_DATE = r"^(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})$"
_DATE_AND_TIME = r"^(?P<y>\d{4})[-/.](?P<m>\d{2})[-/.](?P<d>\d{2})[ T]\d{2}:\d{2}:\d{2}(?:\.\d+)?$"


_TIME_OF_DAY = r"[ T].*[1-9]"


_SHORTEST = len("2024-1-5")


_PACKED = r"^(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})$"


_FORMS = (_DATE, _PACKED, _DATE_AND_TIME)


def parse_dates(
    array: pa.Array, target: types.Date | types.Date32, *, exact: bool = False
) -> pa.Array:
    """Parse dates: `2024-01-05`, `20240105`, or with a time `2024-01-05 01:02:03.5`, which is dropped.

    As in ClickHouse a day beyond the end of its month counts into the next, and a month beyond 12
    gives 1970-01-01. `exact` refuses both, times other than 00:00:00, and days out of range.
    """
    days = _existing_days(array)
    if days is None:
        days = _any_dates(array, target, exact)
    limits = (0, calendar.DATE_MAX) if isinstance(target, types.Date) else calendar.DATE32_RANGE
    clipped = np.clip(days, *limits)
    beyond = first_bad(clipped != days) if exact else None
    if beyond is not None:
        raise conversion_error(CannotConvertType, array, beyond, target, "it is out of range")
    return columns.from_values(clipped, target.arrow)


def _existing_days(array: pa.Array) -> np.ndarray | None:
    """Return days since 1970-01-01 of texts that all are YYYY-MM-DD and exist; else None.

    Arrow takes long over texts that it cannot parse, so those of another length are not tried."""
    if (np.diff(columns.offsets_of(array)) != len("2024-01-05")).any():
        return None
    try:
        return columns.numpy_values(array.cast(pa.date32()))
    except pa.ArrowInvalid:
        return None


def _any_dates(array: pa.Array, target: types.Date | types.Date32, exact: bool) -> np.ndarray:
    """Return days since 1970-01-01 of texts in every form that `parse_dates` accepts."""
    digits = fixed_digits(array, 10, (4, 7), "--")
    if digits is None:
        digits = fixed_digits(array, 19, (4, 7, 10, 13, 16), "-- ::")
    if digits is not None:
        year, month, day = (
            digits[:, :4] @ POWERS[4],
            digits[:, 5:7] @ POWERS[2],
            digits[:, 8:10] @ POWERS[2],
        )
    else:
        year, month, day = _scanned_dates(array, target)
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    days = calendar.days_from_civil(year, np.where(exists, month, 1), np.where(exists, day, 1))
    if exact:
        _refuse_no_days(array, target, exists & (calendar.civil_from_days(days)[2] == day))
    return np.where(exists, days, 0)


def _refuse_no_days(array: pa.Array, target: types.DataType, exists: np.ndarray) -> None:
    """Raise CannotParseDate if any day is not in the calendar, by the mask `exists`.

    Raise CannotConvertType if any text has a time of day other than midnight."""
    bad = first_bad(~exists)
    if bad is not None:
        raise conversion_error(CannotParseDate, array, bad, target, "there is no such day")
    bad = first_bad(to_numpy(pc.match_substring_regex(array, _TIME_OF_DAY)))
    if bad is not None:
        raise conversion_error(CannotConvertType, array, bad, target, "a date has no time of day")


def _scanned_dates(
    array: pa.Array, target: types.DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return year, month and day of texts, found by regular expressions.

    Raises CannotParse or CannotParseDate about the first text, if any, that matches none."""
    dashed, packed, timed = (regexes.extracted(array, form) for form in _FORMS)
    is_date = pc.or_(pc.or_(dashed.is_valid(), packed.is_valid()), timed.is_valid())
    bad = first_bad(~to_numpy(is_date))
    if bad is not None:
        value = array[bad].as_py()
        kind = CannotParse if value[:4].isdigit() and len(value) > 8 else CannotParseDate
        raise conversion_error(kind, array, bad, target, "a date is written YYYY-MM-DD")
    return tuple(_group(name, dashed, packed, timed) for name in ("y", "m", "d"))  # type: ignore[return-value]


def _group(name: str, *matches: pa.Array) -> np.ndarray:
    """Return the group `name` of the first match that has it, as int64; 0 where the group is empty or missing."""
    merged = pc.coalesce(
        *(pc.struct_field(m, name) for m in matches if m.type.get_field_index(name) >= 0)
    )
    merged = pc.fill_null(pc.if_else(pc.equal(merged, ""), "0", merged), "0")
    return columns.numpy_values(merged.cast(pa.int64()))


POWERS = {n: 10 ** np.arange(n - 1, -1, -1, dtype=np.int64) for n in (2, 4)}


def fixed_digits(
    array: pa.Array, width: int, separators: tuple[int, ...], marks: str
) -> np.ndarray | None:
    """Return the digits of texts that all have one layout as uint8, shape (rows, width); None if any text differs.

    `marks` are the characters required at the positions `separators`, where the digit is 0. Multiply the digits by
    POWERS to get numbers."""
    offsets, data = columns.bytes_of(array)
    if not len(array) or (np.diff(offsets) != width).any():
        return None
    matrix = data.reshape(len(array), width)
    for at, mark in zip(separators, marks, strict=True):
        if (matrix[:, at] != ord(mark)).any():
            return None
    digits = matrix - np.uint8(ord("0"))  # what is below "0" becomes large
    digits[:, list(separators)] = 0
    return None if (digits > 9).any() else digits


def look_like_dates(array: pa.Array) -> np.ndarray:
    """Return a mask that is False for texts whose length or first character shows that they are no date."""
    offsets, data = columns.bytes_of(array)
    plausible = np.diff(offsets) >= _SHORTEST
    plausible[plausible] = data[offsets[:-1][plausible]] - np.uint8(ord("0")) <= 9
    return plausible


def may_be_dates(array: pa.Array) -> np.ndarray:
    """Return a mask that is False for texts that surely are no date; others may still not be one."""
    plausible = look_like_dates(array)
    rows = np.flatnonzero(plausible)
    if len(rows):
        texts = array.take(from_numpy(rows))
        matches = [to_numpy(pc.match_substring_regex(texts, p)) for p in _FORMS]
        plausible[rows] = np.logical_or.reduce(matches)
    return plausible
