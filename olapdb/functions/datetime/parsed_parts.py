"""Times from the numbers of their parts, such as month, week and half of the day."""

from __future__ import annotations

import numpy as np

from olapdb.functions.kernels import calendar
from olapdb.types import DateTime, DateTime64

_BOUNDS = {
    "month": (1, 12),
    "day": (1, 31),
    "day_of_year": (1, 366),
    "hour": (0, 23),
    "half_hour": (1, 12),
    "hour_from_1": (1, 24),
    "hour_of_half": (0, 11),
    "minute": (0, 59),
    "second": (0, 59),
    "week": (1, 53),
    "weekday": (1, 7),
    "weekday_from_0": (0, 7),
}


def ticks_of(
    parts: dict[str, np.ndarray], rows: int, target: DateTime | DateTime64, zone: str
) -> tuple[np.ndarray, np.ndarray]:
    """Convert parts of dates and times to Unix time in ticks of `target`; also return a mask of the rows whose time
    exists."""
    fine = np.ones(rows, bool)
    for name, (low, high) in _BOUNDS.items():
        if name in parts:
            fine &= (parts[name] >= low) & (parts[name] <= high)
    days, known = _days(parts, rows)
    wall = days * calendar.DAY + _time_of_day(parts, rows)
    if "offset" in parts:
        seconds = wall - parts["offset"]
    else:
        seconds = calendar.utc_of_text(wall, calendar.zone_of(target, zone))
    if isinstance(target, DateTime):
        return seconds, fine & known & (seconds >= 0) & (seconds <= calendar.DATETIME_MAX)
    ticks = calendar.ticks_per_second(target)
    fraction = next((parts[name] for name in parts if name.startswith("fraction")), None)
    if fraction is None:
        return seconds * ticks, fine & known
    return seconds * ticks + fraction * (ticks // 10**target.precision), fine & known


def _days(parts: dict[str, np.ndarray], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Convert the date parts to days since 1970-01-01; also return a mask of the days that exist. A missing year is
    1970, or 2000 where a month, week or day is given, as in ClickHouse. If parts define the day in several ways, the
    last one in the format counts."""
    ways = [_WAYS[name] for name in parts if name in _WAYS]
    year = _year(parts)
    if year is None:
        year = np.full(rows, 2000 if ways else 1970)
    ones = np.ones(rows, np.int64)
    if ways and ways[-1] == "day_of_year":
        start = calendar.year_start(year)
        days = start + parts["day_of_year"] - 1
        return days, days < calendar.year_start(year + 1)
    if ways and ways[-1] == "week":
        fourth = calendar.days_from_civil(year, ones, 4 * ones)  # of January, in week 1
        monday = fourth - (fourth + 3) % 7
        return monday + 7 * (parts.get("week", ones) - 1) + _weekday(parts, ones) - 1, ones > 0
    month = parts.get("month", parts.get("month_name", ones))
    day = parts.get("day", ones)
    days = calendar.days_from_civil(year, np.clip(month, 1, 12), day)
    return days, calendar.civil_from_days(days)[2] == day


_WAYS = {
    **dict.fromkeys(("month", "month_name", "day"), "month"),
    "day_of_year": "day_of_year",
    **dict.fromkeys(("week", "weekday", "weekday_from_0", "weekday_name"), "week"),
    **dict.fromkeys(("week_year", "short_week_year"), "week"),
}
"""The ways to name a day, by the parts that are of each."""


def _year(parts: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return the years from the last part in the format that has a year; None without one."""
    year = None
    for name, numbers in parts.items():
        if name in ("year", "week_year"):
            year = numbers
        elif name in ("short_year", "short_week_year"):
            year = np.where(numbers >= 70, 1900 + numbers, 2000 + numbers)
        elif name == "short_year_of_2000":  # of %D
            year = 2000 + numbers
        elif name == "century":
            year = 100 * numbers
    return year


def _weekday(parts: dict[str, np.ndarray], one: np.ndarray) -> np.ndarray:
    """Return the weekdays, 1 for Monday, from the last part in the format that has one; `one` without it."""
    weekday = one
    for name, numbers in parts.items():
        if name in ("weekday", "weekday_name"):
            weekday = numbers
        elif name == "weekday_from_0":
            weekday = np.where(numbers == 0, 7, numbers)
    return weekday


def _time_of_day(parts: dict[str, np.ndarray], rows: int) -> np.ndarray:
    """Return the seconds since midnight of the time parts; missing parts count as 0."""
    none = np.zeros(rows, np.int64)
    hour = parts.get("hour", none)
    if "hour_from_1" in parts:
        hour = parts["hour_from_1"] % 24
    for name in ("half_hour", "hour_of_half"):
        if name in parts:
            hour = parts[name] % 12 + parts.get("half", none)
    return np.asarray(hour * 3_600 + parts.get("minute", none) * 60 + parts.get("second", none))
