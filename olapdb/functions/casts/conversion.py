"""toUInt8 … toString, with …OrNull, …OrZero, …OrDefault; accurateCast; CAST as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import ArgumentOutOfBound, BadArguments, CannotConvertType, TypeMismatch
from olapdb.functions.aggregates.registry import state_representation
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import cast
from olapdb.functions.datetime.zones import own_zone, with_zone_of
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import NULL_TYPE
from olapdb.functions.scalar import (
    ScalarDefinition,
    constant_integer,
    constant_text,
    constant_zone,
    custom,
    illegal,
)

Target = Callable[[str, Sequence[Argument]], types.DataType]


@dataclass(frozen=True)
class _Conversion:
    """`target` from the arguments after the first, of which there may be `extra`."""

    target: Target
    extra: tuple[int, int]
    aliases: tuple[str, ...] = ()


def _fixed(data_type: types.DataType) -> Target:
    return lambda name, arguments: data_type


def _zoned(name: str, arguments: Sequence[Argument]) -> types.DataType:
    if len(arguments) > 1:
        return types.DateTime(constant_zone(name, arguments, 1))
    return types.DateTime(own_zone(arguments[0].type))


def _zoned64(name: str, arguments: Sequence[Argument]) -> types.DataType:
    precision = constant_integer(name, arguments, 1, "the precision") if len(arguments) > 1 else 3
    if not 0 <= precision <= 9:
        raise ArgumentOutOfBound(f"DateTime64 has a precision of 0 to 9, not {precision}.")
    if len(arguments) > 2:
        return types.DateTime64(precision, constant_zone(name, arguments, 2))
    return types.DateTime64(precision, own_zone(arguments[0].type))


def _decimal(precision: int) -> Target:
    def target(name: str, arguments: Sequence[Argument]) -> types.DataType:
        scale = constant_integer(name, arguments, 1, "the scale")
        if not 0 <= scale <= precision:
            raise ArgumentOutOfBound(f"The scale of {name} is 0 to {precision}, not {scale}.")
        return types.Decimal(precision, scale)

    return target


def _fixed_string(name: str, arguments: Sequence[Argument]) -> types.DataType:
    length = constant_integer(name, arguments, 1, "the length")
    if length <= 0:
        raise ArgumentOutOfBound(f"The length of a FixedString is positive, not {length}.")
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
    "toUUID": _Conversion(_fixed(types.UUID_TYPE), _NO_EXTRA),
}


def _converted(name: str, target: types.DataType, arguments: Sequence[Argument]) -> ScalarCall:
    source = arguments[0].type
    if isinstance(types.plain(source), types.Nothing):
        return ScalarCall(name, NULL_TYPE, lambda v, r, e: pa.scalar(None, pa.null()))
    result = types.make_nullable(target) if types.is_nullable(source) else target
    _check_possible(name, source, target)
    strict = isinstance(
        target, types.FixedString | types.Boolean
    )  # no NULL for a text that does not fit

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        return cast.cast_column(values[0], source, result, environment, strict=strict)

    return ScalarCall(name, result, kernel, monotonic=_is_monotonic(types.plain(source), target))


def _is_monotonic(source: types.DataType, target: types.DataType) -> bool:
    """Whether greater values never become lesser ones: none wraps, and a number is not days here
    and seconds there."""
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
"""An integer of more bits may be seconds since 1970."""


def _check_possible(name: str, source: types.DataType, target: types.DataType) -> None:
    """Fails early, by types: an array has no number."""
    if not _is_possible(types.plain(source), target):
        raise illegal(name, source, f"something that converts to {target}")


@lru_cache(maxsize=1_024)
def _is_possible(source: types.DataType, target: types.DataType) -> bool:
    try:
        cast.cast_column(pa.nulls(0, source.arrow), source, target, Environment(), strict=True)
    except TypeMismatch:
        return False
    return True


def _plain_conversion(one: _Conversion) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        target = one.target(name, arguments)
        zone = len(arguments) == 2 and name == "toDate"
        if zone:
            constant_zone(name, arguments, 1)
            raise BadArguments(
                "toDate takes no time zone here.", hint="Use toDate(toTimeZone(x, zone))."
            )
        return _converted(name, target, arguments)

    return resolve


def _or(one: _Conversion, otherwise: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """…OrNull, …OrZero, …OrDefault: what stands for a text that does not parse."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        source = arguments[0].type
        given = arguments
        default: Argument | None = None
        if otherwise == "Default" and len(arguments) > one.extra[0] + 1:
            default, given = arguments[-1], arguments[:-1]
        if otherwise != "Default" and not isinstance(
            types.plain(source), types.String | types.FixedString | types.Nothing
        ):
            raise illegal(name, source, "a String")
        target = one.target(name, given)
        if isinstance(types.plain(source), types.Nothing) and otherwise != "Default":
            return ScalarCall(name, NULL_TYPE, lambda v, r, e: pa.scalar(None, pa.null()))
        if default is not None and default.type != target:
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
            found = cast.cast_or_null(
                values[0],
                source,
                types.make_nullable(target),
                environment,
                basic=otherwise != "Default",
            )
            if changes_numbers:
                found = _kept(values[0], source, found, target, environment)
            if otherwise == "Null":
                return found
            missing = values[-1] if default is not None else default_value(target)
            return _filled(found, missing, None if result == target else values[0])

        return ScalarCall(name, result, kernel)

    return resolve


def _filled(found: Column, missing: Column, source: Column | None) -> Column:
    """`missing` where nothing was found; NULL where the source itself was NULL."""
    if isinstance(found, pa.Scalar):
        if source is not None and not source.is_valid:
            return found
        return found if found.is_valid else missing
    filled = (
        pc.fill_null(found, missing)
        if isinstance(missing, pa.Scalar)
        else pc.coalesce(found, missing)
    )
    if source is None or isinstance(source, pa.Scalar) or not source.null_count:
        return filled
    return pc.if_else(source.is_valid(), filled, pa.scalar(None, filled.type))


def _to_string(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    if len(arguments) == 2:
        zone = constant_zone(name, arguments, 1)
        inner = types.plain(arguments[0].type)
        if not isinstance(inner, types.DateTime | types.DateTime64):
            raise illegal(name, arguments[0].type, "a DateTime, where a time zone is given,")
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
    if isinstance(column, pa.Scalar):
        return columns.view(columns.single(column), data_type.arrow)[0]
    return columns.view(column, data_type.arrow)


def _to_time_zone(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """The same instant, shown in another zone."""
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


def _named_type(name: str, arguments: Sequence[Argument]) -> types.DataType:
    return types.parse_type(constant_text(name, arguments, 1, "the type"), state_representation)


def _cast(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    source = arguments[0].type
    target = with_zone_of(source, _named_type(name, arguments))

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        return cast.cast_column(values[0], source, target, environment, strict=False)

    return ScalarCall(name, target, kernel)


def _accurate(*, or_null: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """A cast that refuses (or gives NULL for) values that would change."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        source = arguments[0].type
        target = with_zone_of(source, _named_type(name, arguments))
        result = types.make_nullable(target) if or_null or types.is_nullable(source) else target

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            array = columns.single(values[0])
            kept = cast.cast_or_null(array, source, types.make_nullable(target), environment)
            if not isinstance(
                types.plain(source), types.String | types.FixedString | types.Nothing
            ):
                kept = _unchanged(array, source, kept, target, environment)
            lost = np.asarray(pc.and_(kept.is_null(), array.is_valid()))
            if not or_null and lost.any():
                row = int(np.argmax(lost))
                raise CannotConvertType(
                    f"Value {array[row].as_py()!r} cannot be safely converted to {target}."
                ).at_row(row)
            return kept[0] if isinstance(values[0], pa.Scalar) else kept

        return ScalarCall(name, result, kernel)

    return resolve


def _kept(
    column: Column,
    source: types.DataType,
    found: Column,
    target: types.DataType,
    environment: Environment,
) -> Column:
    """As `_unchanged`, of a constant too."""
    made = _unchanged(columns.single(column), source, columns.single(found), target, environment)
    return made[0] if isinstance(found, pa.Scalar) else made


def _unchanged(
    array: pa.Array,
    source: types.DataType,
    kept: pa.Array,
    target: types.DataType,
    environment: Environment,
) -> pa.Array:
    """NULL where the value does not come back as it was."""
    if not isinstance(types.plain(source), types.Integer | types.Float | types.Decimal):
        return kept
    if isinstance(types.plain(source), types.Float) and isinstance(
        types.plain(target), types.Decimal
    ):
        return kept  # digits beyond the scale are cut off here too
    back = cast.cast_or_null(
        kept, types.make_nullable(target), types.make_nullable(source), environment
    )
    same = pc.fill_null(pc.equal(back, array), False)
    if isinstance(types.plain(source), types.Float) and isinstance(
        types.plain(target), types.Float
    ):
        same = pc.or_(same, pc.and_(pc.is_nan(array), pc.is_nan(kept)).fill_null(False))
    signs = pc.equal(
        pc.less(kept.cast(pa.float64(), safe=False), 0.0),
        pc.less(array.cast(pa.float64(), safe=False), 0.0),
    )
    same = pc.and_(same, pc.fill_null(signs, False))
    return pc.if_else(same, kept, pa.scalar(None, kept.type))


def _interval(unit: str) -> Target:
    return _fixed(types.Interval(unit))


def _to_bool(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    if isinstance(types.plain(arguments[0].type), types.Nothing):
        nothing = pa.scalar(None, types.BOOL.arrow)
        return ScalarCall(
            name, types.Nullable(types.BOOL), lambda values, rows, environment: nothing
        )
    return _converted(name, types.BOOL, arguments)


def _to_low_cardinality(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    inner = arguments[0].type
    if isinstance(types.plain(inner), types.Array):
        raise illegal(name, inner, "a String, number or date")
    result = inner if isinstance(inner, types.LowCardinality) else types.LowCardinality(inner)
    return ScalarCall(name, result, lambda v, r, e: v[0])


def _definitions() -> tuple[ScalarDefinition, ...]:
    made: list[ScalarDefinition] = []
    for name, one in _CONVERSIONS.items():
        low, high = one.extra
        insensitive = name in ("toDate", "toDateTime")
        made.append(
            custom(name, _plain_conversion(one), count=(1 + low, 1 + high), insensitive=insensitive)
        )
        for suffix in ("Null", "Zero"):
            made.append(custom(f"{name}Or{suffix}", _or(one, suffix), count=(1 + low, 1 + high)))
        made.append(custom(f"{name}OrDefault", _or(one, "Default"), count=(1 + low, 2 + high)))
    for unit in (
        "Nanosecond",
        "Microsecond",
        "Millisecond",
        "Second",
        "Minute",
        "Hour",
        "Day",
        "Week",
        "Month",
        "Quarter",
        "Year",
    ):
        made.append(
            custom(f"toInterval{unit}", _plain_conversion(_Conversion(_interval(unit), _NO_EXTRA)))
        )
    return tuple(made)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    *_definitions(),
    custom("toString", _to_string, count=(1, 2)),
    custom("toFixedString", _plain_conversion(_Conversion(_fixed_string, (1, 1))), count=2),
    custom("toBool", _to_bool),
    custom("toTimeZone", _to_time_zone, count=2),
    custom("toLowCardinality", _to_low_cardinality),
    custom("CAST", _cast, count=2, insensitive=True),
    custom("_CAST", _cast, count=2, insensitive=True),
    custom("accurateCast", _accurate(or_null=False), count=2),
    custom("accurateCastOrNull", _accurate(or_null=True), count=2),
)
