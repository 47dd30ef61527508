"""Addition to dates and times by functions: add…, subtract…, dateAdd, dateSub."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb.errors import BadArguments
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.composition import as_call, call, literal, parts_of
from olapdb.functions.datetime import clock_arithmetic, date_arithmetic
from olapdb.functions.datetime.components import DATES
from olapdb.functions.scalar import ScalarDefinition, constant_text, custom, require, standard_call
from olapdb.types import (
    INTERVAL_UNITS,
    UINT8,
    DataType,
    Date,
    Date32,
    Decimal,
    Float,
    Integer,
    String,
    plain,
)

_UNIT_NAMES = {
    **{unit.lower(): unit for unit in INTERVAL_UNITS},
    "ns": "Nanosecond",
    "us": "Microsecond",
    "ms": "Millisecond",
    "ss": "Second",
    "s": "Second",
    "mi": "Minute",
    "n": "Minute",
    "hh": "Hour",
    "h": "Hour",
    "dd": "Day",
    "d": "Day",
    "wk": "Week",
    "ww": "Week",
    "mm": "Month",
    "m": "Month",
    "qq": "Quarter",
    "q": "Quarter",
    "yyyy": "Year",
    "yy": "Year",
}


def unit_named(name: str, text: str) -> str:
    """Return the unit that a text names; raise BadArguments if it names none.

    "Day" for day, days, dd, SQL_TSI_DAY.
    """
    lowered = text.lower().removeprefix("sql_tsi_")
    unit = _UNIT_NAMES.get(lowered) or _UNIT_NAMES.get(lowered.removesuffix("s"))
    if unit is None:
        raise BadArguments(f"{name} does not know the unit {text!r}.")
    return unit


def _keeps_order(source: DataType, unit: str) -> bool:
    """Return whether adding a constant keeps the order of values.

    Dates stop at the ends of their range.  Times wrap there, so that no interval is safe; days and
    months move their wall clock, which autumn shows twice for an hour.
    """
    wall = unit in date_arithmetic.DAYS or unit in date_arithmetic.MONTHS
    return wall == isinstance(source, Date | Date32)


def _shift(unit: str, sign: int) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of addDays(t, n) and the like, or with `sign` -1 of subtractDays(t, n) and the like."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for a date or time and a number; a text is read as DateTime64(3)."""
        source, amount = plain(arguments[0].type), plain(arguments[1].type)
        if isinstance(source, String):
            moment, number = parts_of(arguments)
            return as_call(
                name, call(name, call("toDateTime64", moment, literal(3, UINT8)), number)
            )
        if isinstance(source, clock_arithmetic.CLOCKS):
            require(name, [amount], (Integer, Float), "a number")
            result = clock_arithmetic.shifted_type(name, source, unit)
            moved = clock_arithmetic.shift(unit, sign)
            return standard_call(name, arguments, result, moved, keeps_constants=True)
        require(name, [source], DATES, "a Date or DateTime")
        require(name, [amount], (Integer, Float, Decimal), "a number")
        result = date_arithmetic.shifted_type(name, source, unit)
        monotonic = arguments[1].constant is not None and _keeps_order(source, unit)
        kernel = date_arithmetic.shift(unit, sign)
        return standard_call(
            name, arguments, result, kernel, monotonic=monotonic, keeps_constants=True
        )

    return resolve


def _date_add(operation: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of dateAdd(unit, n, t) with a constant unit and of dateAdd(t, INTERVAL n
    unit).
    """
    sign = 1 if operation == "plus" else -1

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call of two or of three arguments."""
        if len(arguments) == 2:
            if isinstance(plain(arguments[0].type), clock_arithmetic.CLOCKS):
                return clock_arithmetic.resolve(name, operation, arguments)
            return date_arithmetic.resolve(name, operation, arguments)
        unit = unit_named(name, constant_text(name, arguments, 0, "the unit"))
        inner = _shift(unit, sign)(name, [arguments[2], arguments[1]])

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Call the kernel of add… or subtract… with the arguments in the order (t, n)."""
            return inner.kernel([values[2], values[1]], rows, environment)

        return ScalarCall(name, inner.type, kernel)

    return resolve


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    *(custom(f"add{u}s", _shift(u, 1), count=2) for u in INTERVAL_UNITS),
    *(custom(f"subtract{u}s", _shift(u, -1), count=2) for u in INTERVAL_UNITS),
    custom(
        "dateAdd",
        _date_add("plus"),
        count=(2, 3),
        insensitive=True,
        aliases=("date_add", "timestampAdd", "timestamp_add"),
    ),
    custom(
        "dateSub",
        _date_add("minus"),
        count=(2, 3),
        insensitive=True,
        aliases=("date_sub", "timestampSub", "timestamp_sub"),
    ),
)
