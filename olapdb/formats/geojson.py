"""GeoJSON: a FeatureCollection, a Feature a row (RFC 7946). The one column of shapes is the geometry, `id` the
Feature's id, and the others are its properties."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import BadArguments
from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.json_rows import EachRowWriter
from olapdb.formats.json_values import JsonStyle, json_texts
from olapdb.formats.texts import body
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import gathered
from olapdb.types.named import Geometry, Point, Shape

_SHAPES = (Point, Shape, Geometry)
_IDS = (
    types.String,
    types.FixedString,
    types.Integer,
    types.Float,
    types.Decimal,
    types.WideNumber,
)
_RING_POINTS_MIN = 4
_LINE_POINTS_MIN = 2


class GeoJsonWriter(Writer):
    """A writer of GeoJSON, all of it one line."""

    def __init__(self, header: Header) -> None:
        """Take the columns. Raises BadArguments unless one alone is of shapes, or for an id of another type than
        a text or a number."""
        super().__init__(header)
        self._geometry = _geometry_of(header)
        self._id = _id_of(header, self._geometry)
        self._others = [
            at for at in range(len(header.names)) if at not in (self._geometry, self._id)
        ]
        names = tuple(header.names[at] for at in self._others)
        kinds = tuple(header.types[at] for at in self._others)
        self._properties = EachRowWriter(Header(names, kinds, header.settings, header.environment))
        plain = header.settings.with_changes({"output_format_json_quote_64bit_integers": False})
        self._style = JsonStyle(Header(header.names, header.types, plain, header.environment))
        self._rows = 0

    def start(self) -> bytes:
        """Return the opening of the collection."""
        return b'{"type":"FeatureCollection","features":['

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the Features of the rows, and a comma between them."""
        geometry = self._shapes(batch.column(self._geometry), self.header.types[self._geometry])
        parts = ['{"type":"Feature"', self._ids(batch), ',"geometry":', geometry, ',"properties":']
        features = pc.binary_join_element_wise(*parts, self._texts(batch), "}", "")
        text = body(pc.binary_join_element_wise(",", features, ""))
        first, self._rows = self._rows == 0, self._rows + batch.num_rows
        return text[1:] if first else text

    def finish(self, ending: Ending) -> bytes:
        """Return the end of the collection."""
        return b"]}\n"

    def _texts(self, batch: pa.RecordBatch) -> pa.Array | str:
        """Return the object of each row's properties."""
        if not self._others:
            return "{}"
        return self._properties.objects(batch.select(self._others))

    def _ids(self, batch: pa.RecordBatch) -> pa.Array | str:
        """Return the member "id" of each row; nothing for a NULL."""
        if self._id is None:
            return ""
        column = batch.column(self._id)
        if pa.types.is_floating(column.type) and pc.any(pc.invert(pc.is_finite(column))).as_py():
            raise BadArguments("The id of a Feature is a finite number.")
        texts = json_texts(column, self.header.types[self._id], self._style)
        members = pc.binary_join_element_wise(',"id":', texts, "")
        return pc.if_else(column.is_valid(), members, "")

    def _shapes(self, array: pa.Array, data_type: types.DataType) -> pa.Array:
        """Return the geometry objects of shapes; null for NULL. Raises BadArguments for shapes that GeoJSON lacks."""
        inner = types.plain(data_type)
        if isinstance(inner, Geometry):
            texts = gathered(array, inner, self._shapes, pa.string())
            return pc.fill_null(texts, "null")
        _check_shapes(array.drop_null(), inner)
        coordinates = json_texts(array, inner, self._style)
        name = inner.name
        if name == "Ring":
            coordinates = pc.binary_join_element_wise("[", coordinates, "]", "")
            name = "Polygon"
        texts = pc.binary_join_element_wise(
            f'{{"type":"{name}","coordinates":', coordinates, "}", ""
        )
        return pc.if_else(array.is_valid(), texts, "null") if array.null_count else texts


def _geometry_of(header: Header) -> int:
    """Return the place of the only column of shapes. Raises BadArguments if there is none, or several."""
    places = [at for at, t in enumerate(header.types) if isinstance(types.plain(t), _SHAPES)]
    if len(places) == 1:
        return places[0]
    names = ", ".join(header.names[at] for at in places) or "none"
    raise BadArguments(
        f"GeoJSON needs exactly one column of shapes, found {names}.",
        hint="Cast it to Point, LineString, Polygon, Geometry and their like.",
    )


def _id_of(header: Header, geometry: int) -> int | None:
    """Return the place of the column `id`, None without one. Raises BadArguments for one of a type that no id has."""
    for at, (name, data_type) in enumerate(zip(header.names, header.types, strict=True)):
        if name != "id" or at == geometry:
            continue
        inner = types.plain(data_type)
        if isinstance(inner, types.Boolean) or not isinstance(inner, (*_IDS, types.Nothing)):
            raise BadArguments(f"The id of a Feature is a text or a number, not {data_type}.")
        return at
    return None


def _check_shapes(array: pa.Array, data_type: types.DataType) -> None:
    """Raise BadArguments for coordinates that are not finite, for lines of fewer than two points, rings of fewer than
    four or that are not closed, and polygons without rings."""
    levels: list[np.ndarray] = []
    points = array
    while pa.types.is_list(points.type):
        offsets, points = columns.elements_of(points)
        levels.append(np.diff(offsets))
    x, y = (columns.numpy_values(part) for part in columns.struct_fields(points))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise BadArguments("GeoJSON has no coordinates that are not finite.")
    if data_type.name in ("LineString", "MultiLineString"):
        if any((level == 0).any() for level in levels[:-1]):
            raise BadArguments("A MultiLineString of GeoJSON has at least one line.")
        if (levels[-1] < _LINE_POINTS_MIN).any():
            raise BadArguments("A line of GeoJSON has at least two points.")
    elif data_type.name in ("Ring", "Polygon", "MultiPolygon"):
        if any((level == 0).any() for level in levels[:-1]):
            raise BadArguments("A polygon of GeoJSON has at least one ring.")
        if (levels[-1] < _RING_POINTS_MIN).any():
            raise BadArguments("A ring of GeoJSON has at least four points.")
        ends = np.cumsum(levels[-1])
        starts = ends - levels[-1]
        if (x[starts] != x[ends - 1]).any() or (y[starts] != y[ends - 1]).any():
            raise BadArguments("A ring of GeoJSON ends with the point with which it begins.")


FORMATS = (
    Format(
        "GeoJSON",
        "A FeatureCollection of GeoJSON, a Feature a row.",
        GeoJsonWriter,
        endings=("geojson",),
        appends=False,
    ),
)
