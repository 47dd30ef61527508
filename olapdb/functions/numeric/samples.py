"""Sizes of samples for experiments, and the test of two proportions; see `by_value`.

Source: the normal approximation, as in Fleiss, Statistical Methods for Rates and Proportions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from olapdb.errors import BadArguments
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.scalar import ScalarDefinition, TypeRule, require
from olapdb.types import FLOAT64, DataType, Float, Integer, String, Tuple

_NORMAL = NormalDist()
_SIZE = Tuple(
    (FLOAT64, FLOAT64, FLOAT64), ("minimum_sample_size", "detect_range_lower", "detect_range_upper")
)
_TEST = Tuple(
    (FLOAT64,) * 4,
    ("z_statistic", "p_value", "confidence_interval_low", "confidence_interval_high"),
)


def _numbers(result: DataType, *, texts: int = 0) -> TypeRule:
    """Return the type rule of a function of numbers, then `texts` texts; the result type is `result`."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result type; raise IllegalTypeOfArgument unless the arguments are numbers, then texts."""
        count = len(types) - texts
        require(name, types[:count], (Integer, Float), "a number")
        require(name, types[count:], String, "a text")
        return result

    return rule


def _quantiles(power: float, alpha: float) -> float:
    """Return the sum of the normal quantiles at 1 - alpha / 2 and at the power."""
    return _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(power)


def _of_conversion(
    baseline: float, mde: float, power: float, alpha: float
) -> tuple[float, float, float]:
    """Return the sample size of each group that shows a change of a conversion rate by `mde`, and the rates baseline -
    mde and baseline + mde.

    NaN for all three where the power, alpha or rates are impossible."""
    if not (0 < power < 1 and 0 < alpha < 1):
        return (math.nan,) * 3
    low, high = baseline - mde, baseline + mde
    middle = (baseline + high) / 2
    separate = baseline * (1 - baseline) + high * (1 - high)
    pooled = 2 * middle * (1 - middle)
    if mde == 0 or separate < 0 or pooled < 0:
        return (math.nan,) * 3
    errors = _NORMAL.inv_cdf(1 - alpha / 2) * math.sqrt(pooled)
    errors += _NORMAL.inv_cdf(power) * math.sqrt(separate)
    return (errors / mde) ** 2, low, high


def _of_continuous(
    baseline: float, sigma: float, mde: float, power: float, alpha: float
) -> tuple[float, float, float]:
    """Return the sample size of each group that shows a change of a mean by the share `mde`, and the mean lessened and
    raised by that share.

    NaN for all three where the power, alpha or share is impossible; a mean of 0 needs a sample without end."""
    is_finite = all(map(math.isfinite, (baseline, sigma, mde)))
    if not (0 < power < 1 and 0 < alpha < 1 and mde > 0 and is_finite):
        return (math.nan,) * 3
    if not baseline:
        return math.inf if sigma else math.nan, 0.0, 0.0
    size = 2 * (sigma * _quantiles(power, alpha) / (baseline * mde)) ** 2
    return size, baseline * (1 - mde), baseline * (1 + mde)


def _proportions(
    successes: float,
    other_successes: float,
    trials: float,
    other_trials: float,
    level: float,
    variance: bytes,
) -> tuple[float, float, float, float]:
    """Return the z statistic, the two-sided p value and the bounds of the confidence interval of the difference of two
    rates.

    Raises BadArguments."""
    if variance not in (b"pooled", b"unpooled"):
        raise BadArguments("The variance of proportionsZTest is 'pooled' or 'unpooled'.")
    if level < 0 or level > 1 or not trials or not other_trials:
        return (math.nan,) * 4
    left, right = successes / trials, other_successes / other_trials
    if min(left, right) < 0 or max(left, right) > 1:
        return (math.nan,) * 4
    separate = math.sqrt(left * (1 - left) / trials + right * (1 - right) / other_trials)
    error = separate
    if variance == b"pooled":
        both = (successes + other_successes) / (trials + other_trials)
        error = math.sqrt(both * (1 - both) * (1 / trials + 1 / other_trials))
    if not error:
        return (math.nan,) * 4
    z = (left - right) / error
    width = _NORMAL.inv_cdf(1 - (1 - level) / 2) * separate if 0 < level < 1 else math.nan
    return z, 2 * _NORMAL.cdf(-abs(z)), left - right - width, left - right + width


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define_by_value("minSampleSizeConversion", _numbers(_SIZE), _of_conversion, count=4),
    define_by_value(
        "minSampleSizeContinuous",
        _numbers(_SIZE),
        _of_continuous,
        count=5,
        aliases=("minSampleSizeContinous",),
    ),
    define_by_value("proportionsZTest", _numbers(_TEST, texts=1), _proportions, count=6),
)
