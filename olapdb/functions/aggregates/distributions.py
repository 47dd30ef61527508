"""Distributions that the statistical tests need: normal and Student's t, over arrays of results.

numpy has neither; these serve one value a group, not one a row.
"""

from __future__ import annotations

import math

import numpy as np

_ROUNDS = 300
_TINY = 1e-300


def normal_tail(z: np.ndarray) -> np.ndarray:
    """Return the probability that a standard normal variable exceeds z, element by element."""
    return np.array([0.5 * math.erfc(value / math.sqrt(2)) for value in z.tolist()], np.float64)


def student_two_sided(t: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Return the probability that |T| exceeds |t| for Student's distribution; NaN for NaN."""
    return incomplete_beta(freedom / 2, np.full_like(freedom, 0.5), freedom / (freedom + t**2))


def student_quantile(confidence: float, freedom: np.ndarray) -> np.ndarray:
    """Return, by bisection, the t for which |T| <= t has the probability `confidence`, for each number of degrees of
    freedom."""
    low, high = np.zeros_like(freedom), np.full_like(freedom, 1.0)
    for _ in range(_ROUNDS):
        short = student_two_sided(high, freedom) > 1 - confidence
        if not short.any():
            break
        high = np.where(short, high * 2, high)
    for _ in range(100):
        middle = (low + high) / 2
        above = student_two_sided(middle, freedom) > 1 - confidence
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(np.isnan(freedom), np.nan, (low + high) / 2)


def incomplete_beta(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the regularised incomplete beta function I_x(a, b), by Lentz's continued fraction
    (Press et al., Numerical Recipes, 6.4); NaN for NaN."""
    known = ~np.isnan(a + b + x)
    result = np.full(len(x), np.nan)
    a, b, x = a[known], b[known], x[known]
    swapped = x > (a + 1) / (a + b + 2)
    p, q, y = np.where(swapped, b, a), np.where(swapped, a, b), np.where(swapped, 1 - x, x)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        logs = p * np.log(y) + q * np.log1p(-y) - np.log(p) - _log_beta(p, q)
        part = np.where(y <= 0, 0.0, np.exp(logs) * _fraction(p, q, y))
    result[known] = np.where(swapped, 1 - part, part)
    return result


def _log_beta(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the natural logarithm of the beta function B(a, b)."""
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.array(
        [math.lgamma(p) + math.lgamma(q) - math.lgamma(p + q) for p, q in pairs], np.float64
    )


def _fraction(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the continued fraction of the incomplete beta function."""
    c = np.ones_like(x)
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    result = d.copy()
    for m in range(1, _ROUNDS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            result = result * d * c
        if not (np.abs(d * c - 1) > 1e-16).any():
            break
    return result


def _not_zero(values: np.ndarray) -> np.ndarray:
    """Replace zeros by a tiny number, so that the continued fraction never divides by 0."""
    return np.where(np.abs(values) < _TINY, _TINY, values)
