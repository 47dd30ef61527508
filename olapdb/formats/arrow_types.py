"""Arrow's types in files, and ours."""

from __future__ import annotations

import pyarrow as pa

from olapdb import types
from olapdb.errors import CannotConvertType
from olapdb.functions import parse_type
from olapdb.functions.kernels.arrow_clocks import clock_of

SCALAR_NAMES = {
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint8(): "UInt8",
    pa.uint16(): "UInt16",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float16(): "Float32",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.bool_(): "Bool",
    pa.date32(): "Date32",
    pa.date64(): "Date32",
    pa.null(): "Nothing",
}
_TEXTS = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
)
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def type_of_field(field: pa.Field) -> types.DataType:
    """Return the type as which a field of a file is read: Nullable where the field is, but for
    arrays, maps and tuples.

    A timestamp without a zone is one of UTC. Raises CannotConvertType for Arrow types that have no
    type here."""
    inner = _inner_type(field.type)
    nested = isinstance(inner, types.Array | types.Map | types.Tuple)
    return inner if nested or not field.nullable else types.make_nullable(inner)


def _inner_type(kind: pa.DataType) -> types.DataType:
    """Return the data type of an Arrow type, without Nullable around it. Raises CannotConvertType."""
    if kind in SCALAR_NAMES:
        return parse_type(SCALAR_NAMES[kind])
    if kind in _TEXTS:
        return types.STRING
    if isinstance(kind, pa.BaseExtensionType):
        uuid = kind.extension_name == "arrow.uuid"
        return types.UUID_TYPE if uuid else _inner_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _inner_type(kind.value_type)
    if pa.types.is_duration(kind):
        return types.Interval(_UNITS[kind.unit])
    if clock := clock_of(kind):
        return clock
    if pa.types.is_timestamp(kind):
        return types.DateTime64(PRECISIONS[kind.unit], kind.tz or "UTC")
    if pa.types.is_decimal(kind) and kind.scale >= 0:
        return types.Decimal(kind.precision, kind.scale)
    if pa.types.is_fixed_size_binary(kind):
        return types.FixedString(kind.byte_width)
    if pa.types.is_map(kind):
        return types.Map(_inner_type(kind.key_type), type_of_field(kind.item_field))
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(is_list(kind) for is_list in lists):
        return types.Array(type_of_field(kind.value_field))
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return types.Tuple(
            tuple(type_of_field(field) for field in fields), tuple(field.name for field in fields)
        )
    raise CannotConvertType(
        f"Arrow type {kind} has no type here.",
        hint="Cast the column before, to a number, string, date or timestamp.",
    )


def with_nullability(kind: pa.DataType, data_type: types.DataType) -> pa.DataType:
    """Return the Arrow type with elements nullable only where `data_type`'s are. Elements of a tuple that may itself
    be NULL stay nullable, since they are null in its NULL rows."""
    match types.plain(data_type):
        case types.Array(inner) if pa.types.is_list(kind):
            return pa.list_(_element(kind.value_field, inner))
        case types.Map(_, value) if pa.types.is_map(kind):
            return pa.map_(kind.key_type, _element(kind.item_field, value))
        case types.Tuple(elements=elements) if not types.is_nullable(data_type):
            fields = [kind.field(at) for at in range(kind.num_fields)]
            pairs = zip(fields, elements, strict=True)
            return pa.struct([_element(field, element) for field, element in pairs])
        case _:
            return kind


def _element(field: pa.Field, data_type: types.DataType) -> pa.Field:
    """Return the field of an element, nullable only where its type is."""
    kind = with_nullability(field.type, data_type)
    return pa.field(field.name, kind, nullable=types.is_nullable(data_type))
