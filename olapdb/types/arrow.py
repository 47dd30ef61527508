"""The Arrow form of each data type.

The only module of this package that loads pyarrow: names, plans and catalogs need no Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import InternalError
from olapdb.types import compound, scalars
from olapdb.types.base import UTC, DataType


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a column of `data_type`; nullability is not part of it."""
    match data_type:
        case scalars.Boolean():
            return pa.bool_()
        case scalars.Integer() | scalars.Float():
            return pa.type_for_alias(data_type.name.lower())
        case scalars.Decimal(precision, scale):
            make = pa.decimal128 if precision <= scalars.DECIMAL128_DIGITS else pa.decimal256
            return make(precision, scale)
        case scalars.String():
            return pa.string()
        case scalars.FixedString(length):
            return pa.binary(length)
        case scalars.UUID():
            return pa.binary(16)
        case scalars.Date() | scalars.Date32():
            return pa.date32()
        case scalars.DateTime(zone):
            return pa.timestamp("s", tz=zone or UTC)
        case scalars.DateTime64():
            return pa.timestamp(data_type.unit, tz=data_type.zone or UTC)
        case scalars.Nothing():
            return pa.null()
        case scalars.Interval():
            return pa.int64()
        case _:
            return _compound_type(data_type)


def _compound_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of a type built of others; raise InternalError for any other type."""
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
        case _:
            raise InternalError(f"{data_type} has no Arrow type.")


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
