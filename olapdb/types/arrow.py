"""The Arrow form of each data type.

The only module of this package that loads pyarrow: names, plans and catalogs need no Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import InternalError
from olapdb.types import compound, scalars
from olapdb.types.base import UTC, DataType
from olapdb.types.dynamic import Dynamic, Json
from olapdb.types.variant import NUMBER, Variant

DYNAMIC = pa.struct([pa.field("type", pa.string()), pa.field("value", pa.string())])
"""The form of a Dynamic: see `dynamic`."""
JSON_PATHS = pa.list_(
    pa.struct([pa.field(name, pa.string()) for name in ("path", "type", "value")])
)
"""The form of a JSON: see `dynamic`."""


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a column of `data_type`; nullability is not part of it."""
    match data_type:
        case scalars.Boolean():
            return pa.bool_()
        case scalars.BFloat16():
            return pa.float32()
        case scalars.Integer() | scalars.Float():
            return pa.type_for_alias(data_type.name.lower())
        case scalars.Decimal(precision, scale):
            make = pa.decimal128 if precision <= scalars.DECIMAL128_DIGITS else pa.decimal256
            return make(precision, scale)
        case scalars.String():
            return pa.string()
        case scalars.FixedString(length):
            return pa.binary(length)
        case scalars.UUID() | scalars.IPv6():
            return pa.binary(16)
        case scalars.IPv4():
            return pa.uint32()
        case scalars.Date() | scalars.Date32():
            return pa.date32()
        case scalars.DateTime(zone):
            return pa.timestamp("s", tz=zone or UTC)
        case scalars.DateTime64():
            return pa.timestamp(data_type.unit, tz=data_type.zone or UTC)
        case scalars.Time():
            return pa.int32()
        case scalars.Time64():
            return pa.int64()
        case scalars.Enum(bits):
            return pa.int8() if bits == 8 else pa.int16()
        case scalars.Nothing():
            return pa.null()
        case scalars.Interval():
            return pa.int64()
        case _:
            return _compound_type(data_type)


def _compound_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a type that is built of others. Raises InternalError for any other type."""
    match data_type:
        case (
            compound.Nullable(inner)
            | compound.LowCardinality(inner)
            | compound.SimpleAggregateFunction(inner=inner)
        ):
            return inner.arrow
        case compound.Array(inner):
            return pa.list_(inner.arrow)
        case compound.Tuple(elements):
            fields = zip(data_type.field_names, elements, strict=True)
            return pa.struct([pa.field(name, element.arrow) for name, element in fields])
        case compound.Map(key, value):
            # {} is a Map(Nothing, …), but Arrow's keys cannot be of its null type
            key_type = pa.string() if isinstance(key, scalars.Nothing) else key.arrow
            return pa.map_(key_type, value.arrow)
        case compound.AggregateFunction(state=state):
            return state.arrow
        case Variant():
            return _variant_type(data_type, [t.arrow for t in data_type.alternatives])
        case Dynamic():
            return DYNAMIC
        case Json():
            return JSON_PATHS
        case _:
            raise InternalError(f"{data_type} has no Arrow type.")


def _variant_type(variant: Variant, alternatives: Sequence[pa.DataType]) -> pa.DataType:
    """Return the struct of a Variant whose alternatives have these Arrow types."""
    fields = zip(variant.field_names, alternatives, strict=True)
    return pa.struct(
        [pa.field(NUMBER, pa.uint8()), *(pa.field(name, kind) for name, kind in fields)]
    )


def arrow_schema(names: Sequence[str], data_types: Sequence[DataType]) -> pa.Schema:
    """Return an Arrow schema with one field for each name and type.

    A field carries its ClickHouse type in the metadata, under `olapdb.type`. It is nullable only
    where the type is.
    """
    return pa.schema(
        [
            pa.field(
                name, t.arrow, nullable=compound.is_nullable(t), metadata={"olapdb.type": t.name}
            )
            for name, t in zip(names, data_types, strict=True)
        ]
    )


def enum_texts(array: pa.Array, data_type: scalars.Enum) -> pa.Array:
    """Convert an Enum's numbers to its texts; NULL stays null, and a number that the Enum lacks becomes null."""
    numbers = pa.array([number for _, number in data_type.elements], array.type)
    texts = pa.array([text for text, _ in data_type.elements], pa.string())
    return texts.take(pc.index_in(array, numbers))


def durations(array: pa.Array, data_type: scalars.Time | scalars.Time64) -> pa.Array:
    """Convert a Time or Time64 column to Arrow durations; NULL stays null."""
    factor = 10 ** (-data_type.precision % 3)
    ticks = array.cast(pa.int64())
    scaled = ticks if factor == 1 else pc.multiply(ticks, pa.scalar(factor, pa.int64()))
    return scaled.cast(exported_type(data_type))


def is_exported(data_type: DataType) -> bool:
    """Return whether users get other values than the engine holds: the type is, or contains, an Enum, a Time, a
    Dynamic or a JSON."""
    match data_type:
        case scalars.Enum() | scalars.Time() | scalars.Time64() | Dynamic() | Json():
            return True
        case (
            compound.Nullable(inner)
            | compound.LowCardinality(inner)
            | compound.SimpleAggregateFunction(inner=inner)
            | compound.Array(inner)
        ):
            return is_exported(inner)
        case compound.Map(key, value):
            return is_exported(key) or is_exported(value)
        case compound.Tuple(elements):
            return any(map(is_exported, elements))
        case Variant(alternatives):
            return any(map(is_exported, alternatives))
        case _:
            return False


def exported_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a column for users: `arrow_type`, but strings for Enums, Dynamic and JSON, and
    durations for Time."""
    if not is_exported(data_type):
        return data_type.arrow
    match compound.plain(data_type):
        case scalars.Enum() | Dynamic() | Json():
            return pa.string()
        case scalars.Time() | scalars.Time64() as inner_time:
            return pa.duration(scalars.duration_unit(inner_time))
        case compound.Array(inner):
            return pa.list_(exported_type(inner))
        case compound.Map(key, value):
            return pa.map_(exported_type(key), exported_type(value))
        case compound.Tuple(elements) as inner_type:
            fields = zip(inner_type.field_names, elements, strict=True)
            return pa.struct([pa.field(name, exported_type(element)) for name, element in fields])
        case Variant(alternatives) as variant:
            return _variant_type(variant, [exported_type(t) for t in alternatives])
        case _:
            raise InternalError(f"{data_type} has no Arrow type.")


def exported(array: pa.Array, data_type: DataType) -> pa.Array:
    """Convert a column to `exported_type`: Enums to texts, times to durations. Dynamic and JSON are not converted
    here but in `functions.edges`."""
    if not is_exported(data_type):
        return array
    inner_type = compound.plain(data_type)
    if isinstance(inner_type, scalars.Enum):
        return enum_texts(array, inner_type)
    if isinstance(inner_type, scalars.Time | scalars.Time64):
        return durations(array, inner_type)
    children = _exported_children(array, inner_type)
    target = exported_type(data_type)
    if isinstance(inner_type, compound.Tuple | Variant):
        fields = [target.field(at) for at in range(target.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, children
    )


def _exported_children(array: pa.Array, data_type: DataType) -> list[pa.Array]:
    """Convert the children of a nested array as `exported` does; those of a list are returned whole, without the
    list's offset."""
    match data_type:
        case compound.Array(inner):
            return [exported(array.values, inner)]
        case compound.Map(key, value):
            keys, items = exported(array.keys, key), exported(array.items, value)
            fields = [pa.field("key", keys.type, nullable=False), pa.field("value", items.type)]
            return [pa.StructArray.from_arrays([keys, items], fields=fields)]
        case compound.Tuple(elements):
            whole = range(array.type.num_fields)
            return [exported(array.field(at), elements[at]) for at in whole]
        case Variant(alternatives):
            parts = [exported(array.field(at + 1), t) for at, t in enumerate(alternatives)]
            return [array.field(0), *parts]
        case _:
            raise InternalError(f"{data_type} is not a nested type.")


def exported_schema(names: Sequence[str], data_types: Sequence[DataType]) -> pa.Schema:
    """Return `arrow_schema` with the Arrow types that users get."""
    schema = arrow_schema(names, data_types)
    if not any(map(is_exported, data_types)):
        return schema
    return pa.schema(
        [
            field.with_type(exported_type(data_type))
            for field, data_type in zip(schema, data_types, strict=True)
        ]
    )
