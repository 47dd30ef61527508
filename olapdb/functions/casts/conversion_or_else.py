"""…OrNull, …OrZero and …OrDefault: conversions with another value for what does not convert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import BadArguments
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import cast
from olapdb.functions.casts.cast_functions import default_of_text, unchanged_or_null
from olapdb.functions.casts.conversion_calls import converted_call, rezoned, shown_type
from olapdb.functions.casts.conversion_targets import ConversionFunction
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import NULL_TYPE
from olapdb.functions.scalar import illegal


def or_else(
    conversion: ConversionFunction, otherwise: str
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of …OrNull, …OrZero or …OrDefault.

    `otherwise` ("Null", "Zero" or "Default") says what a value that does not convert gives."""
    if otherwise == "Default":
        return partial(_or_default, conversion)
    return partial(_of_text, conversion, otherwise)


def _of_text(
    conversion: ConversionFunction, otherwise: str, name: str, arguments: Sequence[Argument]
) -> ScalarCall:
    """Resolve …OrNull or …OrZero of a text; toDateOrNull and toDateTimeOrNull take integers too."""
    source = arguments[0].type
    if name in ("toDateOrNull", "toDateTimeOrNull") and _is_integer(source):
        return _time_or_null(name, conversion.target(name, arguments), arguments)
    if not isinstance(types.plain(source), types.String | types.FixedString | types.Nothing):
        raise illegal(name, source, "a String")
    target = conversion.target(name, arguments)
    if isinstance(types.plain(source), types.Nothing):
        return ScalarCall(name, NULL_TYPE, lambda v, r, e: pa.scalar(None, pa.null()))
    keeps_null = types.is_nullable(source)
    result = types.make_nullable(target) if otherwise == "Null" or keeps_null else target

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Convert the texts; those that do not parse give NULL or zero, by `otherwise`."""
        nullable = types.make_nullable(target)
        converted = cast.cast_or_null(values[0], source, nullable, environment, basic=True)
        if otherwise == "Null":
            return converted
        kept = None if result == target else values[0]
        return _filled(converted, default_of_text(target), kept)

    return ScalarCall(name, shown_type(result, arguments), kernel)


def _or_default(
    conversion: ConversionFunction, name: str, arguments: Sequence[Argument]
) -> ScalarCall:
    """Resolve …OrDefault, whose last argument may be the default for values that do not convert; else it is that of
    …OrZero. A zone stands in front of the default.

    Raises BadArguments for a default of another type than the result."""
    source = arguments[0].type
    if name == "toDateTimeOrDefault" and len(arguments) == 2:
        zone_type = types.plain(arguments[1].type)
        if not isinstance(zone_type, types.String):
            raise illegal(name, arguments[1].type, "a zone, in front of the default")
    has_zone_alone = (
        name in ("toDateTimeOrDefault", "toDateTime64OrDefault")
        and len(arguments) == conversion.extra[0] + 2
        and isinstance(types.plain(arguments[-1].type), types.String)
    )
    has_default = len(arguments) > conversion.extra[0] + 1 and not has_zone_alone
    target = conversion.target(name, arguments[:-1] if has_default else arguments)
    if has_default and arguments[-1].type != with_own_zone(target, arguments[-1].type):
        raise BadArguments(
            f"The default of {name} must be of type {target}, not {arguments[-1].type}."
        )
    changes_numbers = isinstance(types.plain(source), types.Integer | types.Float) and isinstance(
        target, types.Integer | types.Float
    )

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Convert the first argument; values that do not convert give the default."""
        given, given_type = values[0], source
        if type(target) in _SECONDS and _is_integer(source):
            kept = _within(columns.single(given), target)
            given = kept[0] if isinstance(given, pa.Scalar) else kept
            given_type = types.make_nullable(source)
        converted = cast.cast_or_null(given, given_type, types.make_nullable(target), environment)
        if changes_numbers:
            converted = _unchanged(values[0], source, converted, target, environment)
        if not has_default:
            return _filled(converted, default_of_text(target), None)
        is_zoned = isinstance(target, types.DateTime | types.DateTime64)
        return _filled(converted, rezoned(values[-1], target) if is_zoned else values[-1], None)

    return ScalarCall(name, shown_type(target, arguments), kernel)


def _is_integer(data_type: types.DataType) -> bool:
    """Return whether a type is an integer of at most 64 bits, Nullable or not."""
    return isinstance(types.plain(data_type), types.Integer)


def _time_or_null(name: str, target: types.DataType, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call that converts an integer to a Date or DateTime; NULL for numbers below 0 or beyond 32 bits."""
    converted = converted_call(name, types.make_nullable(target), arguments[:1])

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
    """Return integers; NULL in place of those beyond the range of the target, a Date, Date32 or DateTime."""
    low, high = _SECONDS[type(target)]
    wide = numbers.cast(pa.decimal128(20, 0))
    inside = pc.and_(
        pc.greater_equal(wide, pa.scalar(low, wide.type)),
        pc.less_equal(wide, pa.scalar(high, wide.type)),
    )
    return pc.if_else(inside, numbers, pa.scalar(None, numbers.type))


def with_own_zone(target: types.DataType, other: types.DataType) -> types.DataType:
    """Return `target` with the zone of `other` if both are DateTime, or both DateTime64; else `target` as given."""
    if isinstance(target, types.DateTime) and isinstance(other, types.DateTime):
        return replace(target, zone=other.zone)
    if isinstance(target, types.DateTime64) and isinstance(other, types.DateTime64):
        return replace(target, zone=other.zone)
    return target


def _filled(converted: Column, missing: Column, source: Column | None) -> Column:
    """Return `converted` with `missing` where it is NULL; but NULL where `source` is NULL.

    Without `source` the result has no NULL."""
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


def _unchanged(
    column: Column,
    source: types.DataType,
    converted: Column,
    target: types.DataType,
    environment: Environment,
) -> Column:
    """Return `converted` with NULL where a number changed, as `unchanged_or_null` does; takes constants too."""
    result = unchanged_or_null(
        columns.single(column), source, columns.single(converted), target, environment
    )
    return result[0] if isinstance(converted, pa.Scalar) else result
