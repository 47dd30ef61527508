"""varPop, varSamp, stddevPop and stddevSamp, computed from counts, means and squared deviations.

States merge after Chan, Golub, LeVeque (1979), which loses no digits to cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.shifted_moments import of_groups, short_means, sum_deviations
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
class Variance(Aggregate):
    """varPop, varSamp, stddevPop, stddevSamp, and the same with Stable, which are infinite where the
    others are NaN.

    State: Tuple(count UInt64, mean Float64, squares Float64), the sum of squared deviations."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's count, mean and squared deviations of the values that are not NULL."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        array = arguments[0]
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.float64())
        values = columns.numpy_values(array).astype(np.float64)
        return self._of_values(values, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Combine the states of each group."""
        counts, means, squares = (
            columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(states)
        )
        return self._combined(counts, means, squares, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return variances or deviations; NaN, or inf, for groups with too few values."""
        counts, _, squares = (
            columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(states)
        )
        function = self.state_type.function
        sample = "Samp" in function
        divisor = counts - 1 if sample else counts
        too_few = np.inf if function.endswith("Stable") else np.nan
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            variance = np.where(divisor > 0, squares / divisor, too_few)
        result = np.sqrt(variance) if function.startswith("stddev") else variance
        with np.errstate(over="ignore"):  # a Float32 that overflows is infinite
            return columns.from_values(result, plain(self.result_type).arrow)

    def _of_values(self, values: np.ndarray, groups: Groups) -> pa.Array:
        """Return the states of the groups from values. The result is bit for bit the one that `_combined` gives for
        states of one value each, in fewer passes."""
        total = groups.sizes.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sums = group_kernels.sum_floats(values, groups)
            mean = np.where(total > 0, sums / total, 0.0)
            squares = sum_deviations(groups, (values, mean), (values, mean))
            shift = short_means(mean, squares, total)
            moved = sum_deviations(groups, (values, shift))
            spread = sum_deviations(groups, (values, shift), (values, shift))
        return self._states(total, shift, moved, spread)

    def _combined(
        self, counts: np.ndarray, means: np.ndarray, squares: np.ndarray, groups: Groups
    ) -> pa.Array:
        """Return the states of the groups from the fields of the states to merge."""
        total = group_kernels.sum_floats(counts, groups)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            weighted = group_kernels.sum_floats(np.where(counts > 0, counts * means, 0.0), groups)
            mean = np.where(total > 0, weighted / total, 0.0)
            deviations = means - of_groups(mean, groups)
            moments = np.where(counts > 0, squares + counts * deviations * deviations, 0.0)
            shift = short_means(mean, group_kernels.sum_floats(moments, groups), total)
            deviations = np.where(counts > 0, means - of_groups(shift, groups), 0.0)
            own = np.where(counts > 0, squares, 0.0)
            moved = group_kernels.sum_floats(counts * deviations, groups)
            spread = group_kernels.sum_floats(own + counts * deviations * deviations, groups)
        return self._states(total, shift, moved, spread)

    def _states(
        self, total: np.ndarray, shift: np.ndarray, moved: np.ndarray, spread: np.ndarray
    ) -> pa.Array:
        """Build states from counts (`total`), the sums `moved` of deviations from `shift`, and the sums `spread` of
        their squares."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            spread = spread - np.where(total > 0, moved * moved / total, 0.0)
            mean = np.where(total > 0, shift + moved / total, 0.0)
        fields = [
            columns.from_values(total, pa.uint64()),
            columns.from_values(mean, pa.float64()),
            columns.from_values(np.where(spread < 0, 0.0, spread), pa.float64()),
        ]
        return columns.structs_from(fields, self.state_type.arrow)


def variance(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve varPop, varSamp, stddevPop or stddevSamp; Float32 arguments give Float32, but not
    those of varPopStable and its kin. Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    narrow = isinstance(argument, Float) and argument.bits >= 32 and not name.endswith("Stable")
    result = argument if narrow else FLOAT64
    state = Tuple((UINT64, FLOAT64, FLOAT64), ("count", "mean", "squares"))
    return Variance(
        name, (), types, result, state_type_of(name, (), types, state), merge_class="float"
    )
