"""How exactly states of moments are known: counts, means and sums of (products of) deviations from these.

A mean is stored as a Float64, so it is known to some 2^-53 of itself, and merges of means repeat that
error. A sum of squares is far more exact than that, where the mean is at most some thousand deviations:

    values 1e3 + {0, 1}       the sum of squares is known to 12 digits
    values 1e12 + {0, 1}      to two: another order of merges may give another third digit

So neither is compared relative to itself. A mean is equal to another within the tolerance of a
deviation, and within the rounding of the mean; and a sum of products within the tolerance of the
magnitude of its terms, and within what such an error of the means makes of it. 1e12 + {100, 101} has
another mean than 1e12 + {0, 1}: a row of a later INSERT would show it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates.covariance import Covariance
from olapdb.functions.aggregates.higher_moments import HigherMoment
from olapdb.functions.aggregates.matrices import CovarianceMatrix
from olapdb.functions.aggregates.variance import Variance
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns

ROUNDING = 64 * 2.0**-53
"""The error of a mean, relative to it: a rounding of each of some dozens of merges, one after the other."""


def moments_scale(
    aggregate: Aggregate, sides: Sequence[pa.Array], added: pa.Array | None, tolerance: float
) -> list[np.ndarray] | None:
    """Return for each field of the states the magnitude to which `tolerance` is relative, shape (rows,): the greater
    one of both `sides`. The count, the first field, has none and is exact. Return None for an aggregate of
    no moments.

    `added` has the states of the arguments' absolute values, or None: only covariances use it, whose states do not
    tell how far the arguments deviate."""
    if not isinstance(aggregate, Variance | HigherMoment | CovarianceMatrix | Covariance):
        return None
    of_added = None if added is None else _fields(added)
    with np.errstate(all="ignore"):
        of_sides = [_scale(aggregate, _fields(side), of_added, tolerance) for side in sides]
    return [np.fmax(*pair) for pair in zip(*of_sides, strict=True)]


def _scale(
    aggregate: Aggregate,
    fields: Sequence[np.ndarray],
    added: Sequence[np.ndarray] | None,
    tolerance: float,
) -> list[np.ndarray]:
    """Return the scale of the fields of one side."""
    match aggregate:
        case CovarianceMatrix(size=size):
            return _of_matrix(fields, size, tolerance)
        case Covariance(correlates=True):
            count, left, right, products, left_squares, right_squares = fields
            cells = (left_squares, products, products, right_squares)
            *scale, of_left, of_products, _, of_right = _of_matrix(
                (count, left, right, *cells), 2, tolerance
            )
            return [*scale, of_products, of_left, of_right]
        case Covariance():
            return _of_covariance(fields, added, tolerance)
        case _:
            return _of_powers(fields, tolerance)


def _fields(states: pa.Array) -> list[np.ndarray]:
    """Return the fields of the states as float64, with 0 for NULL."""
    return [
        columns.numpy_values(field.fill_null(0)).astype(np.float64)
        for field in columns.struct_fields(states)
    ]


def _of_powers(fields: Sequence[np.ndarray], tolerance: float) -> list[np.ndarray]:
    """Return the scale of a count, a mean and the sums of the squares, cubes and fourth powers of deviations."""
    count, mean, squares, *others = fields
    deviation = np.sqrt(squares / np.maximum(count, 1))
    error = np.abs(mean) * ROUNDING
    powers = [squares]
    if others:  # cubes of both signs cancel: at least those of the deviation do not
        powers.append(np.abs(others[0]) + count * deviation**3)
    powers += others[1:]
    scale = [np.zeros_like(mean), deviation + error / tolerance]
    lower = [count, count * deviation, *powers]
    for order, power in enumerate(powers, 2):
        moved = order * error * lower[order - 1] + count * error**order
        scale.append(power + moved / tolerance)
    return scale


def _of_matrix(fields: Sequence[np.ndarray], size: int, tolerance: float) -> list[np.ndarray]:
    """Return the scale of a count, `size` means and the products of the deviations of each two arguments."""
    count, means, products = fields[0], fields[1 : size + 1], fields[size + 1 :]
    deviations = [np.sqrt(products[at * (size + 1)] / np.maximum(count, 1)) for at in range(size)]
    errors = [np.abs(mean) * ROUNDING for mean in means]
    scale = [np.zeros_like(count)]
    scale += [spread + error / tolerance for spread, error in zip(deviations, errors, strict=True)]
    for left in range(size):
        for right in range(size):
            moved = errors[left] * deviations[right] + errors[right] * deviations[left]
            moved = count * (moved + errors[left] * errors[right])
            scale.append(count * deviations[left] * deviations[right] + moved / tolerance)
    return scale


def _of_covariance(
    fields: Sequence[np.ndarray], added: Sequence[np.ndarray] | None, tolerance: float
) -> list[np.ndarray]:
    """Return the scale of a count, two means and the sum of products, whose deviations are not in the state: of the
    means and products of the absolute values, `added`, or of the means themselves."""
    count, left, right, products = fields
    sizes = [np.abs(left), np.abs(right)]
    if added is not None:
        sizes = [np.fmax(size, mean) for size, mean in zip(sizes, added[1:3], strict=True)]
    errors = [size * ROUNDING for size in sizes]
    moved = count * (errors[0] * sizes[1] + errors[1] * sizes[0])
    if added is not None:  # two rows far out may cancel whose products are most of the sum
        moved = moved + ROUNDING * np.abs(added[3])
    return [
        np.zeros_like(count),
        *(error / tolerance for error in errors),
        np.abs(products) + moved / tolerance,
    ]
