"""The names of types as ClickHouse shows them to people: each element of a named tuple on a line."""

from __future__ import annotations

from olapdb.types.base import DataType, quote_identifier
from olapdb.types.compound import Array, LowCardinality, Map, Nullable, Tuple

_INDENT = "    "


def indented_name(data_type: DataType, depth: int = 0) -> str:
    """Return a type's name; the elements of named tuples are on lines of their own.

    `depth` is the number of indentations of the line on which the name begins."""
    match data_type:
        case Nullable() | LowCardinality() | Array():
            return f"{type(data_type).__name__}({indented_name(data_type.inner, depth)})"
        case Map():
            key, value = (indented_name(t, depth) for t in (data_type.key, data_type.value))
            return f"Map({key}, {value})"
        case Tuple() if data_type.names:
            line = "\n" + _INDENT * (depth + 1)
            elements = (
                f"{line}{quote_identifier(name)} {indented_name(element, depth + 1)}"
                for name, element in zip(data_type.names, data_type.elements, strict=True)
            )
            return f"Tuple({','.join(elements)})"
        case Tuple():
            return f"Tuple({', '.join(indented_name(t, depth) for t in data_type.elements)})"
        case _:
            return data_type.name
