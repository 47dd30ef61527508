"""arrayAutocorrelation and arrayNormalizedGini, computed once for each distinct row; see `by_value`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from olapdb.errors import SizesOfArraysDoNotMatch
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.scalar import ScalarDefinition, illegal, require
from olapdb.types import FLOAT64, Array, DataType, Decimal, Float, Integer, Nothing, Tuple


def _require_numbers(name: str, types: Sequence[DataType]) -> None:
    """Raise IllegalTypeOfArgument unless all types are arrays of numbers."""
    for kind in types:
        if not isinstance(kind, Array) or not isinstance(
            kind.inner, Integer | Float | Decimal | Nothing
        ):
            raise illegal(name, kind, "an Array of numbers")


def _autocorrelation_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return Array(Float64) for an array of numbers and the number of lags."""
    _require_numbers(name, types[:1])
    require(name, types[1:], Integer, "an integer")
    return Array(FLOAT64)


def _autocorrelation(values: list[float], lags: int | None = None) -> list[float]:
    """Return the autocorrelation of a series at the lags 0, 1, 2 … up to `lags`, excluded, or at all lags if it is
    None. NaN if all values are equal. Source: Box and Jenkins, Time Series Analysis."""
    series = np.array(values, np.float64)
    count = len(series) if lags is None else max(0, min(lags, len(series)))
    if not count:
        return []
    centered = series - series.mean()
    total = float((centered**2).sum())
    if not total:
        return [float("nan")] * count
    sums = [float((centered[: len(series) - k] * centered[k:]).sum()) for k in range(count)]
    return [part_sum / total for part_sum in sums]


def _gini_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return a tuple of three Float64 for two arrays of numbers."""
    _require_numbers(name, types)
    return Tuple((FLOAT64, FLOAT64, FLOAT64))


def _gini(predicted: list[float], labels: list[float]) -> tuple[float, float, float]:
    """Return the Gini coefficient of the predictions, that of the labels, and their ratio. Raises
    SizesOfArraysDoNotMatch."""
    if len(predicted) != len(labels):
        raise SizesOfArraysDoNotMatch("The arrays of arrayNormalizedGini have different sizes.")
    values = np.array(labels, np.float64)
    order = np.argsort(np.array(predicted, np.float64), kind="stable")
    by_prediction = _area(values[order])
    by_label = _area(np.sort(values))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = float(np.float64(by_prediction) / np.float64(by_label))
    return by_prediction, by_label, ratio


def _area(values: np.ndarray) -> float:
    """Return the area between the Lorenz curve of values, in this order, and the diagonal."""
    total = float(values.sum())
    if not len(values):
        return float("nan")
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.cumsum(values) / np.float64(total)
    diagonal = np.arange(1, len(values) + 1) / len(values)
    return float((diagonal - shares).sum() / len(values))


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define_by_value("arrayAutocorrelation", _autocorrelation_rule, _autocorrelation, count=(1, 2)),
    define_by_value("arrayNormalizedGini", _gini_rule, _gini, count=2),
)
