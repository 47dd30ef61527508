"""Query parameters: Python values as typed constants."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from olapdb import functions
from olapdb.bind.constants import cast
from olapdb.bind.scope import BindScope, Parameters
from olapdb.errors import (
    BadQueryParameter,
    CannotConvertType,
    CannotParse,
    CannotParseInput,
    CannotParseNumber,
    DataError,
    InterfaceError,
    UnknownQueryParameter,
)
from olapdb.functions.base import Environment
from olapdb.functions.casts import wide_numbers
from olapdb.functions.casts.cast import store_column
from olapdb.plan.expressions import Constant, Expression
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.sql.literals import literal_text
from olapdb.types import (
    BOOL,
    DATE,
    DATE32,
    DATETIME,
    FLOAT64,
    IPV4,
    IPV6,
    NOTHING,
    STRING,
    UUID_TYPE,
    Array,
    DataType,
    DateTime64,
    Decimal,
    Map,
    Nullable,
    Time64,
    Tuple,
    WideNumber,
    is_nullable,
    make_nullable,
    wide_number,
)

_DATE_LAST = datetime.date(2149, 6, 6)
_DATETIME_LAST = datetime.datetime(2106, 2, 7, 6, 28, 15, tzinfo=datetime.UTC)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


SET_PREFIX = "param_"
"""`SET param_name = value` gives the parameter `name` a value for all later statements."""


@dataclass(frozen=True)
class SetParameter:
    """The value of a parameter as SET gives it: a text, which is read as the type where it is used."""

    text: str


def set_parameter(value: bool | float | str) -> SetParameter:
    """Return a parameter's value as SET keeps it: a text as it is, any other literal as its SQL text."""
    return SetParameter(value if isinstance(value, str) else literal_text(value))


def bind_parameter(node: sql.Parameter, scope: BindScope) -> Expression:
    """Return the value given for `?`, `:name` or `{name:Type}`, the last one cast to its type."""
    value = lookup_parameter(node, scope.parameters)
    if isinstance(value, SetParameter):
        text = Constant(STRING, pa.scalar(value.text, pa.string()))
        return text if node.type is None else bind_argument(node, text, scope.environment)
    bound = python_constant(value, scope.environment)
    if node.type is None:
        return bound
    return cast(bound, node.type, scope.environment, eager=True)


def bind_argument(node: sql.Parameter, given: Expression, environment: Environment) -> Expression:
    """Return the value that the call of a view gave for `{name:Type}`, as this type.

    A single value is read from its text, as ClickHouse does. Raises BadQueryParameter if the text of a constant
    is no value of the type; that of a scalar subquery fails when it is computed. Also raises CannotParse."""
    assert node.type is not None
    if not isinstance(given, Constant):
        text = STRING if not is_nullable(given.type) else make_nullable(STRING)
        return cast(cast(given, text, environment), node.type, environment)
    if given.type == node.type or (not given.value.is_valid and isinstance(node.type, Nullable)):
        return _cast(given, node.type, environment)
    try:
        if not given.value.is_valid:
            raise CannotParse("it is NULL")
        if not isinstance(given.type, Array | Map | Tuple):
            given = _cast(given, STRING, environment)
            if isinstance(node.type, Map):  # CAST reads no Map from a text, a parameter does
                stored = store_column(given.value, STRING, node.type, environment)
                return Constant(node.type, stored)
        return _cast(given, node.type, environment)
    except (CannotParse, CannotParseInput, CannotParseNumber) as error:
        raise BadQueryParameter(
            f"The value of the parameter {node.name!r} is no {node.type}: {error.message}"
        ) from error


def _cast(value: Constant, target: DataType, environment: Environment) -> Constant:
    """Return the constant as the type, converted at once."""
    converted = cast(value, target, environment, eager=True)
    assert isinstance(converted, Constant)
    return converted


def lookup_parameter(node: sql.Parameter, parameters: Parameters) -> object:
    """Return the Python value given for a parameter; raise UnknownQueryParameter if missing."""
    if node.name is not None:
        if isinstance(parameters, Mapping) and node.name in parameters:
            return parameters[node.name]
        raise UnknownQueryParameter(
            f"No value was given for the parameter {node.name!r}.",
            hint=f"Pass parameters as a mapping with this name, or SET param_{node.name} = ….",
            position=node.position,
        )
    index = node.index or 0
    parameters = () if parameters is None else parameters
    if isinstance(parameters, str | bytes):
        raise UnknownQueryParameter(
            "The parameters were given as a single text.",
            hint="Pass a list or tuple of them: [value].",
            position=node.position,
        )
    if isinstance(parameters, Mapping):
        raise UnknownQueryParameter(
            f"The parameter number {index + 1} has no name, but parameters were given by name.",
            hint="Pass them as a sequence, or write :name.",
            position=node.position,
        )
    if index >= len(parameters):
        raise UnknownQueryParameter(
            f"The statement needs at least {index + 1} parameters, {len(parameters)} were given.",
            hint="Pass a sequence with a value for each ?: execute(statement, [value]).",
            position=node.position,
        )
    return parameters[index]


def python_constant(value: object, environment: Environment) -> Constant:
    """Return a Python value as a constant of the type that a literal of it would have.

    Integers beyond 64 bits are Int128 to UInt256. Naive datetimes are in the session's zone. Raises
    InterfaceError for values of other classes.
    """
    data_type = type_of(value)
    if data_type == Nullable(NOTHING):
        return Constant(data_type, pa.scalar(None, pa.null()))
    return Constant(data_type, python_array([value], data_type, environment)[0])


def python_array(
    values: Sequence[object], data_type: DataType, environment: Environment
) -> pa.Array:
    """Return Python values, all of the same type by `type_of`, as an Arrow array.

    Raises CannotConvertType for a `str` that has no UTF-8, for bytes that are not UTF-8 within an
    array, a tuple or a map, and for values that do not fit the type."""
    try:
        if data_type == STRING:
            return _texts(values)
        plain_values = [_plain_value(v, environment) for v in values]
        if isinstance(data_type, WideNumber):  # Arrow's own conversion ends at 76 digits
            return wide_numbers.parse(pa.array(map(str, plain_values), pa.string()), data_type)
        if data_type == FLOAT64:  # Decimal('NaN')
            plain_values = [float(v) for v in plain_values]  # type: ignore[arg-type]
        return pa.array(plain_values, data_type.arrow)
    except UnicodeError as error:
        raise CannotConvertType(
            f"{_shortened(values)} is not UTF-8: {error}.",
            hint="Within an array, a tuple or a map, give binary data as hex or base64 text.",
        ) from error
    except (pa.ArrowException, OverflowError) as error:
        raise CannotConvertType(
            f"{_shortened(values)} does not fit {data_type}: {error}."
        ) from error


def _texts(values: Sequence[object]) -> pa.Array:
    """Return texts and bytes as a String array: bytes may be any, as in ClickHouse."""
    plain_values = map(known_value, values)
    encoded = [v.encode() if isinstance(v, str) else bytes(v) for v in plain_values]  # type: ignore[call-overload]
    return pa.array(encoded, pa.binary()).view(pa.string())


def known_value(value: object) -> object:
    """Return a value of numpy, pandas or Arrow as the value of Python's own classes that it holds; other values
    unchanged. NaT and NA are None, arrays are lists, buffers are bytes. A time or span in nanoseconds stays as it is,
    since Python has no class for it."""
    if type(value) in _CLASSES:
        return value
    match value:
        case np.datetime64() | np.timedelta64():
            if np.isnat(value):
                return None
            return value if isinstance(value.item(), int) else value.item()
        case np.generic() | pa.Scalar():
            return value.item() if isinstance(value, np.generic) else known_value(value.as_py())
        case np.ndarray():
            return list(value) if value.ndim else known_value(value[()])
        case pa.Array() | pa.ChunkedArray():
            return value.to_pylist()
        case bytearray() | memoryview():
            return bytes(value)
        case datetime.datetime() | datetime.timedelta() if value != value:  # pandas' NaT
            return None
        case _:
            pandas = sys.modules.get("pandas")
            return None if pandas is not None and value is pandas.NA else value


_CLASSES = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        str,
        bytes,
        decimal.Decimal,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        uuid.UUID,
        list,
        tuple,
        dict,
    }
)
"""The classes of most values, which need no further look."""


def _shortened(values: Sequence[object]) -> str:
    """Return the `repr` of the only value or of the first three, at most 80 characters."""
    shown = repr(values[0] if len(values) == 1 else list(values[:3]))
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def type_of(value: object) -> DataType:
    """Return the type of a Python value, see `known_value`.

    Raises InterfaceError for values of other classes, DataError for a number that no type holds."""
    value = known_value(value)
    if (nanoseconds := _nanoseconds_type(value)) is not None:
        return nanoseconds
    match value:
        case None:
            return Nullable(NOTHING)
        case bool():
            return BOOL
        case int():
            return _integer_type(value)
        case float():
            return FLOAT64
        case str() | bytes():
            return STRING
        case decimal.Decimal():
            return _decimal_type(value)
        case datetime.timedelta() | datetime.time():
            return Time64(6)
        case datetime.datetime():
            instant = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
            whole = value.microsecond == 0 and _EPOCH <= instant <= _DATETIME_LAST
            return DATETIME if whole else DateTime64(6)
        case datetime.date():
            return DATE if _EPOCH.date() <= value <= _DATE_LAST else DATE32
        case uuid.UUID():
            return UUID_TYPE
        case ipaddress.IPv4Address():
            return IPV4
        case ipaddress.IPv6Address():
            return IPV6
        case list() | set() | frozenset():
            return Array(_common([type_of(v) for v in value]))
        case tuple():
            return Tuple(tuple(type_of(v) for v in value))
        case dict():
            return Map(_common([type_of(k) for k in value]), _common(map(type_of, value.values())))
        case _:
            raise InterfaceError(
                f"A parameter cannot be of the class {type(value).__name__}.",
                hint="Pass None, bool, int, float, str, Decimal, date, datetime, UUID, "
                "an address of ipaddress, list, tuple or dict.",
            )


def _common(types: Sequence[DataType] | map[DataType]) -> DataType:
    """Return the common type of values' types, `Nothing` for none; NULLs make it nullable.

    Raises NoCommonType if there is none."""
    distinct = tuple(dict.fromkeys(types))
    if not distinct:
        return NOTHING
    if len(distinct) == 1:
        return distinct[0]
    without_null = [t for t in distinct if t != Nullable(NOTHING)]
    common = functions.common_type(without_null)
    return common if len(without_null) == len(distinct) else make_nullable(common)


def _integer_type(value: int) -> DataType:
    """Return the narrowest type that holds the integer. Raises DataError for one of more bits."""
    if -(2**63) <= value < 2**64:
        return functions.literal_type(value, str(value))
    if -(10**38) < value < 2**128:  # Arrow takes 38 digits for an Int128 within an array
        return wide_number(128, signed=value < 0)
    if -(2**255) < value < 2**255:
        return wide_number(256, signed=value < 0)
    raise DataError(
        f"The parameter {_shortened([value])} is beyond the integers of 256 bits.",
        hint="Pass it as a float or as text.",
    )


def _nanoseconds_type(value: object) -> DataType | None:
    """Return the type of a time or a span that counts nanoseconds, None for other values."""
    if type(value) in _CLASSES:
        return None
    match value:
        case np.datetime64():
            return DateTime64(9)
        case np.timedelta64():
            return Time64(9)
        case datetime.datetime() if getattr(value, "nanosecond", 0):  # pandas' Timestamp
            return DateTime64(9)
        case datetime.timedelta() if getattr(value, "nanoseconds", 0):  # pandas' Timedelta
            return Time64(9)
        case _:
            return None


def _decimal_type(value: decimal.Decimal) -> DataType:
    """Return the narrowest Decimal that holds the value, Float64 for NaN and infinity.

    Raises DataError for more than 76 digits."""
    if not value.is_finite():
        return FLOAT64
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    width = next((w for w in (9, 18, 38, 76) if precision <= w), None)
    if width is None:
        raise DataError(f"The parameter {value} has {precision} digits; a Decimal holds 76.")
    return Decimal(width, scale)


def _microseconds(span: datetime.timedelta) -> int:
    """Return a span in microseconds; raise CannotConvertType for one that no Time64 holds."""
    if abs(span) >= datetime.timedelta(hours=1000):
        raise CannotConvertType(f"The span {span} is beyond 999:59:59, the most of a Time64.")
    return span // datetime.timedelta(microseconds=1)


def _nanoseconds(value: Any, environment: Environment) -> int:
    """Return a time, since 1970, or a span in nanoseconds; `value` is numpy's or pandas'.

    A naive time is in the session's zone. Raises CannotConvertType for one that 64 bits cannot count
    in nanoseconds."""
    zone = ZoneInfo("UTC")
    if not isinstance(value, np.generic):  # its form in numpy is in UTC, if it has a zone
        zone = ZoneInfo(environment.zone) if getattr(value, "tzinfo", None) is None else zone
        value = value.to_numpy()
    elif isinstance(value, np.datetime64):
        zone = ZoneInfo(environment.zone)
    ticks = value.astype(f"{value.dtype.kind}8[ns]")
    if ticks.astype(value.dtype) != value:
        raise CannotConvertType(f"{value} cannot be counted in nanoseconds.")
    count = int(ticks.astype(np.int64))
    if isinstance(value, np.timedelta64):
        _microseconds(datetime.timedelta(microseconds=count // 1000))
        return count
    naive = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=count // 1000)
    instant = naive.replace(tzinfo=zone) - _EPOCH
    return instant // datetime.timedelta(microseconds=1) * 1000 + count % 1000


def _plain_value(value: object, environment: Environment) -> object:
    """Return the value in the form that pyarrow takes: a dict as pairs, a tuple as a struct.

    Naive datetimes get the session's zone, bytes are decoded as UTF-8."""
    value = known_value(value)
    if _nanoseconds_type(value) is not None:
        return _nanoseconds(value, environment)
    match value:
        case bytes():
            return value.decode()
        case uuid.UUID():
            return value.bytes
        case ipaddress.IPv4Address():
            return int(value)
        case ipaddress.IPv6Address():
            return value.packed
        case decimal.Decimal() if not value.is_finite():
            return float(value)
        case datetime.time():
            return _microseconds(
                datetime.timedelta(
                    hours=value.hour,
                    minutes=value.minute,
                    seconds=value.second,
                    microseconds=value.microsecond,
                )
            )
        case datetime.timedelta():
            return _microseconds(value)
        case datetime.datetime() if value.tzinfo is None:
            return value.replace(tzinfo=ZoneInfo(environment.zone))
        case list() | set() | frozenset():
            return [_plain_value(v, environment) for v in value]
        case tuple():
            return {str(i): _plain_value(v, environment) for i, v in enumerate(value, start=1)}
        case dict():
            return [
                (_plain_value(k, environment), _plain_value(v, environment))
                for k, v in value.items()
            ]
        case _:
            return value
