"""The names of types as ClickHouse shows them to people: each element of a named tuple on a line."""

from __future__ import annotations

from olapdb.types.base import DataType, quote_identifier
from olapdb.types.compound import Array, LowCardinality, Map, Nullable, Tuple
from olapdb.types.geometries import Point, Shape

_INDENT = "    "


def indented_name(data_type: DataType, depth: int = 0, *, unnamed: bool = False) -> str:
    """Return a type's name; the elements of named tuples are on lines of their own,
    but for tuples that may be NULL.

    `depth` is the number of indentations of the line on which the name begins. With `unnamed` those
    of other tuples are too, as in SHOW CREATE."""
    match data_type:
        case Nullable(inner=Tuple()) | Point() | Shape():
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
