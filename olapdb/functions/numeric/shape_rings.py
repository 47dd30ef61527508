"""Rings of shapes of one row, in a plane: how a shape becomes rings, and where their edges meet.

A sphere becomes a plane by the gnomonic projection, in which great circles are straight lines. It
shows less than half of the sphere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import field

from olapdb.errors import BadArguments, IllegalTypeOfArgument
from olapdb.records import dataclass

Pair = tuple[float, float]
"""The coordinates of a point."""
Ring = list[Pair]
"""Points of which the last one is the first."""

_SECTION_EDGES_MAX = 10
"""Edges of a ring that go in one direction and are looked at together, as in Boost.Geometry."""
_TOO_LARGE = "The shapes take more than half of the sphere."


@dataclass
class Plane:
    """A plane onto which the points of a row's shapes are projected, and the way back to their coordinates."""

    forward: Callable[[Pair], Pair]
    back: Callable[[Pair], Pair]
    known: dict[Pair, Pair] = field(default_factory=dict)

    def place(self, point: Pair) -> Pair:
        """Return the place in the plane of a point in coordinates."""
        place = self.forward(point)
        self.known.setdefault(place, point)
        return place

    def point(self, place: Pair) -> Pair:
        """Return the coordinates of a place in the plane: exactly those given, where a given point lies there."""
        given = self.known.get(place)
        return self.back(place) if given is None else given


@dataclass
class PlaneShape:
    """The rings of a shape: `polygons` has for each polygon its outer ring, clockwise, and then its
    holes, the other way round."""

    polygons: list[list[Ring]]
    plane: Plane

    @property
    def rings(self) -> list[Ring]:
        """All rings, in their order."""
        return [ring for polygon in self.polygons for ring in polygon]


def flat_plane(points: Sequence[Pair]) -> Plane:
    """Return the plane whose places are the coordinates themselves."""
    return Plane(_same, _same)


def _same(point: Pair) -> Pair:
    """Return the point itself: the projection of a flat plane."""
    return point


def vector(point: Pair) -> tuple[float, float, float]:
    """Return the unit vector of a longitude and a latitude in degrees."""
    longitude, latitude = math.radians(point[0]), math.radians(point[1])
    across = math.cos(latitude)
    return across * math.cos(longitude), across * math.sin(longitude), math.sin(latitude)


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the scalar product of two vectors."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def cross(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Return the vector product of two vectors."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def sphere_plane(points: Sequence[Pair]) -> Plane:
    """Return the gnomonic projection around the middle of points. Raises BadArguments unless all
    lie within half of the sphere."""
    vectors = [vector(point) for point in points]
    middle = [math.fsum(parts) for parts in zip(*vectors, strict=True)] if vectors else [1, 0, 0]
    length = math.hypot(*middle)
    if length < 1e-9:
        raise BadArguments(_TOO_LARGE)
    up = [part / length for part in middle]
    if any(dot(up, way) < 1e-9 for way in vectors):
        raise BadArguments(_TOO_LARGE)
    flat = math.hypot(up[0], up[1])
    east = [-up[1] / flat, up[0] / flat, 0.0] if flat > 1e-12 else [0.0, 1.0, 0.0]
    north = cross(up, east)

    def forward(point: Pair) -> Pair:
        """Return the place of a point in the plane that touches the sphere in the middle."""
        way = vector(point)
        height = dot(up, way)
        return dot(east, way) / height, dot(north, way) / height

    def back(place: Pair) -> Pair:
        """Return the longitude and latitude in degrees of a place in the plane."""
        x, y, z = (u + place[0] * e + place[1] * n for u, e, n in zip(up, east, north, strict=True))
        return math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, math.hypot(x, y)))

    return Plane(forward, back)


def nested_points(value: object) -> list[Pair]:
    """Return all points of a value: a point, or lists of points. Raises IllegalTypeOfArgument for a
    coordinate that is no finite number."""
    if isinstance(value, list):
        return [point for part in value for point in nested_points(part)]
    assert isinstance(value, dict)
    x, y = value.values()
    if math.isnan(x) or math.isnan(y):
        raise IllegalTypeOfArgument("Point's component must not be NaN.")
    if math.isinf(x) or math.isinf(y):
        raise IllegalTypeOfArgument("Point's component must not be infinite.")
    return [(x, y)]


def polygons_of(value: object, depth: int, plane: Plane) -> PlaneShape:
    """Return the shape of a ring (`depth` 1), a polygon (2) or several polygons (3) in the plane.

    Rings are closed and turned to their direction; those without points are left out."""
    polygons = value
    for _ in range(3 - depth):
        polygons = [polygons]
    assert isinstance(polygons, list)
    rings = []
    for polygon in polygons:
        placed = [
            corrected([plane.place(point) for point in nested_points(ring)], hole=at > 0)
            for at, ring in enumerate(polygon)
        ]
        rings.append([ring for ring in placed if ring])
    return PlaneShape([polygon for polygon in rings if polygon], plane)


def corrected(ring: Ring, *, hole: bool) -> Ring:
    """Return a closed ring that goes clockwise, or as a hole the other way round."""
    if len(ring) > 2 and ring[0] != ring[-1]:
        ring = [*ring, ring[0]]
    return ring[::-1] if (area(ring) < 0) != hole and area(ring) != 0 else ring


def area(ring: Ring) -> float:
    """Return the area of a closed ring; it is positive if the ring goes clockwise."""
    if len(ring) < 4:
        return 0.0
    x0, y0 = ring[0]
    twice = sum(
        (a[0] - x0) * (b[1] - y0) - (b[0] - x0) * (a[1] - y0) for a, b in itertools.pairwise(ring)
    )
    return -twice / 2


def side(a: Pair, b: Pair, point: Pair) -> float:
    """Return a number above 0 for a point on the left of the line from a to b, 0 for one on it."""
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])


def where_in(rings: Sequence[Ring], point: Pair) -> int:
    """Return 1 for a point inside rings, of which an odd number surrounds it, 0 for one on an edge
    of them, and -1 for one outside."""
    inside = False
    y = point[1]
    for ring in rings:
        for a, b in itertools.pairwise(ring):
            turn = side(a, b, point)
            if turn == 0 and _between(a, b, point):
                return 0
            if (a[1] <= y) != (b[1] <= y) and (turn > 0) == (b[1] > a[1]):
                inside = not inside
    return 1 if inside else -1


def sections(ring: Ring, plane: Plane) -> list[int]:
    """Return for each edge of a ring the number of its section, from 0: at most ten consecutive edges that go in one
    direction of both coordinates."""
    points = [plane.point(place) for place in ring]
    numbers: list[int] = []
    last, count, number = None, 0, -1
    for a, b in itertools.pairwise(points):
        direction = ((b[0] > a[0]) - (b[0] < a[0]), (b[1] > a[1]) - (b[1] < a[1]))
        if direction != last or count == _SECTION_EDGES_MAX:
            number, count, last = number + 1, 0, direction
        count += 1
        numbers.append(number)
    return numbers


def require_simple(shape: PlaneShape) -> None:
    """Raise BadArguments for a shape whose edges cross one another."""
    edges = [edge for ring in shape.rings for edge in itertools.pairwise(ring)]
    for at, (a, b) in enumerate(edges):
        for c, d in edges[at + 1 :]:
            if max(a[0], b[0]) < min(c[0], d[0]) or max(c[0], d[0]) < min(a[0], b[0]):
                continue
            turns = side(c, d, a), side(c, d, b), side(a, b, c), side(a, b, d)
            if turns[0] * turns[1] < 0 and turns[2] * turns[3] < 0:
                raise BadArguments(
                    "The edges of a polygon cross one another.",
                    hint="Divide it into polygons that do not cross themselves.",
                )


def meetings(a: Pair, b: Pair, c: Pair, d: Pair) -> list[Pair]:
    """Return the points that the edges a-b and c-d share: none, one, or the two ends of a common stretch."""
    if max(a[0], b[0]) < min(c[0], d[0]) or max(c[0], d[0]) < min(a[0], b[0]):
        return []
    if max(a[1], b[1]) < min(c[1], d[1]) or max(c[1], d[1]) < min(a[1], b[1]):
        return []
    ends = [(end, side(c, d, end), c, d) for end in (a, b)]
    ends += [(end, side(a, b, end), a, b) for end in (c, d)]
    shared = dict.fromkeys(end for end, turn, p, q in ends if turn == 0 and _between(p, q, end))
    if shared:
        return list(shared)
    return [_crossing(a, b, c, d)] if _cross(ends) else []


def _cross(ends: Sequence[tuple[Pair, float, Pair, Pair]]) -> bool:
    """Return whether two edges cross inside both: each has its ends on different sides of the other."""
    first, second, third, fourth = (turn for _, turn, _, _ in ends)
    return (first > 0) != (second > 0) and (third > 0) != (fourth > 0)


def _crossing(a: Pair, b: Pair, c: Pair, d: Pair) -> Pair:
    """Return the point where two edges cross. It has the same bits whatever the order and directions of the edges."""
    edge, other_edge = (min(a, b), max(a, b)), (min(c, d), max(c, d))
    if (_length(*other_edge), other_edge) < (_length(*edge), edge):
        edge, other_edge = other_edge, edge
    before, behind = side(*other_edge, edge[0]), side(*other_edge, edge[1])
    return _along(*edge, before / (before - behind))


def _between(a: Pair, b: Pair, point: Pair) -> bool:
    """Return whether a point, known to be on the line through a and b, lies between them or is one of them."""
    return min(a[0], b[0]) <= point[0] <= max(a[0], b[0]) and (
        min(a[1], b[1]) <= point[1] <= max(a[1], b[1])
    )


def _length(a: Pair, b: Pair) -> float:
    """Return the square of the distance of two points."""
    return (b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2


def _along(a: Pair, b: Pair, share: float) -> Pair:
    """Return the point that lies a share of the way from a to b."""
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])
