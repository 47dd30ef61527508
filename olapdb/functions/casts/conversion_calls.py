"""The call that converts its first argument: its type, and whether it keeps the order of values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from olapdb import types
from olapdb.errors import CannotConvertType, IllegalColumn, NotSupportedError, TypeMismatch
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import cast
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.kernels.supertypes import NULL_TYPE, low_cardinality_result
from olapdb.functions.scalar import illegal


def converted_call(name: str, target: types.DataType, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call that casts the first argument to `target`; NULL stays NULL."""
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

    shown = shown_type(result, arguments)
    return ScalarCall(name, shown, kernel, monotonic=_is_monotonic(types.plain(source), target))


def shown_type(result: types.DataType, arguments: Sequence[Argument]) -> types.DataType:
    """Return the result type; as LowCardinality if the converted argument is the only one that is not constant and
    is LowCardinality."""
    fixed = [argument.constant is not None for argument in arguments]
    return low_cardinality_result(result, [a.type for a in arguments], fixed)


def _is_monotonic(source: types.DataType, target: types.DataType) -> bool:
    """Return whether the conversion keeps the order: a greater value never converts to a lesser one.

    False where integers wrap, and where numbers mean days in one range and seconds in another."""
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
    """Raise IllegalTypeOfArgument, when a call is resolved, if no cast exists between the types.

    Of a UUID it is NotSupportedError, and IllegalColumn for a Decimal, as in ClickHouse."""
    if not _is_possible(types.plain(source), target):
        message = f"Conversion from {source} to {target} is not supported."
        is_decimal = isinstance(target, types.Decimal) and not isinstance(target, types.WideNumber)
        if isinstance(types.plain(source), types.UUID):
            kind = IllegalColumn if is_decimal else NotSupportedError
            raise kind(message, hint=_UUID_HINT)
        if is_decimal and not isinstance(source, types.Array | types.Tuple | types.Map):
            raise IllegalColumn(message)
        raise illegal(name, source, f"something that converts to {target}")


_UUID_HINT = "toString(x) is the text of a UUID."


@lru_cache(maxsize=1_024)
def _is_possible(source: types.DataType, target: types.DataType) -> bool:
    """Return whether a cast exists, by casting a column without rows."""
    try:
        cast.cast_column(pa.nulls(0, source.arrow), source, target, Environment(), strict=True)
    except TypeMismatch:
        return False
    except CannotConvertType:
        if not isinstance(target, types.Decimal):
            raise
        return False
    return True


def rezoned(column: Column, data_type: types.DataType) -> Column:
    """Return timestamps as those of `data_type`, whose zone may be another one; the instants stay."""
    if isinstance(column, pa.Scalar):
        return columns.view(columns.single(column), data_type.arrow)[0]
    return columns.view(column, data_type.arrow)
