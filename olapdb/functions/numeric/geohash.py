"""Geohashes and shapes of points: geohashEncode, geohashDecode, geohashesInBox, pointInEllipses.

A geohash interleaves the bits of a longitude and a latitude, the longitude's first, and writes five
bits a character (G. M. Morton 1966; G. Niemeyer 2008).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalColumn, NumberOfArgumentsDoesntMatch, TooLargeArray
from olapdb.functions import scalar
from olapdb.functions.arrays.resizing import require_list_size
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.types import (
    FLOAT64,
    STRING,
    UINT8,
    Array,
    DataType,
    FixedString,
    Float,
    Integer,
    String,
    Tuple,
)

_DIGITS = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", dtype=np.uint8)
_VALUES = np.full(256, 31, dtype=np.uint64)
_VALUES[_DIGITS] = np.arange(32, dtype=np.uint64)
_LONGEST = 12
_BOX_MAX = 10_000_000
_U = np.uint64


def _bits(precision: int) -> tuple[int, int]:
    """Return the bits of the longitude and of the latitude of a geohash of this length."""
    return (precision * 5 + 1) // 2, precision * 5 // 2


def _cells(values: np.ndarray, half: float, bits: int) -> np.ndarray:
    """Return in which of 2**bits equal cells from -half to half each value lies, numbered from 0.

    NaN is in the first cell; a value outside is in the nearest one."""
    share = np.nan_to_num((values + half) / (2 * half), nan=0.0, posinf=1.0, neginf=0.0)
    cells = np.floor(share * 2.0**bits)
    return np.clip(cells, 0, 2.0**bits - 1).astype(np.uint64)


def _interleaved(longitude: np.ndarray, latitude: np.ndarray, precision: int) -> np.ndarray:
    """Return geohash codes as integers: the bits of longitude and latitude cells in turn, the longitude's first."""
    code = np.zeros(len(longitude), dtype=np.uint64)
    of_longitude, of_latitude = _bits(precision)
    for bit in range(precision * 5):
        left = of_longitude if bit % 2 == 0 else of_latitude
        cells = longitude if bit % 2 == 0 else latitude
        digit = (cells >> _U(left - 1 - bit // 2)) & _U(1)
        code = (code << _U(1)) | digit
    return code


def _texts(code: np.ndarray, precision: int) -> pa.Array:
    """Return integer codes as geohash texts of `precision` characters."""
    shifts = np.arange(precision - 1, -1, -1, dtype=np.uint64) * _U(5)
    digits = (code[:, None] >> shifts[None, :]) & _U(31)
    data = _DIGITS[digits.astype(np.intp)]
    return columns.strings_from(
        np.arange(len(code) + 1, dtype=np.int64) * precision, data.reshape(-1)
    )


def _encode_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless two floats and an integer."""
    scalar.require(name, types[:2], Float, "a Float32 or Float64")
    scalar.require(name, types[2:], Integer, "an integer")
    return STRING


def _encode(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the geohashes of longitudes and latitudes: the kernel of geohashEncode."""
    longitude, latitude = (columns.numpy_values(a).astype(np.float64) for a in arrays[:2])
    lengths = np.full(len(longitude), _LONGEST)
    if len(arrays) > 2:
        given = columns.numpy_values(arrays[2]).astype(np.int64)
        lengths = np.where((given < 1) | (given > _LONGEST), _LONGEST, given)
    pieces, places = [], []
    for precision in np.unique(lengths):
        rows = np.flatnonzero(lengths == precision)
        east, north = _bits(int(precision))
        code = _interleaved(
            _cells(longitude[rows], 180.0, east),
            _cells(latitude[rows], 90.0, north),
            int(precision),
        )
        pieces.append(_texts(code, int(precision)))
        places.append(rows)
    if not pieces:
        return pa.nulls(0, pa.string())
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(pieces).take(pa.array(order))


_POSITION = Tuple((FLOAT64, FLOAT64), ("longitude", "latitude"))


def _decode_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return a tuple of longitude and latitude; raise IllegalTypeOfArgument unless a String."""
    scalar.require(name, types, (String, FixedString), "a String")
    return _POSITION


def _decode(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the middles of the cells of geohashes: the kernel of geohashDecode.

    An empty text gives (0, 0); any other character counts as the last digit, as in ClickHouse."""
    offsets, data = columns.bytes_of(columns.binary(arrays[0]))
    lengths = np.minimum(np.diff(offsets), _LONGEST)
    longitude, latitude = np.zeros(len(lengths)), np.zeros(len(lengths))
    for precision in np.unique(lengths):
        rows = np.flatnonzero(lengths == precision)
        if not precision:
            continue
        digits = _VALUES[data[offsets[:-1][rows][:, None] + np.arange(precision)[None, :]]]
        code = np.zeros(len(rows), dtype=np.uint64)
        for at in range(precision):
            code = (code << _U(5)) | digits[:, at]
        cells = [np.zeros(len(rows), dtype=np.uint64), np.zeros(len(rows), dtype=np.uint64)]
        for bit in range(precision * 5):
            digit = (code >> _U(precision * 5 - 1 - bit)) & _U(1)
            cells[bit % 2] = (cells[bit % 2] << _U(1)) | digit
        for out, cell, half, bits in zip(
            (longitude, latitude), cells, (180.0, 90.0), _bits(int(precision)), strict=True
        ):
            out[rows] = (cell.astype(np.float64) + 0.5) * (2 * half / 2.0**bits) - half
    fields = [columns.from_values(part, pa.float64()) for part in (longitude, latitude)]
    return columns.structs_from(fields, call.result.arrow)


def _box_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return an array of String; raise IllegalTypeOfArgument unless four floats of one type and a
    UInt8."""
    scalar.require(name, types[:4], Float, "a Float32 or Float64")
    if len(set(types[:4])) > 1 or types[4] != UINT8:
        raise scalar.illegal(name, types[4], "four floats of one type and a UInt8")
    return Array(STRING)


def _in_box(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the geohashes that cover boxes, from west to east, each column from south to north:
    the kernel of geohashesInBox. Raises TooLargeArray."""
    west, south, east, north = (columns.numpy_values(a).astype(np.float64) for a in arrays[:4])
    precision = columns.numpy_values(arrays[4]).astype(np.int64)
    precision = np.where((precision < 1) | (precision > _LONGEST), _LONGEST, precision)
    fine = (west <= east) & (south <= north)
    first, counts = [], []
    for low, high, half, at in ((west, east, 180.0, 0), (south, north, 90.0, 1)):
        bits = [_bits(int(p))[at] for p in precision]
        begin = np.array([_cells(low[[i]], half, b)[0] for i, b in enumerate(bits)], np.uint64)
        end = np.array([_cells(high[[i]], half, b)[0] for i, b in enumerate(bits)], np.uint64)
        first.append(begin)
        counts.append(np.where(fine, (end - begin).astype(np.int64) + 1, 0))
    sizes = counts[0] * counts[1]
    most = int(sizes.max(initial=0))
    if most > _BOX_MAX:
        raise TooLargeArray(
            f"geohashesInBox would produce {most} array elements, the most are {_BOX_MAX}.",
            hint="Take fewer characters, or a smaller box.",
        )
    require_list_size("geohashesInBox", sizes)
    offsets = columns.offsets_from_counts(sizes)
    owners = columns.parents_of(offsets)
    place = np.arange(len(owners)) - offsets[owners]
    rows = counts[1][owners]
    longitude = first[0][owners] + (place // np.maximum(rows, 1)).astype(np.uint64)
    latitude = first[1][owners] + (place % np.maximum(rows, 1)).astype(np.uint64)
    pieces, places = [pa.nulls(0, pa.string())], [np.zeros(0, np.int64)]
    for length in np.unique(precision[owners]):
        chosen = np.flatnonzero(precision[owners] == length)
        code = _interleaved(longitude[chosen], latitude[chosen], int(length))
        pieces.append(_texts(code, int(length)))
        places.append(chosen)
    order = np.argsort(np.concatenate(places), kind="stable")
    return columns.lists_from(offsets, pa.concat_arrays(pieces).take(pa.array(order)))


def _ellipses_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return UInt8; raise an error unless a point and constant ellipses of four numbers each, all
    of Float64."""
    if len(types) < 6 or (len(types) - 2) % 4:
        raise NumberOfArgumentsDoesntMatch(
            f"{name} takes x and y, then x, y, a and b of each ellipse."
        )
    for data_type, argument in zip(types, arguments, strict=True):
        if data_type != FLOAT64:
            raise scalar.illegal(name, data_type, "a Float64")
        if argument not in arguments[:2] and argument.constant is None:
            raise IllegalColumn(f"The ellipses of {name} are constants.")
    return UINT8


def _in_ellipses(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return whether points are in one of the ellipses: the kernel of pointInEllipses."""
    x, y = (columns.numpy_values(array) for array in arrays[:2])
    inside = np.zeros(len(x), dtype=bool)
    shapes = [columns.numpy_values(array) for array in arrays[2:]]
    with np.errstate(all="ignore"):
        for at in range(0, len(shapes), 4):
            left, bottom, a, b = shapes[at : at + 4]
            inside |= ((x - left) / a) ** 2 + ((y - bottom) / b) ** 2 <= 1
    return columns.from_values(inside, pa.uint8())


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("geohashEncode", _encode_rule, _encode, count=(2, 3)),
    scalar.define("geohashDecode", _decode_rule, _decode),
    scalar.define("geohashesInBox", _box_rule, _in_box, count=5),
    scalar.define("pointInEllipses", _ellipses_rule, _in_ellipses, count=(2, None)),
)
