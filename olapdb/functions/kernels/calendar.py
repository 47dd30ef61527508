"""Civil days, wall clocks in time zones, and the ticks of timestamps.

Civil days after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.config import tuning
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.arrow_buffers import converted, empty

DAY = 86_400


DATE_MAX = 65_535


DATETIME_MAX = 4_294_967_295


UNIT_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


DATE32_RANGE = (-719_162, 2_932_896)
"""The range of Date32 in days, 0001-01-01 to 9999-12-31, which is that of Python's dates."""


SECONDS64_RANGE = (DATE32_RANGE[0] * DAY, (DATE32_RANGE[1] + 1) * DAY - 1)


INT64_MAX = 2**63 - 1


def days_from_civil(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Return days since 1970-01-01; `day` may exceed the length of its month."""
    year = year.astype(np.int64) - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return np.asarray(
        era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    )


def civil_from_days(days: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (year, month, day) of days since 1970-01-01. Days in Date's range come from a table; of others, repeated
    days of a narrow range are computed once."""
    if not days.size:
        return _civil_from_days(days)
    first, last = int(days.min()), int(days.max())
    if first >= 0 and last <= DATE_MAX:
        return _looked_up(_calendar(), days)
    if last - first < days.size and days.size > tuning.CALENDAR_ROWS_MIN:
        position = np.subtract(days, first, out=empty(days.size, np.int64))
        return _looked_up(_civil_from_days(np.arange(first, last + 1)), position)
    return _civil_from_days(days)


def moved_days(move: Callable[[np.ndarray], np.ndarray], days: np.ndarray) -> np.ndarray:
    """Apply `move`, a function of single days, to each day. If there are more rows than days between the least and
    the greatest, it is applied once to each of these days."""
    if days.size > tuning.CALENDAR_ROWS_MIN:
        first, last = int(days.min()), int(days.max())
        if last - first < days.size:
            return np.asarray(move(np.arange(first, last + 1)).take(days - first))
    return move(days)


@cache
def _calendar() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (year, month, day) of all days of Date's range, 1970-01-01 first."""
    return _civil_from_days(np.arange(DATE_MAX + 1))


def _looked_up(
    calendar: tuple[np.ndarray, np.ndarray, np.ndarray], position: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (year, month, day) at these positions of a calendar table."""
    year, month, day = (
        part.take(position, out=empty(position.size, part.dtype), mode="clip") for part in calendar
    )
    return year, month, day


def _civil_from_days(days: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (year, month, day) by Hinnant's `civil_from_days`."""
    shifted = days.astype(np.int64) + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = np.where(shifted_month < 10, shifted_month + 3, shifted_month - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def year_start(year: np.ndarray) -> np.ndarray:
    """Return the day January 1 of each year, in days since 1970-01-01."""
    one = np.ones_like(year)
    return days_from_civil(year, one, one)


def rescaled(ticks: np.ndarray, per_second: int, new_per_second: int) -> np.ndarray:
    """Return ticks at another number of ticks a second, floored; both are powers of ten."""
    if new_per_second >= per_second:
        return ticks * (new_per_second // per_second)
    return np.asarray(ticks // (per_second // new_per_second))


def ticks_per_second(data_type: types.DataType) -> int:
    """Return how many ticks of the type's Arrow unit a second has.

    1 for types without fractions.
    """
    return UNIT_TICKS[data_type.unit] if isinstance(data_type, types.DateTime64) else 1


def zone_of(data_type: types.DataType, warehouse_zone: str) -> str:
    """Return the time zone of a type, or the warehouse's if it names none."""
    own = getattr(data_type, "zone", None)
    return own if isinstance(own, str) else warehouse_zone


def local_from_utc(seconds: np.ndarray, zone: str) -> np.ndarray:
    """Convert UTC seconds since 1970 to wall clock seconds in the zone, clamped to the end of the year 9999."""
    return stopped_clock(unbounded_local(seconds, zone))


def unbounded_local(seconds: np.ndarray, zone: str) -> np.ndarray:
    """Convert UTC seconds to wall clock seconds in the zone, without a limit: for computing, not for showing. East of
    Greenwich the clocks reach the year 10000 before the last DateTime64."""
    if zone in ("UTC", "Etc/UTC"):
        return seconds
    zoned = columns.from_values(seconds, pa.timestamp("s", tz=zone))
    return columns.numpy_values(pc.local_timestamp(zoned))


@cache
def counts_seconds(zone: str) -> bool:
    """Return whether clocks of the zone have been off UTC by a part of a minute since 1970, as those of Africa/Monrovia
    were until 1972."""
    return bool(unbounded_local(np.zeros(1, np.int64), zone)[0] % 60)


def stopped_clock(wall: np.ndarray, per_second: int = 1) -> np.ndarray:
    """Clamp wall clock ticks to the year 9999: later ones become 23:59:59 of its last day and keep their fraction, as
    ClickHouse shows them."""
    end = (SECONDS64_RANGE[1] + 1) * per_second
    if not wall.size or int(wall.max()) < end:
        return wall
    return np.where(wall >= end, end - per_second + wall % per_second, wall)


def utc_from_local(seconds: np.ndarray, zone: str) -> np.ndarray:
    """Convert wall clock seconds in the zone to UTC seconds. An ambiguous time is the earlier of the two; a skipped
    one is the end of the gap."""
    if zone in ("UTC", "Etc/UTC"):
        return seconds
    naive = columns.from_values(seconds, pa.timestamp("s"))
    zoned = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="latest")
    return columns.numpy_values(zoned)


def utc_of_text(seconds: np.ndarray, zone: str) -> np.ndarray:
    """Convert wall clock seconds that come from a text, parts or a move by days to UTC seconds. As in ClickHouse, a
    skipped time uses the offset after the gap: it lies as far before the gap's end as it was written after the gap's
    beginning. An ambiguous time is the earlier of the two."""
    instants = utc_from_local(seconds, zone)
    if instants is seconds:
        return seconds
    round_trip = local_from_utc(instants, zone)
    skipped = round_trip != seconds
    return (
        np.where(skipped, seconds - (round_trip - instants), instants)
        if skipped.any()
        else instants
    )


def local_seconds(
    array: pa.Array, data_type: types.DataType, warehouse_zone: str, zone: str | None = None
) -> np.ndarray:
    """Return wall clock seconds, rounded down, of a column of dates or timestamps, in `zone`. Without `zone` the
    type's own zone or the warehouse's is used."""
    values = columns.numpy_values(array)
    if isinstance(data_type, types.Date | types.Date32):
        return np.asarray(
            np.multiply(values, DAY, out=empty(len(values), np.int64), dtype=np.int64)
        )
    ticks = ticks_per_second(data_type)
    seconds = values if ticks == 1 else values // ticks
    return local_from_utc(seconds, zone or zone_of(data_type, warehouse_zone))


def local_days(array: pa.Array, data_type: types.DataType, zone: str) -> np.ndarray:
    """Return local days since 1970-01-01 of a column of Dates or DateTimes."""
    if isinstance(data_type, types.Date | types.Date32):
        return converted(columns.numpy_values(array), np.int64)
    return local_seconds(array, data_type, zone) // DAY


def limits64(ticks: int) -> tuple[int, int]:
    """Return the least and the greatest value of a DateTime64 with `ticks` ticks a second."""
    first, last = SECONDS64_RANGE
    whole = INT64_MAX // ticks
    return max(first, -whole) * ticks, min(last * ticks + ticks - 1, INT64_MAX)


def cut_precision(ticks: np.ndarray, target: types.DataType) -> np.ndarray:
    """Truncate ticks to the digits that the DateTime64 `target` shows."""
    if not isinstance(target, types.DateTime64):
        return ticks
    step = 10 ** (-target.precision % 3)
    return ticks if step == 1 else towards_zero(ticks, step) * step


def towards_zero(ticks: np.ndarray, step: int) -> np.ndarray:
    """Divide ticks by `step`, truncated towards zero, as ClickHouse changes the scale of a DateTime64."""
    quotient = ticks // step
    return np.asarray(quotient + ((quotient < 0) & (quotient * step != ticks)))
