"""The names of types as ClickHouse shows them to people: each element of a named tuple on a line."""

from __future__ import annotations

from olapdb.types.base import DataType, quote_identifier
from olapdb.types.compound import Array, LowCardinality, Map, Nullable, Tuple
from olapdb.types.named import Nested, Point, Shape

_INDENT = "    "


def indented_name(data_type: DataType, depth: int = 0, *, unnamed: bool = False) -> str:
    """Return a type's name with each element of a named tuple on its own line, except in tuples that may be NULL.
    `depth` is the indentation of the line where the name begins. With `unnamed`, elements of unnamed tuples are on
    their own lines too, as in SHOW CREATE."""
    match data_type:
        case Nullable(inner=Tuple()) | Point() | Shape() | Nested():
            return data_type.name
        case Nullable() | LowCardinality() | Array():
            inner = indented_name(data_type.inner, depth, unnamed=unnamed)
            return f"{type(data_type).__name__}({inner})"
        case Map():
            key, value = (
                indented_name(t, depth, unnamed=unnamed) for t in (data_type.key, data_type.value)
            )
            return f"Map({key}, {value})"
        case Tuple() if data_type.elements and (data_type.names or unnamed):
            line = "\n" + _INDENT * (depth + 1)
            names = [f"{quote_identifier(name)} " for name in data_type.names or ()]
            elements = (
                f"{line}{name}{indented_name(element, depth + 1, unnamed=unnamed)}"
                for name, element in zip(
                    names or [""] * len(data_type.elements), data_type.elements, strict=True
                )
            )
            return f"Tuple({','.join(elements)})"
        case Tuple():
            return f"Tuple({', '.join(indented_name(t, depth) for t in data_type.elements)})"
        case _:
            return data_type.name
