"""readWKB… and wkb: shapes from and to Well-Known Binary (OGC 06-103r4, section 8)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, CannotReadAllData, TooLargeArray
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.numeric.geometries import geometry_column
from olapdb.types import (
    GEOMETRY,
    LINE_STRING,
    MULTI_LINE_STRING,
    MULTI_POINT,
    MULTI_POLYGON,
    POINT,
    POLYGON,
    STRING,
    DataType,
    FixedString,
    String,
)

_CODES: dict[DataType, int] = {
    POINT: 1,
    LINE_STRING: 2,
    POLYGON: 3,
    MULTI_POINT: 4,
    MULTI_LINE_STRING: 5,
    MULTI_POLYGON: 6,
}
"""The number of each shape in the format."""
_SHAPES = {code: shape for shape, code in _CODES.items()}
_NAMES = {code: shape.name for code, shape in _SHAPES.items()}
_MEMBERS = {4: 1, 5: 2, 6: 3}
"""The number of the shapes that a Multi… has, by its own number."""
_ALIASES = {
    POINT: "ST_PointFromWKB",
    LINE_STRING: "ST_LineFromWKB",
    POLYGON: "ST_PolyFromWKB",
    MULTI_POINT: "ST_MPointFromWKB",
    MULTI_LINE_STRING: "ST_MLineFromWKB",
    MULTI_POLYGON: "ST_MPolyFromWKB",
}
_COUNT_MAX = 1_000_000
"""The points, rings or shapes that one list may have, as in ClickHouse."""
_POINT_BYTES = 16


class _Reader:
    """A reader of one shape in bytes; bytes behind the shape are not read."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first byte."""
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple[int, ...]:
        """Read the next bytes as numbers in a `struct` layout, and go beyond them. Raises CannotReadAllData."""
        size = struct.calcsize(layout)
        if len(self.data) - self.at < size:
            raise CannotReadAllData(
                f"Cannot read all data of a WKB geometry: {len(self.data) - self.at} of {size} bytes."
            )
        self.at += size
        return struct.unpack_from(layout, self.data, self.at - size)

    def head(self) -> tuple[str, int]:
        """Read the head of a shape: return its byte order, as `struct` writes it, and the code of its kind.

        Raises BadArguments and CannotReadAllData."""
        flag = self.data[self.at] if self.at < len(self.data) else -1
        if flag not in (0, 1):
            raise BadArguments("Error while reading WKB format: Incorrect first flag.")
        self.at += 1
        order = "<" if flag else ">"
        (code,) = self.take(f"{order}I")
        if code not in _NAMES:
            raise BadArguments(f"Incorrect geometry type {code}.")
        return order, code

    def count(self, order: str) -> int:
        """Read how many elements follow. Raises TooLargeArray and CannotReadAllData."""
        (count,) = self.take(f"{order}I")
        if count > _COUNT_MAX:
            raise TooLargeArray(f"Too many elements in a WKB geometry: {count} > {_COUNT_MAX}.")
        return count

    def points(self, order: str, count: int) -> list[object]:
        """Read `count` points; return each as a dictionary of its fields, as Arrow takes it."""
        x, y = (POINT.arrow.field(at).name for at in range(2))
        numbers = self.take(f"{order}{2 * count}d")
        return [{x: a, y: b} for a, b in zip(numbers[::2], numbers[1::2], strict=True)]

    def body(self, order: str, code: int) -> object:
        """Read the shape of kind `code` that follows its head. Raises BadArguments for a member of another kind."""
        if code == _CODES[POINT]:
            return self.points(order, 1)[0]
        count = self.count(order)
        if code == _CODES[LINE_STRING]:
            return self.points(order, count)
        if code == _CODES[POLYGON]:
            return [self.points(order, self.count(order)) for _ in range(count)] or [[]]
        members = []
        for _ in range(count):
            member_order, member = self.head()
            if member != _MEMBERS[code]:
                raise BadArguments(
                    f"{_NAMES[code]} contains an internal type {_NAMES[member]} that differs from "
                    f"{_NAMES[_MEMBERS[code]]}."
                )
            members.append(self.body(member_order, member))
        return members


def _any_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Geometry; raise IllegalTypeOfArgument for what is no text."""
    scalar.require(name, types, (String, FixedString), "a String")
    return GEOMETRY


def _read_any(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the shapes of bytes; each distinct text of bytes is read once."""
    encoded = columns.binary(arrays[0]).dictionary_encode()
    shapes: list[tuple[DataType, object]] = []
    for data in encoded.dictionary.to_pylist():
        reader = _Reader(data)
        order, code = reader.head()
        shapes.append((_SHAPES[code], reader.body(order, code)))
    return geometry_column(shapes).take(encoded.indices)


def _read(name: str, data: bytes, shape: DataType) -> object:
    """Return the shape of kind `shape` in the bytes, for the function `name`. Raises BadArguments for another kind."""
    reader = _Reader(data)
    order, code = reader.head()
    value = reader.body(order, code)
    if code != _CODES[shape]:
        raise BadArguments(f"{name}: expected geometry type {shape.name}, not {_NAMES[code]}.")
    return value


def _reading(shape: DataType) -> scalar.ScalarDefinition:
    """Return the definition of the function, such as readWKBPoint, that reads bytes as the shape."""
    name = f"readWKB{shape.name}"

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the shape; raise IllegalTypeOfArgument for what is no text."""
        scalar.require(name, types, (String, FixedString), "a String")
        return shape

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Read each distinct text once."""
        encoded = columns.binary(arrays[0]).dictionary_encode()
        read = [_read(name, data, shape) for data in encoded.dictionary.to_pylist()]
        return pa.array(read, shape.arrow).take(encoded.indices)

    return scalar.define(name, rule, kernel, aliases=(_ALIASES[shape],), drops_dictionary=True)


def _fixed(numbers: np.ndarray, width: int) -> pa.Array:
    """Return numbers as Arrow binary values of `width` bytes each."""
    data = pa.py_buffer(np.ascontiguousarray(numbers).tobytes())
    rows = data.size // width
    return pa.Array.from_buffers(pa.binary(width), rows, [None, data]).cast(pa.binary())


def _head(code: int) -> bytes:
    """Return the first bytes of a shape: the mark of little-endian order, then the code of its kind."""
    return struct.pack("<BI", 1, code)


def _counted(head: bytes, offsets: np.ndarray, elements: pa.Array) -> pa.Array:
    """Return each list of elements as bytes: the head, the number of elements, then the elements."""
    counts = _fixed(np.diff(offsets).astype("<u4"), 4)
    joined = pc.binary_join(columns.lists_from(offsets, elements), b"")
    return pc.binary_join_element_wise(pa.scalar(head), counts, joined, pa.scalar(b""))


def _polygons(array: pa.Array) -> pa.Array:
    """Return polygons as WKB; a polygon whose only ring is empty is written without rings."""
    offsets, rings = columns.elements_of(array)
    ring_offsets, points = columns.elements_of(rings)
    texts = _counted(b"", ring_offsets, _points(points))
    sizes = np.diff(offsets)
    alone = sizes == 1
    alone[alone] = np.diff(ring_offsets)[offsets[:-1][alone]] == 0
    keep = np.repeat(~alone, sizes)
    kept = columns.offsets_from_counts(np.where(alone, 0, sizes))
    return _counted(_head(_CODES[POLYGON]), kept, texts.filter(pa.array(keep)))


def _points(array: pa.Array) -> pa.Array:
    """Return the 16 bytes of each point: its two coordinates as Float64, little-endian."""
    numbers = np.stack([columns.numpy_values(field) for field in columns.struct_fields(array)], 1)
    return _fixed(numbers.astype("<f8"), _POINT_BYTES)


def _shapes(array: pa.Array, code: int) -> pa.Array:
    """Return shapes of the kind `code` as WKB."""
    if code == _CODES[POINT]:
        return pc.binary_join_element_wise(pa.scalar(_head(code)), _points(array), pa.scalar(b""))
    if code == _CODES[POLYGON]:
        return _polygons(array)
    offsets, elements = columns.elements_of(array)
    if code == _CODES[LINE_STRING]:
        return _counted(_head(code), offsets, _points(elements))
    return _counted(_head(code), offsets, _shapes(elements, _MEMBERS[code]))


def _write_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise BadArguments unless the argument has the type of a shape but Ring."""
    if types[0] not in _CODES:
        raise BadArguments(f"Function {name} is not supported for type {types[0]}.")
    return STRING


def _write(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return each shape as WKB: the kernel of wkb."""
    return columns.text(_shapes(arrays[0], _CODES[call.types[0]]))


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(_reading(shape) for shape in _CODES),
    scalar.define("readWKB", _any_rule, _read_any, aliases=("readWkb",), drops_dictionary=True),
    scalar.define("wkb", _write_rule, _write, aliases=("WKB",)),
)
