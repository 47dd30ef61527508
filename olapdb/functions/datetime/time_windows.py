"""Windows of time: tumble and hop, with their starts and ends; addDate and timeDiff.

They are compositions of toStartOfInterval, plus, minus and dateDiff.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb.errors import ArgumentOutOfBound, IllegalColumn, NumberOfArgumentsDoesntMatch
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.composition import Term, call, literal, parts_of
from olapdb.functions.scalar import ScalarDefinition, constant_zone, custom, illegal, require
from olapdb.types import (
    INT64,
    STRING,
    UINT8,
    Date,
    DateTime,
    FixedString,
    Interval,
    String,
    Tuple,
    plain,
)

Ends = tuple[Term, Term]
"""The start and the end of each row's window."""


def _interval(name: str, arguments: Sequence[Argument], at: int) -> int:
    """Return the number of units in argument `at`, which must be a constant positive interval. Raises IllegalColumn
    and ArgumentOutOfBound."""
    argument = arguments[at]
    require(name, [plain(argument.type)], Interval, "an interval")
    if argument.constant is None:
        raise IllegalColumn(f"Argument {at + 1} of function {name} must be a constant interval.")
    number = argument.constant.as_py()
    if not isinstance(number, int) or number <= 0:
        raise ArgumentOutOfBound(f"An interval of {name} must be positive.")
    return number


def _ends(name: str, arguments: Sequence[Argument], *, hops: bool) -> Ends:
    """Return the terms of the start and end of the window of tumble(t, window[, zone]), or with `hops` of the latest
    window of hop(t, hop, window[, zone]). Raises NumberOfArgumentsDoesntMatch, IllegalColumn and ArgumentOutOfBound."""
    intervals = 2 if hops else 1
    if not intervals < len(arguments) <= intervals + 2:
        raise NumberOfArgumentsDoesntMatch(
            f"Function {name} takes {intervals + 1} or {intervals + 2} arguments."
        )
    require(name, [plain(arguments[0].type)], DateTime, "a DateTime")
    lengths = [_interval(name, arguments, at) for at in range(1, intervals + 1)]
    parts = parts_of(arguments)
    zone = parts[intervals + 1 :]
    if zone:
        constant_zone(name, arguments, intervals + 1)
    if hops:
        if plain(arguments[1].type) != plain(arguments[2].type):
            raise IllegalColumn(f"The hop and the window of {name} must have one unit.")
        if lengths[0] > lengths[1]:
            raise ArgumentOutOfBound(f"The hop of {name} must not be longer than the window.")
    step = call("toStartOfInterval", parts[0], parts[1], *zone)
    end = call("plus", step, parts[1])
    return (call("minus", end, parts[2]), end) if hops else (step, end)


def _windows(*, hops: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of tumble, or with `hops` of hop: the tuple of a window's start and end."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call to a tuple of start and end."""
        pair = call("tuple", *_ends(name, arguments, hops=hops))
        return ScalarCall(name, pair.type, pair.compute, pair.volatility)

    return resolve


def _edge(at: int, *, hops: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of tumbleStart and the like: the start (`at` 0) or end (1) of a window, given as the
    arguments of tumble or hop or as its result tuple."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call of a tuple, or of the arguments of tumble or hop."""
        if len(arguments) == 1:
            window = plain(arguments[0].type)
            if not isinstance(window, Tuple) or len(window.elements) != 2:
                raise illegal(name, window, "a Tuple of two times")
            require(name, window.elements, (Date, DateTime), "a Tuple of two times")
            edge = call("tupleElement", parts_of(arguments)[0], literal(at + 1, UINT8))
        else:
            edge = _ends(name, arguments, hops=hops)[at]
        return ScalarCall(name, edge.type, edge.compute, edge.volatility)

    return resolve


def _shifted(operation: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of addDate or subDate: (date or text, interval)."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; a text is read as DateTime64(3)."""
        require(name, [plain(arguments[1].type)], Interval, "an interval")
        time, interval = parts_of(arguments)
        if isinstance(plain(arguments[0].type), String | FixedString):
            time = call("parseDateTime64BestEffort", time, literal(3, UINT8))
        total = call(operation, time, interval)
        return ScalarCall(name, total.type, total.compute, total.volatility)

    return resolve


def _seconds_between(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve timeDiff(start, end): the seconds between them."""
    total = call("dateDiff", literal("second", STRING), *parts_of(arguments))
    return ScalarCall(name, total.type, total.compute, total.volatility)


def _microseconds(text: Term) -> Term:
    """Compose the microseconds of a text [-]hh:mm:ss[.ffffff]; 0 for a text of another form."""
    groups = call("extractGroups", text, literal(_TIME_OF_DAY, STRING))
    total = literal(0, UINT8)
    for at, factor in ((2, 3_600_000_000), (3, 60_000_000), (4, 1_000_000)):
        number = call("toInt64OrZero", call("arrayElement", groups, literal(at, UINT8)))
        total = call("plus", total, call("multiply", number, literal(factor, INT64)))
    digits = call(
        "concat", call("arrayElement", groups, literal(5, UINT8)), literal("000000", STRING)
    )
    fraction = call(
        "toInt64OrZero", call("substring", digits, literal(1, UINT8), literal(6, UINT8))
    )
    sign = call("arrayElement", groups, literal(1, UINT8))
    negative = call("equals", sign, literal("-", STRING))
    total = call("plus", total, fraction)
    return call("if", negative, call("negate", total), total)


_TIME_OF_DAY = r"^(-?)([0-9]{1,3}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?$"
"""Sign, hours, minutes, seconds and fraction."""


def _timestamp(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve timestamp(text[, time of day]): a DateTime64(6), the time of day added."""
    for argument in arguments:
        require(name, [plain(argument.type)], (String, FixedString), "a String or FixedString")
    parts = parts_of(arguments)
    time = call("toDateTime64", parts[0], literal(6, UINT8))
    if len(parts) > 1:
        time = call("addMicroseconds", time, _microseconds(parts[1]))
    return ScalarCall(name, time.type, time.compute, time.volatility)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("tumble", _windows(hops=False), count=(2, 3)),
    custom("tumbleStart", _edge(0, hops=False), count=(1, 3)),
    custom("tumbleEnd", _edge(1, hops=False), count=(1, 3)),
    custom("hop", _windows(hops=True), count=(3, 4)),
    custom("hopStart", _edge(0, hops=True), count=(1, 4)),
    custom("hopEnd", _edge(1, hops=True), count=(1, 4)),
    custom("addDate", _shifted("plus"), count=2, insensitive=True),
    custom("subDate", _shifted("minus"), count=2, insensitive=True),
    custom("timeDiff", _seconds_between, count=2, insensitive=True),
    custom("timestamp", _timestamp, count=(1, 2), insensitive=True),
)
