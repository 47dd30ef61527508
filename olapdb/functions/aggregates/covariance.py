"""covarPop, covarSamp and corr, computed from counts, means and products of deviations.

States merge as those of `variance` do (Chan, Golub, LeVeque 1979; Bennett et al. 2009 for products).
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
from olapdb.types import FLOAT64, UINT64, Boolean, DataType, Float, Integer, Tuple, plain


@dataclass(frozen=True)
class Covariance(Aggregate):
    """covarPop, covarSamp, corr, and the same with Stable, which are infinite where the others are
    NaN for want of rows.

    State: Tuple(count UInt64, left Float64, right Float64, products Float64): the two means and the
    sum of the products of deviations. corr adds two fields, the sums of squared deviations."""

    @property
    def correlates(self) -> bool:
        """Return whether the aggregate is corr, which needs the sums of squares too."""
        return self.state_type.function.startswith("corr")

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's count, means and sums of products; rows with a NULL are skipped."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        left, right = (columns.numpy_values(argument).astype(np.float64) for argument in arguments)
        return self._of_values(left, right, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Combine the states of each group."""
        fields = columns.struct_fields(states)
        return self._combined([columns.numpy_values(f).astype(np.float64) for f in fields], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return covariances or correlations; NaN, or inf, for groups with too few rows."""
        counts, _, _, products, *squares = (
            columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(states)
        )
        function = self.state_type.function
        too_few = np.inf if function.endswith("Stable") else np.nan
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.correlates:
                results = np.where(counts > 1, products / np.sqrt(squares[0] * squares[1]), too_few)
            else:
                divisor = counts - 1 if "Samp" in function else counts
                results = np.where(divisor > 0, products / divisor, too_few)
            return columns.from_values(results, plain(self.result_type).arrow)

    def _of_values(self, left: np.ndarray, right: np.ndarray, groups: Groups) -> pa.Array:
        """Return the states of the groups from pairs of values. The result is bit for bit the one that `_combined`
        gives for states of one pair each, in fewer passes."""
        total = groups.sizes.astype(np.float64)
        factors, moved, merged = [], [], []
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for values in (left, right):
                sums = group_kernels.sum_floats(values, groups)
                mean = np.where(total > 0, sums / total, 0.0)
                squares = sum_deviations(groups, (values, mean), (values, mean))
                shift = short_means(mean, squares, total)
                factors.append((values, shift))
                moved.append(sum_deviations(groups, factors[-1]))
                merged.append(np.where(total > 0, shift + moved[-1] / total, 0.0))
            for a, b in ((0, 1), (0, 0), (1, 1))[: 3 if self.correlates else 1]:
                product = np.where(total > 0, moved[a] * moved[b] / total, 0.0)
                merged.append(sum_deviations(groups, factors[a], factors[b]) - product)
        return self._states(total, merged)

    def _combined(self, fields: Sequence[np.ndarray], groups: Groups) -> pa.Array:
        """Merge states group by group and return the merged states; `fields` are the fields of the states to merge."""
        counts, left, right, *sums = fields
        nonempty = counts > 0
        total = group_kernels.sum_floats(counts, groups)
        means, deviations, moved = [], [], []
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for mean in (left, right):
                weighted = group_kernels.sum_floats(np.where(nonempty, counts * mean, 0.0), groups)
                means.append(np.where(total > 0, weighted / total, 0.0))
                deviations.append(mean - of_groups(means[-1], groups))
            pairs = ((0, 1), (0, 0), (1, 1))[: len(sums)]
            merged = []
            for at, mean in enumerate((left, right)):
                squares = np.where(nonempty, counts * deviations[at] * deviations[at], 0.0)
                spread = group_kernels.sum_floats(squares, groups)
                shift = short_means(means[at], spread, total)
                deviations[at] = np.where(nonempty, mean - of_groups(shift, groups), 0.0)
                moved.append(group_kernels.sum_floats(counts * deviations[at], groups))
                merged.append(np.where(total > 0, shift + moved[at] / total, 0.0))
            for own, (a, b) in zip(sums, pairs, strict=True):
                terms = np.where(nonempty, own + counts * deviations[a] * deviations[b], 0.0)
                product = np.where(total > 0, moved[a] * moved[b] / total, 0.0)
                merged.append(group_kernels.sum_floats(terms, groups) - product)
        return self._states(total, merged)

    def _states(self, total: np.ndarray, merged: Sequence[np.ndarray]) -> pa.Array:
        """Build states from the numbers of rows, `total`, and the merged other fields."""
        count_field = columns.from_values(total, pa.uint64())
        mean_fields = [columns.from_values(values, pa.float64()) for values in merged]
        return columns.structs_from([count_field, *mean_fields], self.state_type.arrow)


def covariance(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve covarPop, covarSamp or corr; two Float32 arguments give Float32, but not those of
    covarPopStable and its kin. Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 2)
    arguments = [plain(data_type) for data_type in types]
    for data_type in arguments:
        if not isinstance(data_type, Integer | Float | Boolean):
            raise illegal_argument(name, data_type, "a number")
    narrow = all(isinstance(data_type, Float) and data_type.bits == 32 for data_type in arguments)
    names: tuple[str, ...] = ("count", "left", "right", "products")
    narrow &= not name.endswith("Stable")
    if name in ("corr", "corrStable"):
        names = (*names, "left_squares", "right_squares")
    state = Tuple((UINT64, *[FLOAT64] * (len(names) - 1)), names)
    result = arguments[0] if narrow else FLOAT64
    return Covariance(
        name, (), types, result, state_type_of(name, (), types, state), merge_class="float"
    )
