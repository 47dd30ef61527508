"""Whether two shapes meet, are equal or lie in one another, how far they are apart, and the convex
hull of a shape."""

from __future__ import annotations

import math
from itertools import pairwise

from olapdb.functions.numeric import shape_rings
from olapdb.functions.numeric.shape_overlay import cut_pieces
from olapdb.functions.numeric.shape_rings import Pair, PlaneShape, Ring, side
from olapdb.records import dataclass

_HULL_POINTS_MIN = 4
_OPEN_POINTS = 2
"""The points of a ring that shapes leave open."""


@dataclass(frozen=True)
class Figure:
    """A shape of any kind: its edges, and the rings around its area. A point is an edge from it to itself."""

    edges: list[tuple[Pair, Pair]]
    rings: list[Ring]


def figure_of_shape(shape: PlaneShape) -> Figure:
    """Return the figure of a shape of polygons: its rings and their edges."""
    rings = [[*ring, ring[0]] if len(ring) == _OPEN_POINTS else ring for ring in shape.rings]
    return Figure(_edges(rings), rings)


def figure_of_lines(lines: list[list[Pair]]) -> Figure:
    """Return the figure of lines, or of points as lines of one point; it has no area."""
    return Figure(_edges(lines), [])


def _edges(lines: list[list[Pair]]) -> list[tuple[Pair, Pair]]:
    """Return the edges of lines; a line of one point has one from it to itself."""
    edges = [edge for line in lines for edge in pairwise(line)]
    return edges + [(line[0], line[0]) for line in lines if len(line) == 1]


def intersect(a: Figure, b: Figure) -> bool:
    """Return whether two figures share a point."""
    if any(shape_rings.meetings(*edge, *other_edge) for edge in a.edges for other_edge in b.edges):
        return True
    return any(
        shape_rings.where_in(outer.rings, start) >= 0
        for outer, inner in ((a, b), (b, a))
        for start, _ in inner.edges
    )


def within(a: PlaneShape, b: PlaneShape) -> bool:
    """Return whether all of shape `a` lies in shape `b`, edges included, and `a` has an area."""
    pieces = cut_pieces(a, b)
    ways = {(piece.start, piece.end) for piece in pieces if piece.source == 1}
    for piece in pieces:
        middle = ((piece.start[0] + piece.end[0]) / 2, (piece.start[1] + piece.end[1]) / 2)
        if piece.source == 1:
            if shape_rings.where_in(a.rings, middle) > 0:
                return False
        elif (piece.end, piece.start) in ways or (
            (piece.start, piece.end) not in ways and shape_rings.where_in(b.rings, middle) < 0
        ):
            return False
    return any(shape_rings.area(ring) != 0 for ring in a.rings)


def equal(a: PlaneShape, b: PlaneShape) -> bool:
    """Return whether two shapes have the same points."""
    if not a.rings or not b.rings:
        return a.rings == b.rings
    return within(a, b) and within(b, a)


def flat_distance(a: Figure, b: Figure) -> float:
    """Return the distance in the plane of two figures that share no point."""
    return min(
        _to_segment(point, start, end)
        for shape, other in ((a, b), (b, a))
        for point in {corner for edge in shape.edges for corner in edge}
        for start, end in other.edges
    )


def _to_segment(point: Pair, a: Pair, b: Pair) -> float:
    """Return the distance of a point from the segment from a to b."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = dx * dx + dy * dy
    share = ((point[0] - a[0]) * dx + (point[1] - a[1]) * dy) / length if length else 0.0
    share = min(max(share, 0.0), 1.0)
    return math.dist(point, (a[0] + share * dx, a[1] + share * dy))


def sphere_distance(a: Figure, b: Figure) -> float:
    """Return the angle in radians between two figures that share no point; coordinates are longitudes and latitudes
    in degrees."""
    return min(
        _to_arc(point, start, end)
        for shape, other in ((a, b), (b, a))
        for point in {corner for edge in shape.edges for corner in edge}
        for start, end in other.edges
    )


def _to_arc(point: Pair, a: Pair, b: Pair) -> float:
    """Return the angle in radians between a point and the arc of a great circle from a to b."""
    p, u, v = (shape_rings.vector(corner) for corner in (point, a, b))
    normal = shape_rings.cross(u, v)
    length = math.hypot(*normal)
    if length:
        over = shape_rings.cross(
            normal, p
        )  # the great circle through p that meets the arc's squarely
        if shape_rings.dot(over, u) <= 0 <= shape_rings.dot(over, v):
            return abs(math.asin(max(-1.0, min(1.0, shape_rings.dot(normal, p) / length))))
    return min(_angle(point, a), _angle(point, b))


def _angle(a: Pair, b: Pair) -> float:
    """Return the angle in radians between two points, by the haversine formula."""
    x1, y1, x2, y2 = (math.radians(part) for part in (*a, *b))
    half = math.sin((y2 - y1) / 2) ** 2
    half += math.cos(y1) * math.cos(y2) * math.sin((x2 - x1) / 2) ** 2
    return 2 * math.asin(min(1.0, math.sqrt(half)))


def convex_hull(points: list[Pair]) -> Ring:
    """Return the convex hull of points as a closed ring that goes clockwise from the leftmost one
    (A. Andrew 1979). One of fewer than three corners repeats its first point."""
    ordered = sorted(set(points))
    if not ordered:
        return []
    upper, lower = _chain(ordered), _chain(ordered[::-1])
    ring = [*upper[:-1], *lower] if len(ordered) > 1 else ordered
    return ring + [ring[0]] * max(0, _HULL_POINTS_MIN - len(ring))


def _chain(points: list[Pair]) -> Ring:
    """Return one half of the convex hull of sorted points: the chain that only turns right."""
    chain: Ring = []
    for point in points:
        while len(chain) > 1 and side(chain[-2], chain[-1], point) >= 0:
            chain.pop()
        chain.append(point)
    return chain
