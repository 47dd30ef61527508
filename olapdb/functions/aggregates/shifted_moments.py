"""Sums of squared deviations from a short number near the mean, for variance and covariance.

A deviation from the mean itself is rounded; the difference of a value and a number with few bits
mostly is not. So the sums are exact for integers and short fractions, and the last digits are those
that the textbook's formula has there. The number is within half a deviation of the mean, so nothing
is lost to cancellation elsewhere (Chan, Golub, LeVeque 1983, "shifted data").
"""

from __future__ import annotations

import numpy as np

from olapdb.functions.base import Groups


def short_means(means: np.ndarray, squares: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return a number of few bits near each mean: a multiple of the greatest power of two below the deviation."""
    with np.errstate(all="ignore"):
        deviation = np.sqrt(squares / totals)
        grid = np.exp2(np.floor(np.log2(deviation)))
        shifts = np.rint(means / grid) * grid
    return np.where(np.isfinite(shifts), shifts, means)


def of_groups(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Return for each row the value of its group; with one group the value itself, to be broadcast."""
    return values if groups.count == 1 else values[groups.codes]
