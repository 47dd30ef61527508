"""MVTBoundingBox and MVTBoundingBoxMercator: the borders of a tile of a map, in degrees or on the grid of the
Mercator projection, which has 2^32 steps each way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.types import FLOAT64, DataType, Float, Integer, Tuple

_DEGREES = Tuple((FLOAT64,) * 4, ("min_lon", "min_lat", "max_lon", "max_lat"))
_GRID = Tuple((FLOAT64,) * 4, ("min_x", "min_y", "max_x", "max_y"))
_ZOOM_MAX = 32
_GRID_STEPS = 2.0**32


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the tuple of four borders; raise IllegalTypeOfArgument for other arguments."""
    scalar.require(name, types[:3], Integer, "an unsigned integer")
    scalar.require(name, types[3:], (Float, Integer), "a number")
    return _GRID if name == "MVTBoundingBoxMercator" else _DEGREES


def _borders(
    arrays: list[pa.Array], call: scalar.Invocation
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the left, lower, right and upper borders of each tile, widened by its margin, as shares of the map: from 0
    at its upper left to 1.

    Raises ArgumentOutOfBound for tiles that are not on the map."""
    zoom, column, row = (columns.numpy_values(array).astype(np.int64) for array in arrays[:3])
    wrong = np.flatnonzero((zoom < 0) | (zoom > _ZOOM_MAX))
    if len(wrong):
        raise ArgumentOutOfBound(
            f"The 'zoom' argument ({zoom[wrong[0]]}) must be between 0 and {_ZOOM_MAX}."
        )
    tiles = np.left_shift(np.int64(1), zoom)
    wrong = np.flatnonzero((column < 0) | (row < 0) | (column >= tiles) | (row >= tiles))
    if len(wrong):
        at = int(wrong[0])
        raise ArgumentOutOfBound(
            f"The tile indices (tile_x = {column[at]}, tile_y = {row[at]}) must be less than 2^zoom"
            f" = {tiles[at]}."
        )
    margin = columns.numpy_values(arrays[3]).astype(np.float64) if len(arrays) > 3 else 0.0
    left, right = (column - margin) / tiles, (column + 1 + margin) / tiles
    upper, lower = (row - margin) / tiles, (row + 1 + margin) / tiles
    return left, lower, right, upper


def _latitude(part: np.ndarray) -> np.ndarray:
    """Return the latitude in degrees at shares of the map's height: 0 is its upper border, 1 its lower one."""
    height = 2 * np.arctan(np.exp(np.pi * (1 - 2 * part))) - np.pi / 2
    return np.asarray(height * 180 / np.pi)


def _in_degrees(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return each tile's borders in degrees: the kernel of MVTBoundingBox."""
    left, lower, right, upper = _borders(arrays, call)
    borders = (left * 360 - 180, _latitude(lower), right * 360 - 180, _latitude(upper))
    return _as_tuples(borders, call)


def _on_grid(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return each tile's borders in steps of the Mercator grid from the upper left: the kernel of
    MVTBoundingBoxMercator."""
    left, lower, right, upper = (part * _GRID_STEPS for part in _borders(arrays, call))
    return _as_tuples((left, upper, right, lower), call)


def _as_tuples(numbers: Sequence[np.ndarray], call: scalar.Invocation) -> pa.Array:
    """Return four columns of numbers as a column of tuples."""
    parts = [columns.from_values(np.asarray(part), pa.float64()) for part in numbers]
    return columns.structs_from(parts, call.result.arrow, rows=call.rows)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("MVTBoundingBox", _rule, _in_degrees, count=(3, 4)),
    scalar.define("MVTBoundingBoxMercator", _rule, _on_grid, count=(3, 4)),
)
