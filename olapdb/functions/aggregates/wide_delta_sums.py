"""deltaSum of integers of 128 and 256 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates.group_kernels import drop_null_rows
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns, wide_numbers
from olapdb.records import dataclass
from olapdb.types import WideNumber


@dataclass(frozen=True)
class WideDeltaSum(Aggregate):
    """deltaSum(x) as `DeltaSum`, of wide integers. State: Tuple(sum, first, last, seen), which merges in row
    order."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the rises of each group's values in row order."""
        (values,), groups = drop_null_rows(arguments, groups)
        limbs = wide_numbers.limbs_of(values)
        return self._joined(np.zeros_like(limbs), limbs, limbs, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the states of each group in order; between two there is one more difference."""
        *fields, seen = columns.struct_fields(states)
        rows = np.flatnonzero(columns.numpy_values(seen))
        sums, firsts, lasts = (wide_numbers.limbs_of(field)[rows] for field in fields)
        return self._joined(sums, firsts, lasts, Groups(groups.codes[rows], groups.count))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the sums; 0 for a group without values."""
        return columns.struct_fields(states)[0]

    def _joined(
        self, sums: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, groups: Groups
    ) -> pa.Array:
        """Join the pieces (sum, first, last) of each group in row order; rises between pieces count too."""
        number = self.result_type
        assert isinstance(number, WideNumber)
        order = groups.order
        sums, firsts, lasts = sums[order], firsts[order], lasts[order]
        follows = np.diff(groups.codes[order]) == 0
        up = 1 + np.flatnonzero(follows & wide_numbers.less(lasts[:-1], firsts[1:]))
        rises = np.zeros_like(sums)
        rises[up] = wide_numbers.added(firsts[up], wide_numbers.negated(lasts[up - 1]))
        running = wide_numbers.running_totals(wide_numbers.added(sums, rises))
        starts, ends = groups.starts, groups.starts + groups.sizes
        totals = wide_numbers.added(running[ends], wide_numbers.negated(running[starts]))
        present = groups.sizes > 0
        first, last = np.zeros_like(totals), np.zeros_like(totals)
        first[present] = firsts[starts[present]]
        last[present] = lasts[ends[present] - 1]
        fields = [wide_numbers.column_of(part, number) for part in (totals, first, last)]
        seen = columns.from_values(present, pa.uint8())
        return columns.structs_from([*fields, seen], self.state_type.arrow)
