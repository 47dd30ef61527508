"""Civil days, wall clocks in time zones, and the ticks of timestamps.

Civil days after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.arrow_buffers import converted, empty

DAY = 86_400


DATE_MAX = 65_535


DATETIME_MAX = 4_294_967_295


_UNIT_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


DATE32_RANGE = (-719_162, 2_932_896)
"""Days from 0001-01-01 to 9999-12-31, which Python's dates hold."""


SECONDS64_RANGE = (DATE32_RANGE[0] * DAY, (DATE32_RANGE[1] + 1) * DAY - 1)


INT64_MAX = 2**63 - 1


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
    if last - first < days.size and days.size > _CALENDAR_ROWS_MIN:
        position = np.subtract(days, first, out=empty(days.size, np.int64))
        return _looked_up(_civil_from_days(np.arange(first, last + 1)), position)
    return _civil_from_days(days)


_CALENDAR_ROWS_MIN = 1_000


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


def limits64(ticks: int) -> tuple[int, int]:
    """The least and the greatest value of a DateTime64 of so many ticks a second."""
    first, last = SECONDS64_RANGE
    whole = INT64_MAX // ticks
    return max(first, -whole) * ticks, min(last * ticks + ticks - 1, INT64_MAX)


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
