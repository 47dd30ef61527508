"""Columns, with ClickHouse's type names as dbt sees them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from dbt.adapters.base.column import Column
from dbt_common.exceptions import DbtRuntimeError

from .relation import quote

_WRAPPER = re.compile(r"^(?:Nullable|LowCardinality|SimpleAggregateFunction\(\w+,)\s*\(?(.*)\)$")
_DECIMAL = re.compile(r"^Decimal(?:32|64|128|256)?\((\d+)(?:\s*,\s*(\d+))?\)$")
_FIXED = re.compile(r"^FixedString\((\d+)\)$")
_INTEGER = re.compile(r"^U?Int(?:8|16|32|64|128|256)$")


@dataclass
class OlapdbColumn(Column):
    """A column. `dtype` is the full type as the engine names it, `Nullable(…)` included."""

    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "STRING": "String",
        "TIMESTAMP": "DateTime64(6)",
        "FLOAT": "Float64",
        "INTEGER": "Int64",
        "BIGINT": "Int64",
        "BOOLEAN": "Bool",
        "NUMERIC": "Decimal(38, 9)",
        "DATE": "Date",
    }

    @property
    def quoted(self) -> str:
        """Return the column's name in quotes."""
        return quote(str(self.column))

    @property
    def data_type(self) -> str:
        """Return the full type, as olapdb writes it."""
        return str(self.dtype)

    @property
    def plain_type(self) -> str:
        """The type without Nullable, LowCardinality and SimpleAggregateFunction."""
        inner: str = self.dtype.strip()
        while (wrapped := _WRAPPER.match(inner)) is not None:
            inner = str(wrapped.group(1)).strip()
        return inner

    @property
    def is_nullable(self) -> bool:
        """Return whether the type is Nullable, also inside LowCardinality."""
        return "Nullable(" in self.dtype.removeprefix("LowCardinality(")[:9]

    def is_string(self) -> bool:
        """Return whether the type is String or FixedString, without Nullable."""
        return self.plain_type == "String" or _FIXED.match(self.plain_type) is not None

    def is_integer(self) -> bool:
        """Return whether the type is an integer."""
        return _INTEGER.match(self.plain_type) is not None

    def is_float(self) -> bool:
        """Return whether the type is Float32 or Float64."""
        return self.plain_type in ("Float32", "Float64")

    def is_numeric(self) -> bool:
        """Return whether the type is a Decimal; floats and integers are not."""
        return _DECIMAL.match(self.plain_type) is not None

    def is_number(self) -> bool:
        """Return whether the type is an integer, a float or a Decimal."""
        return self.is_integer() or self.is_float() or self.is_numeric()

    def string_size(self) -> int:
        """Return the bytes of a FixedString, 256 for a String.

        Raises DbtRuntimeError for any other type."""
        if not self.is_string():
            raise DbtRuntimeError("Called string_size() on non-string field!")
        fixed = _FIXED.match(self.plain_type)
        return int(fixed.group(1)) if fixed else 256

    @classmethod
    def string_type(cls, size: int) -> str:
        """Return String: strings have no length."""
        return "String"

    @classmethod
    def numeric_type(cls, dtype: str, precision: Any, scale: Any) -> str:
        """Return Decimal(precision, scale), `dtype` if either is None."""
        if precision is None or scale is None:
            return dtype
        return f"Decimal({precision}, {scale})"

    def can_expand_to(self, other_column: Column) -> bool:
        """Return False: strings have no length, so no column needs to grow."""
        return False

    @classmethod
    def from_description(cls, name: str, raw_data_type: str) -> OlapdbColumn:
        """Return a column of this name and type."""
        return cls(name, raw_data_type)
