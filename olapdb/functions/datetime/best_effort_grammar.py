"""What texts of one shape say: each digit is 0 in it, all else stands for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from olapdb.functions.datetime.best_effort_parts import (
    LONGER,
    MONTHS_OF_YEAR,
    TimestampParts,
    Wrong,
    is_given,
)
from olapdb.functions.kernels.arrow_buffers import converted

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
    """A reader of the texts of one shape, in which each digit is 0."""

    shape: bytes
    american: bool
    subseconds: bool
    at: int = 0
    digits: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    made: TimestampParts = field(default_factory=TimestampParts)

    def parts(self, digits: np.ndarray) -> TimestampParts:
        self.at, self.digits, self.made = 0, digits, TimestampParts()
        while self.at < len(self.shape) and self._step():
            pass
        if self.made.unix is None:
            self.made.check()
        if self.at < len(self.shape):
            self.made.verdict = LONGER
        return self.made

    # --- the text

    def _next(self) -> int:
        """The byte that comes, 0 at the end."""
        return self.shape[self.at] if self.at < len(self.shape) else 0

    def _take(self, marks: bytes) -> bool:
        found = self.at < len(self.shape) and self.shape[self.at] in marks
        self.at += found
        return found

    def _run(self, marks: bytes, longest: int) -> int:
        """Goes over so many of these bytes as come; how many."""
        begin = self.at
        while self.at < len(self.shape) and self.at - begin < longest and self._next() in marks:
            self.at += 1
        return self.at - begin

    def _number(self, begin: int, count: int) -> np.ndarray:
        made = converted(self.digits[:, begin], np.int64)
        for at in range(begin + 1, begin + count):
            made = made * 10 + self.digits[:, at]
        return made

    def _one_or_two(self) -> np.ndarray:
        """A number of one digit or two; Wrong of none or more."""
        begin, count = self.at, self._run(b"0", _RUN_MAX)
        if count not in (1, 2):
            raise Wrong
        return self._number(begin, count)

    # --- one step after the other; False ends the text

    def _step(self) -> bool:
        made = self.made
        if is_given(made.year) != made.has_time and self._take(b","):
            made.has_comma = True
            if self.at == len(self.shape):
                return False
        if not (is_given(made.year) and made.has_time):
            begin, count = self.at, self._run(b"0", _RUN_MAX)
            if count:
                return self._digits_of(begin, count)
        return self._mark()

    def _digits_of(self, begin: int, count: int) -> bool:
        made = self.made
        dated = is_given(made.year)
        if not dated and not made.has_time and count in _UNIX_DIGITS:
            self._unix(begin, count)
            return False
        if count == 14 and not dated and not made.has_time:
            self._date(begin)
            self._clock(begin + 8)
        elif count == 8 and not dated:
            self._date(begin)
        elif count == 6 and not dated and not is_given(made.month):
            made.year, made.month = self._number(begin, 4), self._number(begin + 4, 2)
        elif count == 6 and not made.has_time:
            self._clock(begin)
        elif count == 4 and not dated:
            made.year = self._number(begin, 4)
            return self._behind_year()
        elif count in (1, 2):
            return self._small(self._number(begin, count))
        else:
            raise Wrong
        return True

    def _unix(self, begin: int, count: int) -> None:
        seconds = min(count, 10)
        self.made.unix = self._number(begin, seconds)
        if count > seconds:
            finer = count - seconds
            made = self._number(begin + seconds, finer)
            self.made.nanoseconds = made * 10 ** (_NANO_DIGITS - finer)
        elif self.subseconds and self._take(b"."):
            self._fraction()

    def _date(self, begin: int) -> None:
        self.made.year = self._number(begin, 4)
        self.made.month = self.made.month + self._number(begin + 4, 2)
        self.made.day = self.made.day + self._number(begin + 6, 2)

    def _clock(self, begin: int) -> None:
        made = self.made
        made.hour = made.hour + self._number(begin, 2)
        made.minute, made.second = self._number(begin + 2, 2), self._number(begin + 4, 2)
        made.has_time = True

    def _fraction(self) -> None:
        begin = self.at
        count = min(self._run(b"0", _RUN_MAX), _FRACTION_MAX, _NANO_DIGITS)
        if count:
            self.made.nanoseconds = self._number(begin, count) * 10 ** (_NANO_DIGITS - count)

    def _behind_year(self) -> bool:
        """Month and day, with any one mark between them."""
        made = self.made
        if self.at == len(self.shape):
            return True
        mark = self._next()
        if mark < ord(" ") or mark in b",;'\"":
            return False
        if is_given(made.month):
            return True
        self.at += 1
        if not self._part_behind(mark, "month"):
            return True
        if not is_given(made.day) and self._take(bytes((mark,))):
            self._part_behind(mark, "day")
        return True

    def _part_behind(self, mark: int, name: str) -> bool:
        """A number of one digit or two; False where none is, and the mark is a blank."""
        begin, count = self.at, self._run(b"0", _RUN_MAX)
        if count in (1, 2):
            setattr(self.made, name, self._number(begin, count))
            return True
        if mark != ord(" "):
            raise Wrong
        return False

    def _small(self, number: np.ndarray) -> bool:
        """A number of one digit or two: an hour, a day, or the first part of a date."""
        made = self.made
        if self._take(b":"):
            if made.has_time:
                raise Wrong
            made.hour, made.has_time = number, True
            made.minute = self._one_or_two()
            if self._take(b":"):
                made.second = self._one_or_two()
        elif self._take(b","):
            if is_given(made.month) and not is_given(made.day):
                made.day = number
        elif self._take(b"/.-"):
            return self._day_and_month(number)
        elif is_given(made.day):
            made.hour = number
        else:
            made.day = number
        return True

    def _day_and_month(self, number: np.ndarray) -> bool:
        """The date from its second part on; behind a month's name no digit may follow."""
        made = self.made
        named = False
        if is_given(made.day) or is_given(made.month):
            raise Wrong
        if self.american:
            made.month, made.day = number, self._one_or_two()
        else:
            made.day = number
            named = self._next() != ord("0")
            made.month = self._named_month() if named else self._one_or_two()
        month, day = made.month, made.day
        swapped = np.greater(month, MONTHS_OF_YEAR)
        if swapped.any():
            made.month, made.day = np.where(swapped, day, month), np.where(swapped, month, day)
        if self._take(b"/.-"):
            if is_given(made.year):
                raise Wrong
            begin, count = self.at, self._run(b"0", _RUN_MAX)
            if count not in (2, 4):
                raise Wrong
            year = self._number(begin, count)
            if count == 2:
                year += np.where(year >= _CENTURY_BEGINS, 1900, 2000)
            made.year = year
        elif named and self.at < len(self.shape):
            return self._mark()
        return True

    def _named_month(self) -> int:
        word = self._word()
        month = _month_of(word)
        if not month:
            raise Wrong
        return month

    def _word(self) -> bytes:
        """A name of a month, a day or a zone, whole or its first three letters, in small letters."""
        begin = self.at
        self._run(_LETTERS, len(self.shape))
        word = self.shape[begin : self.at].lower()
        if len(word) < 3 or (len(word) > 3 and word not in NAMES):
            raise Wrong
        return word

    def _mark(self) -> bool:
        made = self.made
        if self._take(b" ") or (is_given(made.year) and not made.has_time and self._take(b"T")):
            return True
        if self._take(b"Z"):
            made.has_offset = True
        elif self._take(b"."):
            if not made.has_time or made.has_fraction:
                raise Wrong
            made.has_fraction = True
            self._fraction()
        elif self._next() in b"+-":
            self._offset(self.shape[self.at])
        elif self._next() in _LETTERS:
            self._name()
        else:
            return False
        return True

    def _offset(self, sign: int) -> None:
        made = self.made
        self.at += 1
        begin, count = self.at, self._run(b"0", _RUN_MAX)
        dated = all(map(is_given, (made.year, made.month, made.day)))
        if count == 6 and not made.has_time and dated:
            self._clock(begin)
            return
        if not 1 <= count <= 4:
            raise Wrong
        made.has_offset = True
        made.is_west = made.is_west or sign == ord("-")
        hours = 2 - count % 2
        made.offset_hours = made.offset_hours + self._number(begin, hours)
        if count > hours:
            made.offset_minutes = made.offset_minutes + self._number(begin + hours, 2)
        elif self._take(b":"):
            made.offset_minutes = made.offset_minutes + self._one_or_two()

    def _name(self) -> None:
        made = self.made
        begin = self.at
        if self._run(_LETTERS, 3) == 2:
            word = self.shape[begin : self.at].lower()
            if word not in (b"am", b"pm"):
                raise Wrong
            made.is_morning = made.is_morning or word == b"am"
            made.is_evening = made.is_evening or word == b"pm"
            return
        self.at = begin
        word = self._word()
        if word in _ZONES:
            made.has_offset = True
            made.offset_hours = _ZONES[word] or made.offset_hours
        elif month := _month_of(word):
            made.month = month
        elif _is_weekday(word):
            self._take(b",")
        else:
            raise Wrong


def _starts(names: Sequence[bytes], word: bytes) -> int:
    """Which name begins with the word's first three letters, counted from 1; 0: none."""
    return next((at for at, name in enumerate(names, 1) if name[:3] == word[:3]), 0)


def _month_of(word: bytes) -> int:
    return _starts(_MONTHS, word)


def _is_weekday(word: bytes) -> bool:
    return _starts(_WEEKDAYS, word) > 0
