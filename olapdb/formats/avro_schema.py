"""The schema of Avro data: what the values of each column are, one behind the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from olapdb import errors, types
from olapdb.functions import parse_type
from olapdb.records import dataclass

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_LOGICAL: Mapping[str, types.DataType] = {
    "date": types.DATE32,
    "timestamp-millis": types.DateTime64(3, None),
    "timestamp-micros": types.DateTime64(6, None),
    "local-timestamp-millis": types.DateTime64(3, None),
    "local-timestamp-micros": types.DateTime64(6, None),
    "uuid": types.UUID_TYPE,
}
_PLAIN: Mapping[str, types.DataType] = {
    "boolean": types.BOOL,
    "int": types.INT32,
    "long": types.INT64,
    "float": types.FLOAT32,
    "double": types.FLOAT64,
    "bytes": types.STRING,
    "string": types.STRING,
}


@dataclass(frozen=True)
class Schema:
    """A parsed Avro schema and the data type as which its values are read. `parts` are the fields of a record, the
    branches of a union, or the element of an array or map."""

    kind: str
    type: types.DataType
    parts: tuple[Schema, ...] = ()
    names: tuple[str, ...] = ()
    size: int = 0
    symbols: tuple[str, ...] = field(default=())


def parse_schema(text: str) -> Schema:
    """Parse a schema from JSON. Raises IncorrectData if it is invalid or no record."""
    try:
        given = json.loads(text)
    except ValueError:
        raise errors.IncorrectData("The schema of the Avro data is no JSON.") from None
    try:
        schema = _Parser().schema(given)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise errors.IncorrectData(
            f"The schema of the Avro data lacks what a type needs, or has it in another form: {error}."
        ) from None
    if schema.kind != "record":
        raise errors.IncorrectData("The root of the schema of Avro data must be a record.")
    return schema


class _Parser:
    """A parser of schemas that remembers the named types defined so far."""

    def __init__(self) -> None:
        """Start without named types."""
        self._known: dict[str, Schema] = {}

    def schema(self, given: Any) -> Schema:
        """Parse a schema from its JSON value. Raises NotSupportedError for a type that contains itself."""
        if isinstance(given, list):
            return self._union(given)
        if isinstance(given, str):
            if given in PRIMITIVES:
                return _primitive(given, None, given)
            if given in self._known:
                return self._known[given]
            raise errors.NotSupportedError(
                f"The type {given!r} of the Avro schema is not known here, or contains itself.",
                hint="Read other columns: file('path', 'Avro', 'a UInt8').",
            )
        kind = given.get("type") if isinstance(given, dict) else None
        if kind in PRIMITIVES:
            return _primitive(kind, given.get("logicalType"), given)
        if isinstance(kind, dict | list):
            return self.schema(kind)
        named = self._compound(str(kind), given)
        if "name" in given:
            self._known[given["name"]] = named
        return named

    def _union(self, given: Sequence[Any]) -> Schema:
        """Parse a union of null and one type, or of one type alone."""
        parts = tuple(self.schema(branch) for branch in given)
        branches = [part for part in parts if part.kind != "null"]
        if len(branches) > 1:
            raise errors.NotSupportedError(
                "A union of several types in Avro data is not supported.",
                hint="Write a union of null and one type.",
            )
        inner = branches[0].type if branches else types.NOTHING
        is_nullable = len(branches) < len(parts)
        return Schema("union", types.make_nullable(inner) if is_nullable else inner, parts)

    def _compound(self, kind: str, given: Mapping[str, Any]) -> Schema:
        """Parse a record, an array, a map, an enum or a fixed. Raises IncorrectData."""
        match kind:
            case "record":
                names = tuple(field["name"] for field in given["fields"])
                parts = tuple(self.schema(field["type"]) for field in given["fields"])
                elements = tuple(part.type for part in parts)
                return Schema(kind, types.Tuple(elements, names), parts, names)
            case "array":
                item = self.schema(given["items"])
                return Schema(kind, types.Array(item.type), (item,))
            case "map":
                value = self.schema(given["values"])
                return Schema(kind, types.Map(types.STRING, value.type), (value,))
            case "enum":
                symbols = tuple(given["symbols"])
                texts = (symbol.replace("\\", "\\\\").replace("'", "\\'") for symbol in symbols)
                quoted = ", ".join(f"'{text}' = {at}" for at, text in enumerate(texts))
                bits = 8 if len(symbols) < 128 else 16
                return Schema(kind, parse_type(f"Enum{bits}({quoted})"), symbols=symbols)
            case "fixed":
                size = int(given["size"])
                return Schema(kind, _of_bytes(given, types.FixedString(size)), size=size)
            case _:
                raise errors.IncorrectData(f"The Avro schema has an unknown type {kind!r}.")


def _primitive(kind: str, logical: str | None, given: Any) -> Schema:
    """Return the schema of a primitive type, with its logical type."""
    if kind == "null":
        return Schema(kind, types.NOTHING)
    if kind == "bytes":
        return Schema(kind, _of_bytes(given, types.STRING))
    logical_type = _LOGICAL.get(logical or "")
    return Schema(kind, _PLAIN[kind] if logical_type is None else logical_type)


def _of_bytes(given: Any, otherwise: types.DataType) -> types.DataType:
    """Return the Decimal if the schema gives bytes that logical type, else `otherwise`."""
    if isinstance(given, dict) and given.get("logicalType") == "decimal":
        return types.Decimal(int(given["precision"]), int(given.get("scale", 0)))
    return otherwise
