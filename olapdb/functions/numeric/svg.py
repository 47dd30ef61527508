"""svg: shapes as elements of Scalable Vector Graphics."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.functions.numeric import shape_rings
from olapdb.functions.numeric.geometries import shape_of
from olapdb.functions.numeric.shape_rings import Pair
from olapdb.types import STRING, DataType, FixedString, String

_RADIUS = 5
"""The radius of the circle that a point is."""


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String. Raises BadArguments for what is no shape, and IllegalTypeOfArgument for a style
    that is no text."""
    if not 1 <= len(types) <= 2:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes a shape and a style.")
    shape_of(types[0])
    if len(types) > 1 and not isinstance(types[1], String | FixedString):
        raise IllegalTypeOfArgument(f"The style of function {name} is a String, not {types[1]}.")
    return STRING


def _points(points: Sequence[Pair]) -> list[str]:
    """Return points as `x,y` texts with at most six significant digits, as C++ writes them."""
    return [f"{x:g},{y:g}" for x, y in points]


def _element(value: object, label: str, style: str) -> str:
    """Return the SVG elements of a shape of the kind `label`, with the style."""
    if label == "Point":
        ((x, y),) = shape_rings.nested_points(value)
        return f'<circle cx="{x:g}" cy="{y:g}" r="{_RADIUS}" style="{style}"/>'
    if label == "MultiPoint":
        assert isinstance(value, list)
        return "".join(_element(point, "Point", style) for point in value)
    if label in ("LineString", "MultiLineString"):
        lines = value if label == "MultiLineString" else [value]
        assert isinstance(lines, list)
        texts = [" ".join(_points(shape_rings.nested_points(line))) for line in lines]
        return "".join(f'<polyline points="{t}" style="{style};fill:none"/>' for t in texts)
    assert isinstance(value, list)
    if label == "Ring":
        ring = shape_rings.corrected(shape_rings.nested_points(value), hole=False)
        return f'<polygon points="{" ".join(_points(ring))}" style="{style}"/>'
    polygons = value if label == "MultiPolygon" else [value]
    return "".join(_path(polygon, style) for polygon in polygons)


def _path(polygon: list[object], style: str) -> str:
    """Return the SVG path of a polygon with its holes."""
    placed = [
        shape_rings.corrected(shape_rings.nested_points(ring), hole=at > 0)
        for at, ring in enumerate(polygon)
    ]
    rings = "".join("M " + " L ".join(_points(ring)) for ring in placed if ring)
    return f'<g fill-rule="evenodd"><path d="{rings} z " style="{style}"/></g>'


def _kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the SVG elements of each row's shape: the kernel of svg."""
    label = shape_of(call.types[0])

    def of_row(value: object, style: bytes = b"") -> bytes:
        """Return the SVG elements of one shape as bytes."""
        text = style.decode("utf-8", "surrogateescape")
        return _element(value, label, text).encode("utf-8", "surrogateescape")

    return values_by_row(arrays, of_row, call.result.arrow)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("svg", _rule, _kernel, count=(0, None), aliases=("SVG",)),
)
