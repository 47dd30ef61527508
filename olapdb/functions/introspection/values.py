"""Functions about values and their types: sizes, defaults, whether they are constant; rows of a
block; indexHint."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalColumn, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.composition import compose
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.nested import map_parts
from olapdb.functions.strings.visible_width import VISIBLE_WIDTH, character_count
from olapdb.types import (
    STRING,
    UINT8,
    UINT64,
    UUID,
    Array,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Enum,
    FixedString,
    Float,
    Integer,
    Interval,
    LowCardinality,
    Map,
    Nothing,
    Nullable,
    String,
    Time,
    Time64,
    Tuple,
    WideNumber,
    is_nullable,
    parse_type,
    plain,
)


def _constant_of(
    result: DataType, value: Callable[[str, Sequence[Argument]], object]
) -> scalar.Resolver:
    """Return the resolver of a constant function: `value(name, arguments)` computes its result from the arguments'
    types."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call: a constant."""
        shown = pa.scalar(value(name, arguments), result.arrow)
        return ScalarCall(name, result, lambda v, r, e: shown)

    return resolve


def _default_of(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve defaultValueOfArgumentType(x): the default of the type of x."""
    return _default_value(name, arguments[0].type)


def _default_of_name(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve defaultValueOfTypeName('T'): the default of the type with this name."""
    from olapdb.functions.aggregates.registry import state_representation

    if not isinstance(plain(arguments[0].type), String | FixedString):
        raise IllegalColumn(f"{name} takes the name of a type, as a constant text.")
    text = scalar.constant_text(name, arguments, 0, "the name of a type")
    return _default_value(name, parse_type(text, state_representation))


def _default_value(name: str, data_type: DataType) -> ScalarCall:
    """Return the call that gives the default of a type; that of Date32 is its first day."""
    value = default_value(data_type)
    if isinstance(data_type, Date32):
        value = pa.scalar(datetime.date(1900, 1, 1), data_type.arrow)
    return ScalarCall(name, data_type, lambda v, r, e: value)


def _column_type_name(argument: Argument) -> str:
    """Return the name of ClickHouse's column class that holds the argument, with Const for a constant."""
    name = column_of(argument.type)
    return f"Const({name})" if argument.constant is not None else name


def column_of(data_type: DataType) -> str:
    """Return the name of ClickHouse's column of a type; those of its elements in parentheses."""
    match data_type:
        case LowCardinality(inner):
            return f"LowCardinality({column_of(inner)})"
        case Nullable(inner):
            return f"Nullable({column_of(inner)})"
        case Array(inner):
            return f"Array({column_of(inner)})"
        case Tuple(elements):
            return f"Tuple({', '.join(column_of(element) for element in elements)})"
        case Map(key, value):
            return f"Map({column_of(key)}, {column_of(value)})"
        case FixedString() | WideNumber():
            return data_type.name
        case Interval():
            return "Int64"
        case Decimal():
            bits = next(
                b for d, b in ((9, 32), (18, 64), (38, 128), (76, 256)) if data_type.precision <= d
            )
            return f"Decimal{bits}"
        case Integer() | Float():
            return data_type.name
        case Boolean():
            return "UInt8"
        case Date():
            return "UInt16"
        case DateTime():
            return "UInt32"
        case Date32() | Time():
            return "Int32"
        case Enum(bits=bits):
            return f"Int{bits}"
    return data_type.name.split("(")[0]


# --- sizes


def _byte_size(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve byteSize(…): the bytes that the values take in ClickHouse's memory, uncompressed."""
    types = [a.type for a in arguments]

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Add up the sizes of all arguments of each row."""
        total = np.zeros(rows, np.int64)
        for value, data_type in zip(values, types, strict=True):
            total += _sizes(columns.as_array(value, rows), data_type)
        return columns.from_values(total, pa.uint64())

    return ScalarCall(name, UINT64, kernel)


def _sizes(array: pa.Array, data_type: DataType) -> np.ndarray:
    """Return the size of each value in bytes in ClickHouse's memory; texts and arrays have 8 more for their offset, a
    Nullable 1 more."""
    inner = plain(data_type)
    extra = 1 if is_nullable(data_type) else 0
    match inner:
        case Array():
            offsets, elements = columns.elements_of(array)
            sizes = np.concatenate(([0], np.cumsum(_sizes(elements, inner.inner))))
            return np.asarray(sizes[offsets[1:]] - sizes[offsets[:-1]] + 8 + extra)
        case Map():
            offsets, keys, values = map_parts(array)
            both = _sizes(keys, inner.key) + _sizes(values, inner.value)
            sizes = np.concatenate(([0], np.cumsum(both)))
            return np.asarray(sizes[offsets[1:]] - sizes[offsets[:-1]] + 8)
        case Tuple():
            fields = zip(columns.struct_fields(array), inner.elements, strict=True)
            return sum((_sizes(f, t) for f, t in fields), np.zeros(len(array), np.int64) + extra)
        case Nothing():
            return np.full(len(array), extra)
    width = _width(inner)
    if width is not None:
        return np.full(len(array), width + extra)
    filled = array.fill_null("") if array.null_count else array
    offsets, _ = columns.bytes_of(columns.binary(filled))
    return np.diff(offsets) + 8 + extra


def _width(data_type: DataType) -> int | None:
    """Return the bytes of one value of a fixed-width type; None for other types."""
    match data_type:
        case Integer(bits=bits) | Float(bits=bits) | Enum(bits=bits):
            return bits // 8
        case Boolean():
            return 1
        case Date():
            return 2
        case DateTime() | Date32() | Time():
            return 4
        case DateTime64() | Interval() | Time64():
            return 8
        case UUID():
            return 16
        case WideNumber(bits=bits):
            return bits // 8
        case Decimal(precision=precision):
            return next(
                w for digits, w in ((9, 4), (18, 8), (38, 16), (76, 32)) if precision <= digits
            )
        case FixedString(length=length):
            return length
    return None


def _block_size(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve blockSize(): the number of rows of the block."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the rows of this block."""
        return pa.scalar(rows, pa.uint64())

    return ScalarCall(name, UINT64, kernel, "row")


def _digits(value: decimal.Decimal, scale: int) -> int:
    """Return the number of digits of a decimal's unscaled integer at this scale."""
    if not value:
        return 1
    return max(value.adjusted() + 1 + scale, 1)


def _count_digits(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve countDigits(x): the decimal digits of an integer, or of a decimal as an integer."""
    data_type = plain(arguments[0].type)
    if not isinstance(data_type, Integer | Decimal):
        raise scalar.illegal(name, arguments[0].type, "an integer or a Decimal")
    scale = data_type.scale if isinstance(data_type, Decimal) else 0

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Count the digits of each number's absolute value; 0 has one."""
        if isinstance(data_type, Decimal):
            digits = [_digits(value, scale) for value in arrays[0].to_pylist()]
        else:
            digits = [len(str(abs(value))) for value in arrays[0].to_pylist()]
        return pa.array(digits, pa.uint8())

    return scalar.standard_call(name, arguments, UINT8, kernel)


def _enum_size(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve getSizeOfEnumType(x): the number of names of an Enum type; UInt8 or UInt16 by the Enum's width. Raises
    IllegalTypeOfArgument."""
    data_type = plain(arguments[0].type)
    if not isinstance(data_type, Enum):
        raise IllegalTypeOfArgument(f"{name} takes an Enum, not {arguments[0].type}.")
    count = len(data_type.elements)
    return _constant_of(Integer(data_type.bits, False), lambda n, a: count)(name, arguments)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("isConstant", _constant_of(UINT8, lambda n, a: int(a[0].constant is not None))),
    scalar.custom("isNullable", _constant_of(UINT8, lambda n, a: int(is_nullable(a[0].type)))),
    scalar.custom("toColumnTypeName", _constant_of(STRING, lambda n, a: _column_type_name(a[0]))),
    scalar.custom("getSizeOfEnumType", _enum_size),
    scalar.custom("indexHint", _constant_of(UINT8, lambda n, a: 1), count=(0, None)),
    *(
        scalar.custom(f"{name}IgnoreSet", _constant_of(UINT8, lambda n, a: 0), count=2)
        for name in ("in", "notIn", "nullIn", "notNullIn")
    ),
    *(
        scalar.custom(f"global{name}IgnoreSet", _constant_of(UINT8, lambda n, a: 0), count=2)
        for name in ("In", "NotIn", "NullIn", "NotNullIn")
    ),
    scalar.custom("defaultValueOfArgumentType", _default_of),
    scalar.custom("defaultValueOfTypeName", _default_of_name),
    scalar.custom("byteSize", _byte_size, count=(0, None)),
    scalar.custom("blockSize", _block_size, count=0),
    replace(
        VISIBLE_WIDTH,
        by_settings=lambda changed: compose("visibleWidth", character_count, count=1).resolver,
    ),
    scalar.custom("countDigits", _count_digits),
)
