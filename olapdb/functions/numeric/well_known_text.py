"""readWKT… and wkt: shapes from and to Well-Known Text (OGC 06-103r4, section 7)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, CannotParse
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import text_of
from olapdb.functions.numeric.geometries import geometry_column, shape_of
from olapdb.types import (
    GEOMETRIES,
    GEOMETRY,
    LINE_STRING,
    MULTI_LINE_STRING,
    MULTI_POINT,
    MULTI_POLYGON,
    POINT,
    POLYGON,
    RING,
    STRING,
    DataType,
    FixedString,
    String,
)

_TOKEN = re.compile(r"\s*([(),]|[^\s(),]+)")
_KEYWORDS = {"Ring": "POLYGON"} | {
    shape.name: shape.name.upper() for shape in GEOMETRIES if shape != RING
}
"""The word that a shape's text begins with."""
_DEPTHS = {
    POINT: 0,
    LINE_STRING: 1,
    MULTI_POINT: 1,
    MULTI_LINE_STRING: 2,
    RING: 2,
    POLYGON: 2,
    MULTI_POLYGON: 3,
}
"""The brackets around the points of each shape's text, without the first ones of a point."""


class _Reader:
    """A recursive descent reader of one text."""

    def __init__(self, text: str) -> None:
        """Begin at the first token."""
        self.text, self.tokens, self.at = text, _TOKEN.findall(text), 0

    def error(self, problem: str) -> CannotParse:
        """Return a CannotParse error that shows the text and names the problem."""
        return CannotParse(f"Cannot parse WKT string {self.text!r}: {problem}.")

    def take(self, token: str) -> bool:
        """Go beyond the next token if it is this one, in any case; return whether it was."""
        is_next = self.at < len(self.tokens) and self.tokens[self.at].upper() == token
        self.at += is_next
        return is_next

    def expect(self, token: str) -> None:
        """Go beyond the next token, which must be this one. Raises CannotParse for another one."""
        if not self.take(token):
            raise self.error(f"expected {token!r}")

    def point(self) -> tuple[float, float]:
        """Read a point, two numbers. Raises CannotParse."""
        numbers = self.tokens[self.at : self.at + 2]
        self.at += 2
        try:
            x, y = (float(number) for number in numbers)
        except ValueError:
            raise self.error("expected two numbers") from None
        return x, y

    def nested(self, depth: int) -> list[object]:
        """Read a list in brackets: of points, or of lists that are `depth` - 1 deep."""
        self.expect("(")
        elements: list[object] = []
        while True:
            elements.append(self.nested(depth - 1) if depth > 1 else self.member())
            if not self.take(","):
                break
        self.expect(")")
        return elements

    def member(self) -> tuple[float, float]:
        """Read a point of a list, which may have brackets of its own in a MULTIPOINT."""
        if not self.take("("):
            return self.point()
        point = self.point()
        self.expect(")")
        return point


def _read(text: str, shape: DataType) -> object:
    """Return the shape of kind `shape` that a text denotes, as tuples and lists. Raises CannotParse."""
    reader = _Reader(text)
    if not reader.take(_KEYWORDS[shape.name]):
        raise reader.error(f"it should start with {_KEYWORDS[shape.name]}")
    value: object
    if reader.take("EMPTY"):
        if shape == POINT:
            raise reader.error("empty points are not supported")
        value = [[]] if shape == POLYGON else []
    elif shape == POINT:
        reader.expect("(")
        value = reader.point()
        reader.expect(")")
    elif shape == RING:
        reader.expect("(")
        value = reader.nested(1)
        reader.expect(")")
    else:
        value = reader.nested(_DEPTHS[shape])
    if reader.at < len(reader.tokens):
        raise reader.error("too many tokens")
    return value


def _reading(shape: DataType) -> scalar.ScalarDefinition:
    """Return the definition of the function, such as readWKTPoint, that reads texts as the shape."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the shape; raise IllegalTypeOfArgument for what is no text."""
        scalar.require(name, types, (String, FixedString), "a String")
        return shape

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Read each distinct text once."""
        encoded = columns.binary(arrays[0]).dictionary_encode()
        read = [_read(text_of(text), shape) for text in encoded.dictionary.to_pylist()]
        fields = POINT.arrow.field(0).name, POINT.arrow.field(1).name
        values = pa.array([_with_fields(value, fields) for value in read], shape.arrow)
        return values.take(encoded.indices)

    return scalar.define(f"readWKT{shape.name}", rule, kernel, drops_dictionary=True)


def _any_shape(text: str) -> tuple[DataType, object]:
    """Return the type and the value of a text of any shape but a ring. Raises BadArguments and CannotParse."""
    reader = _Reader(text)
    for shape in (s for s in GEOMETRIES if s != RING):
        if reader.take(_KEYWORDS[shape.name]):
            return shape, _read(text, shape)
    if reader.take("RING"):
        raise reader.error("it should start with POLYGON")
    raise BadArguments(
        f"Incorrect WKT format value: {text!r}.",
        hint=f"It begins with one of {', '.join(sorted(set(_KEYWORDS.values())))}.",
    )


def _any_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Geometry; raise IllegalTypeOfArgument for what is no text."""
    scalar.require(name, types, (String, FixedString), "a String")
    return GEOMETRY


def _read_any(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the shapes of texts; each distinct text is read once."""
    encoded = columns.binary(arrays[0]).dictionary_encode()
    fields = POINT.arrow.field(0).name, POINT.arrow.field(1).name
    read = [_any_shape(text_of(text)) for text in encoded.dictionary.to_pylist()]
    shapes = geometry_column([(shape, _with_fields(value, fields)) for shape, value in read])
    return shapes.take(encoded.indices)


def _with_fields(value: object, fields: tuple[str, str]) -> object:
    """Return points as dictionaries of their fields, as Arrow takes them."""
    if isinstance(value, tuple):
        return dict(zip(fields, value, strict=True))
    assert isinstance(value, list)
    return [_with_fields(element, fields) for element in value]


def _number_texts(numbers: pa.Array) -> pa.Array:
    """Return numbers as texts with at most six significant digits; each distinct number is written once."""
    distinct, places = np.unique(columns.numpy_values(numbers), return_inverse=True)
    texts = pa.array([f"{number:.6g}" for number in distinct], pa.string())
    return texts.take(pa.array(places))


def _closed(offsets: np.ndarray, points: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Close rings: return offsets and points with the first point repeated at the end of each ring
    that does not end in it."""
    sizes = np.diff(offsets)
    filled = np.flatnonzero(sizes)
    first, last = offsets[:-1][filled], offsets[1:][filled] - 1
    differs = columns.numpy_values(pc.not_equal(points.take(first), points.take(last)))
    added = np.zeros(len(sizes), np.int64)
    added[filled] = differs
    out = columns.offsets_from_counts(sizes + added)
    rows = np.arange(int(out[-1])) + np.repeat(offsets[:-1] - out[:-1], sizes + added)
    ends = out[1:][added > 0] - 1
    rows[ends] = offsets[:-1][added > 0]
    return out, points.take(pa.array(rows))


def _bracketed(offsets: np.ndarray, texts: pa.Array) -> pa.Array:
    """Return the texts of each list joined by commas in brackets."""
    joined = pc.binary_join(columns.lists_from(offsets, texts), ",")
    return pc.binary_join_element_wise("(", joined, ")", "")


def _without_empty(offsets: np.ndarray, texts: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the lists, by offsets and texts, where a list whose first text is "()" becomes empty."""
    sizes = np.diff(offsets)
    empty = np.zeros(len(sizes), bool)
    filled = np.flatnonzero(sizes)
    empty[filled] = columns.numpy_values(pc.equal(texts.take(offsets[:-1][filled]), "()"))
    keep = np.repeat(~empty, sizes)
    return columns.offsets_from_counts(np.where(empty, 0, sizes)), texts.filter(pa.array(keep))


def _shape_texts(array: pa.Array, shape: str) -> pa.Array:
    """Return the texts of shapes without the word before them, such as ((0 0,1 0,1 1))."""
    levels: list[np.ndarray] = []
    while pa.types.is_list(array.type):
        offsets, array = columns.elements_of(array)
        levels.append(offsets)
    texts = pc.binary_join_element_wise(*(_number_texts(field) for field in array.flatten()), " ")
    if shape in ("Point", "MultiPoint"):
        texts = pc.binary_join_element_wise("(", texts, ")", "")
    closes = shape in ("Polygon", "MultiPolygon")
    for at, offsets in enumerate(reversed(levels)):
        if at == 0 and closes:
            offsets, texts = _closed(offsets, texts)
        if at == 1 and closes:
            offsets, texts = _without_empty(offsets, texts)
        texts = _bracketed(offsets, texts)
    if shape != "Ring":
        return texts
    in_brackets = pc.binary_join_element_wise("(", texts, ")", "")
    return pc.if_else(pc.equal(texts, "()"), texts, in_brackets)


def _write_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise BadArguments for what is no shape."""
    shape_of(types[0])
    return STRING


def _write(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the text of each shape: the kernel of wkt."""
    shape = shape_of(call.types[0])
    return pc.binary_join_element_wise(_KEYWORDS[shape], _shape_texts(arrays[0], shape), "")


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(_reading(shape) for shape in GEOMETRIES),
    scalar.define("readWKT", _any_rule, _read_any, aliases=("readWkt",), drops_dictionary=True),
    scalar.define("wkt", _write_rule, _write, aliases=("WKT",)),
)
