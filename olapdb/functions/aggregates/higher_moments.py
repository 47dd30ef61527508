"""skewPop, skewSamp, kurtPop and kurtSamp, computed from counts, means and central moments.

States merge by the binomial formulas of Pébay, "Formulas for Robust, One-Pass Parallel Computation
of Covariances and Arbitrary-Order Statistical Moments" (2008). They lose no digits to cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.shifted_moments import of_groups
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT64, Boolean, DataType, Decimal, Float, Integer, Tuple, plain


@dataclass(frozen=True)
class HigherMoment(Aggregate):
    """skewPop, skewSamp, kurtPop, kurtSamp.

    State: Tuple(count UInt64, mean Float64, squares Float64, cubes Float64[, fourths Float64]), the
    sums of the second, third and, for kurtosis, fourth powers of the deviations from the mean."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's count, mean and central moments of the values that are not NULL."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        array = arguments[0]
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.float64())
        values = columns.numpy_values(array).astype(np.float64)
        moments = [np.zeros(len(values)) for _ in range(self._order - 1)]
        return self._combined([np.ones(len(values)), values, *moments], groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Combine the states of each group."""
        return self._combined(_float_fields(states), groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return skewness or kurtosis; NaN for too few values and for values that are all equal."""
        counts, _, *moments = _float_fields(states)
        divisor = counts - 1 if self.state_type.function.endswith("Samp") else counts
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            variance = moments[0] / divisor
            scale = variance * variance if self._order == 4 else variance**1.5
            result = np.where(divisor > 0, moments[-1] / counts / scale, np.nan)
        return columns.from_values(result, plain(self.result_type).arrow)

    @property
    def _order(self) -> int:
        """The highest power of the deviations that the state sums: 3 for skewness, else 4."""
        return 3 if self.state_type.function.startswith("skew") else 4

    def _combined(self, fields: list[np.ndarray], groups: Groups) -> pa.Array:
        """Return the states of the groups from the fields of the states to merge."""
        counts, means, *moments = fields
        total = group_kernels.sum_floats(counts, groups)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            weighted = group_kernels.sum_floats(np.where(counts > 0, counts * means, 0.0), groups)
            mean = np.where(total > 0, weighted / total, 0.0)
            shift = means - of_groups(mean, groups)
            moved = _shifted(counts, shift, moments)
        sums = [group_kernels.sum_floats(np.where(counts > 0, m, 0.0), groups) for m in moved]
        arrays = [columns.from_values(total, pa.uint64())]
        arrays += [columns.from_values(values, pa.float64()) for values in (mean, *sums)]
        return columns.structs_from(arrays, self.state_type.arrow)


def _shifted(
    counts: np.ndarray, shift: np.ndarray, moments: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Convert the sums of powers of deviations from each mean into those of deviations from `mean - shift`."""
    squares, cubes = moments[0], moments[1]
    square = shift * shift  # numpy computes other powers than the second by pow, many times slower
    cube = square * shift
    moved = [squares + counts * square, cubes + 3 * shift * squares + counts * cube]
    if len(moments) == 3:
        moved.append(
            moments[2] + 4 * shift * cubes + 6 * square * squares + counts * (square * square)
        )
    return moved


def _float_fields(states: pa.Array) -> list[np.ndarray]:
    """Return the fields of states as arrays of Float64."""
    return [columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(states)]


def higher_moment(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve skewPop, skewSamp, kurtPop or kurtSamp; Float32 arguments give Float32.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    fields = ["count", "mean", "squares", "cubes", *(["fourths"] if "kurt" in name else [])]
    result = argument if isinstance(argument, Float) and argument.bits >= 32 else FLOAT64
    state = Tuple((UINT64, *[FLOAT64] * (len(fields) - 1)), tuple(fields))
    return HigherMoment(
        name, (), types, result, state_type_of(name, (), types, state), merge_class="float"
    )
