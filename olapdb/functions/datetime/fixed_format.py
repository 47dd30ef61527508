"""Fast formatting of timestamps in layouts of fixed widths, such as `%Y-%m-%d %H:%i:%S`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels import columns
from olapdb.functions.kernels.calendar import DAY, civil_from_days, year_start
from olapdb.records import dataclass

_WHOLE = {"F": "%Y-%m-%d", "T": "%H:%i:%S", "D": "%m/%d/%y", "R": "%H:%i"}
_YEAR_MAX = 9_999
_WORDS = {
    "b": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "a": ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"),
    "p": ("AM", "PM"),
}
"""Names in the order of their numbers; 1970-01-01 was a Thursday."""

_WIDTHS = {
    "Y": 4,
    "m": 2,
    "d": 2,
    "H": 2,
    "i": 2,
    "S": 2,
    "s": 2,
    "y": 2,
    "j": 3,
    "I": 2,
    "h": 2,
    **{letter: len(words[0]) for letter, words in _WORDS.items()},
}

Layout: TypeAlias = tuple[bytes | str, ...]
"""Literal text as bytes, and format letters as strings."""


def layout_of(template: str) -> Layout | None:
    """Return the layout of a format of formatDateTime, or None if a part has no fixed width."""
    spelt = re.sub("%([FTDR])", lambda m: _WHOLE[m[1]], template)
    pieces = re.split("(%.)", spelt, flags=re.DOTALL)
    layout: list[bytes | str] = []
    for text, directive in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        if "%" in text:
            return None
        layout.append(text.encode("utf-8", "surrogateescape"))
        letter = directive[1:]
        if letter == "%":
            layout.append(b"%")
        elif letter in _WIDTHS:
            layout.append(letter)
        elif letter:
            return None
    return tuple(piece for piece in layout if piece)


def write(seconds: np.ndarray, layout: Layout) -> pa.Array | None:
    """Return texts of wall clock seconds since 1970.

    Returns None if the layout is empty or any year is not from 0 to 9999.
    """
    clock = _Clock(seconds)
    year = clock.date[0]
    if not layout or (year.size and not (int(year.min()) >= 0 and int(year.max()) <= _YEAR_MAX)):
        return None
    widths = [len(piece) if isinstance(piece, bytes) else _WIDTHS[piece] for piece in layout]
    width, rows = sum(widths), len(seconds)
    characters = np.empty((rows, width), np.uint8)
    at = 0
    for piece, size in zip(layout, widths, strict=True):
        if isinstance(piece, bytes):
            characters[:, at : at + size] = np.frombuffer(piece, np.uint8)
        elif piece in _WORDS:
            letters = np.array([list(word.encode()) for word in _WORDS[piece]], np.uint8)
            characters[:, at : at + size] = letters[_PARTS[piece](clock)]
        else:
            _write_digits(characters[:, at : at + size], _PARTS[piece](clock))
        at += size
    return columns.strings_from(np.arange(rows + 1, dtype=np.int64) * width, characters.reshape(-1))


def _write_digits(characters: np.ndarray, numbers: np.ndarray) -> None:
    """Write numbers as decimal digits into `characters`, zero padded; shape (rows, width)."""
    remaining = numbers.astype(np.uint32)
    for at in reversed(range(characters.shape[1])):
        quotient = remaining // np.uint32(10)
        characters[:, at] = remaining - quotient * np.uint32(10) + np.uint32(ord("0"))
        remaining = quotient


@dataclass(frozen=True)
class _Clock:
    """Wall clock timestamps, whose date and time of day are computed once, at first use."""

    seconds: np.ndarray

    @cached_property
    def date(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The dates as arrays (year, month, day)."""
        return civil_from_days(self.days)

    @cached_property
    def days(self) -> np.ndarray:
        """Days since 1970-01-01."""
        return np.asarray(self.seconds // DAY)

    @cached_property
    def of_day(self) -> np.ndarray:
        """Seconds since midnight."""
        return np.asarray((self.seconds - self.days * DAY).astype(np.uint32))


def _day_of_year(clock: _Clock) -> np.ndarray:
    """Return the day of the year, from 1."""
    return np.asarray(clock.days - year_start(clock.date[0]) + 1)


def _second(clock: _Clock) -> np.ndarray:
    """Return the second of the minute."""
    return np.asarray(clock.of_day % np.uint32(60))


def _of_half_day(clock: _Clock) -> np.ndarray:
    """Return the hour of the 12-hour clock: 12, 1, …, 11."""
    hour = clock.of_day // np.uint32(3_600)
    return np.asarray((hour + np.uint32(11)) % np.uint32(12) + np.uint32(1))


_PARTS: dict[str, Callable[[_Clock], np.ndarray]] = {
    "Y": lambda clock: clock.date[0],
    "m": lambda clock: clock.date[1],
    "d": lambda clock: clock.date[2],
    "y": lambda clock: clock.date[0] % 100,
    "H": lambda clock: clock.of_day // np.uint32(3_600),
    "j": _day_of_year,
    "i": lambda clock: clock.of_day // np.uint32(60) % np.uint32(60),
    "b": lambda clock: clock.date[1] - 1,
    "a": lambda clock: clock.days % 7,
    "p": lambda clock: clock.of_day // np.uint32(43_200),
    "S": _second,
    "s": _second,
    "I": _of_half_day,
    "h": _of_half_day,
}
