"""quantileExact, quantilesExact, medianExact: elements of all the values, sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import columns
from olapdb.functions.aggregates import segments
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.values import default_value
from olapdb.types import Array


@dataclass(frozen=True)
class ExactQuantiles(Aggregate):
    """The element at level times count, rounded down, of the values that are neither NULL nor NaN.
    State: Array of them, sorted: as large as the data, so any cut gives the same."""

    levels: tuple[float, ...] = (0.5,)

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        (values,), groups = segments.present(arguments, groups)
        if pa.types.is_floating(values.type):
            numbers = ~np.isnan(columns.numpy_values(values))
            (values,), groups = segments.kept([values], groups, numbers)
        order = np.lexsort((segments.comparable(values), groups.codes))
        offsets = columns.offsets_from_counts(np.bincount(groups.codes, minlength=groups.count))
        return columns.lists_from(offsets, values.take(pa.array(order)))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        return self.state([elements], segments.regroup(offsets, groups))

    def finalize(self, states: pa.Array) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        found = [self._at(level, offsets, elements) for level in self.levels]
        if not isinstance(self.result_type, Array):
            return found[0]
        count = len(self.levels)
        stacked = pa.concat_arrays(found)
        rows = np.arange(len(states))[:, None] + np.arange(count)[None, :] * len(states)
        lists = np.arange(len(states) + 1) * count
        return columns.lists_from(lists, stacked.take(pa.array(rows.reshape(-1))))

    def _at(self, level: float, offsets: np.ndarray, elements: pa.Array) -> pa.Array:
        counts = np.diff(offsets)
        places = np.minimum((level * counts).astype(np.int64), counts - 1)
        rows = np.where(counts > 0, offsets[:-1] + places, -1)
        values = segments.take_rows(elements, rows)
        whole = self.result_type
        if pa.types.is_floating(values.type) and not isinstance(whole, Array):
            return values.fill_null(float("nan"))  # but of several levels 0, as in ClickHouse
        missing = default_value(whole.inner if isinstance(whole, Array) else whole)
        return pc.fill_null(values, missing) if values.null_count else values
