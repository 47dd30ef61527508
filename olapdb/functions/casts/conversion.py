"""toUInt8 … toString with …OrNull, …OrZero, …OrDefault; toTimeZone, toInterval…, toLowCardinality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb import types
from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.conversion_calls import converted_call, rezoned
from olapdb.functions.casts.conversion_or_else import or_else
from olapdb.functions.casts.conversion_targets import (
    CONVERSIONS,
    ConversionFunction,
    fixed_string_type,
)
from olapdb.functions.datetime.row_zones import by_row_zone
from olapdb.functions.kernels.supertypes import IN_DICTIONARIES
from olapdb.functions.scalar import (
    ScalarDefinition,
    constant_integer,
    constant_text,
    constant_zone,
    custom,
    illegal,
)


def _plain_conversion(
    conversion: ConversionFunction,
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of a conversion such as toUInt8, whose kernel raises an error for a value that does not
    convert."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call to the conversion's target type; a date with a zone goes to `_date_in_zone`, a time with
        digits to `_with_digits`."""
        if name == "toDateTime" and len(arguments) > 1:
            second = types.plain(arguments[1].type)
            if len(arguments) == 3 or isinstance(second, types.Integer):
                return _with_digits(name, arguments)
        target = conversion.target(name, arguments)
        if len(arguments) == 2 and name in _DATES:
            return _date_in_zone(name, target, arguments)
        return converted_call(name, target, arguments)

    return resolve


_DATES = ("toDate", "toDate32")
"""Conversions that take a zone, in which they read a time."""


def _with_digits(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toDateTime(x, digits[, zone]), which is a DateTime64 unless there are no digits of a second."""
    digits = constant_integer(name, arguments, 1, "the digits of a second")
    if not digits:
        without = (arguments[0], *arguments[2:])
        return converted_call(name, CONVERSIONS["toDateTime"].target(name, without), without)
    target = CONVERSIONS["toDateTime64"].target(name, arguments)
    return converted_call(name, target, arguments)


def _date_in_zone(name: str, target: types.DataType, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toDate(x, zone) or toDate32(x, zone): the date of a DateTime in the zone. For other types of x the
    zone does not count."""
    source = arguments[0].type
    inner = types.plain(source)
    if not isinstance(inner, types.DateTime | types.DateTime64):
        constant_text(name, arguments, 1, "the time zone")
        return converted_call(name, target, arguments)
    zone = constant_zone(name, arguments, 1)
    zoned = replace(inner, zone=zone)
    shown = types.Nullable(zoned) if types.is_nullable(source) else zoned
    call = converted_call(name, target, [Argument(shown)])
    return ScalarCall(name, call.type, lambda v, r, e: call.kernel([rezoned(v[0], zoned)], r, e))


def _to_string(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toString(x[, zone]).

    LowCardinality stays; a zone is allowed only for a DateTime or DateTime64.
    """
    if len(arguments) == 2:
        inner = types.plain(arguments[0].type)
        if not isinstance(inner, types.DateTime | types.DateTime64):
            raise NumberOfArgumentsDoesntMatch(
                f"Function {name} takes one argument: a time zone is for a DateTime and a DateTime64."
            )
        zone = constant_zone(name, arguments, 1)
        zoned = (
            types.DateTime64(inner.precision, zone)
            if isinstance(inner, types.DateTime64)
            else types.DateTime(zone)
        )
        shown = types.Nullable(zoned) if types.is_nullable(arguments[0].type) else zoned
        call = converted_call(name, types.STRING, [Argument(shown)])
        return ScalarCall(
            name, call.type, lambda v, r, e: call.kernel([rezoned(v[0], zoned)], r, e)
        )
    if isinstance(arguments[0].type, types.LowCardinality):
        inner_call = converted_call(name, types.STRING, [Argument(arguments[0].type.inner)])
        return ScalarCall(name, types.LowCardinality(inner_call.type), inner_call.kernel)
    return converted_call(name, types.STRING, arguments)


def _to_time_zone(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toTimeZone(t, zone): the same instant in another zone."""
    zone = constant_zone(name, arguments, 1)
    inner = types.plain(arguments[0].type)
    if not isinstance(inner, types.DateTime | types.DateTime64):
        raise illegal(name, arguments[0].type, "a DateTime or DateTime64")
    target = (
        types.DateTime64(inner.precision, zone)
        if isinstance(inner, types.DateTime64)
        else types.DateTime(zone)
    )
    result = types.Nullable(target) if types.is_nullable(arguments[0].type) else target
    return ScalarCall(name, result, lambda v, r, e: rezoned(v[0], target), monotonic=True)


def _to_bool(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toBool(x); a bare NULL gives NULL of Nullable(Bool)."""
    if isinstance(types.plain(arguments[0].type), types.Nothing):
        nothing = pa.scalar(None, types.BOOL.arrow)
        return ScalarCall(
            name, types.Nullable(types.BOOL), lambda values, rows, environment: nothing
        )
    return converted_call(name, types.BOOL, arguments)


def _to_low_cardinality(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toLowCardinality(x), which changes the type alone.

    Raises IllegalTypeOfArgument for a type that LowCardinality cannot have."""
    inner = arguments[0].type
    if not isinstance(types.plain(inner), IN_DICTIONARIES):
        raise illegal(name, inner, "a String, number or date")
    result = inner if isinstance(inner, types.LowCardinality) else types.LowCardinality(inner)
    return ScalarCall(name, result, lambda v, r, e: v[0])


_EXTRA_MAX = {"toDate32": 1, "toDateTime": 2}
"""Arguments after the first of conversions whose forms OrNull, OrZero and OrDefault take fewer."""


def _definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all conversions in `CONVERSIONS`, with the suffixes …OrNull, …OrZero and …OrDefault,
    and of toInterval…."""
    definitions: list[ScalarDefinition] = []
    for name, conversion in CONVERSIONS.items():
        low, high = conversion.extra
        insensitive = name in ("toDate", "toDateTime")
        definitions.append(
            custom(
                name,
                _plain_conversion(conversion),
                count=(1 + low, 1 + _EXTRA_MAX.get(name, high)),
                aliases=("DATE",) if name == "toDate" else (),
                insensitive=insensitive,
            )
        )
        least = (
            1 if name in ("toDateTime64", "toTime64") else 1 + low
        )  # the precision has a default
        for suffix in ("Null", "Zero"):
            definitions.append(
                custom(f"{name}Or{suffix}", or_else(conversion, suffix), count=(least, 1 + high))
            )
        if name in ("toTime", "toTime64", "toBFloat16"):
            continue  # ClickHouse has none of these
        definitions.append(
            custom(f"{name}OrDefault", or_else(conversion, "Default"), count=(1 + low, 2 + high))
        )
    for unit in types.INTERVAL_UNITS:
        definitions.append(custom(f"toInterval{unit}", _to_interval_of(types.Interval(unit))))
    return tuple(definitions)


def _to_interval_of(target: types.Interval) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of toInterval… for one unit: texts are parsed, floats cut to integers."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; a text or a float is converted to Int64 first."""
        if not isinstance(types.plain(arguments[0].type), types.String | types.Float):
            return converted_call(name, target, arguments)
        number = converted_call(name, types.INT64, arguments)
        interval = converted_call(name, target, [Argument(number.type)])

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Convert to an integer, then to the interval."""
            whole = number.kernel(values, rows, environment)
            return interval.kernel([whole], rows, environment)

        return ScalarCall(name, interval.type, kernel)

    return resolve


def _to_interval(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toInterval(n, unit): an interval of n units, a constant such as 'day'.

    Raises BadArguments."""
    if isinstance(types.plain(arguments[1].type), types.Nothing):
        raise BadArguments(f"Argument 2 of function {name}, the unit, must not be NULL.")
    unit = constant_text(name, arguments, 1, "the unit").capitalize()
    if unit not in types.INTERVAL_UNITS:
        raise BadArguments(
            f"{name} does not know the unit {unit!r}.",
            hint=f"It knows {', '.join(u.lower() for u in types.INTERVAL_UNITS)}.",
        )
    call = converted_call(name, types.Interval(unit), arguments[:1])
    return ScalarCall(name, call.type, lambda v, r, e: call.kernel(v[:1], r, e))


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    *_definitions(),
    custom("toString", by_row_zone(_to_string, 1), count=(1, 2)),
    custom(
        "toFixedString", _plain_conversion(ConversionFunction(fixed_string_type, (1, 1))), count=2
    ),
    custom("toBool", _to_bool),
    custom("toInterval", _to_interval, count=2),
    custom("toTimeZone", _to_time_zone, count=2, aliases=("toTimezone",)),
    custom("toLowCardinality", _to_low_cardinality),
)
