"""The parts of timestamps read by the best effort parser, and the instants that they denote."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from olapdb.functions.kernels.calendar import DAY, days_from_civil, utc_of_text
from olapdb.records import dataclass

Number: TypeAlias = int | np.ndarray
"""A part of a timestamp: one number for each row, or 0 if the texts do not have it."""


FINE, WRONG, LONGER = 0, 1, 2
"""Verdicts: the text is a timestamp, is none, or has more text after one."""


@dataclass(frozen=True)
class ParsedTimestamps:
    """Parsed timestamps with a verdict for each text.

    Seconds since 1970 and their nanoseconds are both int64.
    """

    seconds: np.ndarray
    nanoseconds: np.ndarray
    verdicts: np.ndarray


class Wrong(Exception):
    """An error that says that no timestamp has this shape."""


class Mixed(Exception):
    """An error that says that a part is 0 in some rows only, where 0 also means absent. The caller splits the rows;
    `given` is True for the rows that have the part."""

    def __init__(self, given: np.ndarray) -> None:
        """Store `given`: True for the rows that have the part."""
        super().__init__()
        self.given = given


def is_given(number: Number) -> bool:
    """Return whether the texts have the part; raise Mixed if only some do."""
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
    """The parts of the texts of one shape, 0 or False where absent."""

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
        """Complete a missing day or month by 1; raise Wrong if too much is missing."""
        complete = self.has_time and all(map(is_given, (self.year, self.month, self.day)))
        if self.has_comma and not complete:
            raise Wrong
        if not is_given(self.year):
            raise Wrong
        if not is_given(self.day):
            self.day = 1
        if not is_given(self.month):
            self.month = 1

    def fill(self, timestamps: ParsedTimestamps, rows: np.ndarray, zone: str) -> None:
        """Write the timestamps to `rows` of `timestamps`.

        Without an offset they are wall clock time in the zone.
        """
        timestamps.nanoseconds[rows] = self.nanoseconds
        if self.unix is not None:
            timestamps.seconds[rows], timestamps.verdicts[rows] = self.unix, self.verdict
            return
        year, month, day = (_column(n, len(rows)) for n in (self.year, self.month, self.day))
        exists = exist(year, month, day)
        days = days_from_civil(year, np.where(exists, month, 1), np.where(exists, day, 1))
        wall = days * DAY + self._hour() * 3600 + self.minute * 60 + self.second
        if self.has_offset:
            offset = self.offset_hours * 3600 + self.offset_minutes * 60
            timestamps.seconds[rows] = wall + (offset if self.is_west else -offset)
        else:
            timestamps.seconds[rows] = utc_of_text(wall, zone)
        timestamps.verdicts[rows] = np.where(exists, self.verdict, WRONG)

    def _hour(self) -> Number:
        """Return the hour from 0 to 23, with AM or PM applied."""
        hour = self.hour
        if self.is_morning:
            hour = np.where(np.equal(hour, _HOURS_OF_HALF_DAY), 0, hour)
        if self.is_evening:
            hour = np.where(np.less(hour, _HOURS_OF_HALF_DAY), hour + _HOURS_OF_HALF_DAY, hour)
        return hour


def _column(number: Number, rows: int) -> np.ndarray:
    """Return the part as an array with one number for each row."""
    return np.full(rows, number) if isinstance(number, int) else number


_DAYS_OF_MONTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def exist(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Return for each row whether the calendar has that day; month and day count from 1."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0)) & (month == 2)
    last = _DAYS_OF_MONTHS[np.minimum(month, MONTHS_OF_YEAR)] + leap
    return np.asarray((month <= MONTHS_OF_YEAR) & (day <= last))
