"""geoToUTM, UTMToGeo, geoToMGRS and MGRSToGeo: coordinates of the Universal Transverse Mercator grid
and of the Military Grid Reference System; see `by_value`.

The series are those of J. Snyder, Map Projections: A Working Manual (1987), pages 61 to 64.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from olapdb.errors import ArgumentOutOfBound, BadArguments, IllegalTypeOfArgument
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.scalar import ScalarDefinition, TypeRule, require
from olapdb.types import (
    FLOAT64,
    STRING,
    UINT8,
    DataType,
    FixedString,
    Float,
    Integer,
    String,
    Tuple,
)

_RADIUS = 6378137.0
_FLATTENING = 1 / 298.257223563
_E2 = _FLATTENING * (2 - _FLATTENING)
_EP2 = _E2 / (1 - _E2)
_SCALE = 0.9996
_EASTING, _NORTHING_SOUTH = 500000.0, 10000000.0
"""What is added to coordinates so that none is below 0."""
_SQUARE, _CYCLE = 100000, 2000000
"""The metres of a square of the grid, and those after which the letters of its rows repeat."""
_LOWEST, _HIGHEST = -80.0, 84.0
_BANDS = "CDEFGHJKLMNPQRSTUVWX"
_COLUMNS = ("ABCDEFGH", "JKLMNPQR", "STUVWXYZ")
_ROWS = "ABCDEFGHJKLMNPQRSTUV"
_DIGITS_MAX = 5
_MGRS = re.compile(r"(\d{1,2})([A-Z])([A-Z])([A-Z])(\d*)")
_UTM = Tuple((FLOAT64, FLOAT64, UINT8, FixedString(1)), ("easting", "northing", "zone", "band"))
_PLACE = Tuple((FLOAT64, FLOAT64), ("longitude", "latitude"))


def _check(name: str, longitude: float, latitude: float) -> None:
    """Raise ArgumentOutOfBound, or IllegalTypeOfArgument, for a place that the grid lacks."""
    if not (math.isfinite(longitude) and math.isfinite(latitude)):
        raise IllegalTypeOfArgument(f"Arguments of function {name} must be finite numbers.")
    if not -180 <= longitude <= 180:
        raise ArgumentOutOfBound(f"Longitude {longitude} of {name} is not between -180 and 180.")
    if not _LOWEST <= latitude <= _HIGHEST:
        raise ArgumentOutOfBound(f"Latitude {latitude} of {name} is not between -80 and 84.")


def _zone(longitude: float, latitude: float) -> int:
    """Return the UTM zone of a place, 1 to 60; zones of Norway and Svalbard are wider than others."""
    if 56 <= latitude < 64 and 3 <= longitude < 12:
        return 32
    if latitude >= 72 and 0 <= longitude < 42:
        return next(
            zone for zone, end in ((31, 9), (33, 21), (35, 33), (37, 42)) if longitude < end
        )
    return min(int((longitude + 180) / 6) + 1, 60)


def _band(latitude: float) -> str:
    """Return the letter of the 8 degrees high band in which a latitude lies; the last band is 12 degrees high."""
    return _BANDS[min(int((latitude - _LOWEST) / 8), len(_BANDS) - 1)]


def _arc(latitude: float) -> float:
    """Return the length of the meridian from the equator to a latitude in radians."""
    e4, e6 = _E2**2, _E2**3
    return _RADIUS * (
        (1 - _E2 / 4 - 3 * e4 / 64 - 5 * e6 / 256) * latitude
        - (3 * _E2 / 8 + 3 * e4 / 32 + 45 * e6 / 1024) * math.sin(2 * latitude)
        + (15 * e4 / 256 + 45 * e6 / 1024) * math.sin(4 * latitude)
        - (35 * e6 / 3072) * math.sin(6 * latitude)
    )


def _projected(longitude: float, latitude: float, zone: int) -> tuple[float, float]:
    """Return the easting and northing of a place in a zone."""
    phi = math.radians(latitude)
    normal = _RADIUS / math.sqrt(1 - _E2 * math.sin(phi) ** 2)
    t, c = math.tan(phi) ** 2, _EP2 * math.cos(phi) ** 2
    a = math.cos(phi) * math.radians(longitude - _meridian(zone))
    east = a + (1 - t + c) * a**3 / 6 + (5 - 18 * t + t * t + 72 * c - 58 * _EP2) * a**5 / 120
    north = a * a / 2 + (5 - t + 9 * c + 4 * c * c) * a**4 / 24
    north += (61 - 58 * t + t * t + 600 * c - 330 * _EP2) * a**6 / 720
    northing = _SCALE * (_arc(phi) + normal * math.tan(phi) * north)
    return (_SCALE * normal * east + _EASTING, northing + (_NORTHING_SOUTH if latitude < 0 else 0))


def _meridian(zone: int) -> int:
    """Return the longitude in the middle of a zone."""
    return (zone - 1) * 6 - 177


def _unprojected(easting: float, northing: float, zone: int, north: bool) -> dict[str, float]:
    """Return the longitude and latitude, in degrees by name, of an easting and a northing in a zone."""
    x, y = easting - _EASTING, northing - (0 if north else _NORTHING_SOUTH)
    mu = y / _SCALE / (_RADIUS * (1 - _E2 / 4 - 3 * _E2**2 / 64 - 5 * _E2**3 / 256))
    e1 = (1 - math.sqrt(1 - _E2)) / (1 + math.sqrt(1 - _E2))
    phi = mu + (3 * e1 / 2 - 27 * e1**3 / 32) * math.sin(2 * mu)
    phi += (21 * e1**2 / 16 - 55 * e1**4 / 32) * math.sin(4 * mu)
    phi += (151 * e1**3 / 96) * math.sin(6 * mu)
    within = 1 - _E2 * math.sin(phi) ** 2
    normal, radius = _RADIUS / math.sqrt(within), _RADIUS * (1 - _E2) / within**1.5
    t, c, d = math.tan(phi) ** 2, _EP2 * math.cos(phi) ** 2, x / (normal * _SCALE)
    up = d * d / 2 - (5 + 3 * t + 10 * c - 4 * c * c - 9 * _EP2) * d**4 / 24
    up += (61 + 90 * t + 298 * c + 45 * t * t - 252 * _EP2 - 3 * c * c) * d**6 / 720
    across = d - (1 + 2 * t + c) * d**3 / 6
    across += (5 - 2 * c + 28 * t - 3 * c * c + 8 * _EP2 + 24 * t * t) * d**5 / 120
    return {
        "longitude": _meridian(zone) + math.degrees(across / math.cos(phi)),
        "latitude": math.degrees(phi - normal * math.tan(phi) / radius * up),
    }


def _to_utm(longitude: float, latitude: float) -> dict[str, object]:
    """Return easting, northing, zone and band, by name, of a place in degrees in the UTM grid. Raises
    ArgumentOutOfBound and IllegalTypeOfArgument."""
    _check("geoToUTM", longitude, latitude)
    zone = _zone(longitude, latitude)
    easting, northing = _projected(longitude, latitude, zone)
    band = _band(latitude).encode()
    return {"easting": easting, "northing": northing, "zone": zone, "band": band}


def _from_utm(easting: float, northing: float, zone: int, half: int | bytes) -> dict[str, float]:
    """Return the place of coordinates in the UTM grid; `half` is 1 in the north and 0 in the south, or
    the letter of a band. Raises BadArguments."""
    if not 1 <= zone <= 60:
        raise BadArguments(f"Zone {zone} of function UTMToGeo is not between 1 and 60.")
    if isinstance(half, bytes):
        letter = half.decode("utf-8", "replace").upper()
        if len(letter) != 1 or letter not in _BANDS:
            raise BadArguments(f"The band of UTMToGeo is a letter of {_BANDS}, not {letter!r}.")
        half = int(letter >= "N")
    if half not in (0, 1):
        raise BadArguments(f"The argument is_north of UTMToGeo is 0 or 1, not {half}.")
    return _unprojected(float(easting), float(northing), zone, half == 1)


def _to_mgrs(longitude: float, latitude: float, digits: int = _DIGITS_MAX) -> bytes:
    """Return the MGRS reference of a place, with `digits` digits for each coordinate. Raises the errors of `_check`."""
    _check("geoToMGRS", longitude, latitude)
    if not 0 <= digits <= _DIGITS_MAX:
        raise ArgumentOutOfBound(f"Precision {digits} of geoToMGRS is not between 0 and 5.")
    zone = _zone(longitude, latitude)
    easting, northing = _projected(longitude, latitude, zone)
    column = _COLUMNS[(zone - 1) % 3][int(easting // _SQUARE) - 1]
    row = _ROWS[(int(northing // _SQUARE) + (0 if zone % 2 else 5)) % len(_ROWS)]
    shown = [f"{int(part % _SQUARE):05d}"[:digits] for part in (easting, northing)]
    return f"{zone}{_band(latitude)}{column}{row}{shown[0]}{shown[1]}".encode()


def _from_mgrs(reference: bytes) -> dict[str, float]:
    """Return longitude and latitude, by name, of the middle of the square that an MGRS reference names. Raises
    BadArguments."""
    text = reference.decode("utf-8", "replace")
    match = _MGRS.fullmatch("".join(text.split()).upper())
    if match is None or len(match[5]) % 2 or len(match[5]) > 2 * _DIGITS_MAX:
        raise BadArguments(f"Invalid MGRS string {text!r}: it is like 31UDQ4825111935.")
    zone, band = int(match[1]), match[2]
    if not 1 <= zone <= 60 or band not in _BANDS:
        raise BadArguments(f"Invalid zone or band in the MGRS string {text!r}.")
    columns = _COLUMNS[(zone - 1) % 3]
    if match[3] not in columns or match[4] not in _ROWS:
        raise BadArguments(f"The zone has no such square: {text!r}.")
    half = len(match[5]) // 2
    size = _SQUARE // 10**half
    east, north = (int(part or 0) * size + size / 2 for part in (match[5][:half], match[5][half:]))
    easting = (columns.index(match[3]) + 1) * _SQUARE + east
    row = (_ROWS.index(match[4]) - (0 if zone % 2 else 5)) % len(_ROWS)
    lowest = _LOWEST + 8 * _BANDS.index(band)
    start = _projected(_meridian(zone), lowest, zone)[1] // _SQUARE * _SQUARE
    northing = row * _SQUARE + north
    northing += max(0, math.ceil((start - northing) / _CYCLE)) * _CYCLE
    return _unprojected(easting, northing, zone, band >= "N")


def _floats(result: DataType) -> TypeRule:
    """Return the type rule of two floats, then integers; the result type is `result`."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result type; raise IllegalTypeOfArgument unless the arguments are two floats, then integers."""
        require(name, types[:2], Float, "a Float64")
        require(name, types[2:], Integer, "an integer")
        return result

    return rule


def _utm_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return a tuple of longitude and latitude; raise IllegalTypeOfArgument unless the arguments are UTM
    coordinates."""
    require(name, types[:2], (Integer, Float), "a number")
    require(name, types[2:3], Integer, "an integer")
    require(name, types[3:], (Integer, String, FixedString), "0, 1 or the letter of a band")
    return _PLACE


def _mgrs_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return a tuple of longitude and latitude; raise IllegalTypeOfArgument unless the argument is a text."""
    require(name, types, (String, FixedString), "a String")
    return _PLACE


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define_by_value("geoToUTM", _floats(_UTM), _to_utm, count=2),
    define_by_value("UTMToGeo", _utm_rule, _from_utm, count=4),
    define_by_value("geoToMGRS", _floats(STRING), _to_mgrs, count=(2, 3)),
    define_by_value("MGRSToGeo", _mgrs_rule, _from_mgrs),
)
