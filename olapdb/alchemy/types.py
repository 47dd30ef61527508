"""ClickHouse's types as SQLAlchemy's, for reflection."""

from __future__ import annotations

from typing import Any

from sqlalchemy import types as sa
from sqlalchemy.types import TypeEngine

from olapdb import types as olap
from olapdb.functions import parse_type
from olapdb.records import dataclass


class ClickHouseType(sa.TypeEngine[Any]):
    """A type without an SQLAlchemy equivalent (Map, Tuple, AggregateFunction): values pass
    unchanged; `name` is ClickHouse's."""

    __visit_name__ = "clickhouse"

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"ClickHouseType({self.name!r})"


@dataclass(frozen=True, slots=True)
class Reflected:
    """The SQLAlchemy type of a column and whether it is nullable."""

    type: TypeEngine[Any]
    nullable: bool


def sqlalchemy_type(name: str) -> Reflected:
    """Return the nearest SQLAlchemy type for a ClickHouse type name."""
    data_type = parse_type(name)
    plain = olap.plain(data_type)
    takes_null = isinstance(plain, olap.Array | olap.Map | olap.Tuple)  # NULL becomes an empty one
    return Reflected(_type(plain), takes_null or olap.is_nullable(data_type))


def _type(data_type: olap.DataType) -> TypeEngine[Any]:
    """Return the SQLAlchemy type that holds all values of a type that is not nullable;
    ClickHouseType if there is none."""
    match data_type:
        case olap.Boolean():
            return sa.Boolean()
        case olap.Integer(bits=bits, signed=signed):
            if bits <= 16 and (signed or bits < 16):
                return sa.SmallInteger()
            return sa.Integer() if bits < 32 or (bits == 32 and signed) else sa.BigInteger()
        case olap.Float(bits=bits):
            return sa.Float(53 if bits == 64 else 24)
        case olap.Decimal(precision, scale):
            return sa.Numeric(precision, scale)
        case olap.String():
            return sa.String()
        case olap.Enum(elements=elements):
            return sa.Enum(*(text for text, _ in elements), native_enum=False)
        case olap.FixedString(length):
            return sa.String(length)
        case olap.Date() | olap.Date32():
            return sa.Date()
        case olap.DateTime(zone) | olap.DateTime64(zone=zone):
            return sa.DateTime(timezone=zone is not None)
        case olap.UUID():
            return sa.Uuid()
        case olap.Array(inner):
            return sa.ARRAY(_type(olap.plain(inner)))
        case _:
            return ClickHouseType(data_type.name)
