"""pointInPolygon: whether points are inside polygons or on their edges.

A ring contains what a ray to the left crosses its edges an odd number of times to reach; a polygon
is a ring without the insides of further rings, its holes (M. Shimrat, "Algorithm 112", 1962).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalTypeOfArgument, TooFewArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.types import FLOAT64, UINT8, Array, DataType, Float, Integer, Tuple

_POINT = Tuple((FLOAT64, FLOAT64)).arrow
_PAIRS_MAX = 1 << 20
"""Pairs of a point and an edge that are looked at in one go."""


def _check_point(name: str, at: int, data_type: DataType) -> None:
    """Raise IllegalTypeOfArgument or BadArguments unless `data_type`, of argument `at` of the function `name`, is a
    tuple of two numbers."""
    if not isinstance(data_type, Tuple):
        raise IllegalTypeOfArgument(f"Argument {at} of function {name} must contain a tuple.")
    if len(data_type.elements) != 2:
        raise BadArguments(f"The tuples of argument {at} of function {name} have two elements.")
    for element in data_type.elements:
        scalar.require(name, [element], (Integer, Float), "tuples of numbers")


def _depth(name: str, at: int, data_type: DataType) -> int:
    """Return how many arrays enclose the points in argument `at`: 1 for a ring, 2 for a polygon, 3 for several
    polygons."""
    depth = 0
    while isinstance(data_type, Array):
        data_type, depth = data_type.inner, depth + 1
    if not 1 <= depth <= 3:
        raise scalar.illegal(name, data_type, "an array of tuples, or one of such arrays")
    _check_point(name, at, data_type)
    return depth


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt8; raise an error unless a point, and rings or polygons."""
    if len(types) < 2:
        raise TooFewArguments(f"Function {name} takes a point and a polygon.")
    _check_point(name, 1, types[0])
    depths = [_depth(name, at, t) for at, t in enumerate(types[1:], 2)]
    if len(depths) > 1 and any(argument.constant is None for argument in arguments[1:]):
        raise BadArguments(f"Several polygons of function {name} must be constants.")
    if len(depths) > 1 and (depths[0] > 2 or any(depth != depths[0] for depth in depths)):
        raise IllegalTypeOfArgument(f"All polygons of function {name} have the same form.")
    return UINT8


def _coordinates(points: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the two numbers of tuples as Float64."""
    x, y = (columns.numpy_values(field).astype(np.float64) for field in points.flatten())
    return x, y


class _Edges:
    """The edges of rings as arrays of their ends, in the order of the rings.

    `rings` has the ring of each edge, `holes` whether each ring is a hole, `polygons` the polygon of each ring and
    `rows` the row of each polygon."""

    def __init__(self, array: pa.Array, depth: int) -> None:
        """Take the edges from a column of rings (`depth` 1), polygons (2) or several polygons (3)."""
        offsets, inner = columns.elements_of(array)
        rows = columns.parents_of(offsets)
        if depth == 3:
            self.rows = rows
            offsets, inner = columns.elements_of(inner)
            self.polygons = columns.parents_of(offsets)
        elif depth == 2:
            self.rows, self.polygons = np.arange(len(array)), rows
        else:
            self.rows = self.polygons = np.arange(len(array))
        if depth > 1:
            self.holes = np.arange(len(inner)) != offsets[:-1][self.polygons]
            offsets, inner = columns.elements_of(inner)
        else:
            self.holes = np.zeros(len(array), bool)
        self.rings = columns.parents_of(offsets)
        self.x1, self.y1 = _coordinates(inner)
        following = np.arange(1, len(inner) + 1)
        ends = offsets[1:][np.diff(offsets) > 0]
        following[ends - 1] = offsets[:-1][np.diff(offsets) > 0]
        self.x2, self.y2 = self.x1[following], self.y1[following]
        moves = (self.x1 != self.x2) | (self.y1 != self.y2)  # no edge joins equal points
        for field in ("rings", "x1", "y1", "x2", "y2"):
            setattr(self, field, getattr(self, field)[moves])
        self.sizes = np.bincount(self.rings, minlength=len(self.holes))


def _sides(
    edges: _Edges, chosen: slice, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return two masks for each pair of a chosen edge and a point: whether a ray to the left of the point crosses
    the edge, and whether the point is on the edge."""
    x1, y1, x2, y2 = (part[chosen] for part in (edges.x1, edges.y1, edges.x2, edges.y2))
    with np.errstate(all="ignore"):
        turn = (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)
    crossed = np.where(y1 <= y, (y2 > y) & (turn < 0), (y2 <= y) & (turn > 0))
    within = (np.minimum(x1, x2) <= x) & (x <= np.maximum(x1, x2))
    within &= (np.minimum(y1, y2) <= y) & (y <= np.maximum(y1, y2))
    return crossed, within & (turn == 0)


def _covered(edges: _Edges, inside: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Return for each polygon whether it contains the point, its edges included. `inside` and `on` say for each ring
    whether it surrounds the point and whether the point is on it.

    The last axis is that of the rings, in the result that of the polygons."""
    real = edges.sizes > 2
    bad = np.where(edges.holes, inside & ~on & real, ~((inside | on) & real))
    missed = np.zeros((len(edges.rows), *bad.shape[:-1]), np.int64)
    np.add.at(missed, edges.polygons, bad.T)
    missed = missed.T
    has_ring = np.bincount(edges.polygons, minlength=len(edges.rows)) > 0
    return np.asarray((missed == 0) & has_ring)


def _by_row(edges: _Edges, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return for each row whether its point is in its own polygons."""
    owners = edges.rows[edges.polygons[edges.rings]]
    crossed, on = _sides(edges, slice(None), x[owners], y[owners])
    rings = len(edges.holes)
    inside = np.bincount(edges.rings[crossed], minlength=rings) % 2 == 1
    touched = np.bincount(edges.rings[on], minlength=rings) > 0
    covered = _covered(edges, inside, touched)
    return np.asarray(np.bincount(edges.rows[covered], minlength=len(x)) > 0)


def _in_one(edges: _Edges, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether each point is in the polygons of the only row, comparing a few edges at a time."""
    rings = len(edges.holes)
    crossings, touched = np.zeros((len(x), rings), np.int64), np.zeros((len(x), rings), bool)
    step = max(1, _PAIRS_MAX // max(1, len(x)))
    for begin in range(0, len(edges.x1), step):
        chosen = slice(begin, begin + step)
        crossed, on = _sides(edges, chosen, x[:, None], y[:, None])
        starts = np.flatnonzero(np.diff(edges.rings[chosen], prepend=-1))
        names = edges.rings[chosen][starts]
        crossings[:, names] += np.add.reduceat(crossed, starts, axis=1, dtype=np.int64)
        touched[:, names] |= np.logical_or.reduceat(on, starts, axis=1)
    return np.asarray(_covered(edges, crossings % 2 == 1, touched).any(axis=1))


class Polygons:
    """The polygons of the rows of a column, in which points are looked up: the polygon of the smallest area counts."""

    def __init__(self, array: pa.Array, depth: int, ranks: np.ndarray) -> None:
        """Take a column of rings (`depth` 1) or of several polygons (3). Of equal areas the row of the greatest rank
        counts."""
        self._edges = edges = _Edges(_as_floats(array), depth)
        with np.errstate(all="ignore"):
            doubled = np.bincount(
                edges.rings, edges.x1 * edges.y2 - edges.x2 * edges.y1, minlength=len(edges.holes)
            )
        areas = np.zeros(len(edges.rows))
        np.add.at(areas, edges.polygons, np.where(edges.holes, -1, 1) * np.abs(doubled))
        self._order = np.lexsort((-ranks[edges.rows], areas))
        owners = edges.polygons[edges.rings]
        self._begins = np.searchsorted(owners, np.arange(len(edges.rows) + 1))
        with_edges = np.flatnonzero(np.diff(self._begins))
        # The least and the greatest x and y of each polygon; a polygon without edges contains no point.
        self._boxes = np.full((4, len(edges.rows)), np.nan)
        if len(with_edges):
            starts = self._begins[:-1][with_edges]
            self._boxes[:, with_edges] = [
                extreme.reduceat(values, starts)
                for values in (edges.x1, edges.y1)
                for extreme in (np.minimum, np.maximum)
            ]

    @property
    def nbytes(self) -> int:
        """Return the bytes of the edges in memory."""
        edges = self._edges
        parts = (edges.x1, edges.y1, edges.x2, edges.y2, edges.rings, self._order, self._begins)
        return sum(part.nbytes for part in (*parts, self._boxes))

    def find(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the row of the smallest polygon that contains each point, its edges included; -1 without one.

        A polygon is looked at if a point is between its least and its greatest x."""
        rows = np.full(len(x), -1, np.int64)
        by_x = np.argsort(x, kind="stable")
        sorted_x = x[by_x]
        firsts = np.searchsorted(sorted_x, self._boxes[0], "left")
        ends = np.searchsorted(sorted_x, self._boxes[1], "right")
        met = (firsts < ends) & ~np.isnan(self._boxes[0])
        for polygon in self._order[met[self._order]].tolist():
            places = by_x[firsts[polygon] : ends[polygon]]
            low, high = self._boxes[2:, polygon]
            places = places[(rows[places] < 0) & (low <= y[places]) & (y[places] <= high)]
            if len(places):
                hits = places[self._contains(polygon, x[places], y[places])]
                rows[hits] = self._edges.rows[polygon]
        return rows

    def _contains(self, polygon: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return whether a polygon contains each point, comparing a few points at a time."""
        edges, inside = self._edges, np.zeros(len(x), bool)
        chosen = slice(self._begins[polygon], self._begins[polygon + 1])
        rings = edges.rings[chosen]
        starts = np.flatnonzero(np.diff(rings, prepend=-1))
        holes = edges.holes[rings[starts]]
        step = max(1, _PAIRS_MAX // len(rings))
        for begin in range(0, len(x), step):
            part = slice(begin, begin + step)
            crossed, on = _sides(edges, chosen, x[part, None], y[part, None])
            odd = np.add.reduceat(crossed, starts, axis=1, dtype=np.int64) % 2 == 1
            touched = np.logical_or.reduceat(on, starts, axis=1)
            inside[part] = np.where(holes, ~odd | touched, odd | touched).all(axis=1)
        return inside


def _check(edges: _Edges) -> None:
    """Raise BadArguments for polygons that are not valid: with fewer than three points, points that
    are not finite, edges that cross or go back, or a hole that begins outside."""
    problem = ""
    turns = (edges.x1, edges.y1, edges.x2, edges.y2)
    if not all(np.isfinite(part).all() for part in turns):
        problem = "it has points with invalid coordinates"
    elif (edges.sizes < 2).any() or not len(edges.sizes):
        problem = "it has too few points"
    elif _goes_back(edges):
        problem = "it has spikes"
    elif _crosses_itself(edges):
        problem = "its edges cross"
    if problem:
        raise BadArguments(f"The polygon is not valid: {problem}.")
    first = np.flatnonzero(np.diff(edges.rings, prepend=-1))
    for hole in np.flatnonzero(edges.holes):
        outer = int(np.flatnonzero(edges.polygons == edges.polygons[hole])[0])
        own = edges.rings == outer
        x, y = edges.x1[first[hole]], edges.y1[first[hole]]
        crossed, on = (part[own] for part in _sides(edges, slice(None), x, y))
        if not on.any() and crossed.sum() % 2 == 0:
            raise BadArguments("The polygon is not valid: a hole is outside of it.")


def _goes_back(edges: _Edges) -> bool:
    """Return whether an edge runs back over the edge before it, so that they overlap."""
    before = np.arange(len(edges.x1)) - 1
    first = np.flatnonzero(np.diff(edges.rings, prepend=-1))
    before[first] = np.append(first[1:], len(edges.x1)) - 1
    dx, dy = edges.x2 - edges.x1, edges.y2 - edges.y1
    straight = dx * dy[before] == dy * dx[before]
    return bool((straight & (dx * dx[before] + dy * dy[before] < 0)).any())


def _crosses_itself(edges: _Edges) -> bool:
    """Return whether two edges cross at a point inside of both; each edge is compared with all others."""
    points = ((edges.x1, edges.y1), (edges.x2, edges.y2))
    for at in range(len(edges.x1)):
        edge = slice(at, at + 1)
        dx, dy = edges.x2[edge] - edges.x1[edge], edges.y2[edge] - edges.y1[edge]
        sides = [dx * (y - edges.y1[edge]) - dy * (x - edges.x1[edge]) for x, y in points]
        near = np.flatnonzero(np.sign(sides[0]) * np.sign(sides[1]) < 0)
        x1, y1, x2, y2 = (p[near] for p in (edges.x1, edges.y1, edges.x2, edges.y2))
        ends = [(x2 - x1) * (y[edge] - y1) - (y2 - y1) * (x[edge] - x1) for x, y in points]
        if (np.sign(ends[0]) * np.sign(ends[1]) < 0).any():
            return True
    return False


def _in_polygon(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return whether points are in polygons: the kernel of pointInPolygon."""
    x, y = _coordinates(columns.single(arrays[0]))
    depths = [_depth("pointInPolygon", at, t) for at, t in enumerate(call.types[1:], 2)]
    if call.constants[1] is None and not isinstance(arrays[1], pa.Scalar):
        rows = max(len(arrays[1]), 1)
        if len(x) < rows:
            x, y = (np.repeat(part, rows) for part in (x, y))
        inside = _by_row(_Edges(arrays[1], depths[0]), x, y)
        return columns.from_values(inside[: call.rows], pa.uint8())
    polygons = [_as_floats(columns.single(array).slice(0, 1)) for array in arrays[1:]]
    depth, whole = depths[0], polygons[0]
    if depth == 1 or len(polygons) > 1:  # a ring and its holes, or several polygons
        joined = pa.concat_arrays(polygons)
        whole, depth = columns.lists_from(np.array([0, len(joined)]), joined), depth + 1
    edges = _Edges(whole, depth)
    if "validate_polygons" not in call.environment.changed:
        _check(edges)
    return columns.from_values(_in_one(edges, x, y), pa.uint8())


def _as_floats(array: pa.Array) -> pa.Array:
    """Return arrays of points with their numbers as Float64."""
    if pa.types.is_list(array.type):
        offsets, elements = columns.elements_of(array)
        return columns.lists_from(offsets, _as_floats(elements))
    fields = [columns.from_values(part, pa.float64()) for part in _coordinates(array)]
    return columns.structs_from(fields, _POINT)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = scalar.with_count_errors(
    (scalar.define("pointInPolygon", _rule, _in_polygon, count=(1, None), keeps_constants=True),),
    few=TooFewArguments,
)
