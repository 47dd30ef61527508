"""Cells of H3, Uber's grid of hexagons: geoToH3, h3ToGeo, h3kRing and their kin.

The package h3, which holds Uber's own library, computes them; it is an optional requirement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType

import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument, IncorrectData, NotSupportedError, ValueOutOfBound
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels.by_value import define_by_value, text_of
from olapdb.types import (
    FLOAT64,
    INT64,
    STRING,
    UINT8,
    UINT16,
    UINT64,
    Array,
    DataType,
    FixedString,
    Integer,
    String,
    Tuple,
)

_CELLS = Array(UINT64)
_POINTS = Array(Tuple((FLOAT64, FLOAT64)))
_FINEST = 15
_EDGE_METRES = (
    *(1281256.011, 483056.8391, 182512.9565, 68979.22179, 26071.75968, 9854.09099, 3724.532667),
    *(1406.475763, 531.4140101, 200.7861476, 75.86378287, 28.66389748, 10.83018784, 4.092010473),
    *(1.546099657, 0.58416863),
)
"""The mean length of an edge by resolution, as ClickHouse has it; the library's is rounded more."""
Point = tuple[float, float]
Wanted = DataType | type | tuple[type, ...]
"""The type of an argument, or the classes of which its type is one."""


@cache
def _library() -> ModuleType:
    """Return the interface of the package h3 in which cells are integers. Raises NotSupportedError
    where the package is not installed."""
    try:
        return import_module("h3.api.basic_int")
    except ImportError as error:
        raise NotSupportedError(
            "Functions of H3 need the package h3.", hint="Install it: pip install h3"
        ) from error


def _takes(result: DataType, *wanted: Wanted) -> scalar.TypeRule:
    """Return the type rule of a function with the given argument types, `wanted`, and result type; see `Wanted`."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument for an argument of a type other than wanted."""
        _library()
        for data_type, want in zip(types, wanted, strict=True):
            if isinstance(want, DataType):
                if data_type != want:
                    raise scalar.illegal(name, data_type, f"a {want}")
            elif not isinstance(data_type, want):
                raise scalar.illegal(name, data_type, "a number without a sign or a text")
            elif isinstance(data_type, Integer) and data_type.signed:
                raise scalar.illegal(name, data_type, "a number without a sign")
        return result

    return rule


def _checked_cell(cell: int) -> int:
    """Return the cell as given. Raises IncorrectData if the number is no cell of H3."""
    if not _library().is_valid_cell(cell):
        raise IncorrectData(f"{cell} is not a cell of H3.")
    return cell


def _checked_edge(edge: int) -> int:
    """Return the directed edge as given. Raises IncorrectData if the number is no directed edge of H3."""
    if not _library().is_valid_directed_edge(edge):
        raise IncorrectData(f"{edge} is not a directed edge of H3.")
    return edge


def _checked_resolution(resolution: int) -> int:
    """Return the resolution. Raises ValueOutOfBound above 15."""
    if resolution > _FINEST:
        raise ValueOutOfBound(
            f"The resolution {resolution} is beyond {_FINEST}, that of H3's least cells."
        )
    return resolution


def _plain(value: object) -> object:
    """Return a value as a column takes it: a truth value is a number."""
    return int(value) if isinstance(value, bool) else value


def _of_cell(method: str) -> Callable[..., object]:
    """Return a function that checks a cell and calls the library's `method` with it."""
    return lambda *cells: _plain(getattr(_library(), method)(*map(_checked_cell, cells)))


def _of_edge(method: str, *options: str) -> Callable[[int], object]:
    """Return a function that checks a directed edge and calls the library's `method` with it and `options`."""
    return lambda edge: getattr(_library(), method)(_checked_edge(edge), *options)


def _of_resolution(method: str, *options: str) -> Callable[[int], object]:
    """Return a function that checks a resolution and calls the library's `method` with it and `options`."""
    return lambda resolution: getattr(_library(), method)(_checked_resolution(resolution), *options)


def _cell_at(latitude: float, longitude: float, resolution: int) -> int:
    """Return the cell in which a point in degrees lies."""
    _checked_resolution(resolution)
    return int(_library().latlng_to_cell(latitude, longitude, resolution))


def _area(unit: str) -> Callable[[int], object]:
    """Return a function that gives the area of a cell in a unit that the library knows, such as km^2."""
    return lambda cell: _library().cell_area(_checked_cell(cell), unit=unit)


def _distance(unit: str) -> Callable[..., object]:
    """Return a function that gives the distance of two points on the Earth in a unit that the library knows."""

    def between(*degrees: float) -> float:
        """Return the distance of the points (latitude, longitude), (latitude, longitude)."""
        return float(_library().great_circle_distance(degrees[:2], degrees[2:], unit=unit))

    return between


def _edge_angle(resolution: int) -> float:
    """Return the mean length of an edge in degrees of a great circle."""
    _checked_resolution(resolution)
    return _EDGE_METRES[resolution] / 6371007.180918475 * 180 / math.pi


def _edge_metres(resolution: int) -> float:
    """Return the mean length of an edge in metres."""
    return _EDGE_METRES[_checked_resolution(resolution)]


def _ring(hollow: bool) -> Callable[[int, int], list[int]]:
    """Return the function that lists the cells at most k steps from a cell, or with `hollow` exactly k steps."""

    def cells(cell: int, k: int) -> list[int]:
        """Return the cells around a cell, in the order of the library."""
        return list(
            getattr(_library(), "grid_ring" if hollow else "grid_disk")(_checked_cell(cell), k)
        )

    return cells


def _children(cell: int, resolution: int) -> list[int]:
    """Return the cells of a finer resolution within a cell; none of a coarser one."""
    _checked_resolution(resolution)
    if _library().get_resolution(_checked_cell(cell)) > resolution:
        return []
    return list(_library().cell_to_children(cell, resolution))


def _center_child(cell: int, resolution: int) -> int:
    """Return the cell of a finer resolution in the middle of a cell; 0 for a coarser one."""
    _checked_resolution(resolution)
    if _library().get_resolution(_checked_cell(cell)) > resolution:
        return 0
    return int(_library().cell_to_center_child(cell, resolution))


def _parent(cell: int, resolution: int) -> int:
    """Return the cell of a coarser resolution that holds a cell; 0 for a finer one."""
    _checked_resolution(resolution)
    if _library().get_resolution(_checked_cell(cell)) < resolution:
        return 0
    return int(_library().cell_to_parent(cell, resolution))


def _edge_between(origin: int, destination: int) -> int:
    """Return the directed edge from a cell to its neighbour; 0 for cells that are no neighbours."""
    _checked_cell(origin)
    _checked_cell(destination)
    if not _library().are_neighbor_cells(origin, destination):
        return 0
    return int(_library().cells_to_directed_edge(origin, destination))


def _text(cell: int) -> bytes:
    """Return the text of a cell, its hexadecimal digits. Raises IllegalTypeOfArgument if the number is no cell."""
    if not _library().is_valid_cell(cell):
        raise IllegalTypeOfArgument(f"{cell} is not a cell of H3.")
    return f"{cell:x}".encode()


def _from_text(text: bytes) -> int:
    """Return the cell that hexadecimal digits name. Raises IllegalTypeOfArgument if they name none."""
    digits = text_of(text)
    try:
        cell = int(digits, 16)
    except ValueError:
        cell = 0
    if not _library().is_valid_cell(cell):
        raise IllegalTypeOfArgument(f"{digits!r} is not a cell of H3.")
    return cell


_TEXTS = (String, FixedString)
_POINT_PAIR = (FLOAT64, FLOAT64, FLOAT64, FLOAT64)
_Function = tuple[str, DataType, tuple[Wanted, ...], Callable[..., object]]

_FUNCTIONS: tuple[_Function, ...] = (
    ("geoToH3", UINT64, (FLOAT64, FLOAT64, UINT8), _cell_at),
    (
        "h3ToGeo",
        Tuple((FLOAT64, FLOAT64), ("latitude", "longitude")),
        (UINT64,),
        _of_cell("cell_to_latlng"),
    ),
    ("h3ToGeoBoundary", _POINTS, (UINT64,), _of_cell("cell_to_boundary")),
    ("h3IsValid", UINT8, (UINT64,), lambda cell: int(_library().is_valid_cell(cell))),
    ("h3GetResolution", UINT8, (UINT64,), _of_cell("get_resolution")),
    ("h3GetBaseCell", UINT8, (UINT64,), _of_cell("get_base_cell_number")),
    ("h3IsResClassIII", UINT8, (UINT64,), _of_cell("is_res_class_III")),
    ("h3IsPentagon", UINT8, (UINT64,), _of_cell("is_pentagon")),
    ("h3GetFaces", Array(UINT8), (UINT64,), _of_cell("get_icosahedron_faces")),
    ("h3IndexesAreNeighbors", UINT8, (UINT64, UINT64), _of_cell("are_neighbor_cells")),
    ("h3Line", _CELLS, (UINT64, UINT64), _of_cell("grid_path_cells")),
    ("h3Distance", INT64, (UINT64, UINT64), _of_cell("grid_distance")),
    (
        "h3GetUnidirectionalEdgesFromHexagon",
        _CELLS,
        (UINT64,),
        _of_cell("origin_to_directed_edges"),
    ),
    ("h3CellAreaM2", FLOAT64, (UINT64,), _area("m^2")),
    ("h3CellAreaRads2", FLOAT64, (UINT64,), _area("rads^2")),
    ("h3EdgeAngle", FLOAT64, (UINT8,), _edge_angle),
    ("h3EdgeLengthM", FLOAT64, (UINT8,), _edge_metres),
    ("h3EdgeLengthKm", FLOAT64, (UINT8,), _of_resolution("average_hexagon_edge_length", "km")),
    ("h3HexAreaM2", FLOAT64, (UINT8,), _of_resolution("average_hexagon_area", "m^2")),
    ("h3HexAreaKm2", FLOAT64, (UINT8,), _of_resolution("average_hexagon_area", "km^2")),
    ("h3NumHexagons", INT64, (UINT8,), _of_resolution("get_num_cells")),
    ("h3GetPentagonIndexes", _CELLS, (UINT8,), _of_resolution("get_pentagons")),
    ("h3kRing", _CELLS, (UINT64, (Integer,)), _ring(hollow=False)),
    ("h3HexRing", _CELLS, (UINT64, UINT16), _ring(hollow=True)),
    ("h3ToChildren", _CELLS, (UINT64, UINT8), _children),
    ("h3ToCenterChild", UINT64, (UINT64, UINT8), _center_child),
    ("h3ToParent", UINT64, (UINT64, UINT8), _parent),
    ("h3ToString", STRING, (UINT64,), _text),
    ("stringToH3", UINT64, (_TEXTS,), _from_text),
    ("h3GetUnidirectionalEdge", UINT64, (UINT64, UINT64), _edge_between),
    (
        "h3UnidirectionalEdgeIsValid",
        UINT8,
        (UINT64,),
        lambda edge: int(_library().is_valid_directed_edge(edge)),
    ),
    (
        "h3GetOriginIndexFromUnidirectionalEdge",
        UINT64,
        (UINT64,),
        _of_edge("get_directed_edge_origin"),
    ),
    (
        "h3GetDestinationIndexFromUnidirectionalEdge",
        UINT64,
        (UINT64,),
        _of_edge("get_directed_edge_destination"),
    ),
    (
        "h3GetIndexesFromUnidirectionalEdge",
        Tuple((UINT64, UINT64), ("origin", "destination")),
        (UINT64,),
        _of_edge("directed_edge_to_cells"),
    ),
    ("h3GetUnidirectionalEdgeBoundary", _POINTS, (UINT64,), _of_edge("directed_edge_to_boundary")),
    ("h3ExactEdgeLengthM", FLOAT64, (UINT64,), _of_edge("edge_length", "m")),
    ("h3ExactEdgeLengthKm", FLOAT64, (UINT64,), _of_edge("edge_length", "km")),
    ("h3ExactEdgeLengthRads", FLOAT64, (UINT64,), _of_edge("edge_length", "rads")),
    ("h3PointDistM", FLOAT64, _POINT_PAIR, _distance("m")),
    ("h3PointDistKm", FLOAT64, _POINT_PAIR, _distance("km")),
    ("h3PointDistRads", FLOAT64, _POINT_PAIR, _distance("rads")),
)
"""Name, result, arguments and function of one row's values."""


def _coarsest(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve h3GetRes0Indexes: the 122 cells of resolution 0."""
    cells = pa.scalar(sorted(_library().get_res0_cells()), _CELLS.arrow)
    return ScalarCall(name, _CELLS, lambda values, rows, environment: cells)


def _cell_of_longitude(longitude: float, latitude: float, resolution: int) -> int:
    """Return the cell in which a point in degrees lies; see geotoh3_argument_order."""
    return _cell_at(latitude, longitude, resolution)


def _longitude_first(cell: int) -> tuple[float, float]:
    """Return the middle of a cell as longitude and latitude; see h3togeo_lon_lat_result_order."""
    latitude, longitude = _library().cell_to_latlng(_checked_cell(cell))
    return longitude, latitude


_OTHER_ORDER: Mapping[str, scalar.ScalarDefinition] = MappingProxyType(
    {
        name: define_by_value(name, _takes(result, *wanted), function, count=len(wanted))
        for name, result, wanted, function in (
            ("geoToH3", UINT64, (FLOAT64, FLOAT64, UINT8), _cell_of_longitude),
            (
                "h3ToGeo",
                Tuple((FLOAT64, FLOAT64), ("longitude", "latitude")),
                (UINT64,),
                _longitude_first,
            ),
        )
    }
)
"""The functions that settings give the other order of degrees."""


def _ordered(definition: scalar.ScalarDefinition) -> scalar.ScalarDefinition:
    """Return the definition with the other order of degrees under its setting."""
    other = _OTHER_ORDER.get(definition.name)
    if other is None:
        return definition
    return replace(definition, by_settings=lambda changed: other.resolver)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(
        _ordered(define_by_value(name, _takes(result, *wanted), function, count=len(wanted)))
        for name, result, wanted, function in _FUNCTIONS
    ),
    scalar.custom("h3GetRes0Indexes", _coarsest, count=0),
)
