"""formatReadableTimeDelta and parseTimeDelta: lengths of time as text; see `by_value`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import BadArguments, TooFewArguments, TooManyArguments
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels.by_value import define_by_value, values_by_row
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    constant_text,
    custom,
    fixed_rule,
    require,
    standard_call,
    with_count_errors,
)
from olapdb.types import (
    FLOAT64,
    STRING,
    Decimal,
    Float,
    Integer,
    Interval,
    String,
    WideNumber,
    plain,
)

_SECOND = 10**9
_UNITS = (
    ("years", 365 * 86_400 * _SECOND),
    ("months", 61 * 43_200 * _SECOND),
    ("days", 86_400 * _SECOND),
    ("hours", 3_600 * _SECOND),
    ("minutes", 60 * _SECOND),
    ("seconds", _SECOND),
    ("milliseconds", 10**6),
    ("microseconds", 10**3),
    ("nanoseconds", 1),
)
"""Units from the largest, with their nanoseconds; a year is 365 days, a month 30.5."""
_NAMES = [name for name, _ in _UNITS]

_PARSED = {
    "years year yr y": 365 * 86_400.0,
    "months month mo": 30.5 * 86_400,
    "weeks week w": 7 * 86_400.0,
    "days day d": 86_400.0,
    "hours hour hr h": 3_600.0,
    "minutes minute min m": 60.0,
    "seconds second sec s": 1.0,
    "milliseconds millisecond millisec ms": 1e-3,
    "microseconds microsecond microsec μs µs us": 1e-6,
    "nanoseconds nanosecond nanosec ns": 1e-9,
}
"""The names of units and their seconds."""
_SECONDS = {name: seconds for names, seconds in _PARSED.items() for name in names.split()}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)")
_UNIT = re.compile(r"\s*([A-Za-zμµ]+)")
_SEPARATOR = re.compile(r"\s*[;\-+,:]?\s*")


def _unit(name: str, arguments: Sequence[Argument], at: int, default: str) -> int:
    """Return the place in `_UNITS` of the constant unit in argument `at`, or of `default` if that is absent.

    Raises BadArguments for an unknown unit."""
    if len(arguments) <= at:
        return _NAMES.index(default)
    word = constant_text(name, arguments, at, "a unit")
    if word not in _NAMES:
        raise BadArguments(
            f"{name} does not know the unit {word!r}.", hint=f"It knows {', '.join(_NAMES)}."
        )
    return _NAMES.index(word)


def _format(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve formatReadableTimeDelta(seconds[, largest unit][, smallest unit]).

    Raises BadArguments."""
    kind = plain(arguments[0].type)
    numbers = (Integer, WideNumber, Float, Decimal, Interval)
    require(name, [kind], numbers, "a number of seconds or an interval")
    unit_nanoseconds = _of_interval(name, kind) if isinstance(kind, Interval) else 0
    first = _unit(name, arguments, 1, "years")
    last = _unit(name, arguments, 2, "seconds" if first <= _NAMES.index("seconds") else _NAMES[-1])
    if last < first:
        raise BadArguments(f"The smallest unit of {name} is not larger than the largest.")

    def shown(value: float) -> bytes:
        """Return the text of one duration in seconds, in the precision of Float64, as in ClickHouse."""
        seconds = float(value)
        if unit_nanoseconds:
            whole = abs(int(value)) * unit_nanoseconds // _SECOND
            seconds = math.copysign(whole, seconds)
        return _readable(seconds, first, last).encode()

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Write each distinct duration once."""
        return values_by_row(arrays[:1], shown, call.result.arrow)

    return standard_call(name, arguments, STRING, kernel)


def _of_interval(name: str, interval: Interval) -> int:
    """Return how many nanoseconds one unit of an interval has; raise BadArguments for months and longer ones."""
    nanoseconds = _INTERVAL_NANOSECONDS.get(interval.unit)
    if nanoseconds is None:
        raise BadArguments(f"{name} does not know how many seconds an {interval} has.")
    return nanoseconds


_INTERVAL_NANOSECONDS = {
    "Nanosecond": 1,
    "Microsecond": 10**3,
    "Millisecond": 10**6,
    **{
        unit: seconds * _SECOND
        for unit, seconds in (
            ("Second", 1),
            ("Minute", 60),
            ("Hour", 3600),
            ("Day", 86400),
            ("Week", 604800),
        )
    },
}


def _readable(seconds: float, first: int, last: int) -> str:
    """Return a duration as text such as `1 hour and 5 seconds`, in the units from place `first` to `last` of
    `_UNITS`; the rest is dropped."""
    if not math.isfinite(seconds):
        return str(seconds)
    rest = _nanoseconds(abs(seconds))
    parts: list[str] = []
    for name, size in _UNITS[first : last + 1]:
        count, rest = divmod(rest, size)
        if count or (name == "seconds" and not parts):
            parts.append(f"{count} {name[:-1] if count == 1 else name}")
    if not parts and first > _NAMES.index("seconds"):
        parts.append(f"0 {_NAMES[last]}")
    head = ", ".join(parts[:-1])
    text = f"{head} and {parts[-1]}" if head else "".join(parts)
    return f"-{text}" if seconds < 0 else text


def _nanoseconds(seconds: float) -> int:
    """Return a duration of seconds as whole nanoseconds."""
    whole = math.floor(seconds)
    return whole * _SECOND + round((seconds - whole) * _SECOND)


def _parse(text: bytes) -> float:
    """Return the seconds of a text such as `1h 5 min, 3.5s`.

    Raises BadArguments if it has something else than numbers, each with its unit."""
    shown = text.decode("utf-8", "replace")
    total, at = 0.0, 0
    while True:
        number = _NUMBER.match(shown, at)
        if number is None:
            raise BadArguments(f"parseTimeDelta expects a number in {shown!r}.")
        unit = _UNIT.match(shown, number.end())
        if unit is None or unit[1] not in _SECONDS:
            raise BadArguments(f"parseTimeDelta expects a unit such as 'min' in {shown!r}.")
        total += float(number[1]) * _SECONDS[unit[1]]
        if not shown[unit.end() :].strip():
            return total
        separator = _SEPARATOR.match(shown, unit.end())
        at = unit.end() if separator is None else separator.end()


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("formatReadableTimeDelta", _format, count=(1, 3)),
    *with_count_errors(
        (define_by_value("parseTimeDelta", fixed_rule(FLOAT64, (String,), "a String"), _parse),),
        few=TooFewArguments,
        many=TooManyArguments,
    ),
)
