"""Casts to and from Date, Date32, DateTime and DateTime64, and the clock's arithmetic under them.

Civil days after Howard Hinnant's "chrono-compatible low-level date algorithms".
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.config import tuning
from olapdb.errors import (
    CannotConvertType,
    CannotParse,
    CannotParseDate,
    DataError,
    DecimalOverflow,
)
from olapdb.functions.casts.numbers import first_bad, refuse
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.arrow_buffers import converted, empty

DAY = 86_400
DATE_MAX = 65_535
DATETIME_MAX = 4_294_967_295
_UNIT_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DATE32_RANGE = (-719_162, 2_932_896)
"""Days from 0001-01-01 to 9999-12-31, which Python's dates hold."""
_SECONDS64_RANGE = (DATE32_RANGE[0] * DAY, (DATE32_RANGE[1] + 1) * DAY - 1)
_INT64_MAX = 2**63 - 1
Timed = types.Date | types.Date32 | types.DateTime | types.DateTime64


def days_from_civil(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Days since 1970-01-01; `day` may run over the end of its month."""
    year = year.astype(np.int64) - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return np.asarray(
        era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    )


def civil_from_days(days: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(year, month, day) of days since 1970-01-01.

    Those of a Date's range are looked up; of others that of their span, which a column has far more
    rows than."""
    if not days.size:
        return _civil_from_days(days)
    first, last = int(days.min()), int(days.max())
    if first >= 0 and last <= DATE_MAX:
        return _looked_up(_calendar(), days)
    if last - first < days.size and days.size > tuning.CALENDAR_ROWS_MIN:
        position = np.subtract(days, first, out=empty(days.size, np.int64))
        return _looked_up(_civil_from_days(np.arange(first, last + 1)), position)
    return _civil_from_days(days)


@cache
def _calendar() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _civil_from_days(np.arange(DATE_MAX + 1))


def _looked_up(
    calendar: tuple[np.ndarray, np.ndarray, np.ndarray], position: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    year, month, day = (
        part.take(position, out=empty(position.size, part.dtype), mode="clip") for part in calendar
    )
    return year, month, day


def _civil_from_days(days: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Days from Civil, backwards: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"."""
    shifted = days.astype(np.int64) + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = np.where(shifted_month < 10, shifted_month + 3, shifted_month - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def ticks_per_second(data_type: types.DataType) -> int:
    """Ticks of the Arrow unit in a second."""
    return _UNIT_TICKS[data_type.unit] if isinstance(data_type, types.DateTime64) else 1


def zone_of(data_type: types.DataType, warehouse_zone: str) -> str:
    own = getattr(data_type, "zone", None)
    return own if isinstance(own, str) else warehouse_zone


def local_from_utc(seconds: np.ndarray, zone: str) -> np.ndarray:
    """Wall clock seconds of instants."""
    if zone in ("UTC", "Etc/UTC"):
        return seconds
    zoned = columns.from_values(seconds, pa.timestamp("s", tz=zone))
    return columns.numpy_values(pc.local_timestamp(zoned))


def utc_from_local(seconds: np.ndarray, zone: str) -> np.ndarray:
    """Instants of wall clock seconds; the earlier of two, the moment after a gap."""
    if zone in ("UTC", "Etc/UTC"):
        return seconds
    naive = columns.from_values(seconds, pa.timestamp("s"))
    zoned = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="latest")
    return columns.numpy_values(zoned)


def utc_of_text(seconds: np.ndarray, zone: str) -> np.ndarray:
    """Instants of wall clock seconds that somebody wrote: one that the clocks skip is taken by the
    offset after the gap, so that it is as long before the gap's end as it was written behind its
    beginning, as ClickHouse does; the earlier of two."""
    instants = utc_from_local(seconds, zone)
    if instants is seconds:
        return seconds
    shown = local_from_utc(instants, zone)
    skipped = shown != seconds
    return np.where(skipped, seconds - (shown - instants), instants) if skipped.any() else instants


def local_seconds(array: pa.Array, data_type: types.DataType, zone: str) -> np.ndarray:
    """Wall clock seconds (floored) of Dates and DateTimes."""
    values = columns.numpy_values(array)
    if isinstance(data_type, types.Date | types.Date32):
        return np.asarray(
            np.multiply(values, DAY, out=empty(len(values), np.int64), dtype=np.int64)
        )
    seconds = values // ticks_per_second(data_type)
    return local_from_utc(seconds, zone_of(data_type, zone))


def local_days(array: pa.Array, data_type: types.DataType, zone: str) -> np.ndarray:
    """Local days since 1970-01-01 of Dates and DateTimes."""
    if isinstance(data_type, types.Date | types.Date32):
        return converted(columns.numpy_values(array), np.int64)
    return local_seconds(array, data_type, zone) // DAY


def to_time(array: pa.Array, source: types.DataType, target: Timed, zone: str) -> pa.Array:
    """From a number or another time; out of range is clamped as ClickHouse clamps."""
    if isinstance(target, types.Date | types.Date32):
        return columns.from_values(_days(array, source, target, zone), target.arrow)
    ticks = ticks_per_second(target)
    if isinstance(source, types.DateTime | types.DateTime64):
        values = columns.numpy_values(array)
        from_ticks = ticks_per_second(source)
        finer = ticks >= from_ticks
        _refuse_beyond(values, ticks // from_ticks if finer else 1, array, target)
        scaled = (
            values * (ticks // from_ticks) if finer else towards_zero(values, from_ticks // ticks)
        )
    elif isinstance(source, types.Date | types.Date32):
        wall = columns.numpy_values(array).astype(np.int64) * DAY
        scaled = _ticks(utc_from_local(wall, zone_of(target, zone)), ticks)
    elif isinstance(source, types.Decimal):
        floats = np.clip(columns.numpy_values(array.cast(pa.float64())), *_SECONDS64_RANGE)
        _refuse_beyond(floats, ticks, array, target)
        scaled = np.floor(floats * ticks).astype(np.int64)
    elif isinstance(source, types.Float):
        floats = columns.numpy_values(array).astype(np.float64)
        kind: type[DataError] = DecimalOverflow
        bad = first_bad(np.isnan(floats))
        if isinstance(target, types.DateTime):
            kind, bad = CannotConvertType, first_bad(~np.isfinite(floats))
        if bad is not None:
            raise refuse(kind, array, bad, target, "it is no finite number")
        first, last = _SECONDS64_RANGE
        floats = np.clip(floats, first, last + 1 - 1 / ticks)
        exact = np.trunc(floats * ticks)
        beyond = np.abs(exact) >= float(_INT64_MAX)
        scaled = np.where(beyond, 0.0, exact).astype(np.int64)
        scaled[beyond] = np.where(exact[beyond] > 0, _INT64_MAX, -_INT64_MAX - 1)
    else:
        values = columns.numpy_values(array)
        if isinstance(target, types.DateTime) and _is_within(values, 0, DATETIME_MAX):
            return columns.from_values(values, target.arrow)
        seconds = (
            np.minimum(values, np.array(_SECONDS64_RANGE[1], np.int64).astype(values.dtype))
            if (values.dtype == np.uint64)
            else np.clip(values.astype(np.int64), *_SECONDS64_RANGE)
        )
        scaled = _ticks(seconds.astype(np.int64), ticks)
    if isinstance(target, types.DateTime):
        scaled = np.clip(scaled, 0, DATETIME_MAX)
    return columns.from_values(cut_precision(scaled, target), target.arrow)


def limits64(ticks: int) -> tuple[int, int]:
    """The least and the greatest value of a DateTime64 of so many ticks a second."""
    first, last = _SECONDS64_RANGE
    whole = _INT64_MAX // ticks
    return max(first, -whole) * ticks, min(last * ticks + ticks - 1, _INT64_MAX)


def _ticks(seconds: np.ndarray, ticks: int) -> np.ndarray:
    """So many ticks for each second; what int64 has not the room for is its end."""
    whole = _INT64_MAX // ticks
    made: np.ndarray = np.clip(seconds, -whole, whole) * ticks
    made[seconds > whole] = _INT64_MAX
    made[seconds < -whole] = -_INT64_MAX - 1
    return made


def _refuse_beyond(
    seconds: np.ndarray, ticks: int, array: pa.Array, target: types.DataType
) -> None:
    """DecimalOverflow where so many ticks of a moment need more than 64 bits."""
    if ticks == 1 or not seconds.size:
        return
    limit = _INT64_MAX // ticks - 1
    if int(np.nanmax(seconds, initial=0)) > limit or int(np.nanmin(seconds, initial=0)) < -limit:
        row = int(np.argmax((seconds > limit) | (seconds < -limit)))
        raise refuse(DecimalOverflow, array, row, target, "it is too far from 1970")


def _is_within(values: np.ndarray, low: int, high: int) -> bool:
    """Whether these are integers, some, and none is beyond the limits."""
    if values.dtype.kind not in "iu" or not values.size:
        return False
    return low <= int(values.min()) and int(values.max()) <= high


def cut_precision(ticks: np.ndarray, target: types.DataType) -> np.ndarray:
    """Ticks cut to the digits that a DateTime64 shows."""
    if not isinstance(target, types.DateTime64):
        return ticks
    step = 10 ** (-target.precision % 3)
    return ticks if step == 1 else towards_zero(ticks, step) * step


def towards_zero(ticks: np.ndarray, step: int) -> np.ndarray:
    """The quotient without its fraction, as ClickHouse changes the scale of a DateTime64."""
    quotient = ticks // step
    return np.asarray(quotient + ((quotient < 0) & (quotient * step != ticks)))


def _days(
    array: pa.Array, source: types.DataType, target: types.Date | types.Date32, zone: str
) -> np.ndarray:
    if isinstance(source, types.DateTime64) and isinstance(target, types.Date):
        seconds = towards_zero(columns.numpy_values(array), ticks_per_second(source))
        return local_from_utc(seconds, zone_of(source, zone)) // DAY & 0xFFFF
    if isinstance(source, Timed):
        days = local_days(array, source, zone)
        if isinstance(target, types.Date32):
            return days
        return np.maximum(days, 0) if isinstance(source, types.DateTime) else days & 0xFFFF
    if isinstance(source, types.Decimal):
        array = array.cast(pa.float64())
    if isinstance(source, types.Float) and isinstance(target, types.Date):
        bad = first_bad(~np.isfinite(columns.numpy_values(array)))
        if bad is not None:
            raise refuse(CannotConvertType, array, bad, target, "it is no finite number")
    with np.errstate(invalid="ignore"):
        numbers = columns.numpy_values(array)
        limits = (0, DATE_MAX) if isinstance(target, types.Date) else DATE32_RANGE
        if _is_within(numbers, *limits):
            return numbers
        if numbers.dtype == np.uint64:
            numbers = np.minimum(numbers, np.uint64(2**62))
        values = numbers.astype(np.int64)
    seconds_limits = (0, DATETIME_MAX) if isinstance(target, types.Date) else _SECONDS64_RANGE
    wall = local_from_utc(np.clip(values, *seconds_limits), zone) // DAY
    if isinstance(target, types.Date):
        days = np.where(values > DATE_MAX, np.clip(wall, 0, DATE_MAX), values)
        return np.asarray(np.maximum(days, 0))
    return np.clip(np.where(values > DATE32_RANGE[1], wall, values), *DATE32_RANGE)


def from_time(array: pa.Array, source: Timed, target: types.DataType) -> pa.Array:
    """A number of a time: days, seconds; a DateTime64's fraction is kept by floats and decimals."""
    values = columns.numpy_values(array)
    if isinstance(source, types.DateTime64) and ticks_per_second(source) > 1:
        ticks = ticks_per_second(source)
        if isinstance(target, types.Float):
            return columns.from_values(values / ticks, target.arrow)
        values = towards_zero(values, ticks)
    if isinstance(target, types.Boolean):
        return columns.from_values(values != 0, target.arrow)
    return columns.from_values(values, target.arrow)


_DATE = r"^(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?P<rest>(?:[ T]\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)?)$"
_LATER = r"[ T].*[1-9]"
_PACKED = r"^(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})$"


def parse_dates(
    array: pa.Array, target: types.Date | types.Date32, *, exact: bool = False
) -> pa.Array:
    """`2024-01-05`, `20240105`; a time after it is dropped; a day that does not exist runs over
    into the next month, a month that does not exist gives 1970-01-01 (as ClickHouse does).
    `exact` refuses all of these but a time of 00:00:00, and days out of range."""
    try:  # Arrow takes days that exist, written YYYY-MM-DD
        days = columns.numpy_values(array.cast(pa.date32()))
    except pa.ArrowInvalid:
        days = _any_dates(array, target, exact)
    limits = (0, DATE_MAX) if isinstance(target, types.Date) else DATE32_RANGE
    clipped = np.clip(days, *limits)
    beyond = first_bad(clipped != days) if exact else None
    if beyond is not None:
        raise refuse(CannotConvertType, array, beyond, target, "it is out of range")
    return columns.from_values(clipped, target.arrow)


def _any_dates(array: pa.Array, target: types.Date | types.Date32, exact: bool) -> np.ndarray:
    """Days since 1970-01-01 of all that `parse_dates` takes."""
    digits = fixed_digits(array, 10, (4, 7), "--")
    if digits is not None:
        year, month, day = (
            digits[:, :4] @ POWERS[4],
            digits[:, 5:7] @ POWERS[2],
            digits[:, 8:] @ POWERS[2],
        )
    else:
        year, month, day = _scanned_dates(array, target)
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    days = days_from_civil(year, np.where(exists, month, 1), np.where(exists, day, 1))
    if exact:
        _refuse_no_days(array, target, exists & (civil_from_days(days)[2] == day))
    return np.where(exists, days, 0)


def _refuse_no_days(array: pa.Array, target: types.DataType, exists: np.ndarray) -> None:
    """Days that are not in the calendar, and moments that are not midnight."""
    bad = first_bad(~exists)
    if bad is not None:
        raise refuse(CannotParseDate, array, bad, target, "there is no such day")
    bad = first_bad(np.asarray(pc.match_substring_regex(array, _LATER)))
    if bad is not None:
        raise refuse(CannotConvertType, array, bad, target, "a date has no time of day")


def _scanned_dates(
    array: pa.Array, target: types.DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = pc.extract_regex(array, _DATE)
    packed = pc.extract_regex(array, _PACKED)
    bad = first_bad(~np.asarray(pc.or_(found.is_valid(), packed.is_valid())))
    if bad is not None:
        value = array[bad].as_py()
        kind = CannotParse if value[:4].isdigit() and len(value) > 8 else CannotParseDate
        raise refuse(kind, array, bad, target, "a date is written YYYY-MM-DD")
    return tuple(_group(name, found, packed) for name in ("y", "m", "d"))  # type: ignore[return-value]


def _group(name: str, *matches: pa.Array) -> np.ndarray:
    """A named group of the first pattern that matched, as int64; 0 where it is empty."""
    merged = pc.coalesce(
        *(pc.struct_field(m, name) for m in matches if m.type.get_field_index(name) >= 0)
    )
    merged = pc.fill_null(pc.if_else(pc.equal(merged, ""), "0", merged), "0")
    return columns.numpy_values(merged.cast(pa.int64()))


POWERS = {n: 10 ** np.arange(n - 1, -1, -1, dtype=np.int64) for n in (2, 4)}


def fixed_digits(
    array: pa.Array, width: int, separators: tuple[int, ...], marks: str
) -> np.ndarray | None:
    """The digits of texts that all have one layout, shape (rows, width), or None."""
    offsets, data = columns.bytes_of(array)
    if not len(array) or (np.diff(offsets) != width).any():
        return None
    matrix = data.reshape(len(array), width)
    for at, mark in zip(separators, marks, strict=True):
        if (matrix[:, at] != ord(mark)).any():
            return None
    digits = matrix.astype(np.int64) - ord("0")
    digits[:, list(separators)] = 0
    return None if ((digits < 0) | (digits > 9)).any() else digits


def look_like_dates(array: pa.Array) -> np.ndarray:
    """Which texts may be a date; the others surely are none."""
    like = [np.asarray(pc.match_substring_regex(array, one)) for one in (_DATE, _PACKED)]
    return np.asarray(np.logical_or.reduce(like))


def is_number_type(data_type: types.DataType) -> bool:
    return isinstance(data_type, types.Integer | types.Float | types.Decimal | types.Boolean)
