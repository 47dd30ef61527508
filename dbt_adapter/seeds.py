"""Converts seeds from dbt's agate tables to column types and to Arrow."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    import agate

_INT64_MAX = 2**63 - 1
_LOW_CARDINALITY = re.compile(r"\s*LowCardinality\s*\((.*)\)\s*$", re.IGNORECASE | re.DOTALL)
_DATE = (datetime.date(1970, 1, 1), datetime.date(2149, 6, 6))
_DATETIME = (datetime.datetime(1970, 1, 1), datetime.datetime(2106, 2, 7, 6, 28, 15))


def with_nulls(type_name: str, agate_table: agate.Table, column: int) -> str:
    """Return the type as Nullable if the column holds a NULL, else unchanged.

    A plain column can be a sorting key and needs no null map."""
    if any(value is None for value in agate_table.columns[column].values()):
        return f"Nullable({type_name})"
    return type_name


def configured_type(type_name: str, agate_table: agate.Table, column: int) -> str:
    """Return a type that config column_types gives, Nullable if the column holds a NULL.

    Nullable goes inside of LowCardinality. A type without Nullable (an Array, a Map, a Tuple), and one
    that is Nullable, stays."""
    if (inner := _LOW_CARDINALITY.match(type_name)) is not None:
        return f"LowCardinality({configured_type(inner.group(1), agate_table, column)})"
    name = type_name.strip().lower()
    if name.startswith(("nullable(", "array(", "map(", "tuple(", "nested(")):
        return type_name
    return with_nulls(type_name, agate_table, column)


def number_type(agate_table: agate.Table, column: int) -> str:
    """Return the type of a column of numbers.

    It is Int64, Float64 if some have a fraction, or Decimal(38, 0) if some exceed 64 bits."""
    values = [v for v in agate_table.columns[column].values() if v is not None]
    if any(v != int(v) for v in values):
        return "Float64"
    if any(abs(v) > _INT64_MAX for v in values):
        return "Decimal(38, 0)"
    return "Int64"


def date_type(agate_table: agate.Table, column: int) -> str:
    """Return Date, or Date32 if the column has dates that Date lacks."""
    values = [v for v in agate_table.columns[column].values() if v is not None]
    return "Date" if all(_DATE[0] <= v <= _DATE[1] for v in values) else "Date32"


def datetime_type(agate_table: agate.Table, column: int) -> str:
    """Return DateTime, or DateTime64(6) if the column has fractions or years that DateTime lacks."""
    values = [_naive(v) for v in agate_table.columns[column].values() if v is not None]
    small = all(v.microsecond == 0 and _DATETIME[0] <= v <= _DATETIME[1] for v in values)
    return "DateTime" if small else "DateTime64(6)"


def _naive(value: datetime.datetime) -> datetime.datetime:
    """Return the time in UTC without a zone."""
    if value.tzinfo is None:
        return value
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


def to_arrow(agate_table: agate.Table, types: Mapping[str, str]) -> pa.Table:
    """Return the rows as an Arrow table. `types` are the target table's, by column name.

    Text stays text, which the engine parses by the column's type. Values of a String column become
    text. Raises DbtRuntimeError for a column that the target table lacks.
    """
    columns: dict[str, pa.Array] = {}
    for index, name in enumerate(agate_table.column_names):
        if name not in types:
            table_columns = ", ".join(types)
            raise DbtRuntimeError(
                f"The seed has a column {name} that the table lacks (it has {table_columns}). "
                "Run dbt seed --full-refresh."
            )
        values = list(agate_table.columns[index].values())
        columns[name] = _array(values, types[name])
    return pa.table(columns)


def _array(values: list[Any], type_name: str) -> pa.Array:
    """Return a column's values as the Arrow type that fits the column type."""
    present = [v for v in values if v is not None]
    first = present[0] if present else ""
    if "String" in type_name or not present:
        return pa.array([None if v is None else str(v) for v in values], pa.string())
    if isinstance(first, bool):
        return pa.array(values, pa.bool_())
    if isinstance(first, decimal.Decimal | int | float):
        if "Float" in type_name:
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        if "Decimal" in type_name:
            return pa.array([None if v is None else decimal.Decimal(v) for v in values])
        return pa.array([None if v is None else int(v) for v in values], pa.int64())
    if isinstance(first, datetime.datetime):
        naive = [None if v is None else _naive(v) for v in values]
        return pa.array(naive, pa.timestamp("us", tz="UTC"))
    if isinstance(first, datetime.date):
        return pa.array(values, pa.date32())
    if type_name.removeprefix("Nullable(").rstrip(")") in ("Date", "Date32"):
        return pa.array([None if v is None else _date_text(str(v)) for v in values], pa.string())
    return pa.array([None if v is None else str(v) for v in values], pa.string())


def _date_text(text: str) -> str:
    """Return the text of a date. Of a time in a column whose configured type is a date, return the
    day; any other text is returned unchanged, for the engine to judge."""
    try:
        return datetime.datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        return text
