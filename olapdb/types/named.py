"""Types that are tuples and arrays with a name of their own: those of geometry, and Nested;
Geometry is a Variant.

Their values, and their Arrow form, are those of the tuples and arrays; a function that builds a new
value of them returns the plain type."""

from __future__ import annotations

from collections.abc import Callable

from olapdb.records import dataclass
from olapdb.types.base import DataType
from olapdb.types.compound import Array, Tuple
from olapdb.types.scalars import FLOAT64
from olapdb.types.variant import Variant, variant_of


@dataclass(frozen=True)
class Point(Tuple):
    """A pair of coordinates."""

    @property
    def name(self) -> str:
        """The name, "Point"."""
        return "Point"


@dataclass(frozen=True)
class Shape(Array):
    """An array type under a geometric name: `Ring` is an array of points, others are arrays of shapes."""

    label: str

    @property
    def name(self) -> str:
        """The name: "Ring"."""
        return self.label


@dataclass(frozen=True)
class Geometry(Variant):
    """Any of the shapes: their Variant under a name, in ClickHouse's order of the shapes."""

    @property
    def name(self) -> str:
        """The name, "Geometry"."""
        return "Geometry"

    def with_alternatives(self, change: Callable[[DataType], DataType]) -> Variant:
        """Return the Variant of the shapes with `change` applied to each; this type itself if none changes."""
        changed = tuple(map(change, self.alternatives))
        return self if changed == self.alternatives else variant_of(changed)


@dataclass(frozen=True)
class Nested(Array):
    """An array of named tuples that is one column, as `flatten_nested = 0` makes it."""

    @property
    def name(self) -> str:
        """The name: "Nested(a UInt8, b String)"."""
        return "Nested" + self.inner.name.removeprefix("Tuple")


POINT = Point((FLOAT64, FLOAT64))
RING, LINE_STRING, MULTI_POINT = (
    Shape(POINT, label) for label in ("Ring", "LineString", "MultiPoint")
)
MULTI_LINE_STRING, POLYGON = Shape(LINE_STRING, "MultiLineString"), Shape(RING, "Polygon")
MULTI_POLYGON = Shape(POLYGON, "MultiPolygon")
GEOMETRIES: tuple[DataType, ...] = (
    *(POINT, RING, LINE_STRING, MULTI_POINT),
    *(MULTI_LINE_STRING, POLYGON, MULTI_POLYGON),
)
"""The types of geometry."""
GEOMETRY = Geometry(
    (LINE_STRING, MULTI_LINE_STRING, MULTI_POLYGON, POINT, POLYGON, RING, MULTI_POINT)
)
