"""Constants: Python values as Arrow scalars, and the default value of each type."""

from __future__ import annotations

import datetime
import decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb import types
from olapdb.errors import CannotInsertNull, InternalError
from olapdb.functions.kernels.columns import text
from olapdb.lazy import LazyModule
from olapdb.types.arrow_values import scalar_of

if TYPE_CHECKING:
    from olapdb.functions.dynamic import stored
else:
    stored = LazyModule("olapdb.functions.dynamic.stored")


def constant(value: object, data_type: types.DataType) -> pa.Scalar:
    """Return a Python value as a scalar of `data_type.arrow`; integers wrap to the type's width.

    Raises CannotInsertNull for None and a type that is not Nullable.
    """
    if value is None and not types.is_nullable(data_type):
        raise CannotInsertNull(f"NULL is no value of {data_type}.")
    if isinstance(data_type, types.Integer) and isinstance(value, int):
        width = 1 << data_type.bits
        value = (value - data_type.minimum) % width + data_type.minimum
    if isinstance(value, str) and not value.isascii():  # surrogates are bytes that are not UTF-8
        value = value.encode("utf-8", "surrogateescape")
        if pa.types.is_string(data_type.arrow):
            return text(pa.array([value], pa.binary()))[0]
    if isinstance(value, tuple) and isinstance(data_type, types.Tuple):
        value = dict(zip(data_type.field_names, value, strict=True))
    return scalar_of(value, data_type.arrow)


def default_value(data_type: types.DataType) -> pa.Scalar:
    """Return the default of a column without a value: 0, '', [], NULL, the empty state."""
    return scalar_of(_default(data_type), data_type.arrow)


def _default(data_type: types.DataType) -> object:
    """Return the default of a type as a Python value; raise InternalError for a type without one."""
    match data_type:
        case types.Nullable() | types.Nothing() | types.Variant() | types.Dynamic():
            return None
        case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
            return _default(inner)
        case types.Integer() | types.Interval() | types.IPv4() | types.Time() | types.Time64():
            return 0
        case types.Enum(elements=elements):
            return elements[0][1]
        case types.Float():
            return 0.0
        case types.Decimal():
            return decimal.Decimal(0)
        case types.Boolean():
            return False
        case types.String():
            return ""
        case types.FixedString(length):
            return b"\0" * length
        case types.UUID() | types.IPv6():
            return b"\0" * 16
        case types.Date() | types.Date32():
            return datetime.date(1970, 1, 1)
        case types.DateTime() | types.DateTime64():
            return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        case types.Json(typed=typed) if typed:
            return stored.default_paths(typed)
        case types.Array() | types.Map() | types.Json():
            return []
        case types.Tuple():
            names = data_type.field_names
            return {n: _default(t) for n, t in zip(names, data_type.elements, strict=True)}
        case types.AggregateFunction(state=state):
            return _default(state)
        case _:
            raise InternalError(f"No default of type {data_type}.")
