"""toUInt8 … toString with …OrNull, …OrZero, …OrDefault.

ToTimeZone, toInterval…, toLowCardinality.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import (
    ArgumentOutOfBound,
    BadArguments,
    NotSupportedError,
    NumberOfArgumentsDoesntMatch,
    TypeMismatch,
)
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import cast
from olapdb.functions.casts.cast_functions import unchanged_or_null
from olapdb.functions.datetime.row_zones import by_row_zone
from olapdb.functions.datetime.zones import own_zone
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import IN_DICTIONARIES, NULL_TYPE, low_cardinality_result
from olapdb.functions.scalar import (
    ScalarDefinition,
    constant_integer,
    constant_text,
    constant_zone,
    custom,
    illegal,
)
from olapdb.records import dataclass

Target = Callable[[str, Sequence[Argument]], types.DataType]


@dataclass(frozen=True)
class _Conversion:
    """A conversion function: its target type, computed from the arguments.

    `extra` bounds the number of arguments after the first.
    """

    target: Target
    extra: tuple[int, int]
    aliases: tuple[str, ...] = ()


def _fixed(data_type: types.DataType) -> Target:
    """Return a function from any arguments to `data_type`."""
    return lambda name, arguments: data_type


def _zoned(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the DateTime of toDateTime(x[, zone]); without a zone it has the source's, or None."""
    if len(arguments) > 1:
        return types.DateTime(constant_zone(name, arguments, 1))
    return types.DateTime(own_zone(arguments[0].type))


def _zoned64(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the DateTime64 of toDateTime64(x, precision[, zone]); without a zone it has the
    source's.

    The precision is 3 if absent. Raises ArgumentOutOfBound unless it is from 0 to 9.
    """
    precision = constant_integer(name, arguments, 1, "the precision") if len(arguments) > 1 else 3
    if not 0 <= precision <= 9:
        raise ArgumentOutOfBound(f"DateTime64 has a precision of 0 to 9, not {precision}.")
    if len(arguments) > 2:
        return types.DateTime64(precision, constant_zone(name, arguments, 2))
    return types.DateTime64(precision, own_zone(arguments[0].type))


def _time64(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the Time64 of toTime64(x, precision); the precision is 3 if absent.

    Raises BadArguments for a precision above 9, and ArgumentOutOfBound below 0."""
    precision = constant_integer(name, arguments, 1, "the precision") if len(arguments) > 1 else 3
    if precision < 0:
        raise ArgumentOutOfBound(f"Time64 has a precision of 0 to 9, not {precision}.")
    if precision > 9:
        raise BadArguments(f"Time64 has a precision of 0 to 9, not {precision}.")
    return types.Time64(precision)


def _decimal(precision: int) -> Target:
    """Return a function from toDecimal…(x, scale) to its Decimal type."""

    def target(name: str, arguments: Sequence[Argument]) -> types.DataType:
        """Return the Decimal; raise ArgumentOutOfBound for a scale outside 0 … precision."""
        scale = constant_integer(name, arguments, 1, "the scale")
        if not 0 <= scale <= precision:
            raise ArgumentOutOfBound(f"The scale of {name} is 0 to {precision}, not {scale}.")
        return types.Decimal(precision, scale)

    return target


def _fixed_string(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the type of toFixedString(x, length).

    Raises ArgumentOutOfBound for a length that no FixedString has, NotSupportedError unless x is a
    text."""
    if not isinstance(
        types.plain(arguments[0].type), types.String | types.FixedString | types.Nothing
    ):
        raise NotSupportedError(
            f"{name} takes a text, not {arguments[0].type}: toString(x) is one."
        )
    length = constant_integer(name, arguments, 1, "the length")
    longest = types.FIXED_STRING_BYTES_MAX
    if not 1 <= length <= longest:
        raise ArgumentOutOfBound(f"A FixedString has 1 to {longest} bytes, not {length}.")
    return types.FixedString(length)


_NO_EXTRA = (0, 0)
_CONVERSIONS: dict[str, _Conversion] = {
    **{
        f"to{t.name}": _Conversion(_fixed(t), _NO_EXTRA)
        for t in (
            types.UINT8,
            types.UINT16,
            types.UINT32,
            types.UINT64,
            types.INT8,
            types.INT16,
            types.INT32,
            types.INT64,
            types.INT128,
            types.UINT128,
            types.INT256,
            types.UINT256,
            types.BFLOAT16,
            types.FLOAT32,
            types.FLOAT64,
            types.DATE32,
        )
    },
    "toDate": _Conversion(_fixed(types.DATE), (0, 1)),
    "toDateTime": _Conversion(_zoned, (0, 1)),
    "toDateTime64": _Conversion(_zoned64, (1, 2)),
    "toDecimal32": _Conversion(_decimal(9), (1, 1)),
    "toDecimal64": _Conversion(_decimal(18), (1, 1)),
    "toDecimal128": _Conversion(_decimal(38), (1, 1)),
    "toDecimal256": _Conversion(_decimal(76), (1, 1)),
    "toTime": _Conversion(_fixed(types.TIME), _NO_EXTRA),
    "toTime64": _Conversion(_time64, (1, 1)),
    "toUUID": _Conversion(_fixed(types.UUID_TYPE), _NO_EXTRA),
    "toIPv4": _Conversion(_fixed(types.IPV4), _NO_EXTRA),
    "toIPv6": _Conversion(_fixed(types.IPV6), _NO_EXTRA),
}


def _converted(name: str, target: types.DataType, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call that casts the first argument to `target`; NULL becomes NULL."""
    source = arguments[0].type
    if isinstance(types.plain(source), types.Nothing):
        return ScalarCall(name, NULL_TYPE, lambda v, r, e: pa.scalar(None, pa.null()))
    result = types.make_nullable(target) if types.is_nullable(source) else target
    _check_possible(name, source, target)
    strict = isinstance(
        target, types.FixedString | types.Boolean
    )  # no NULL for a text that does not fit

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the first argument to the result type."""
        return cast.cast_column(values[0], source, result, environment, strict=strict)

    shown = _shown(result, arguments)
    return ScalarCall(name, shown, kernel, monotonic=_is_monotonic(types.plain(source), target))


def _shown(result: types.DataType, arguments: Sequence[Argument]) -> types.DataType:
    """Return the result's type as LowCardinality if that is what the converted argument is."""
    fixed = [argument.constant is not None for argument in arguments]
    return low_cardinality_result(result, [a.type for a in arguments], fixed)


def _is_monotonic(source: types.DataType, target: types.DataType) -> bool:
    """Return whether greater values never convert to lesser ones.

    Not so where integers wrap, and where one range means days and the other seconds.
    """
    match source, target:
        case types.Integer() | types.DateTime() | types.DateTime64(), _ if source == target:
            return True
        case types.Integer(), types.Integer():
            return target.minimum <= source.minimum and source.maximum <= target.maximum
        case types.Integer(), types.Date():
            return source.maximum <= calendar.DATE_MAX
        case types.Integer(), types.Date32():
            return source.bits <= _DAYS_BITS_MAX
        case types.DateTime(), types.Date() | types.Date32():
            return True
        case types.Integer() | types.DateTime() | types.DateTime64(), types.DateTime():
            return True
        case types.DateTime() | types.DateTime64(), types.Integer(64, signed=True):
            return True
        case _:
            return False


_DAYS_BITS_MAX = 16
"""Integers of more bits may be seconds since 1970 instead of days."""


def _check_possible(name: str, source: types.DataType, target: types.DataType) -> None:
    """Raise IllegalTypeOfArgument, when a call is resolved, if no cast exists between the types."""
    if not _is_possible(types.plain(source), target):
        raise illegal(name, source, f"something that converts to {target}")


@lru_cache(maxsize=1_024)
def _is_possible(source: types.DataType, target: types.DataType) -> bool:
    """Return whether a cast exists, by casting a column without rows."""
    try:
        cast.cast_column(pa.nulls(0, source.arrow), source, target, Environment(), strict=True)
    except TypeMismatch:
        return False
    return True


def _plain_conversion(conversion: _Conversion) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of a conversion that raises for values that do not convert."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; toDate takes the date that a clock of the zone shows."""
        target = conversion.target(name, arguments)
        if len(arguments) == 2 and name == "toDate":
            return _date_in_zone(name, arguments)
        return _converted(name, target, arguments)

    return resolve


def _date_in_zone(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toDate(x, zone): the date of a DateTime in the zone; others need no zone."""
    zone = constant_zone(name, arguments, 1)
    source = arguments[0].type
    inner = types.plain(source)
    if not isinstance(inner, types.DateTime | types.DateTime64):
        return _converted(name, types.DATE, arguments)
    zoned = replace(inner, zone=zone)
    shown = types.Nullable(zoned) if types.is_nullable(source) else zoned
    call = _converted(name, types.DATE, [Argument(shown)])
    return ScalarCall(name, call.type, lambda v, r, e: call.kernel([_rezoned(v[0], zoned)], r, e))


def _least_or_default(target: types.DataType) -> pa.Scalar:
    """Return what …OrZero gives for an unparsable text: the type's default, of Date32 its first
    day."""
    if isinstance(target, types.Date32):
        return pa.scalar(datetime.date(1900, 1, 1), target.arrow)
    return default_value(target)


def _or(conversion: _Conversion, otherwise: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of …OrNull, …OrZero or …OrDefault.

    `otherwise` ("Null", "Zero" or "Default") decides the value of unparsable texts.
    """

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; …OrNull and …OrZero take texts, toDateOrNull and toDateTimeOrNull
        integers, too. Raises BadArguments."""
        source = arguments[0].type
        target_arguments = arguments
        default: Argument | None = None
        if name == "toDateTimeOrDefault" and len(arguments) == 2:
            zone_type = types.plain(arguments[1].type)
            if not isinstance(zone_type, types.String):
                raise illegal(name, arguments[1].type, "a zone, in front of the default")
        if otherwise == "Default" and len(arguments) > conversion.extra[0] + 1:
            default, target_arguments = arguments[-1], arguments[:-1]
        if name in ("toDateOrNull", "toDateTimeOrNull") and _is_integer(source):
            return _time_or_null(name, conversion.target(name, arguments), arguments)
        if otherwise != "Default" and not isinstance(
            types.plain(source), types.String | types.FixedString | types.Nothing
        ):
            raise illegal(name, source, "a String")
        target = conversion.target(name, target_arguments)
        if isinstance(types.plain(source), types.Nothing) and otherwise != "Default":
            return ScalarCall(name, NULL_TYPE, lambda v, r, e: pa.scalar(None, pa.null()))
        if default is not None and default.type != with_own_zone(target, default.type):
            raise BadArguments(
                f"The default of {name} must be of type {target}, not {default.type}."
            )
        result = (
            types.make_nullable(target)
            if otherwise == "Null" or types.is_nullable(source)
            else target
        )
        if otherwise == "Default":
            result = target
        changes_numbers = isinstance(
            types.plain(source), types.Integer | types.Float
        ) and isinstance(target, types.Integer | types.Float)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Convert the first argument; values that do not convert give NULL, zero or the
            default.
            """
            given = values[0]
            if type(target) in _SECONDS and _is_integer(source):
                kept = _within(columns.single(given), target)
                given = kept[0] if isinstance(given, pa.Scalar) else kept
            converted = cast.cast_or_null(
                given,
                types.make_nullable(source) if given is not values[0] else source,
                types.make_nullable(target),
                environment,
                basic=otherwise != "Default",
            )
            if changes_numbers:
                converted = _unchanged(values[0], source, converted, target, environment)
            if otherwise == "Null":
                return converted
            missing = _least_or_default(target)
            if default is not None:
                is_zoned = isinstance(target, types.DateTime | types.DateTime64)
                missing = _rezoned(values[-1], target) if is_zoned else values[-1]
            return _filled(converted, missing, None if result == target else values[0])

        return ScalarCall(name, _shown(result, arguments), kernel)

    return resolve


def _is_integer(data_type: types.DataType) -> bool:
    """Return whether a type is an integer of at most 64 bits, Nullable or not."""
    return isinstance(types.plain(data_type), types.Integer)


def _time_or_null(name: str, target: types.DataType, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call that converts an integer to a Date or DateTime, NULL beyond 32 bits."""
    converted = _converted(name, types.make_nullable(target), arguments[:1])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Convert the numbers from 0 to 2^32 - 1; the others are NULL."""
        kept = _within(columns.single(values[0]), target)
        result = columns.single(converted.kernel([kept], len(kept), environment))
        return result[0] if isinstance(values[0], pa.Scalar) else result

    return ScalarCall(name, converted.type, kernel)


_SECONDS = {
    types.Date: (0, (1 << 32) - 1),
    types.DateTime: (0, (1 << 32) - 1),
    types.Date32: (-719_162, 253_402_300_799),  # negative numbers are days
}
"""The first and the last number that …OrNull and …OrDefault take for a date or time."""


def _within(numbers: pa.Array, target: types.DataType) -> pa.Array:
    """Return integers, NULL in place of those that a Date, Date32 or DateTime cannot hold."""
    low, high = _SECONDS[type(target)]
    wide = numbers.cast(pa.decimal128(20, 0))
    inside = pc.and_(
        pc.greater_equal(wide, pa.scalar(low, wide.type)),
        pc.less_equal(wide, pa.scalar(high, wide.type)),
    )
    return pc.if_else(inside, numbers, pa.scalar(None, numbers.type))


def with_own_zone(target: types.DataType, other: types.DataType) -> types.DataType:
    """Return `target` with the zone of another type, if both are times that have one."""
    if isinstance(target, types.DateTime) and isinstance(other, types.DateTime):
        return replace(target, zone=other.zone)
    if isinstance(target, types.DateTime64) and isinstance(other, types.DateTime64):
        return replace(target, zone=other.zone)
    return target


def _filled(converted: Column, missing: Column, source: Column | None) -> Column:
    """Return `missing` where the conversion failed, and NULL where `source` is NULL.

    Without `source` the result has no NULL.
    """
    if isinstance(converted, pa.Scalar):
        if source is not None and not source.is_valid:
            return converted
        return converted if converted.is_valid else missing
    filled = (
        pc.fill_null(converted, missing)
        if isinstance(missing, pa.Scalar)
        else pc.coalesce(converted, missing)
    )
    if source is None or isinstance(source, pa.Scalar) or not source.null_count:
        return filled
    return pc.if_else(source.is_valid(), filled, pa.scalar(None, filled.type))


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
        call = _converted(name, types.STRING, [Argument(shown)])
        return ScalarCall(
            name, call.type, lambda v, r, e: call.kernel([_rezoned(v[0], zoned)], r, e)
        )
    if isinstance(arguments[0].type, types.LowCardinality):
        inner_call = _converted(name, types.STRING, [Argument(arguments[0].type.inner)])
        return ScalarCall(name, types.LowCardinality(inner_call.type), inner_call.kernel)
    return _converted(name, types.STRING, arguments)


def _rezoned(column: Column, data_type: types.DataType) -> Column:
    """Return timestamps under a type with another zone; the instants stay."""
    if isinstance(column, pa.Scalar):
        return columns.view(columns.single(column), data_type.arrow)[0]
    return columns.view(column, data_type.arrow)


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
    return ScalarCall(name, result, lambda v, r, e: _rezoned(v[0], target), monotonic=True)


def _unchanged(
    column: Column,
    source: types.DataType,
    converted: Column,
    target: types.DataType,
    environment: Environment,
) -> Column:
    """Return `converted` with NULL where a number changed, as `unchanged_or_null`; also for a
    constant.
    """
    result = unchanged_or_null(
        columns.single(column), source, columns.single(converted), target, environment
    )
    return result[0] if isinstance(converted, pa.Scalar) else result


def _to_bool(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toBool(x); a bare NULL gives NULL of Nullable(Bool)."""
    if isinstance(types.plain(arguments[0].type), types.Nothing):
        nothing = pa.scalar(None, types.BOOL.arrow)
        return ScalarCall(
            name, types.Nullable(types.BOOL), lambda values, rows, environment: nothing
        )
    return _converted(name, types.BOOL, arguments)


def _to_low_cardinality(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toLowCardinality(x), which changes the type alone.

    Raises IllegalTypeOfArgument for a type that LowCardinality cannot have."""
    inner = arguments[0].type
    if not isinstance(types.plain(inner), IN_DICTIONARIES):
        raise illegal(name, inner, "a String, number or date")
    result = inner if isinstance(inner, types.LowCardinality) else types.LowCardinality(inner)
    return ScalarCall(name, result, lambda v, r, e: v[0])


def _definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all conversions in `_CONVERSIONS`, with suffixes, and of
    toInterval….
    """
    definitions: list[ScalarDefinition] = []
    for name, conversion in _CONVERSIONS.items():
        low, high = conversion.extra
        insensitive = name in ("toDate", "toDateTime")
        definitions.append(
            custom(
                name,
                _plain_conversion(conversion),
                count=(1 + low, 1 + high),
                aliases=("DATE",) if name == "toDate" else (),
                insensitive=insensitive,
            )
        )
        least = (
            1 if name in ("toDateTime64", "toTime64") else 1 + low
        )  # the precision has a default
        for suffix in ("Null", "Zero"):
            definitions.append(
                custom(f"{name}Or{suffix}", _or(conversion, suffix), count=(least, 1 + high))
            )
        if name in ("toTime", "toTime64", "toBFloat16"):
            continue  # ClickHouse has none of these
        definitions.append(
            custom(f"{name}OrDefault", _or(conversion, "Default"), count=(1 + low, 2 + high))
        )
    for unit in types.INTERVAL_UNITS:
        definitions.append(custom(f"toInterval{unit}", _to_interval_of(types.Interval(unit))))
    return tuple(definitions)


def _to_interval_of(target: types.Interval) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of toInterval… for a unit: texts are parsed, floats cut to integers."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call, by way of Int64 for a text or a float."""
        if not isinstance(types.plain(arguments[0].type), types.String | types.Float):
            return _converted(name, target, arguments)
        number = _converted(name, types.INT64, arguments)
        interval = _converted(name, target, [Argument(number.type)])

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Convert to an integer, then to the interval."""
            whole = number.kernel(values, rows, environment)
            return interval.kernel([whole], rows, environment)

        return ScalarCall(name, interval.type, kernel)

    return resolve


def _to_interval(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toInterval(n, unit): an interval of n units, a constant such as 'day'.

    Raises BadArguments."""
    unit = constant_text(name, arguments, 1, "the unit").capitalize()
    if unit not in types.INTERVAL_UNITS:
        raise BadArguments(
            f"{name} does not know the unit {unit!r}.",
            hint=f"It knows {', '.join(u.lower() for u in types.INTERVAL_UNITS)}.",
        )
    call = _converted(name, types.Interval(unit), arguments[:1])
    return ScalarCall(name, call.type, lambda v, r, e: call.kernel(v[:1], r, e))


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    *_definitions(),
    custom("toString", by_row_zone(_to_string, 1), count=(1, 2)),
    custom("toFixedString", _plain_conversion(_Conversion(_fixed_string, (1, 1))), count=2),
    custom("toBool", _to_bool),
    custom("toInterval", _to_interval, count=2),
    custom("toTimeZone", _to_time_zone, count=2, aliases=("toTimezone",)),
    custom("toLowCardinality", _to_low_cardinality),
)
