"""CAST, accurateCast and accurateCastOrNull as functions."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import (
    BadArguments,
    CannotConvertType,
    CannotInsertNull,
    CannotParse,
    IllegalTypeOfArgument,
)
from olapdb.functions.aggregates.registry import state_representation
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import cast
from olapdb.functions.datetime.zones import with_zone_of
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.scalar import ScalarDefinition, constant_text, custom
from olapdb.types.arrow_values import to_numpy

_CONTAINERS = types.Array | types.Map | types.Tuple
_TIMES = types.Date | types.Date32 | types.DateTime | types.DateTime64


def _named_type(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the type that the second argument, a constant string, names."""
    if arguments[1].constant is None and name != "CAST":
        raise IllegalTypeOfArgument(f"The type that {name} casts to is a constant string.")
    return types.parse_type(constant_text(name, arguments, 1, "the type"), state_representation)


def _cast(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve CAST(x, type); a DateTime without a zone keeps the source's."""
    source = arguments[0].type
    target = with_zone_of(source, _named_type(name, arguments))

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the first argument to the type that the constant second argument names."""
        return cast.cast_column(values[0], source, target, environment, strict=False)

    return ScalarCall(name, target, kernel)


def _accurate(*, or_null: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of accurateCast, which raises for a value that would change (a text
    gives NULL where the target is Nullable), or with `or_null` of
    accurateCastOrNull, which gives NULL."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for the source type and the type that the second argument names."""
        source = arguments[0].type
        target = with_zone_of(source, _named_type(name, arguments))
        result = types.make_nullable(target) if or_null else target
        if not types.is_nullable(result) and isinstance(types.plain(source), types.Nothing):
            raise CannotConvertType("Cannot convert NULL to a type that is not Nullable.")

        if or_null and isinstance(types.plain(target), types.Array | types.Map):
            raise IllegalTypeOfArgument(f"{name} takes no type that cannot be Nullable: {target}.")

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Cast the first argument; each value that changes becomes NULL, or an error unless
            `or_null`.
            """
            array = columns.single(values[0])
            if array.null_count and not types.is_nullable(result):
                raise CannotInsertNull(f"Cannot convert NULL to {target}, which is not Nullable.")
            unchanged = _unchanged(array, source, target, environment)
            lost = to_numpy(pc.and_(unchanged.is_null(), array.is_valid()))
            is_text = isinstance(types.plain(source), types.String | types.FixedString)
            null_for_text = is_text and types.is_nullable(target)
            if not or_null and not null_for_text and lost.any():
                row = int(np.argmax(lost))
                raise (CannotParse if is_text else CannotConvertType)(
                    f"Value {array[row].as_py()!r} cannot be safely converted to {target}."
                ).at_row(row)
            return unchanged[0] if isinstance(values[0], pa.Scalar) else unchanged

        return ScalarCall(name, result, kernel)

    return resolve


def _unchanged(
    array: pa.Array, source: types.DataType, target: types.DataType, environment: Environment
) -> pa.Array:
    """Return values as the target type, NULL for those that accurateCast refuses since they would change.

    Decimals, and values for an Enum, convert as in CAST and raise its errors."""
    given, wanted = types.plain(source), types.plain(target)
    nullable = types.make_nullable(target)
    if isinstance(given, _CONTAINERS) and isinstance(wanted, _CONTAINERS):
        lost = _lost(array, given, wanted, environment)
        converted = cast.cast_column(array, source, target, environment, strict=False)
        return pc.if_else(pa.array(lost), pa.scalar(None, converted.type), converted)
    is_decimal = isinstance(given, types.Decimal) and not isinstance(given, types.WideNumber)
    is_text = isinstance(given, types.String | types.FixedString | types.Nothing)
    if isinstance(wanted, types.Enum) or (
        not is_text and (is_decimal or isinstance(wanted, types.Boolean))
    ):
        return cast.cast_column(array, source, nullable, environment, strict=False)
    if isinstance(wanted, types.UUID) and isinstance(given, types.Integer | types.Float):
        return pa.nulls(len(array), nullable.arrow)
    unchanged = cast.cast_or_null(array, source, nullable, environment)
    if is_text:
        return unchanged
    if isinstance(wanted, _TIMES):
        return _in_seconds(array, given, wanted, unchanged)
    return unchanged_or_null(array, source, unchanged, target, environment)


def _lost(
    array: pa.Array, source: types.DataType, target: types.DataType, environment: Environment
) -> np.ndarray:
    """Return for each row whether the conversion changes any value within it, at any depth of containers."""
    match types.plain(source), types.plain(target):
        case types.Array(inner), types.Array(wanted):
            offsets, elements = columns.elements_of(array)
            lost = _lost(elements, inner, wanted, environment)
            return np.bincount(columns.parents_of(offsets)[lost], minlength=len(array)) > 0
        case types.Map(key, value), types.Map(wanted_key, wanted_value):
            entries = types.Array(types.Tuple((key, value)))
            fields = [
                pa.field("keys", array.type.key_type),
                pa.field("values", array.type.item_type),
            ]
            wanted_entries = types.Array(types.Tuple((wanted_key, wanted_value)))
            rows = array.cast(pa.list_(pa.struct(fields)))
            return _lost(rows, entries, wanted_entries, environment)
        case types.Tuple(elements), types.Tuple(wanted_elements) if len(elements) == len(
            wanted_elements
        ):
            parts = zip(columns.struct_fields(array), elements, wanted_elements, strict=True)
            lost = np.zeros(len(array), bool)
            for field, element, wanted in parts:
                lost |= _lost(field, element, wanted, environment)
            return lost
        case types.String() | types.FixedString(), _:
            return np.zeros(len(array), bool)  # a text that does not parse is an error of the cast
        case _:
            unchanged = _unchanged(array, source, target, environment)
            return np.asarray(to_numpy(pc.and_(unchanged.is_null(), array.is_valid())))


def _in_seconds(
    array: pa.Array, source: types.DataType, target: types.DataType, converted: pa.Array
) -> pa.Array:
    """Return numbers as dates or times; NULL for a number that no Date or DateTime stands for: below 0, beyond 32
    bits, or with a fraction."""
    if isinstance(target, types.Date32 | types.DateTime64) or not isinstance(
        source, types.Integer | types.Float
    ):
        return converted
    numbers = array.cast(pa.float64(), safe=False)
    fits = pc.and_(pc.greater_equal(numbers, 0.0), pc.less(numbers, 2.0**32))
    fits = pc.and_(fits, pc.equal(pc.floor(numbers), numbers))
    return pc.if_else(pc.fill_null(fits, False), converted, pa.scalar(None, converted.type))


def default_of_text(target: types.DataType) -> pa.Scalar:
    """Return the value for a text that does not parse: the type's default, for a Date32 1900-01-01."""
    if isinstance(target, types.Date32):
        return pa.scalar(datetime.date(1900, 1, 1), target.arrow)
    return default_value(target)


def _accurate_or_default(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve accurateCastOrDefault(x, type[, default]): values that would change give the default, or the type's
    default.

    Raises BadArguments."""
    target = _named_type(name, arguments)
    if len(arguments) > 2 and arguments[2].type != target:
        raise BadArguments(f"The default of {name} must be a {target}, not {arguments[2].type}.")
    accurate = _accurate(or_null=True)(name, arguments[:2])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the first argument; NULL and values that would change give the default."""
        unchanged = accurate.kernel(values[:2], rows, environment)
        missing = values[2] if len(values) > 2 else default_of_text(target)
        array, other = columns.as_array(unchanged, rows), columns.as_array(missing, rows)
        filled = pc.if_else(array.is_valid(), array, other)
        constant = all(isinstance(value, pa.Scalar) for value in values)
        return filled[0] if constant and rows else filled

    return ScalarCall(name, target, kernel)


def unchanged_or_null(
    array: pa.Array,
    source: types.DataType,
    converted: pa.Array,
    target: types.DataType,
    environment: Environment,
) -> pa.Array:
    """Return `converted` with NULL where a number does not convert back to the same number.

    For other sources, for a Variant as target, and for floats converted to decimals, `converted` stays as it is."""
    if isinstance(types.plain(target), types.Variant) or not isinstance(
        types.plain(source), types.Integer | types.Float | types.Decimal
    ):
        return converted
    if (
        isinstance(types.plain(source), types.Float)
        and isinstance(types.plain(target), types.Decimal)
        and not isinstance(types.plain(target), types.WideNumber)
    ):
        return converted  # accurateCast also cuts off digits beyond the scale
    if converted.null_count == len(converted):
        return converted  # no number is a UUID: there is nothing to convert back
    round_trip = cast.cast_or_null(
        converted, types.make_nullable(target), types.make_nullable(source), environment
    )
    same = pc.fill_null(pc.equal(round_trip, array), False)
    if isinstance(types.plain(source), types.Float) and isinstance(
        types.plain(target), types.Float
    ):
        same = pc.or_(same, pc.and_(pc.is_nan(array), pc.is_nan(converted)).fill_null(False))
    if any(isinstance(types.plain(t), types.WideNumber) for t in (source, target)):
        zero = decimal.Decimal(0)
        below = [
            pc.less(a, pa.scalar(zero if pa.types.is_decimal(a.type) else 0, a.type))
            for a in (array, converted)
        ]
        same = pc.and_(same, pc.fill_null(pc.equal(*below), False))
        return pc.if_else(same, converted, pa.scalar(None, converted.type))
    signs = pc.equal(
        pc.less(converted.cast(pa.float64(), safe=False), 0.0),
        pc.less(array.cast(pa.float64(), safe=False), 0.0),
    )
    same = pc.and_(same, pc.fill_null(signs, False))
    return pc.if_else(same, converted, pa.scalar(None, converted.type))


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("CAST", _cast, count=2, insensitive=True),
    custom("_CAST", _cast, count=2, insensitive=True),
    custom("accurateCast", _accurate(or_null=False), count=2),
    custom("accurateCastOrNull", _accurate(or_null=True), count=2),
    custom("accurateCastOrDefault", _accurate_or_default, count=(2, 3)),
)
