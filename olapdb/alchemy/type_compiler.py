"""SQLAlchemy's types as ClickHouse's, for CREATE TABLE and CAST."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from sqlalchemy import exc
from sqlalchemy import types as sqltypes
from sqlalchemy.sql.compiler import GenericTypeCompiler
from sqlalchemy.sql.sqltypes import _AbstractInterval
from sqlalchemy.sql.type_api import NativeForEmulated

_ENUM8_ELEMENTS = 127
_DECIMAL_PRECISION, _DECIMAL_SCALE = 38, 10
"""Those of a Numeric without precision."""
_FLOAT32_DIGITS = 24
"""The binary digits of a Float32."""


class OlapTime(sqltypes.Time):
    """A time of day: Time64(6), whose values are durations."""

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Any] | None:
        """Return the function that converts a duration since midnight in a result to a time of day."""

        def time_of_day(value: Any) -> Any:
            """Return the time of day that is this duration after midnight; other values unchanged."""
            if not isinstance(value, datetime.timedelta):
                return value
            return (datetime.datetime.min + value).time()

        return time_of_day


class OlapBytes(sqltypes.LargeBinary):
    """Bytes in a String. The engine gives those that are UTF-8 as text."""

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Any] | None:
        """Return the function that encodes a text of a result as UTF-8; bytes and None stay."""
        return lambda value: value.encode() if isinstance(value, str) else value


class OlapInterval(NativeForEmulated, _AbstractInterval):
    """A length of time: an Int64 of microseconds."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **kw: Any) -> OlapInterval:
        """Return this type for SQLAlchemy's Interval."""
        return cls()

    def bind_processor(self, dialect: Any) -> Callable[[Any], Any]:
        """Return the function that converts a timedelta to whole microseconds, None to None."""
        return lambda value: None if value is None else value // datetime.timedelta(microseconds=1)

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        """Return the function that writes a timedelta as a number of whole microseconds."""
        return lambda value: str(value // datetime.timedelta(microseconds=1))

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Any]:
        """Return the function that converts microseconds to a timedelta, None to None."""
        return lambda value: None if value is None else datetime.timedelta(microseconds=value)


class OlapJSONIndex(sqltypes.JSON.JSONIndexType):
    """A member or an element of a JSON value, written into the statement."""

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        """Return the function that writes a place as an argument of JSONExtract."""
        return json_place


class OlapJSONPath(sqltypes.JSON.JSONPathType):
    """A path of members and elements of a JSON value, written into the statement."""

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        """Return the function that writes a path as arguments of JSONExtract."""
        return lambda places: ", ".join(map(json_place, places))


def json_place(place: str | int) -> str:
    """Return a member's name in quotes, or an element's index plainly. Core counts elements from 0
    and ClickHouse from 1; both count from -1 at the end. Backslashes are left to the compiler,
    which doubles them in each literal."""
    if isinstance(place, str):
        return "'" + place.replace("'", "''") + "'"
    return str(place + 1 if place >= 0 else place)


class OlapTypeCompiler(GenericTypeCompiler):
    """A compiler of types. Lengths of texts say nothing: a String has any."""

    def visit_clickhouse(self, type_: Any, **kw: Any) -> str:
        """Return the name of a ClickHouseType. Raise CompileError for one without a name."""
        if not type_.name:
            raise exc.CompileError("ClickHouseType has no name: write ClickHouseType('Map(…)').")
        return str(type_.name)

    def visit_SMALLINT(self, type_: Any, **kw: Any) -> str:
        return "Int16"

    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:
        return "Int32"

    def visit_BIGINT(self, type_: Any, **kw: Any) -> str:
        return "Int64"

    def visit_BOOLEAN(self, type_: Any, **kw: Any) -> str:
        return "Bool"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        """Return Float32 for at most 24 binary digits, else Float64."""
        small = type_.precision is not None and type_.precision <= _FLOAT32_DIGITS
        return "Float32" if small else "Float64"

    def visit_REAL(self, type_: Any, **kw: Any) -> str:
        return "Float32"

    def visit_DOUBLE(self, type_: Any, **kw: Any) -> str:
        return "Float64"

    def visit_DOUBLE_PRECISION(self, type_: Any, **kw: Any) -> str:
        return "Float64"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        """Return Decimal(38, 10) for a Numeric without precision."""
        if type_.precision is None:
            scale = _DECIMAL_SCALE if type_.scale is None else type_.scale
            return f"Decimal({_DECIMAL_PRECISION}, {scale})"
        return f"Decimal({type_.precision}, {type_.scale or 0})"

    visit_DECIMAL = visit_NUMERIC

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        return "String"

    visit_CHAR = visit_NCHAR = visit_NVARCHAR = visit_TEXT = visit_CLOB = visit_VARCHAR
    visit_JSON = visit_BLOB = visit_BINARY = visit_VARBINARY = visit_VARCHAR

    def visit_large_binary(self, type_: Any, **kw: Any) -> str:
        return self.visit_VARCHAR(type_, **kw)

    def visit_DATE(self, type_: Any, **kw: Any) -> str:
        return "Date32"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return "DateTime64(6, 'UTC')" if type_.timezone else "DateTime64(6)"

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return self.visit_DATETIME(type_, **kw)

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        return "Time64(6)"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        return "Int64"

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        return "UUID"

    def visit_UUID(self, type_: Any, **kw: Any) -> str:
        return "UUID"

    def visit_enum(self, type_: Any, **kw: Any) -> str:
        """Return an Enum8 or Enum16 that numbers the texts from 1; String without any."""
        if not type_.enums:
            return "String"
        bits = 8 if len(type_.enums) <= _ENUM8_ELEMENTS else 16
        texts = [text.replace("\\", "\\\\").replace("'", "\\'") for text in type_.enums]
        elements = ", ".join(f"'{text}' = {at}" for at, text in enumerate(texts, 1))
        return f"Enum{bits}({elements})"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        """Return an Array of as many dimensions; elements that may be NULL are not known."""
        inner = self.process(type_.item_type, **kw)
        for _ in range(type_.dimensions or 1):
            inner = f"Array({inner})"
        return inner
