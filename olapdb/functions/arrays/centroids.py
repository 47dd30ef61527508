"""assignCentroid: the nearest of constant points to each vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    IllegalColumn,
    IncorrectData,
    NotSupportedError,
    SizesOfArraysDoNotMatch,
)
from olapdb.functions.base import Argument, Column
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import Invocation, ScalarDefinition, define, illegal
from olapdb.types import UINT32, Array, DataType, Float, String

_DISTANCES_MAX = 1 << 20
"""Distances that are computed at once."""


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt32. Raises IllegalTypeOfArgument, IllegalColumn for centroids that are not constant, and
    NotSupportedError for those of a dictionary."""
    if not (isinstance(types[0], Array) and isinstance(types[0].inner, Float)):
        raise illegal(name, types[0], "an Array of floats")
    if isinstance(types[1], String):
        raise NotSupportedError(
            f"Function {name} with centroids of a dictionary is not supported.",
            hint="Give it a constant array of arrays.",
        )
    inner = types[1].inner if isinstance(types[1], Array) else None
    if not (isinstance(inner, Array) and isinstance(inner.inner, Float)):
        raise illegal(name, types[1], "an Array of arrays of floats")
    if arguments[1].constant is None:
        raise IllegalColumn(f"The second argument of function {name} must be a constant.")
    return UINT32


def _centroids(points: object) -> np.ndarray:
    """Return the points as a matrix with a row for each. Raises BadArguments, SizesOfArraysDoNotMatch and
    IncorrectData."""
    assert isinstance(points, list)
    if not points:
        raise BadArguments("The array of centroids of assignCentroid is empty.")
    width = len(points[0])
    if not width:
        raise BadArguments("The centroids of assignCentroid have no dimensions.")
    for at, point in enumerate(points):
        if len(point) != width:
            raise SizesOfArraysDoNotMatch(
                f"Centroid {at} of assignCentroid has {len(point)} dimensions, the first one {width}."
            )
    return _finite(np.array(points, np.float32), "A centroid")


def _finite(matrix: np.ndarray, what: str) -> np.ndarray:
    """Return the vectors; raise IncorrectData, with the row, for one with NaN or infinity."""
    wrong = ~np.isfinite(matrix).all(axis=1)
    if wrong.any():
        raise IncorrectData(f"{what} of assignCentroid has a NaN or an infinity.").at_row(
            int(np.argmax(wrong))
        )
    return matrix


def _nearest(values: list[Column], call: Invocation) -> pa.Array:
    """Return the index, from 0, of the nearest centroid of each vector; the lowest index of several equally near
    ones."""
    centroids = _centroids(call.constant(1)).astype(np.float64)
    offsets, elements = columns.elements_of(columns.as_array(values[0], call.rows))
    sizes = np.diff(offsets)
    count, width = centroids.shape
    if (sizes != width).any():
        row = int(np.argmax(sizes != width))
        raise SizesOfArraysDoNotMatch(
            f"A vector of assignCentroid has {sizes[row]} dimensions, the centroids {width}."
        ).at_row(row)
    numbers = columns.numpy_values(elements).astype(np.float32)
    vectors = _finite(numbers.reshape(len(sizes), width), "A vector")
    nearest = np.empty(len(vectors), np.uint32)
    step = max(_DISTANCES_MAX // count, 1)
    squares = (centroids**2).sum(axis=1)
    for start in range(0, len(vectors), step):
        some = vectors[start : start + step].astype(np.float64)
        nearest[start : start + step] = np.argmin(squares - 2 * (some @ centroids.T), axis=1)
    return columns.from_values(nearest, pa.uint32())


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("assignCentroid", _rule, _nearest, count=2, keeps_constants=True),
)
