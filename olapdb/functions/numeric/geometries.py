"""Areas and lengths of shapes, in a plane and on a sphere of radius 1.

As in ClickHouse, a ring ends at its last point, whether or not that is its first, and a ring of
fewer than four points has no area. Clockwise areas are positive, and those of holes are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import assembled
from olapdb.types import FLOAT64, GEOMETRY, Array, DataType, Point, Shape, Tuple

_AREA_POINTS_MIN = 4
"""Points of a ring that has an area: the last one closes it."""
_LABELS = ("Ring", "Polygon", "MultiPolygon")
"""The shape that arrays are which have no name, by their depth."""
Segments = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""A function of the coordinates of the ends of segments that returns what each adds."""


def shape_of(data_type: DataType) -> str:
    """Return the name of the shape, such as Ring or Polygon, that values of a type are. Raises BadArguments for
    other types."""
    inner, depth, label = data_type, 0, ""
    while isinstance(inner, Array):
        if isinstance(inner, Shape):
            label = label or inner.label
        inner, depth = inner.inner, depth + 1
    is_point = isinstance(inner, Point) or (
        isinstance(inner, Tuple) and inner.elements == (FLOAT64, FLOAT64)
    )
    if not is_point or depth > len(_LABELS):
        raise BadArguments(f"Unknown geometry type {data_type}.")
    return label or ("Point" if depth == 0 else _LABELS[depth - 1])


def geometry_column(shapes: Sequence[tuple[DataType, object]]) -> pa.Array:
    """Return a Geometry column of (type, value) pairs; the values are as Arrow takes them."""
    places = [GEOMETRY.alternatives.index(shape) for shape, _ in shapes]
    values = {
        place: pa.array(
            [value for shape, value in shapes if shape == alternative], alternative.arrow
        )
        for place, alternative in enumerate(GEOMETRY.alternatives)
        if place in places
    }
    return assembled(GEOMETRY, np.array(places, np.uint8), values)


def _flat_area(x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray) -> np.ndarray:
    """Return the signed area between each segment and the x axis, by the trapezoid formula."""
    return np.asarray((x1 + x2) * (y1 - y2) / 2.0)


def _flat_length(x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray) -> np.ndarray:
    """Return the length of each segment."""
    return np.asarray(np.sqrt((x2 - x1) ** 2 + (y2 - y1) ** 2))


def _sphere_area(x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray) -> np.ndarray:
    """Return the area between each segment and the equator, the spherical excess (L'Huilier, as
    R. Chamberlain and W. Duquette write it); longitudes come first, in degrees."""
    turn = np.radians((x2 - x1 + 180.0) % 360.0 - 180.0)
    first, second = (np.tan(np.radians(latitude) / 2) for latitude in (y1, y2))
    return np.asarray(2 * np.arctan((first + second) / (1 + first * second) * np.tan(turn / 2)))


def _sphere_length(x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray) -> np.ndarray:
    """Return the angle of each segment in radians, by the haversine formula; the ends are longitudes and latitudes
    in degrees."""
    x1, y1, x2, y2 = (np.radians(part) for part in (x1, y1, x2, y2))
    half = np.sin((y2 - y1) / 2) ** 2 + np.cos(y1) * np.cos(y2) * np.sin((x2 - x1) / 2) ** 2
    return np.asarray(2 * np.arcsin(np.sqrt(half)))


def _kernel(segments: Segments, points_min: int) -> scalar.Kernel:
    """Return the kernel that adds up what `segments` gives for the edges of each row's rings or lines; those with
    fewer than `points_min` points add nothing."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Sum what `segments` gives for each row's shape, as Float64; a shape without such parts has 0."""
        rows = len(arrays[0])
        if shape_of(call.types[0]) not in _LABELS:
            return columns.from_values(np.zeros(rows), pa.float64())
        inner, owners = arrays[0], np.arange(rows)
        offsets = np.zeros(1, np.int64)
        while pa.types.is_list(inner.type):
            rings = owners
            offsets, inner = columns.elements_of(inner)
            owners = rings[columns.parents_of(offsets)]
        x, y = (columns.numpy_values(field) for field in inner.flatten())
        sizes = np.diff(offsets)
        starts = np.arange(len(x))
        follows = np.ones(len(x), bool)
        follows[offsets[1:][sizes > 0] - 1] = False
        follows &= np.repeat(sizes >= points_min, sizes)
        starts = starts[follows]
        added = segments(x[starts], y[starts], x[starts + 1], y[starts + 1])
        sums = np.bincount(owners[starts], weights=added, minlength=rows)
        return columns.from_values(sums + 0.0, pa.float64())

    return kernel


def _rule(of_points: bool) -> scalar.TypeRule:
    """Return the type rule of a function of one shape, with the result Float64; `of_points` allows a Point."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return Float64. Raises BadArguments and IllegalTypeOfArgument."""
        if shape_of(types[0]) == "Point" and not of_points:
            raise IllegalTypeOfArgument(f"The argument of function {name} must not be Point.")
        return FLOAT64

    return rule


_KERNELS = {
    "AreaCartesian": _kernel(_flat_area, _AREA_POINTS_MIN),
    "AreaSpherical": _kernel(_sphere_area, _AREA_POINTS_MIN),
    "PerimeterCartesian": _kernel(_flat_length, 1),
    "PerimeterSpherical": _kernel(_sphere_length, 1),
}
DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = tuple(
    scalar.define(name, _rule(of_points), kernel)
    for suffix, kernel in _KERNELS.items()
    for name, of_points in ((f"polygon{suffix}", False), (suffix[0].lower() + suffix[1:], True))
)
