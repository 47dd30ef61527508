"""covarPop, covarSamp, corr: by counts, means and products of deviations.

States merge as those of `moments` do (Chan, Golub, LeVeque 1979; Bennett et al. 2009 for products).
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
    """State: Tuple(count UInt64, left Float64, right Float64, products Float64), the means and the
    sum of products of deviations; of corr the two sums of squares behind them."""

    @property
    def correlates(self) -> bool:
        return self.state_type.function == "corr"

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        left, right = (columns.numpy_values(one).astype(np.float64) for one in arguments)
        nothing = [np.zeros(len(left))] * (3 if self.correlates else 1)
        return self._combined([np.ones(len(left)), left, right, *nothing], groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        fields = columns.struct_fields(states)
        return self._combined([columns.numpy_values(f).astype(np.float64) for f in fields], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        counts, _, _, products, *squares = (
            columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(states)
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.correlates:
                found = products / np.sqrt(squares[0] * squares[1])
            else:
                divisor = counts - 1 if self.state_type.function == "covarSamp" else counts
                found = np.where(divisor > 0, products / divisor, np.nan)
        return columns.from_values(found, plain(self.result_type).arrow)

    def _combined(self, parts: Sequence[np.ndarray], groups: Groups) -> pa.Array:
        counts, left, right, *sums = parts
        there = counts > 0
        total = group_kernels.sum_floats(counts, groups)
        means, apart = [], []
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for one in (left, right):
                weighted = group_kernels.sum_floats(np.where(there, counts * one, 0.0), groups)
                means.append(np.where(total > 0, weighted / total, 0.0))
                apart.append(one - means[-1][groups.codes])
            pairs = ((0, 1), (0, 0), (1, 1))[: len(sums)]
            spread = [
                np.where(there, known + counts * apart[a] * apart[b], 0.0)
                for known, (a, b) in zip(sums, pairs, strict=True)
            ]
        fields = [columns.from_values(total, pa.uint64())]
        fields += [columns.from_values(one, pa.float64()) for one in means]
        fields += [
            columns.from_values(group_kernels.sum_floats(one, groups), pa.float64())
            for one in spread
        ]
        return columns.structs_from(fields, self.state_type.arrow)
