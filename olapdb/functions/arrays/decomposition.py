"""seriesDecomposeSTL: the seasons, the trend and the rest of a series.

Source: R. B. Cleveland, W. S. Cleveland, McRae, Terpenning: STL: A Seasonal-Trend Decomposition
Procedure Based on Loess (1990), and their Fortran program, whose names of the steps are given. The
settings are those of ClickHouse: no robustness weights, two passes, seasons smoothed over as many
periods as a period has elements, computed in Float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from olapdb.errors import BadArguments, IllegalColumn
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.types import FLOAT32, Array, Boolean, DataType, Float, Integer

_LEAST = 4
"""The smallest number of elements of a series."""
_PASSES = 2
_Single = np.float32


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Array(Array(Float32)); raise IllegalTypeOfArgument and IllegalColumn unless an array of
    numbers and an unsigned period."""
    scalar.require(name, types[:1], Array, "an Array")
    series, period = types
    if not isinstance(period, Integer) or period.signed:
        raise scalar.illegal(name, period, "an unsigned integer, the period,")
    if not isinstance(series, Array) or not isinstance(series.inner, Integer | Float | Boolean):
        raise IllegalColumn(f"The elements of the series of {name} are integers or floats.")
    return Array(Array(FLOAT32))


def _odd(length: int) -> int:
    """Return the length, or the next one if it is even; at least 3."""
    length = max(length, 3)
    return length + (length % 2 == 0)


def _weights(distance: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return the tricube weights of neighbours at a distance; 0 from the reach on."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (distance / reach).astype(np.float64)
    tricube = ((1.0 - share**3) ** 3).astype(_Single)
    near = np.where(distance <= _Single(0.001) * reach, _Single(1), tricube)
    return np.where(distance <= _Single(0.999) * reach, near, _Single(0))


def _estimates(
    values: np.ndarray, places: np.ndarray, first: np.ndarray, last: int, length: int, *, line: bool
) -> np.ndarray:
    """Return loess estimates at `places`, from 1, of a series. (`est` in Cleveland's Fortran code, as all names
    below.) The neighbours of each place are those from `first` up to `last`. Fits a line, or without `line` a
    constant. NaN where no neighbour has a weight."""
    count = len(values)
    neighbours = first[:, None] + np.arange(last)
    at, where = neighbours.astype(_Single), places.astype(_Single)[:, None]
    reach = np.maximum(where - at[:, :1], at[:, -1:] - where)
    if length > count:
        reach = reach + _Single((length - count) // 2)
    weights = _weights(np.abs(at - where), reach).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = weights / weights.sum(axis=1, keepdims=True)
        if line:
            center = (weights * at).sum(axis=1, keepdims=True)
            spread = (weights * (at - center) ** 2).sum(axis=1, keepdims=True)
            tilted = weights * ((where - center) / spread * (at - center) + 1.0)
            weights = np.where(np.sqrt(spread) > 0.001 * (count - 1), tilted, weights)
    return np.asarray((weights * values[neighbours - 1]).sum(axis=1).astype(_Single))


def _loess(values: np.ndarray, length: int, *, line: bool) -> np.ndarray:
    """Return the loess-smoothed series (`ess`). Fits points at steps of a tenth of `length` and interpolates linearly
    between them."""
    count = len(values)
    if count < 2:
        return values
    step = min(-(-length // 10), count - 1)
    fitted = np.unique(np.append(np.arange(0, count, step), count - 1))
    width = min(length, count)
    half = (width + 1) // 2
    first = np.clip(fitted + 2 - half, 1, count - width + 1)
    if fitted[-1] % step:  # the last one is added, and keeps the neighbours of the one before
        first[-1] = first[-2]
    estimates = _estimates(values, fitted + 1, first, width, length, line=line)
    estimates = np.where(np.isnan(estimates) & ~np.isnan(values[fitted]), values[fitted], estimates)
    return np.asarray(np.interp(np.arange(count), fitted, estimates).astype(_Single))


def _seasons(values: np.ndarray, period: int, length: int) -> np.ndarray:
    """Return the smoothed seasonal component, extended by one period at both ends (`ss`)."""
    longer = np.zeros(len(values) + 2 * period, _Single)
    for phase in range(period):
        own = values[phase::period]
        count = len(own)
        middle = _loess(own, length, line=False)
        width = min(length, count)
        before, behind = (
            _estimates(own, np.array([place]), np.array([first]), width, length, line=False)[0]
            for place, first in ((0, 1), (count + 1, count - width + 1))
        )
        ends = [
            outer if not np.isnan(outer) else inner
            for outer, inner in ((before, middle[0]), (behind, middle[-1]))
        ]
        longer[phase::period][: count + 2] = np.concatenate((ends[:1], middle, ends[1:]))
    return longer


def _moving_average(values: np.ndarray, length: int) -> np.ndarray:
    """Return the moving averages of `length` consecutive values (`ma`)."""
    totals = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    return np.asarray(((totals[length:] - totals[:-length]) / length).astype(_Single))


def _decompose(series: list[float], period: int) -> list[list[float]]:
    """Return the seasonal component, the trend, the residuals, and the sum of seasonal component and trend. Raises
    BadArguments for a series shorter than two periods, or than four elements."""
    if len(series) < _LEAST:
        raise BadArguments("At least four data points are needed for function seriesDecomposeSTL.")
    if len(series) < 2 * period:
        raise BadArguments(
            "The series should have data of at least two period lengths for function"
            " seriesDecomposeSTL."
        )
    values = np.array(series, np.float64).astype(_Single)
    season_length, period = _odd(period), max(period, 2)
    trend_length = _odd(int(np.ceil(1.5 * period / (1 - 1.5 / season_length))))
    low_pass_length = _odd(period)
    trend, season = np.zeros_like(values), np.zeros_like(values)
    for _ in range(_PASSES):
        cycles = _seasons(values - trend, period, season_length)
        means = _moving_average(_moving_average(_moving_average(cycles, period), period), 3)
        low = _loess(means, low_pass_length, line=True)
        season = cycles[period : period + len(values)] - low
        trend = _loess(values - season, trend_length, line=True)
    return [part.tolist() for part in (season, trend, values - season - trend, season + trend)]


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("seriesDecomposeSTL", _rule, _decompose, count=2),
)
