"""covarPop, covarSamp and corr, computed from counts, means and products of deviations.

States merge as those of `variance` do (Chan, Golub, LeVeque 1979; Bennett et al. 2009 for products).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.types import plain


@dataclass(frozen=True)
class Covariance(Aggregate):
    """covarPop, covarSamp, corr.

    State: Tuple(count UInt64, left Float64, right Float64, products Float64): the two means and the
    sum of the products of deviations. corr adds two fields, the sums of squared deviations."""

    @property
    def correlates(self) -> bool:
        """Return whether the aggregate is corr, which needs the sums of squares too."""
        return self.state_type.function == "corr"

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the states of the groups over rows without NULLs."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        left, right = (columns.numpy_values(argument).astype(np.float64) for argument in arguments)
        zeros = [np.zeros(len(left))] * (3 if self.correlates else 1)
        return self._combined([np.ones(len(left)), left, right, *zeros], groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Combine the states of each group."""
        fields = columns.struct_fields(states)
        return self._combined([columns.numpy_values(f).astype(np.float64) for f in fields], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return covariances or correlations; NaN for groups with too few rows."""
        counts, _, _, products, *squares = (
            columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(states)
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.correlates:
                results = products / np.sqrt(squares[0] * squares[1])
            else:
                divisor = counts - 1 if self.state_type.function == "covarSamp" else counts
                results = np.where(divisor > 0, products / divisor, np.nan)
        return columns.from_values(results, plain(self.result_type).arrow)

    def _combined(self, fields: Sequence[np.ndarray], groups: Groups) -> pa.Array:
        """Return the states of the groups; `fields` are those of the states to merge."""
        counts, left, right, *sums = fields
        nonempty = counts > 0
        total = group_kernels.sum_floats(counts, groups)
        means, deviations = [], []
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for mean in (left, right):
                weighted = group_kernels.sum_floats(np.where(nonempty, counts * mean, 0.0), groups)
                means.append(np.where(total > 0, weighted / total, 0.0))
                deviations.append(mean - means[-1][groups.codes])
            pairs = ((0, 1), (0, 0), (1, 1))[: len(sums)]
            moments = [
                np.where(nonempty, own + counts * deviations[a] * deviations[b], 0.0)
                for own, (a, b) in zip(sums, pairs, strict=True)
            ]
        merged = [*means, *(group_kernels.sum_floats(moment, groups) for moment in moments)]
        count_field = columns.from_values(total, pa.uint64())
        mean_fields = [columns.from_values(values, pa.float64()) for values in merged]
        return columns.structs_from([count_field, *mean_fields], self.state_type.arrow)
