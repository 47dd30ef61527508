"""polygonsUnion…, polygonsIntersection…, polygonsWithin…, polygonConvexHullCartesian and their kin:
functions of shapes of one row; see `by_value`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from olapdb.errors import BadArguments, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.functions.numeric import shape_overlay, shape_relations, shape_rings
from olapdb.functions.numeric.geometries import shape_of
from olapdb.functions.numeric.shape_relations import Figure
from olapdb.functions.numeric.shape_rings import Pair, Plane, PlaneShape, Ring
from olapdb.types import FLOAT64, MULTI_POLYGON, POINT, POLYGON, UINT8, DataType, Shape

_DEPTHS = {"Ring": 1, "Polygon": 2, "MultiPolygon": 3}
"""The arrays around the points of a shape that has an inside."""
_FIELDS = tuple(POINT.arrow.field(place).name for place in (0, 1))
MakePlane = Callable[[Sequence[Pair]], Plane]
Overlay = Callable[[PlaneShape, PlaneShape], PlaneShape]


def _areas_rule(result: DataType) -> scalar.TypeRule:
    """Return the type rule of a function of two shapes that have an area: Ring, Polygon or MultiPolygon. The result
    type is `result`."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type. Raises BadArguments and IllegalTypeOfArgument."""
        for label in map(shape_of, types):
            if label not in _DEPTHS:
                raise IllegalTypeOfArgument(f"No argument of function {name} may be a {label}.")
        return result

    return rule


def _any_rule(result: DataType) -> scalar.TypeRule:
    """Return the type rule of a function of two shapes of any kind; the result type is `result`."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type. Raises IllegalTypeOfArgument for a type that is no shape, and for unnamed arrays
        of points, which may be lines or rings."""
        for data_type in types:
            try:
                label = shape_of(data_type)
            except BadArguments as error:
                raise IllegalTypeOfArgument(str(error)) from error
            if label in ("Ring", "Polygon") and not isinstance(data_type, Shape):
                raise IllegalTypeOfArgument(
                    f"An argument of function {name} may be lines or a polygon: {data_type}.",
                    hint="Cast it: … :: Ring, … :: LineString or … :: Polygon.",
                )
        return result

    return rule


def _hull_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Polygon. Raises BadArguments for a point, and for what is no shape."""
    if shape_of(types[0]) == "Point":
        raise BadArguments(f"The argument of function {name} must not be a Point.")
    return POLYGON


def _shapes(call: scalar.Invocation, values: Sequence[object], make: MakePlane) -> list[PlaneShape]:
    """Return the two shapes of a row in one plane, which `make` makes of all their points. Raises BadArguments for
    one that crosses itself."""
    points = [point for value in values for point in shape_rings.nested_points(value)]
    plane = make(points)
    labels = [shape_of(data_type) for data_type in call.types]
    shapes = [
        shape_rings.polygons_of(value, _DEPTHS[label], plane)
        for value, label in zip(values, labels, strict=True)
    ]
    for shape in shapes:
        shape_rings.require_simple(shape)
    return shapes


def _figures(call: scalar.Invocation, values: Sequence[object], plane: Plane) -> list[Figure]:
    """Return the two shapes of a row, of any kind, as figures of the plane."""
    figures = []
    for value, data_type in zip(values, call.types, strict=True):
        label = shape_of(data_type)
        if label in _DEPTHS:
            shape = shape_rings.polygons_of(value, _DEPTHS[label], plane)
            figures.append(shape_relations.figure_of_shape(shape))
            continue
        lines = value if label == "MultiLineString" else [value]
        assert isinstance(lines, list)
        placed = [[plane.place(p) for p in shape_rings.nested_points(line)] for line in lines]
        if label == "MultiPoint":
            placed = [[place] for line in placed for place in line]
        figures.append(shape_relations.figure_of_lines(placed))
    return figures


def _kernel(function: Callable[[scalar.Invocation, Sequence[object]], object]) -> scalar.Kernel:
    """Return the kernel that calls `function` with the invocation and the values of each distinct row."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Call the function once for each distinct row."""
        return values_by_row(arrays, lambda *v: function(call, v), call.result.arrow)

    return kernel


def _overlaying(combine: Overlay, make: MakePlane) -> scalar.Kernel:
    """Return the kernel of a set operation such as union; `combine` computes it in the plane that `make` makes."""

    def of_row(call: scalar.Invocation, values: Sequence[object]) -> object:
        """Return the polygons that the set operation gives for one row, in the row's coordinates."""
        shape = combine(*_shapes(call, values, make))
        return [[_with_fields(ring, shape.plane) for ring in p] for p in shape.polygons]

    return _kernel(of_row)


def _with_fields(ring: Ring, plane: Plane) -> list[dict[str, float]]:
    """Return the points of a ring as values of Point."""
    return [dict(zip(_FIELDS, plane.point(place), strict=True)) for place in ring]


def _relating(relation: Callable[[PlaneShape, PlaneShape], bool], make: MakePlane) -> scalar.Kernel:
    """Return the kernel of a relation of two shapes with an area, 1 or 0; `make` makes the plane."""
    return _kernel(lambda call, values: int(relation(*_shapes(call, values, make))))


def _meeting(make: MakePlane) -> scalar.Kernel:
    """Return the kernel that gives 1 where two shapes share a point, else 0; `make` makes the plane."""

    def of_row(call: scalar.Invocation, values: Sequence[object]) -> object:
        """Return 1 where the shapes of a row share a point."""
        points = [point for value in values for point in shape_rings.nested_points(value)]
        return int(shape_relations.intersect(*_figures(call, values, make(points))))

    return _kernel(of_row)


def _distance(make: MakePlane) -> scalar.Kernel:
    """Return the kernel of the distance of two shapes, 0 where they meet; `make` makes the plane."""
    flat = make is shape_rings.flat_plane
    measure = shape_relations.flat_distance if flat else shape_relations.sphere_distance

    def of_row(call: scalar.Invocation, values: Sequence[object]) -> object:
        """Return the distance of the shapes of a row. Raises BadArguments for an empty shape."""
        points = [shape_rings.nested_points(value) for value in values]
        if not all(points):
            raise BadArguments("A shape without points has no distance.")
        plane = make([*points[0], *points[1]])
        if shape_relations.intersect(*_figures(call, values, plane)):
            return 0.0
        given = shape_rings.flat_plane(())
        return measure(*_figures(call, values, given))

    return _kernel(of_row)


def _hull(call: scalar.Invocation, values: Sequence[object]) -> object:
    """Return the convex hull of a row's only shape as a polygon."""
    ring = shape_relations.convex_hull(shape_rings.nested_points(values[0]))
    return [_with_fields(ring, shape_rings.flat_plane(()))]


def _on(suffix: str, make: MakePlane) -> list[scalar.ScalarDefinition]:
    """Return the definitions of all functions whose names end with `suffix`: those of a plane (Cartesian) or of a
    sphere."""
    overlays: dict[str, Overlay] = {
        "Union": shape_overlay.union,
        "Intersection": shape_overlay.intersection,
        "SymDifference": shape_overlay.symmetric_difference,
    }
    definitions = [
        (f"polygons{name}", _areas_rule(MULTI_POLYGON), _overlaying(combine, make))
        for name, combine in overlays.items()
    ]
    definitions += [
        ("polygonsWithin", _areas_rule(UINT8), _relating(shape_relations.within, make)),
        ("polygonsIntersect", _areas_rule(UINT8), _meeting(make)),
        ("geometryIntersect", _any_rule(UINT8), _meeting(make)),
        ("polygonsDistance", _areas_rule(FLOAT64), _distance(make)),
    ]
    return [
        scalar.define(name + suffix, rule, kernel, count=2) for name, rule, kernel in definitions
    ]


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *_on("Cartesian", shape_rings.flat_plane),
    *_on("Spherical", shape_rings.sphere_plane),
    scalar.define(
        "polygonsEqualsCartesian",
        _areas_rule(UINT8),
        _relating(shape_relations.equal, shape_rings.flat_plane),
        count=2,
    ),
    scalar.define("polygonConvexHullCartesian", _hull_rule, _kernel(_hull)),
)
