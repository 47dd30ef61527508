"""The parts of timestamps read by the best effort parser, and the instants that they denote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from olapdb.functions.kernels.calendar import DAY, days_from_civil, utc_of_text

Number: TypeAlias = int | np.ndarray
"""What a part is: 0 where it was not given, else one number of each row."""


FINE, WRONG, LONGER = 0, 1, 2
"""A text is read, is none of a moment, or goes on behind one."""


@dataclass(frozen=True)
class Moments:
    """Seconds since 1970 and nanoseconds of them, both int64, and how each text was read."""

    seconds: np.ndarray
    nanoseconds: np.ndarray
    verdicts: np.ndarray


class Wrong(Exception):
    """No moment has this shape."""


class Mixed(Exception):
    """Some rows have a part, and some have 0 for it."""

    def __init__(self, given: np.ndarray) -> None:
        super().__init__()
        self.given = given


def is_given(number: Number) -> bool:
    if isinstance(number, int):
        return number != 0
    given = number != 0
    if given.all():
        return True
    if given.any():
        raise Mixed(given)
    return False


_HOURS_OF_HALF_DAY = 12


MONTHS_OF_YEAR = 12


@dataclass
class TimestampParts:
    """What was read of the texts of one shape."""

    year: Number = 0
    month: Number = 0
    day: Number = 0
    hour: Number = 0
    minute: Number = 0
    second: Number = 0
    nanoseconds: Number = 0
    unix: np.ndarray | None = None
    has_time: bool = False
    has_fraction: bool = False
    is_morning: bool = False
    is_evening: bool = False
    has_offset: bool = False
    is_west: bool = False
    offset_hours: Number = 0
    offset_minutes: Number = 0
    has_comma: bool = False
    verdict: int = FINE

    def check(self) -> None:
        """Wrong where too little was given."""
        complete = self.has_time and all(map(is_given, (self.year, self.month, self.day)))
        if self.has_comma and not complete:
            raise Wrong
        if not is_given(self.year):
            raise Wrong
        if not is_given(self.day):
            self.day = 1
        if not is_given(self.month):
            self.month = 1

    def fill(self, made: Moments, rows: np.ndarray, zone: str) -> None:
        made.nanoseconds[rows] = self.nanoseconds
        if self.unix is not None:
            made.seconds[rows], made.verdicts[rows] = self.unix, self.verdict
            return
        year, month, day = (_column(one, len(rows)) for one in (self.year, self.month, self.day))
        exists = exist(year, month, day)
        days = days_from_civil(year, np.where(exists, month, 1), np.where(exists, day, 1))
        wall = days * DAY + self._hour() * 3600 + self.minute * 60 + self.second
        if self.has_offset:
            east = self.offset_hours * 3600 + self.offset_minutes * 60
            made.seconds[rows] = wall + (east if self.is_west else -east)
        else:
            made.seconds[rows] = utc_of_text(wall, zone)
        made.verdicts[rows] = np.where(exists, self.verdict, WRONG)

    def _hour(self) -> Number:
        hour = self.hour
        if self.is_morning:
            hour = np.where(np.equal(hour, _HOURS_OF_HALF_DAY), 0, hour)
        if self.is_evening:
            hour = np.where(np.less(hour, _HOURS_OF_HALF_DAY), hour + _HOURS_OF_HALF_DAY, hour)
        return hour


def _column(number: Number, rows: int) -> np.ndarray:
    return np.full(rows, number) if isinstance(number, int) else number


_DAYS_OF_MONTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def exist(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Which days, of numbers from 1 on, the calendar has."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0)) & (month == 2)
    last = _DAYS_OF_MONTHS[np.minimum(month, MONTHS_OF_YEAR)] + leap
    return np.asarray((month <= MONTHS_OF_YEAR) & (day <= last))
