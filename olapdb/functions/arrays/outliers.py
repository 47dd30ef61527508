"""seriesOutliersDetectTukey: how far the elements of a series are beyond Tukey's fences.

Source: Tukey, Exploratory Data Analysis (1977); quantiles as in ClickHouse, the mean of two elements
where one ends exactly at the share, else the element in which the share ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalColumn, NumberOfArgumentsDoesntMatch
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.types import FLOAT64, Array, DataType, Float, Integer

_LOW, _HIGH, _FACTOR = 0.25, 0.75, 1.5
_LEAST = 4
"""The smallest number of elements of a series."""


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Array(Float64); raise an error unless an array of numbers and three constants."""
    scalar.require(name, types[:1], Array, "an Array")
    series = types[0]
    if not isinstance(series, Array) or not isinstance(series.inner, Integer | Float):
        raise IllegalColumn(f"The elements of the series of {name} are integers or floats.")
    if len(types) not in (1, 4):
        raise NumberOfArgumentsDoesntMatch(f"{name} takes 1 or 4 arguments.")
    scalar.require(name, types[1:3], Float, "a float")
    scalar.require(name, types[3:], (Integer, Float), "a number")
    if any(argument.constant is None for argument in arguments[1:]):
        raise IllegalColumn(f"The percentiles and the factor of {name} are constants.")
    _settings(name, [argument.constant for argument in arguments])
    return Array(FLOAT64)


def _settings(name: str, constants: Sequence[pa.Scalar | None]) -> tuple[float, float, float]:
    """Return the lower percentile, the upper percentile and the factor K. Raises BadArguments for values out of
    range."""
    given = [float(value.as_py()) for value in constants[1:] if value is not None]
    low, high, factor = given or (_LOW, _HIGH, _FACTOR)
    if not 0.02 <= low <= 0.98:
        raise BadArguments(f"The second argument of {name} must be from 0.02 to 0.98.")
    if not max(low, 0.02) <= high <= 0.98:
        raise BadArguments(f"The third argument of {name} must be from the second to 0.98.")
    if not 0 <= factor < float("inf"):
        raise BadArguments(f"The fourth argument of {name} must be a number not below 0.")
    return low, high, factor


def _quantile(sorted_values: np.ndarray, offsets: np.ndarray, level: float) -> np.ndarray:
    """Return the quantile of the level for each row; each row's values are sorted."""
    share = np.diff(offsets) * level
    whole = share == np.floor(share)
    at = offsets[:-1] + np.ceil(share).astype(np.int64) - 1
    following = np.minimum(at + 1, offsets[1:] - 1)
    middle = (sorted_values[at] + sorted_values[following]) / 2
    return np.asarray(np.where(whole, middle, sorted_values[at]))


def _scores(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the distance of each element beyond the fences, 0 between them.

    Raises BadArguments."""
    low, high, factor = _settings("seriesOutliersDetectTukey", call.constants)
    offsets, elements = columns.elements_of(arrays[0])
    if (np.diff(offsets) < _LEAST).any():
        raise BadArguments("seriesOutliersDetectTukey needs at least four elements.")
    values = columns.numpy_values(elements).astype(np.float64)
    owners = columns.parents_of(offsets)
    ordered = values[order_by(owners, values)]
    with np.errstate(all="ignore"):
        first, last = (_quantile(ordered, offsets, level) for level in (low, high))
        reach = (last - first) * factor
        below = np.minimum(values - (first - reach)[owners], 0)
        above = np.maximum(values - (last + reach)[owners], 0)
        scores = below + above
    return columns.lists_from(offsets, columns.from_values(scores, pa.float64()))


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("seriesOutliersDetectTukey", _rule, _scores, count=(1, None)),
)
