"""The grammar of one shape of timestamp texts: each digit is 0, other characters are literal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from olapdb.functions.datetime.best_effort_parts import (
    LONGER,
    MONTHS_OF_YEAR,
    TimestampParts,
    Wrong,
    is_given,
)
from olapdb.functions.kernels.arrow_buffers import converted
from olapdb.records import dataclass

_RUN_MAX = 19
_FRACTION_MAX = 18
_NANO_DIGITS = 9
_UNIX_DIGITS = (9, 10, 13, 16, 19)
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MONTHS = (
    b"january",
    b"february",
    b"march",
    b"april",
    b"may",
    b"june",
    b"july",
    b"august",
    b"september",
    b"october",
    b"november",
    b"december",
)
_WEEKDAYS = (b"monday", b"tuesday", b"wednesday", b"thursday", b"friday", b"saturday", b"sunday")
NAMES = frozenset((*_MONTHS, *_WEEKDAYS))
_ZONES = {b"utc": 0, b"gmt": 0, b"msk": 3, b"msd": 4}
_CENTURY_BEGINS = 70


@dataclass
class TimestampLayout:
    """A recursive descent parser of texts that share one shape, in which each digit is written 0. `at` is the
    position in the shape; `parsed` holds the parts parsed so far, for all rows."""

    shape: bytes
    american: bool
    subseconds: bool
    at: int = 0
    digits: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    parsed: TimestampParts = field(default_factory=TimestampParts)

    def parts(self, digits: np.ndarray) -> TimestampParts:
        """Parse the texts whose digits have shape (rows, width); raise Wrong or Mixed."""
        self.at, self.digits, self.parsed = 0, digits, TimestampParts()
        while self.at < len(self.shape) and self._step():
            pass
        if self.parsed.unix is None:
            self.parsed.check()
        if self.at < len(self.shape):
            self.parsed.verdict = LONGER
        return self.parsed

    # --- the text

    def _next(self) -> int:
        """Return the byte of the shape at the current position; 0 at the end."""
        return self.shape[self.at] if self.at < len(self.shape) else 0

    def _take(self, marks: bytes) -> bool:
        """Skip one byte if it is among `marks`; return whether it was."""
        matches = self.at < len(self.shape) and self.shape[self.at] in marks
        self.at += matches
        return matches

    def _run(self, marks: bytes, longest: int) -> int:
        """Skip up to `longest` bytes that are among `marks`; return their number."""
        begin = self.at
        while self.at < len(self.shape) and self.at - begin < longest and self._next() in marks:
            self.at += 1
        return self.at - begin

    def _number(self, begin: int, count: int) -> np.ndarray:
        """Return the number that `count` digits from `begin` form in each row."""
        number = converted(self.digits[:, begin], np.int64)
        for at in range(begin + 1, begin + count):
            number = number * 10 + self.digits[:, at]
        return number

    def _one_or_two(self) -> np.ndarray:
        """Parse a number of one or two digits; raise Wrong for another length."""
        begin, count = self.at, self._run(b"0", _RUN_MAX)
        if count not in (1, 2):
            raise Wrong
        return self._number(begin, count)

    # --- one step after the other; False ends the text

    def _step(self) -> bool:
        """Parse the next part; return False at the end of the timestamp."""
        parsed = self.parsed
        if is_given(parsed.year) != parsed.has_time and self._take(b","):
            parsed.has_comma = True
            if self.at == len(self.shape):
                return False
        if not (is_given(parsed.year) and parsed.has_time):
            begin, count = self.at, self._run(b"0", _RUN_MAX)
            if count:
                return self._digits(begin, count)
        return self._separator()

    def _digits(self, begin: int, count: int) -> bool:
        """Parse a run of `count` digits from `begin` by its length; return False at the end of the
        timestamp.
        """
        parsed = self.parsed
        dated = is_given(parsed.year)
        if not dated and not parsed.has_time and count in _UNIX_DIGITS:
            self._unix(begin, count)
            return False
        if count == 14 and not dated and not parsed.has_time:
            self._date(begin)
            self._clock(begin + 8)
        elif count == 8 and not dated:
            self._date(begin)
        elif count == 6 and not dated and not is_given(parsed.month):
            parsed.year, parsed.month = self._number(begin, 4), self._number(begin + 4, 2)
        elif count == 6 and not parsed.has_time:
            self._clock(begin)
        elif count == 4 and not dated:
            parsed.year = self._number(begin, 4)
            return self._after_year()
        elif count in (1, 2):
            return self._one_or_two_digits(self._number(begin, count))
        else:
            raise Wrong
        return True

    def _unix(self, begin: int, count: int) -> None:
        """Parse Unix time: 10 digits are seconds; 13, 16 and 19 digits are milliseconds, microseconds and
        nanoseconds."""
        seconds = min(count, 10)
        self.parsed.unix = self._number(begin, seconds)
        if count > seconds:
            fraction_digits = count - seconds
            fraction = self._number(begin + seconds, fraction_digits)
            self.parsed.nanoseconds = fraction * 10 ** (_NANO_DIGITS - fraction_digits)
        elif self.subseconds and self._take(b"."):
            self._fraction()

    def _date(self, begin: int) -> None:
        """Parse YYYYMMDD, eight digits from `begin`, as year, month and day."""
        self.parsed.year = self._number(begin, 4)
        self.parsed.month = self.parsed.month + self._number(begin + 4, 2)
        self.parsed.day = self.parsed.day + self._number(begin + 6, 2)

    def _clock(self, begin: int) -> None:
        """Parse hhmmss, six digits from `begin`, as a time of day."""
        parsed = self.parsed
        parsed.hour = parsed.hour + self._number(begin, 2)
        parsed.minute, parsed.second = self._number(begin + 2, 2), self._number(begin + 4, 2)
        parsed.has_time = True

    def _fraction(self) -> None:
        """Parse the digits after the decimal point as nanoseconds; digits after the ninth are ignored."""
        begin = self.at
        count = min(self._run(b"0", _RUN_MAX), _FRACTION_MAX, _NANO_DIGITS)
        if count:
            self.parsed.nanoseconds = self._number(begin, count) * 10 ** (_NANO_DIGITS - count)

    def _after_year(self) -> bool:
        """Parse month and day after a year, with any character as separator; return False at the
        end.
        """
        parsed = self.parsed
        if self.at == len(self.shape):
            return True
        mark = self._next()
        if mark < ord(" ") or mark in b",;'\"":
            return False
        if is_given(parsed.month):
            return True
        self.at += 1
        if not self._parse_part(mark, "month"):
            return True
        if not is_given(parsed.day) and self._take(bytes((mark,))):
            self._parse_part(mark, "day")
        return True

    def _parse_part(self, mark: int, name: str) -> bool:
        """Parse one or two digits into the part `name`, "month" or "day"; `mark` precedes them.

        If there are none, returns False after a blank and raises Wrong after another mark.
        """
        begin, count = self.at, self._run(b"0", _RUN_MAX)
        if count in (1, 2):
            setattr(self.parsed, name, self._number(begin, count))
            return True
        if mark != ord(" "):
            raise Wrong
        return False

    def _one_or_two_digits(self, number: np.ndarray) -> bool:
        """Interpret `number`, of one or two digits, as an hour, a day, or the first part of a date.

        The character behind it decides. Returns False at the end of the timestamp.
        """
        parsed = self.parsed
        if self._take(b":"):
            if parsed.has_time:
                raise Wrong
            parsed.hour, parsed.has_time = number, True
            parsed.minute = self._one_or_two()
            if self._take(b":"):
                parsed.second = self._one_or_two()
        elif self._take(b","):
            if is_given(parsed.month) and not is_given(parsed.day):
                parsed.day = number
        elif self._take(b"/.-"):
            return self._day_and_month(number)
        elif is_given(parsed.day):
            parsed.hour = number
        else:
            parsed.day = number
        return True

    def _day_and_month(self, number: np.ndarray) -> bool:
        """Parse a date from its second part on; `number` is the first, a day or, if american, a
        month.

        Returns False at the end of the timestamp. No digit may follow a month's name.
        """
        parsed = self.parsed
        named = False
        if is_given(parsed.day) or is_given(parsed.month):
            raise Wrong
        if self.american:
            parsed.month, parsed.day = number, self._one_or_two()
        else:
            parsed.day = number
            named = self._next() != ord("0")
            parsed.month = self._named_month() if named else self._one_or_two()
        month, day = parsed.month, parsed.day
        swapped = np.greater(month, MONTHS_OF_YEAR)
        if swapped.any():
            parsed.month, parsed.day = np.where(swapped, day, month), np.where(swapped, month, day)
        if self._take(b"/.-"):
            if is_given(parsed.year):
                raise Wrong
            begin, count = self.at, self._run(b"0", _RUN_MAX)
            if count not in (2, 4):
                raise Wrong
            year = self._number(begin, count)
            if count == 2:
                year += np.where(year >= _CENTURY_BEGINS, 1900, 2000)
            parsed.year = year
        elif named and self.at < len(self.shape):
            return self._separator()
        return True

    def _named_month(self) -> int:
        """Parse a month's name; raise Wrong for another word."""
        word = self._word()
        month = _month_of(word)
        if not month:
            raise Wrong
        return month

    def _word(self) -> bytes:
        """Parse a word, of three letters or whole, and return it in lower case."""
        begin = self.at
        self._run(_LETTERS, len(self.shape))
        word = self.shape[begin : self.at].lower()
        if len(word) < 3 or (len(word) > 3 and word not in NAMES):
            raise Wrong
        return word

    def _separator(self) -> bool:
        """Parse a character that is not a digit and the part that it introduces; return False at the end of the
        timestamp."""
        parsed = self.parsed
        if self._take(b" ") or (is_given(parsed.year) and not parsed.has_time and self._take(b"T")):
            return True
        if self._take(b"Z"):
            parsed.has_offset = True
        elif self._take(b"."):
            if not parsed.has_time or parsed.has_fraction:
                raise Wrong
            parsed.has_fraction = True
            self._fraction()
        elif self._next() in b"+-":
            self._offset(self.shape[self.at])
        elif self._next() in _LETTERS:
            self._name()
        else:
            return False
        return True

    def _offset(self, sign: int) -> None:
        """Parse an offset such as +03:00, or, after a date, a sign and a time hhmmss; `sign` is the sign's byte."""
        parsed = self.parsed
        self.at += 1
        begin, count = self.at, self._run(b"0", _RUN_MAX)
        dated = all(map(is_given, (parsed.year, parsed.month, parsed.day)))
        if count == 6 and not parsed.has_time and dated:
            self._clock(begin)
            return
        if not 1 <= count <= 4:
            raise Wrong
        parsed.has_offset = True
        parsed.is_west = parsed.is_west or sign == ord("-")
        hours = 2 - count % 2
        parsed.offset_hours = parsed.offset_hours + self._number(begin, hours)
        if count > hours:
            parsed.offset_minutes = parsed.offset_minutes + self._number(begin + hours, 2)
        elif self._take(b":"):
            parsed.offset_minutes = parsed.offset_minutes + self._one_or_two()

    def _name(self) -> None:
        """Parse AM, PM, or the name of a zone, month or weekday; raise Wrong for another word."""
        parsed = self.parsed
        begin = self.at
        if self._run(_LETTERS, 3) == 2:
            word = self.shape[begin : self.at].lower()
            if word not in (b"am", b"pm"):
                raise Wrong
            parsed.is_morning = parsed.is_morning or word == b"am"
            parsed.is_evening = parsed.is_evening or word == b"pm"
            return
        self.at = begin
        word = self._word()
        if word in _ZONES:
            parsed.has_offset = True
            parsed.offset_hours = _ZONES[word] or parsed.offset_hours
        elif month := _month_of(word):
            parsed.month = month
        elif _is_weekday(word):
            self._take(b",")
        else:
            raise Wrong


def _index_of(names: Sequence[bytes], word: bytes) -> int:
    """Return the number, from 1, of the name with the word's first three letters; 0 if none."""
    return next((at for at, name in enumerate(names, 1) if name[:3] == word[:3]), 0)


def _month_of(word: bytes) -> int:
    """Return the month, 1 to 12, that a lower-case word names; 0 if it names none."""
    return _index_of(_MONTHS, word)


def _is_weekday(word: bytes) -> bool:
    """Return whether a word in lower case is the name of a weekday."""
    return _index_of(_WEEKDAYS, word) > 0
