"""Point, and shapes that are arrays of points: tuples and arrays with names of their own."""

from __future__ import annotations

from dataclasses import dataclass

from olapdb.types.base import DataType
from olapdb.types.compound import Array, Tuple
from olapdb.types.scalars import FLOAT64


@dataclass(frozen=True)
class Point(Tuple):
    """A point: a tuple of two Float64."""

    elements: tuple[DataType, ...] = (FLOAT64, FLOAT64)

    @property
    def name(self) -> str:
        """The name: "Point"."""
        return "Point"


@dataclass(frozen=True)
class Shape(Array):
    """An array of points, or of such arrays, that has a name, `label`."""

    label: str = ""

    @property
    def name(self) -> str:
        """The name: "Ring"."""
        return self.label


POINT = Point()
RING, LINE_STRING, MULTI_POINT = (
    Shape(POINT, label) for label in ("Ring", "LineString", "MultiPoint")
)
MULTI_LINE_STRING, POLYGON = Shape(LINE_STRING, "MultiLineString"), Shape(RING, "Polygon")
MULTI_POLYGON = Shape(POLYGON, "MultiPolygon")
GEOMETRIES = (POINT, RING, LINE_STRING, MULTI_POINT, MULTI_LINE_STRING, POLYGON, MULTI_POLYGON)
