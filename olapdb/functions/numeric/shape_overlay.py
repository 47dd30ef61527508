"""Union, intersection and differences of two shapes of polygons, in a plane.

Edges are cut where those of the other shape meet them. A piece stays or leaves by the side of the
other shape on which it lies (K. Weiler and P. Atherton 1977), and the pieces that stay are joined
into rings. The first points of rings and their order are those of Boost.Geometry, in the order in
which it finds the points where rings meet: turns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

from olapdb.errors import BadArguments
from olapdb.functions.numeric import shape_rings
from olapdb.functions.numeric.shape_rings import Pair, PlaneShape, Ring
from olapdb.records import dataclass

_CLOSED_MIN = 4
"""Points of the smallest ring."""


@dataclass(frozen=True)
class EdgePiece:
    """A part of an edge between corners of its ring and points where it meets the other shape; `source` is the
    number, 0 or 1, of its shape."""

    start: Pair
    end: Pair
    source: int


@dataclass
class _Cuts:
    """The points at which the edges of two shapes meet: those on each edge, and the turns, where a ring may change
    to the other shape."""

    on_edges: list[dict[tuple[int, int], list[Pair]]]
    turns: list[Pair]

    def meets(self, source: int, ring: int) -> bool:
        """Return whether a ring of the shape `source` meets the other shape."""
        return any(key[0] == ring for key in self.on_edges[source])


def union(a: PlaneShape, b: PlaneShape) -> PlaneShape:
    """Return what lies in at least one of two shapes."""
    return _overlay(a, b, wanted=(-1, -1), reverse=False)


def intersection(a: PlaneShape, b: PlaneShape) -> PlaneShape:
    """Return what lies in both of two shapes."""
    return _overlay(a, b, wanted=(1, 1), reverse=False)


def difference(a: PlaneShape, b: PlaneShape) -> PlaneShape:
    """Return what lies in the first shape and not in the second."""
    return _overlay(a, b, wanted=(-1, 1), reverse=True)


def symmetric_difference(a: PlaneShape, b: PlaneShape) -> PlaneShape:
    """Return what lies in exactly one of two shapes."""
    return union(difference(a, b), difference(b, a))


def cut_pieces(a: PlaneShape, b: PlaneShape) -> list[EdgePiece]:
    """Return the edges of two shapes, cut where they meet the other shape's edges."""
    cuts = _cut((a, b))
    return [
        piece
        for source, shape in enumerate((a, b))
        for number, ring in enumerate(shape.rings)
        for piece in _pieces(ring, number, source, cuts)
    ]


def _overlay(a: PlaneShape, b: PlaneShape, *, wanted: tuple[int, int], reverse: bool) -> PlaneShape:
    """Keep the pieces of each shape's edges that lie on the wanted side of the other shape (1 inside, -1 outside) and
    trace them to a shape.

    `reverse` turns the direction of the second shape's pieces."""
    shapes = (a, PlaneShape([[r[::-1] for r in p] for p in b.polygons], b.plane) if reverse else b)
    cuts = _cut(shapes)
    whole: list[Ring] = []
    pieces: list[EdgePiece] = []
    for source, shape in enumerate(shapes):
        others = shapes[1 - source].rings
        for number, ring in enumerate(shape.rings):
            if len(ring) < _CLOSED_MIN:
                continue
            if not cuts.meets(source, number):
                if shape_rings.where_in(others, _inner_point(ring)) == wanted[source]:
                    whole.append(ring)
                continue
            pieces += _pieces(ring, number, source, cuts)
    kept = _kept(pieces, shapes, wanted)
    traced = _traced(kept, cuts)
    return PlaneShape(_as_polygons([*whole, *traced]), a.plane)


def _inner_point(ring: Ring) -> Pair:
    """Return the middle of a ring's first edge."""
    (x1, y1), (x2, y2) = ring[0], ring[1]
    return (x1 + x2) / 2, (y1 + y2) / 2


def _cut(shapes: tuple[PlaneShape, PlaneShape]) -> _Cuts:
    """Return where the edges of two shapes meet. A meeting point at the start of an edge counts for the end of the
    edge before it."""
    edges = []
    for shape in shapes:
        listed, base = [], 0
        for number, ring in enumerate(shape.rings):
            of = shape_rings.sections(ring, shape.plane)
            listed += [
                ((number, at), ends, base + of[at]) for at, ends in enumerate(pairwise(ring))
            ]
            base += (of[-1] + 1) if of else 0
        edges.append(listed)
    on_edges: list[dict[tuple[int, int], list[Pair]]] = [defaultdict(list), defaultdict(list)]
    crossings: list[tuple[tuple[int, int, int, int], int, Pair]] = []
    for i, (key, (p, q), section) in enumerate(edges[0]):
        for j, (other_key, (r, s), other_section) in enumerate(edges[1]):
            for point in shape_rings.meetings(p, q, r, s):
                on_edges[0][key].append(point)
                on_edges[1][other_key].append(point)
                if point not in (p, r):
                    crossings.append(((section, other_section, i, j), len(crossings), point))
    return _Cuts(on_edges, list(dict.fromkeys(point for _, _, point in sorted(crossings))))


def _pieces(ring: Ring, number: int, source: int, cuts: _Cuts) -> list[EdgePiece]:
    """Return the edges of a ring, cut at the points where it meets the other shape; `number` is the ring's place in
    the shape `source`."""
    pieces = []
    for at, (start, end) in enumerate(pairwise(ring)):
        on_edge = cuts.on_edges[source].get((number, at), [])
        far = sorted(set(on_edge) - {start, end}, key=lambda p: math.dist(p, start))
        pieces += [EdgePiece(p, q, source) for p, q in pairwise([start, *far, end]) if p != q]
    return pieces


def _kept(
    pieces: list[EdgePiece], shapes: tuple[PlaneShape, PlaneShape], wanted: tuple[int, int]
) -> dict[Pair, list[EdgePiece]]:
    """Return the pieces that stay, by their start. Of two equal pieces that go the same way one stays; of two that
    go opposite ways none."""
    ways = [{(p.start, p.end) for p in pieces if p.source == source} for source in (0, 1)]
    by_start: dict[Pair, list[EdgePiece]] = defaultdict(list)
    for piece in pieces:
        others = ways[1 - piece.source]
        if (piece.start, piece.end) in others:
            stays = piece.source == 0
        elif (piece.end, piece.start) in others:
            stays = False
        else:
            middle = _inner_point([piece.start, piece.end])
            stays = (
                shape_rings.where_in(shapes[1 - piece.source].rings, middle) == wanted[piece.source]
            )
        if stays:
            by_start[piece.start].append(piece)
    return by_start


def _traced(by_start: dict[Pair, list[EdgePiece]], cuts: _Cuts) -> list[Ring]:
    """Return the rings that pieces make, each from its first turn on. At a turn a ring goes on by the
    piece that turns most to the right, where its inside lies."""
    rings = []
    turns = set(cuts.turns)
    for turn in cuts.turns:
        for source in (0, 1):
            for piece in [p for p in by_start.get(turn, ()) if p.source == source]:
                ring = _trace(piece, by_start, turns)
                if ring is not None:
                    rings.append(ring)
    return rings


def _trace(
    first: EdgePiece, by_start: dict[Pair, list[EdgePiece]], turns: set[Pair]
) -> Ring | None:
    """Return the closed ring that begins with a piece, and remove its pieces from `by_start`; None for a ring without
    an area.

    Raises BadArguments if rounding left a gap."""
    ring = [first.start]
    piece = first
    while True:
        by_start[piece.start].remove(piece)
        _append(ring, piece.end, piece.end in turns)
        if piece.end == first.start and not _goes_on(piece, first, by_start):
            break
        following = _following(piece, by_start)
        if following is None:
            raise BadArguments("The polygons meet in points that are too close to one another.")
        piece = following
    return _without_seam(ring)


def _goes_on(piece: EdgePiece, first: EdgePiece, by_start: dict[Pair, list[EdgePiece]]) -> bool:
    """Return whether the ring goes on where it began: another piece leaves there further to the right than the first
    one."""
    following = _following(piece, by_start)
    return following is not None and _turn(piece, following) < _turn(piece, first)


def _following(piece: EdgePiece, by_start: dict[Pair, list[EdgePiece]]) -> EdgePiece | None:
    """Return the piece that leaves the end of `piece` furthest to the right; None if none does."""
    return min(by_start.get(piece.end, ()), key=lambda p: _turn(piece, p), default=None)


def _turn(piece: EdgePiece, following: EdgePiece) -> float:
    """Return the angle in radians from a piece to the next one, from -pi (right) to pi (left)."""
    angle = math.atan2(following.end[1] - following.start[1], following.end[0] - following.start[0])
    angle -= math.atan2(piece.end[1] - piece.start[1], piece.end[0] - piece.start[0])
    turned = math.remainder(angle, 2 * math.pi)
    return math.pi if turned <= -math.pi else turned


def _append(ring: Ring, point: Pair, is_turn: bool) -> None:
    """Add a point to a ring. A turn takes the place of a point on the line to it."""
    while is_turn and len(ring) > 2 and shape_rings.side(ring[-2], ring[-1], point) == 0:
        ring.pop()
    if ring[-1] != point:
        ring.append(point)


def _without_seam(ring: Ring) -> Ring | None:
    """Return a closed ring without a first point that lies on a line with its neighbours; None
    for a ring without an inside."""
    while len(ring) >= _CLOSED_MIN and shape_rings.side(ring[-2], ring[0], ring[1]) == 0:
        ring = [*ring[1:-1], ring[1]]
    return ring if len(ring) >= _CLOSED_MIN and shape_rings.area(ring) != 0 else None


def _as_polygons(rings: list[Ring]) -> list[list[Ring]]:
    """Return the polygons of rings: outer ones, clockwise, with the holes in them."""
    outer = [[ring] for ring in rings if shape_rings.area(ring) > 0]
    for hole in rings:
        if shape_rings.area(hole) > 0:
            continue
        around = [polygon for polygon in outer if _surrounds(polygon[0], hole)]
        if around:
            min(around, key=lambda polygon: shape_rings.area(polygon[0])).append(hole)
    return outer


def _surrounds(ring: Ring, hole: Ring) -> bool:
    """Return whether a hole lies in a ring: the first of the hole's points and edge middles that is not on the ring
    decides."""
    for a, b in pairwise(hole):
        for point in (a, _inner_point([a, b])):
            place = shape_rings.where_in([ring], point)
            if place:
                return place > 0
    return False
