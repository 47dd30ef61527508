"""quantileExactWeighted and its forms of many levels: each value counts as often as its weight says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.gathered import Gathered, rows_type
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    quantile_levels,
    require_count,
    require_some,
    state_type_of,
)
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import (
    Array,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    plain,
)
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True)
class WeightedQuantiles(Gathered):
    """quantileExactWeighted(x, weight): the smallest value at which the cumulative weight reaches the level's share
    of the total weight. NaN is left out."""

    levels: tuple[float, ...] = (0.5,)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return one quantile a group, or with quantiles… a list of them in order of levels."""
        offsets, rows = columns.elements_of(states)
        values, weights = columns.struct_fields(rows)
        codes = columns.parents_of(offsets)
        counts = columns.numpy_values(weights).astype(np.int64)
        if pa.types.is_floating(values.type):
            numbers = np.flatnonzero(~np.isnan(columns.numpy_values(values)))
            values = values.take(from_numpy(numbers))
            counts, codes = counts[numbers], codes[numbers]
        order = order_by(codes, group_kernels.order_keys(values))
        values, counts, codes = values.take(from_numpy(order)), counts[order], codes[order]
        sizes = np.bincount(codes, minlength=len(states))
        starts = columns.offsets_from_counts(sizes)
        running = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        places_of_levels = [self._places(level, starts, running) for level in self.levels]
        quantiles = [self._values(values, places) for places in places_of_levels]
        if not isinstance(self.result_type, Array):
            return quantiles[0]
        stacked = pa.concat_arrays(quantiles)
        count = len(self.levels)
        picks = np.arange(len(states))[:, None] + np.arange(count)[None, :] * len(states)
        lists = np.arange(len(states) + 1) * count
        return columns.lists_from(lists, stacked.take(from_numpy(picks.reshape(-1))))

    def _places(self, level: float, starts: np.ndarray, running: np.ndarray) -> np.ndarray:
        """Return the place of each group's quantile among the sorted values; -1 for an empty group."""
        totals = running[starts[1:]] - running[starts[:-1]]
        wanted = running[starts[:-1]] + np.ceil(level * totals).astype(np.int64)
        places = np.searchsorted(running[1:], wanted, "left")
        places = np.clip(places, starts[:-1], np.maximum(starts[1:] - 1, starts[:-1]))
        return np.where(starts[1:] > starts[:-1], places, -1)

    def _values(self, values: pa.Array, places: np.ndarray) -> pa.Array:
        """Return the values at these places; the type's default, or NaN, at -1."""
        taken = group_kernels.take_rows(values, places)
        result = self.result_type
        if not taken.null_count:
            return taken
        if pa.types.is_floating(taken.type) and not isinstance(result, Array):
            return taken.fill_null(float("nan"))
        missing = default_value(result.inner if isinstance(result, Array) else result)
        return pc.fill_null(taken, missing)

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Raise NotImplementedError: `finalize` keeps the type of the values."""
        raise NotImplementedError


def weighted_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s)ExactWeighted(x, weight), whose weight is an unsigned integer.

    Raises IllegalTypeOfArgument."""
    require_some(name, types)
    value = plain(types[0])
    numeric = Integer | Float | Boolean | Decimal
    if not isinstance(value, numeric | Date | Date32 | DateTime | DateTime64):
        raise illegal_argument(name, types[0], "a number, decimal or date")
    require_count(name, types, 2)
    levels = quantile_levels(name, parameters)
    weight = plain(types[1])
    if not isinstance(weight, Integer) or weight.signed:
        raise illegal_argument(name, types[1], "an unsigned integer as the weight")
    result: DataType = Array(value) if name.startswith("quantiles") else value
    state = state_type_of(name, parameters, types, rows_type(types))
    return WeightedQuantiles(name, parameters, types, result, state, levels=levels)
