"""Distances of points on the Earth: greatCircleAngle, greatCircleDistance and geoDistance.

They are ClickHouse's approximations, so that results differ by no more than the rounding of fused
multiply-adds: tables of the cosine and of asin(sqrt(x)) with linear interpolation, and a flat metric
for points whose longitudes are less than 13° apart (A. Aksyonoff's method of Sphinx, as ClickHouse's
`src/Functions/greatCircleDistance.cpp` describes it).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.types import FLOAT32, FLOAT64, Boolean, DataType, Decimal, Float, Integer

_COSINES = 1024
_ASINES = 512
_LATITUDES = 1024
_RADIUS = 6371007.180918475
"""The Earth's radius in metres: that of the sphere with the area of WGS-84."""
_NEAR = 13
"""Degrees of longitude below which a flat metric serves."""


@cache
def _tables(dtype: np.dtype) -> dict[str, np.ndarray]:
    """Return the tables of approximated functions as arrays of this type; each entry is computed in Float64."""
    latitude = np.arange(_LATITUDES + 1) * (np.pi / _LATITUDES) - np.pi * 0.5
    north = 111132.09 - 566.05 * np.cos(2 * latitude) + 1.20 * np.cos(4 * latitude)
    east = 111415.13 * np.cos(latitude) - 94.55 * np.cos(3 * latitude) + 0.12 * np.cos(5 * latitude)
    whole = {
        "cos": np.cos(2 * np.pi * np.arange(_COSINES + 1) / _COSINES),
        "asin": np.arcsin(np.sqrt(np.arange(_ASINES + 1) / _ASINES)),
        "greatCircleAngle": np.square(np.cos(latitude)),
        "greatCircleDistance": np.square(2 * _RADIUS * np.pi / 360 * np.cos(latitude)),
        "north": np.square(north),
        "geoDistance": np.square(east),
    }
    return {name: table.astype(dtype) for name, table in whole.items()}


def _between(table: np.ndarray, index: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Interpolate linearly in a table: between entry `index` and the next one, `share` of the way."""
    low = table[index]
    return np.asarray(low + (table[index + 1] - low) * share)


def _index(values: np.ndarray) -> np.ndarray:
    """Return the whole parts of numbers; NaN and infinity give an arbitrary integer."""
    return np.asarray(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), np.int64)


def _cosine(angle: np.ndarray, quarter: int = 0) -> np.ndarray:
    """Return the cosine of angles from a table; with `quarter`, a quarter of the table's size, the sine of positive
    ones."""
    number = angle.dtype.type
    place = np.abs(angle) * (number(_COSINES) / number(np.pi) / number(2))
    index = _index(place)
    share = place - index.astype(angle.dtype)
    return _between(_tables(angle.dtype)["cos"], (index - quarter) & (_COSINES - 1), share)


def _asin_of_root(x: np.ndarray) -> np.ndarray:
    """Return asin(sqrt(x)): by a series, a table, or exactly, as x grows."""
    number = x.dtype.type
    y = np.sqrt(x)
    series = (
        y
        + x * y * number(0.166666666666666)
        + x * x * y * number(0.075)
        + x * x * x * y * number(0.044642857142857)
    )
    place = np.clip(x, 0, number(0.95)) * number(_ASINES)
    index = _index(place)
    looked_up = _between(_tables(x.dtype)["asin"], index, place - index.astype(x.dtype))
    return np.where(x < number(0.122), series, np.where(x < number(0.948), looked_up, np.arcsin(y)))


def _difference(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the difference of two angles in degrees, 0 to 180."""
    apart = np.abs(left - right)
    return np.asarray(np.where(apart > 180, 360 - apart, apart), left.dtype)


def _flat(name: str, middle: np.ndarray, latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    """Return the distance of near points, as if the Earth were flat there; `middle` is the sum of their latitudes,
    `latitude` and `longitude` are the differences, in degrees."""
    number = middle.dtype.type
    tables = _tables(middle.dtype)
    place = (middle + 180) * number(_LATITUDES) / number(360)
    index = _index(place) & (_LATITUDES - 1)
    share = place - index.astype(middle.dtype)
    north: np.ndarray | np.floating
    if name == "greatCircleAngle":
        north = number(1)
    elif name == "greatCircleDistance":
        north = np.square(number(2 * _RADIUS) * number(np.pi) / number(360))
    else:
        north = _between(tables["north"], index, share)
    east = _between(tables[name], index, share)
    return np.asarray(np.sqrt(north * latitude * latitude + east * longitude * longitude))


def _distance(name: str) -> scalar.Kernel:
    """Return the kernel of the function `name`: the distance of two points, each a longitude and a latitude in
    degrees."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Compute the distances as Float32 or Float64, by the result's type."""
        lon1, lat1, lon2, lat2 = (
            columns.numpy_values(
                columns.as_array(
                    cast_column(array, source, call.result, call.environment, strict=True),
                    len(array),
                )
            )
            for array, source in zip(arrays, call.types, strict=True)
        )
        number = lon1.dtype.type
        with np.errstate(all="ignore"):
            latitude, longitude = _difference(lat1, lat2), _difference(lon1, lon2)
            near = _flat(name, lat1 + lat2, latitude, longitude)
            degree, half = number(np.pi / 180), number(np.pi / 360)
            cosines = _cosine(lat1 * degree) * _cosine(lat2 * degree)
            squares = np.square(_cosine(latitude * half, _COSINES // 4))
            squares = squares + cosines * np.square(_cosine(longitude * half, _COSINES // 4))
            scale = (
                number(360) / number(np.pi) if name == "greatCircleAngle" else number(2 * _RADIUS)
            )
            far = scale * _asin_of_root(squares)
        return columns.from_values(np.where(longitude < _NEAR, near, far), call.result.arrow)

    return kernel


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Float64 if an argument is, else Float32; raise IllegalTypeOfArgument for no number."""
    scalar.require(name, types, (Integer, Float, Decimal, Boolean), "a number")
    return FLOAT64 if FLOAT64 in types else FLOAT32


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = tuple(
    scalar.define(name, _rule, _distance(name), count=4)
    for name in ("greatCircleAngle", "greatCircleDistance", "geoDistance")
)
