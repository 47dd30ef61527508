"""Sums of squared deviations from a short number near the mean, for variance and covariance.

A deviation from the mean itself is rounded; the difference of a value and a number with few bits
mostly is not. So the sums are exact for integers and short fractions, and the last digits are those
that the textbook's formula has there. The number is within half a deviation of the mean, so nothing
is lost to cancellation elsewhere (Chan, Golub, LeVeque 1983, "shifted data").
"""

from __future__ import annotations

import math

import numpy as np

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.base import Groups
from olapdb.native import accumulate
from olapdb.native.library import library


def short_means(means: np.ndarray, squares: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return a number of few bits near each mean: a multiple of the greatest power of two below the deviation."""
    with np.errstate(all="ignore"):
        deviation = np.sqrt(squares / totals)
        grid = np.exp2(np.floor(np.log2(deviation)))
        shifts = np.rint(means / grid) * grid
    return np.where(np.isfinite(shifts), shifts, means)


def sum_deviations(groups: Groups, *factors: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the sum of each group, added up in row order, of the product of one or two factors. A factor is Float64
    values and a number for each group, and counts as their difference."""
    if library() is not None:
        contiguous = [(np.ascontiguousarray(values), shifts) for values, shifts in factors]
        return accumulate.sum_deviations(contiguous, groups.kernel_codes, groups.count)
    with np.errstate(invalid="ignore", over="ignore"):
        deviations = [values - of_groups(shifts, groups) for values, shifts in factors]
        return group_kernels.sum_floats(math.prod(deviations[1:], start=deviations[0]), groups)


def of_groups(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Return for each row the value of its group; with one group the value itself, to be broadcast."""
    return values if groups.count == 1 else values[groups.codes]
