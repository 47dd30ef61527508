"""ClickHouse's data types, their names and their Arrow form.

A `DataType` is a frozen value; `str(t)` is ClickHouse's name of it, `t.arrow` the Arrow type that
columns of it have in memory and in parts.  The Arrow form is chosen so that any Parquet reader
opens a part: no dictionaries, no extension types; a `LowCardinality(T)` is a plain `T`, a
`Nullable(T)` the same Arrow type with nulls, a `DateTime` a timestamp in seconds with its zone.
Everything that is not inside `Nullable` holds no null.

`scalars` and `compound` have the types, `names` reads them from text.
"""

from olapdb.types.base import UTC, DataType, quote_identifier
from olapdb.types.compound import (
    AggregateFunction,
    Array,
    LowCardinality,
    Map,
    Nullable,
    SimpleAggregateFunction,
    Tuple,
    arrow_schema,
    is_nullable,
    is_number,
    make_nullable,
    plain,
    stored_type,
)
from olapdb.types.names import StateOf, known_zone, parse_type, type_families
from olapdb.types.scalars import (
    BOOL,
    DATE,
    DATE32,
    DATETIME,
    EXACT_FLOAT,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NOTHING,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UUID,
    UUID_TYPE,
    WIDE_INTEGER,
    WIDE_SUM,
    Boolean,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    ExactFloat,
    FixedString,
    Float,
    Integer,
    Interval,
    Nothing,
    String,
    WideInteger,
)

__all__ = [
    "BOOL", "DATE", "DATE32", "DATETIME", "EXACT_FLOAT", "FLOAT32", "FLOAT64", "INT8", "INT16", "INT32", "INT64",
    "NOTHING", "STRING", "UINT8", "UINT16", "UINT32", "UINT64", "UTC", "UUID", "UUID_TYPE",
    "WIDE_INTEGER", "WIDE_SUM",
    "AggregateFunction", "Array", "Boolean", "DataType", "Date", "Date32", "DateTime",
    "DateTime64", "Decimal", "ExactFloat", "FixedString", "Float", "Integer", "Interval", "LowCardinality",
    "Map", "Nothing", "Nullable", "SimpleAggregateFunction", "StateOf", "String", "Tuple", "WideInteger",
    "arrow_schema", "is_nullable", "is_number", "known_zone", "make_nullable", "parse_type",
    "plain", "quote_identifier", "stored_type", "type_families",
]  # fmt: skip
