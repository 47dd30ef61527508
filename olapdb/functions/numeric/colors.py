"""Colours between sRGB and OKLAB or OKLCH: colorSRGBToOKLCH and its kin.

The matrices are those of B. Ottosson, A perceptual color space for image processing, 2020;
one coefficient has a digit more, as ClickHouse's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.decimal_width import floats_of_decimals
from olapdb.types import FLOAT64, Boolean, DataType, Decimal, Float, Integer, Tuple

_Channels = tuple[np.ndarray, np.ndarray, np.ndarray]
_GAMMA = 2.2
_FAINT = 1e-6
"""A chroma below it is that of a grey, whose hue is 0."""
_DEGREES = 57.2957795131
_RADIANS = 0.01745329251
"""A radian in degrees and a degree in radians, with the digits that ClickHouse gives them."""
_RGB_TO_LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_LMS_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.45059370996),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_LAB_TO_LMS = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_LMS_TO_RGB = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)


def _transformed(matrix: tuple[tuple[float, float, float], ...], color: _Channels) -> _Channels:
    """Multiply each color's three channels by a 3×3 matrix, adding in ClickHouse's order."""
    first, second, third = (
        row[0] * color[0] + row[1] * color[1] + row[2] * color[2] for row in matrix
    )
    return first, second, third


def _to_lab(color: _Channels, gamma: np.ndarray) -> _Channels:
    """Convert sRGB channels of 0 to 255 to OKLAB; `gamma` is the exponent of the transfer curve."""
    red, green, blue = (np.power(channel / 255.0, gamma) for channel in color)
    long, medium, short = (np.cbrt(c) for c in _transformed(_RGB_TO_LMS, (red, green, blue)))
    return _transformed(_LMS_TO_LAB, (long, medium, short))


def _from_lab(color: _Channels, gamma: np.ndarray) -> _Channels:
    """Convert OKLAB to sRGB channels of 0 to 255, clipped to that range."""
    long, medium, short = (c * c * c for c in _transformed(_LAB_TO_LMS, color))
    linear = _transformed(_LMS_TO_RGB, (long, medium, short))
    power = 1.0 / gamma
    red, green, blue = (np.power(np.clip(c, 0.0, 1.0), power) * 255.0 for c in linear)
    return red, green, blue


def _to_lch(color: _Channels, gamma: np.ndarray) -> _Channels:
    """Return sRGB as OKLCH: lightness, chroma, hue in degrees of 0 to 360."""
    light, a, b = _to_lab(color, gamma)
    chroma = np.sqrt(a * a + b * b)
    hue = np.arctan2(b, a) * _DEGREES
    hue = np.where(hue < 0, hue + 360.0, hue)
    strong = chroma >= _FAINT
    return light, np.where(strong, chroma, 0.0), np.where(strong, hue, 0.0)


def _from_lch(color: _Channels, gamma: np.ndarray) -> _Channels:
    """Convert OKLCH to sRGB channels of 0 to 255."""
    light, chroma, hue = color
    angle = hue * _RADIANS
    return _from_lab((light, chroma * np.cos(angle), chroma * np.sin(angle)), gamma)


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return a tuple of three floats; raise IllegalTypeOfArgument unless three numbers are given,
    and a number for the gamma."""
    color = types[0]
    if not isinstance(color, Tuple) or len(color.elements) != 3:
        raise scalar.illegal(name, color, "a tuple of three numbers")
    for data_type in (*color.elements, *types[1:]):
        if not isinstance(data_type, Integer | Float | Decimal | Boolean):
            raise IllegalTypeOfArgument(f"{name} takes numbers, not {data_type}.")
    return Tuple((FLOAT64, FLOAT64, FLOAT64))


def _numbers(array: pa.Array) -> np.ndarray:
    """Return a column of numbers as float64."""
    if pa.types.is_decimal(array.type):
        array = floats_of_decimals(array)
    return columns.numpy_values(array).astype(np.float64)


def _kernel(convert: Callable[[_Channels, np.ndarray], _Channels]) -> scalar.Kernel:
    """Return the kernel of a color conversion; `convert` takes the channels and the gamma, which is the second
    argument."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Convert the color of each row to a tuple of three floats."""
        first, second, third = (_numbers(field) for field in columns.struct_fields(arrays[0]))
        gamma = _numbers(arrays[1]) if len(arrays) > 1 else np.full(len(first), _GAMMA)
        with np.errstate(all="ignore"):
            converted = convert((first, second, third), gamma)
        fields = [columns.from_values(channel, pa.float64()) for channel in converted]
        return columns.structs_from(fields, call.result.arrow)

    return kernel


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("colorSRGBToOKLAB", _rule, _kernel(_to_lab), count=(1, 2)),
    scalar.define("colorOKLABToSRGB", _rule, _kernel(_from_lab), count=(1, 2)),
    scalar.define("colorSRGBToOKLCH", _rule, _kernel(_to_lch), count=(1, 2)),
    scalar.define("colorOKLCHToSRGB", _rule, _kernel(_from_lch), count=(1, 2)),
)
