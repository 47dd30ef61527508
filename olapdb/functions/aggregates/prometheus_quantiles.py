"""quantilePrometheusHistogram and quantilesPrometheusHistogram: quantiles of classic histograms, as
Prometheus' histogram_quantile computes them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    quantile_levels,
    require_count,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT64, Array, Boolean, DataType, Float, Integer, Tuple, plain


@dataclass(frozen=True)
class PrometheusQuantiles(Aggregate):
    """quantile(s)PrometheusHistogram(upper bound, number of observations up to it).

    Numbers of one bound add up; a row whose bound is NaN is skipped. State:
    Array(Tuple(bound, number)), sorted by bound."""

    levels: tuple[float, ...] = (0.5,)

    @property
    def state_key(self) -> Hashable | None:
        """The class and argument types, never None: the levels do not change the state."""
        return type(self), self.argument_types

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's buckets from its rows without NULL."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        bounds, numbers = (columns.numpy_values(array) for array in arguments)
        return self._added(bounds, numbers, groups.codes, groups.count)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the buckets of each group's states by their bounds."""
        offsets, buckets = columns.elements_of(states)
        bounds, numbers = (columns.numpy_values(field) for field in columns.struct_fields(buckets))
        owners = group_kernels.element_groups(offsets, groups)
        return self._added(bounds, numbers, owners.codes, groups.count)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return one quantile a group, or with quantiles a list of them in order of levels; 0 for a
        group without buckets."""
        offsets, buckets = columns.elements_of(states)
        bounds, numbers = (
            columns.numpy_values(field).astype(np.float64)
            for field in columns.struct_fields(buckets)
        )
        starts, sizes = offsets[:-1], np.diff(offsets)
        quantiles = np.zeros((len(states), len(self.levels)))
        filled = sizes > 0
        for place, level in enumerate(self.levels):
            quantiles[filled, place] = _at(level, bounds, numbers, starts[filled], sizes[filled])
        result = self.result_type
        inner = plain(result.inner if isinstance(result, Array) else result)
        values = columns.from_values(quantiles.reshape(-1), inner.arrow)
        if not isinstance(result, Array):
            return values
        return columns.lists_from(np.arange(len(states) + 1) * len(self.levels), values)

    def _added(
        self, bounds: np.ndarray, numbers: np.ndarray, owners: np.ndarray, count: int
    ) -> pa.Array:
        """Build the states of `count` groups from buckets; counts of equal bounds in a group add up. `owners` is the
        group of each bucket."""
        kept = ~np.isnan(bounds)
        bounds, owners = bounds[kept] + 0.0, owners[kept]  # -0.0 becomes 0.0
        element = self.state_type.arrow.value_type
        numbers = numbers[kept].astype(columns.dtype_of(element.field(1).type))
        order = np.lexsort((bounds, owners))
        bounds, numbers, owners = bounds[order], numbers[order], owners[order]
        begins = np.ones(len(order), bool)
        begins[1:] = (bounds[1:] != bounds[:-1]) | (owners[1:] != owners[:-1])
        places = np.flatnonzero(begins)
        if len(places):
            numbers = np.add.reduceat(numbers, places)
        fields = [
            columns.from_values(bounds[places], element.field(0).type),
            columns.from_values(numbers, element.field(1).type),
        ]
        offsets = columns.offsets_from_counts(np.bincount(owners[places], minlength=count))
        return columns.lists_from(offsets, columns.structs_from(fields, element))


def _at(
    level: float, bounds: np.ndarray, numbers: np.ndarray, starts: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Return the quantile of each histogram for one level; `starts` and `sizes` locate its buckets, at least one,
    sorted by bound. Interpolates linearly in the bucket that holds the level; the first bucket begins at 0. NaN
    without an infinite last bound, or if there is no other bucket. In the infinite bucket: the greatest finite bound.
    In a first bucket with a bound of 0 or less: that bound."""
    lasts = starts + sizes - 1
    positions = level * numbers[lasts]
    places = _first_not_below(positions, numbers, starts, sizes)
    before = np.maximum(places - 1, starts)
    is_first = places == starts
    low = np.where(is_first, 0.0, bounds[before])
    below = np.where(is_first, 0.0, numbers[before])
    high, upto = bounds[places], numbers[places]
    with np.errstate(divide="ignore", invalid="ignore"):
        quantiles = low + (high - low) * (positions - below) / (upto - below)
    quantiles = np.where(is_first & (high <= 0), high, quantiles)
    quantiles = np.where(places == lasts, bounds[np.maximum(lasts - 1, starts)], quantiles)
    return np.where((sizes < 2) | (bounds[lasts] != np.inf), np.nan, quantiles)


def _first_not_below(
    positions: np.ndarray, numbers: np.ndarray, starts: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Return the first bucket of each histogram whose cumulative number is at least the position, by binary search.
    Where the numbers are not ascending, the search path decides, as in ClickHouse."""
    firsts, left = starts.copy(), sizes.copy()
    while left.max(initial=0) > 0:
        half = left // 2
        middle = np.minimum(firsts + half, starts + sizes - 1)
        below = (left > 0) & (numbers[middle] < positions)
        firsts = np.where(below, middle + 1, firsts)
        left = np.where(below, left - half - 1, half)
    return np.asarray(np.minimum(firsts, starts + sizes - 1))


def prometheus_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s)PrometheusHistogram(bound, number) of a float and a float or unsigned integer.

    Raises NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    require_count(name, types, 2)
    bound, number = plain(types[0]), plain(types[1])
    if not isinstance(bound, Float):
        raise illegal_argument(name, types[0], "a Float32 or Float64, the bucket's upper bound,")
    is_unsigned = isinstance(number, Boolean) or (isinstance(number, Integer) and not number.signed)
    if not is_unsigned and not isinstance(number, Float):
        raise illegal_argument(name, types[1], "a float or an unsigned integer")
    levels = quantile_levels(name, parameters)
    summed = UINT64 if is_unsigned else FLOAT64
    state = Array(Tuple((bound, summed), ("bound", "number")))
    return PrometheusQuantiles(
        name,
        parameters,
        types,
        Array(bound) if name.startswith("quantiles") else bound,
        state_type_of(name, parameters, types, state),
        levels,
        merge_class="exact" if is_unsigned else "float",
    )
