"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

from olapdb import types
from olapdb.types import Date as DateType
from olapdb.types import Date32 as Date32Type


class TypeObject:
    """A PEP 249 type object; equals the `type_code`s (olapdb data types) of its kind."""

    def __init__(self, name: str, matches: Callable[[types.DataType], bool]) -> None:
        self.name, self._matches = name, matches

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self.name == other.name
        return isinstance(other, types.DataType) and self._matches(types.plain(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


STRING = TypeObject(
    "STRING",
    lambda t: isinstance(t, types.String | types.UUID | types.Enum | types.IPv4 | types.IPv6),
)
BINARY = TypeObject("BINARY", lambda t: isinstance(t, types.FixedString))
NUMBER = TypeObject(
    "NUMBER",
    lambda t: isinstance(
        t, types.Integer | types.Float | types.Decimal | types.Boolean | types.Interval
    ),
)
DATETIME = TypeObject(
    "DATETIME", lambda t: isinstance(t, DateType | Date32Type | types.DateTime | types.DateTime64)
)
ROWID = TypeObject("ROWID", lambda t: False)

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """Return the local date of a time in seconds since the epoch."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """Return the local time of day of a time in seconds since the epoch."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Return the local date and time of a time in seconds since the epoch."""
    return Timestamp(*time.localtime(ticks)[:6])


def display_size(data_type: types.DataType) -> int | None:
    """Return the length in bytes of a FixedString. None for any other type, whose sizes vary."""
    inner = types.plain(data_type)
    return inner.length if isinstance(inner, types.FixedString) else None


def precision_and_scale(data_type: types.DataType) -> tuple[int | None, int | None]:
    """Return (precision, scale) of a decimal, (None, digits of the second's fraction) of a
    DateTime64, else (None, None)."""
    match types.plain(data_type):
        case types.Decimal(precision, scale):
            return precision, scale
        case types.DateTime64(precision):
            return None, precision
        case types.Array() | _:
            return None, None
