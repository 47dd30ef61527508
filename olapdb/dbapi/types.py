"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

from olapdb.types import (
    UUID,
    Array,
    Boolean,
    DataType,
    DateTime,
    DateTime64,
    Decimal,
    FixedString,
    Float,
    Integer,
    Interval,
    String,
    plain,
)
from olapdb.types import Date as DateType
from olapdb.types import Date32 as Date32Type


class TypeObject:
    """Compares equal to the `type_code`s (olapdb data types) of its kind."""

    def __init__(self, name: str, matches: Callable[[DataType], bool]) -> None:
        self.name, self._matches = name, matches

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self.name == other.name
        return isinstance(other, DataType) and self._matches(plain(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


STRING = TypeObject("STRING", lambda t: isinstance(t, String | UUID))
BINARY = TypeObject("BINARY", lambda t: isinstance(t, FixedString))
NUMBER = TypeObject(
    "NUMBER", lambda t: isinstance(t, Integer | Float | Decimal | Boolean | Interval)
)
DATETIME = TypeObject(
    "DATETIME", lambda t: isinstance(t, DateType | Date32Type | DateTime | DateTime64)
)
ROWID = TypeObject("ROWID", lambda t: False)

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a time in seconds since the epoch."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of a time in seconds since the epoch."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time of a time in seconds since the epoch."""
    return Timestamp(*time.localtime(ticks)[:6])


def display_size(data_type: DataType) -> int | None:
    """The length of a fixed string; None where sizes vary."""
    inner = plain(data_type)
    return inner.length if isinstance(inner, FixedString) else None


def precision_and_scale(data_type: DataType) -> tuple[int | None, int | None]:
    """Of decimals and DateTime64 (scale only); None elsewhere."""
    match plain(data_type):
        case Decimal(precision, scale):
            return precision, scale
        case DateTime64(precision):
            return None, precision
        case Array() | _:
            return None, None
